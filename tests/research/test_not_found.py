"""What was not found is said, with what may have been meant; a cut search is neither (P8)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from retinue.codebase import Located, Locator, ParsedQuestion
from retinue.core import DeadlineExceeded, Stop
from retinue.research import Ledger
from retinue.research.analyzer import analyze
from retinue.research.locator import AT_ONCE, find, near_names
from retinue.research.role_context import Inquiry
from retinue.research.source_files import Books
from retinue.service import ResearchRequest, Service, locate_in_codebase
from tests.research.conftest import write

Inquire = Callable[..., Inquiry]


@pytest.mark.anyio
@pytest.mark.parametrize("question", ["x", "the the", "???a", "is it?"])
async def test_question_without_words_is_quoted(service: Service, question: str) -> None:
    answer: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=question))
    assert (answer["references"], answer["confidence"]) == ([], "low")
    assert f"9 files of 1 root fits `{question}`" in answer["summary"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("where is with_retyr?", "with_retry"),
        ("where is WithRetrry implemented?", "with_retry"),
        ("how does RetriPolicy work?", "RetryPolicy"),
        ("where is fetchPaeg called?", "fetchPage"),
        ("MAX_ATEMPTS", "MAX_ATTEMPTS"),
    ],
)
async def test_mistyped_name_gets_the_names_that_exist(service: Service, question: str, near: str) -> None:
    answer: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=question))
    assert answer["references"] == []
    assert f"Near names: {near}" in answer["summary"]


@pytest.mark.anyio
async def test_files_too_large_to_be_read_are_told_where_nothing_was_found(
    service: Service, project: Path
) -> None:
    """P8: it may stand in one of them."""
    said = "1 file larger than 500 kB was not read."
    before: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is quuxinator_zyzzy?")
    )
    assert before["notes"] is None
    (project / "made.py").write_text("quuxinator_zyzzy = 1\n" * 30_000)
    after: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is quuxinator_zyzzy?")
    )
    assert "Not found" in after["summary"]
    assert after["notes"] == said


@pytest.mark.anyio
async def test_name_like_no_other_gets_no_near_names(service: Service) -> None:
    answer: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is quuxinator_zyzzy?")
    )
    assert "Not found" in answer["summary"]
    assert "Near names" not in str(answer)


def test_one_missing_name_among_others_gets_near_names_too(inquire: Inquire) -> None:
    result, _ = find(inquire("how do with_retry and charge_crad work together?"), 5, Stop())
    assert result.notes is not None
    assert "Not found: charge_crad. Near names: charge_card." in result.notes


@pytest.mark.parametrize("name", ["a" * 5_000, "(((", "\\w+", "naïveté_größe", "ab"])
def test_any_name_can_be_looked_for(project: Path, inquire: Inquire, name: str) -> None:
    write(project, {"src/odd.py": "def naivete_grosse(): ...\n"})
    assert isinstance(near_names(inquire("with_retry"), [name], Stop()), tuple)


class CutShort(Locator):
    """Finds what there is to find, but only when most of the time is gone."""

    def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
        located = super().locate(question, limit, Stop())
        stop.cancel()
        return located


@pytest.mark.parametrize("question", ["where is with_retry?", "where is frob_nicate?"])
def test_search_that_time_cut_short_keeps_its_places_or_says_timeout(inquire: Inquire, question: str) -> None:
    whole = inquire(question)
    cut = replace(whole, scope=replace(whole.scope, locator=CutShort(whole.scope.codebase)))
    if "frob" in question:
        with pytest.raises(DeadlineExceeded):
            find(cut, 5, Stop(60))
    else:
        result, places = find(cut, 5, Stop(60))
        assert str(result.references[0]) == "src/shop/retry.py:18"
        assert len(places) == len(result.references)
        assert result.confidence == "low"
        assert "deadline" in str(result.notes)


class Ending(Stop):
    """A deadline that comes when the test says so."""

    over = False

    def check(self) -> None:
        if self.over:
            raise DeadlineExceeded("the deadline passed before the work was done")


@dataclass
class CountingBooks:
    """Lets the deadline come after so many bookings."""

    stop: Ending
    left: int
    books: Books

    def charge(self, file: Hashable, size: int) -> None:
        self.books.charge(file, size)
        self.left -= 1
        self.stop.over = self.left <= 0


def test_places_that_were_checked_before_the_deadline_are_kept(project: Path, inquire: Inquire) -> None:
    """P2, P3: none that was not opened again; how many that were is said."""
    write(project, {f"src/many/use_{n}.py": f"def use_{n}():\n    with_retry({n})\n" for n in range(12)})
    stop = Ending(60)
    asking = inquire("where is with_retry used?")
    cut = asking.booked_by(CountingBooks(stop, AT_ONCE, Ledger(50, 1_000_000)))
    result, places = find(cut, 12, stop)
    assert len(result.references) == len(places) == AT_ONCE
    assert "7 places left out: the deadline came." in str(result.notes)


class AlmostOver(Stop):
    """A deadline of which most is gone when the test says so: time to tell what there is."""

    @contextmanager
    def watch(self, on_stop: Callable[[], None]) -> Generator[None]:
        self.most_is_gone = on_stop
        yield


@dataclass
class OneMoreBooking:
    stop: AlmostOver
    books: Books

    def charge(self, file: Hashable, size: int) -> None:
        self.books.charge(file, size)
        self.stop.most_is_gone()


def test_analysis_that_time_cut_short_keeps_its_findings_and_says_so(inquire: Inquire) -> None:
    """P2: the places of the locator stand anyway; what was traced by then is told too."""
    asking = inquire("how do charge_card and reserve_items work?")
    _, places = find(asking, 5, Stop())
    stop = AlmostOver(60)
    result = analyze(asking, places, stop)
    assert "deadline" not in str(result.notes)
    whole = len(result.key_findings)
    again = inquire("how do charge_card and reserve_items work?")
    cut = analyze(again.booked_by(OneMoreBooking(stop, Ledger(50, 1_000_000))), places, stop)
    assert 0 < len(cut.key_findings) < whole
    assert "The deadline came before all of it was traced." in str(cut.notes)
