"""The locator finds places, explains them, and says what does not exist (P2, P3, P8)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.answers.existence import find_similar_names
from retinue.answers.locator import CHECKED_AT_ONCE, QUOTED_PLACES, locate
from retinue.answers.role_context import RoleContext
from retinue.answers.source_files import ReadBudget, ReadReservation
from retinue.codebase import Located, Locator, ParsedQuestion
from retinue.core import BudgetKind, DeadlineExceeded, RoleResult, Stop
from retinue.service import ResearchRequest, Service, locate_in_codebase
from tests.answers.conftest import ContextFor, ContextIn, findings_starting as starts, write


def located(context: RoleContext, limit: int = 20) -> RoleResult:
    return locate(context, limit, Stop())


def test_summary_counts_the_files_that_are_told_and_no_others(context_for: ContextFor) -> None:
    result = located(context_for("where is with_retry implemented and tested?"), 2)
    files = {reference.path for reference in result.references}
    assert f" {len(files)} file" in result.summary


def test_locator_counts_places_by_kind(context_for: ContextFor) -> None:
    """Phase 2, locator output: summary, references, findings and confidence are present and bounded."""
    result = located(context_for("where is with_retry implemented and tested?"))
    assert "implementation" in result.summary
    assert "1 test)" in result.summary or "1 test," in result.summary
    assert starts(result, "tests/test_retry.py:4 (test): ")
    assert starts(result, "docs/retry.md:1 (docs): ")
    assert result.confidence in ("low", "med", "high")
    assert all(len(finding) <= 300 for finding in result.key_findings)


def test_locator_references_are_unique_stable_and_without_excerpts(context_for: ContextFor) -> None:
    """Phase 2, locator evidence."""
    results = [located(context_for("with_retry")) for _ in range(3)]
    assert results[0] == results[1] == results[2]
    references = results[0].references
    assert len(set(references)) == len(references)
    assert not any("return call()" in finding for finding in results[0].key_findings)


def test_locator_shows_the_symbol_and_the_line_of_code_of_every_place(context_for: ContextFor) -> None:
    result = located(context_for("where is with_retry implemented?"))
    assert starts(result, "src/shop/retry.py:18: `def with_retry(call, policy):`")
    assert len(result.references) > 3
    assert all(starts(result, str(reference)) for reference in result.references)
    method = located(context_for("where is should_retry implemented?"))
    assert starts(
        method, "src/shop/retry.py:11 `RetryPolicy.should_retry`: `def should_retry(self, attempt: int)"
    )


def test_locator_shows_the_best_places_if_there_is_no_room_for_all(
    project: Path, context_for: ContextFor
) -> None:
    for number in range(20):
        write(project, {f"src/shop/more_{number}.py": f"def with_retry_{number}():\n    return {number}\n"})
    result = locate(context_for("with_retry"), 20, Stop())
    assert len(result.references) > len(result.key_findings) == QUOTED_PLACES
    assert starts(result, f"{result.references[0]}: ")


def test_empty_folder_is_said_to_have_nothing_to_search(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: the reader learns that the root is wrong, not that the code lacks something."""
    (tmp_path / "empty").mkdir()
    result = located(context_in(tmp_path / "empty", "where is with_retry?"))
    assert result.summary == "Not found: 1 root has no file that can be searched."


def test_picture_is_found_by_its_name(project: Path, context_for: ContextFor) -> None:
    (project / "assets").mkdir()
    (project / "assets/shop-logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    result = located(context_for("where is shop-logo.png?"))
    assert str(result.references[0]) == "assets/shop-logo.png"
    assert result.summary.startswith("`shop-logo.png` is assets/shop-logo.png.")
    assert "Not in the code" not in (result.notes or "")


def test_locator_names_what_does_not_exist_beside_what_was_found(context_for: ContextFor) -> None:
    """P8: a missing name is reported although other names were found."""
    result = located(context_for("does with_retry call frob_nicate?"))
    assert result.references
    assert result.notes is not None
    assert "frob_nicate" in result.notes


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_locator_respects_its_limit(context_for: ContextFor, limit: int) -> None:
    assert len(located(context_for("with_retry"), limit).references) == limit


def test_place_that_no_longer_fits_the_question_is_dropped(project: Path, context_for: ContextFor) -> None:
    """P3: between the search and the check, one file changes and another is removed."""
    context = context_for("where is with_retry used?")

    class Late(Locator):
        def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
            found = super().locate(question, limit, stop)
            (project / "src/shop/payment.py").write_text("nothing\n" * 9)
            (project / "src/shop/stock.py").unlink()
            return found

    before = located(context)
    after = located(replace(context, scope=replace(context.scope, locator=Late(context.scope.codebase))))
    lost = {one.path for one in before.references} - {one.path for one in after.references}
    assert lost == {"src/shop/payment.py", "src/shop/stock.py"}
    assert (
        after.notes
        == "1 place left out: without with_retry. 1 place left out: the file is gone or unreadable."
    )


def test_untouched_tree_drops_no_place_without_a_true_reason(project: Path, context_for: ContextFor) -> None:
    """P8: a file that fits only some words of the name is left out for that reason."""
    write(project, {"src/shop/other.py": "def retry_later():\n    pass\n" + "x = 1\n" * 200})
    result = located(context_for("where is with_retry used?"))
    assert "gone" not in str(result.notes)
    assert "any more" not in str(result.notes)


def test_long_bug_report_with_many_words_is_answered(project: Path, context_for: ContextFor) -> None:
    words = " ".join(f"word{number}" for number in range(9_000))
    result = located(context_for(f"with_retry fails\n\n```\n{words}\n```"))
    assert str(result.references[0]) == "src/shop/retry.py:18"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "similar"),
    [
        ("where is with_retyr?", "with_retry"),
        ("where is WithRetrry implemented?", "with_retry"),
        ("how does RetriPolicy work?", "RetryPolicy"),
        ("where is fetchPaeg called?", "fetchPage"),
        ("MAX_ATEMPTS", "MAX_ATTEMPTS"),
    ],
)
async def test_mistyped_name_gets_similar_names(service: Service, question: str, similar: str) -> None:
    answer: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question=question))
    assert answer["references"] == []
    assert f"Similar names: {similar}" in answer["summary"]


@pytest.mark.anyio
async def test_files_too_large_to_read_are_mentioned_if_nothing_was_found(
    service: Service, project: Path
) -> None:
    """P8: the answer may be in one of them."""
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
async def test_unique_name_gets_no_similar_names(service: Service) -> None:
    answer: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is quuxinator_zyzzy?")
    )
    assert "Not found" in answer["summary"]
    assert "Similar names" not in str(answer)


def test_one_missing_name_among_others_gets_similar_names_too(context_for: ContextFor) -> None:
    result = locate(context_for("how do with_retry and charge_crad work together?"), 5, Stop())
    assert result.notes is not None
    assert "Not found: charge_crad. Similar names: charge_card." in result.notes


@pytest.mark.parametrize("name", ["a" * 5_000, "(((", "\\w+", "naïveté_größe", "ab"])
def test_any_name_can_be_searched_for(project: Path, context_for: ContextFor, name: str) -> None:
    write(project, {"src/odd.py": "def naivete_grosse(): ...\n"})
    assert isinstance(find_similar_names(context_for("with_retry"), [name], Stop()), tuple)


class CutShort(Locator):
    """Returns its places only when the soft deadline has passed."""

    def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
        located = super().locate(question, limit, Stop())
        stop.cancel()
        return located


@pytest.mark.parametrize("question", ["where is with_retry?", "where is frob_nicate?"])
def test_search_cut_short_by_the_deadline_keeps_its_places_or_times_out(
    context_for: ContextFor, question: str
) -> None:
    whole = context_for(question)
    cut = replace(whole, scope=replace(whole.scope, locator=CutShort(whole.scope.codebase)))
    if "frob" in question:
        with pytest.raises(DeadlineExceeded):
            locate(cut, 5, Stop(60))
    else:
        result = locate(cut, 5, Stop(60))
        assert str(result.references[0]) == "src/shop/retry.py:18"
        assert len(result.places) == len(result.references)
        assert result.confidence == "low"
        assert "deadline" in str(result.notes)


class Ending(Stop):
    """A deadline that comes when the test says so."""

    over = False

    def check(self) -> None:
        if self.over:
            raise DeadlineExceeded("the deadline passed before the work was done")


class DeadlineAfter(ReadBudget):
    """Lets the deadline come after so many reads."""

    def __init__(self, stop: Ending, reads: int) -> None:
        super().__init__(max_files=50, max_bytes=1_000_000)
        self._stop, self._left = stop, reads

    def reserve(self, kind: BudgetKind, amount: int) -> ReadReservation:
        if kind is BudgetKind.BYTES:
            self._left -= 1
            self._stop.over = self._left <= 0
        return super().reserve(kind, amount)


def test_places_that_were_checked_before_the_deadline_are_kept(
    project: Path, context_for: ContextFor
) -> None:
    """P2, P3: unchecked places are left out and counted."""
    write(project, {f"src/many/use_{n}.py": f"def use_{n}():\n    with_retry({n})\n" for n in range(12)})
    stop = Ending(60)
    context = context_for("where is with_retry used?")
    result = locate(context, 10, stop, DeadlineAfter(stop, CHECKED_AT_ONCE))
    assert len(result.references) == len(result.places) == CHECKED_AT_ONCE
    assert "5 places left out: the deadline came." in str(result.notes)


def test_tests_come_after_the_code(tmp_path: Path, context_in: ContextIn) -> None:
    """Unless the question asks for them: they repeat the words of the code."""
    tests = {
        f"tests/test_refund_{n}.py": f"def test_refund_voucher_{n}():\n    refund_voucher(refund, voucher)\n"
        for n in range(8)
    }
    code = {"shop/refund.py": "def refund_voucher(order):\n    return order\n"}
    root = write(tmp_path / "shop", {**tests, **code})
    asked = locate(context_in(root, "how is a voucher refunded?"), 15, Stop())
    assert asked.places[0].kind == "implementation"
    about_tests = locate(context_in(root, "how do the tests check that a voucher is refunded?"), 15, Stop())
    assert [place.kind for place in about_tests.places].count("test") == 8


def test_question_for_a_place_is_answered_with_the_names_that_may_be_it(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = "def delay_for(count):\n    # how long a failed job waits\n    return count**4 + 15\n"
    root = write(tmp_path / "jobs", {"retry.py": code, "other.py": "def other():\n    return 1\n"})
    result = located(context_in(root, "Where is it decided how long a failed job waits?"))
    assert re.match(r"(?:In|Probably in|Perhaps in) `delay_for`", result.summary)


def test_words_that_the_code_lacks_are_told_if_the_caller_has_not_named_others(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = "def suggest(task, known):\n    return closest(task, known)\n"
    root = write(tmp_path / "jobs", {"tasks.py": code, "README.md": "Misspelled tasks are corrected.\n"})
    context = context_in(root, "Where are misspelled tasks corrected?")
    assert located(context).notes == (
        "Not in the code: misspelled, corrected. Guess with `also` what it is called there."
    )
    hinted = replace(context, question=context.question.with_hints(["suggest", "gizmo"]))
    assert located(hinted).notes == "The code has `suggest`, but not `gizmo`."


def test_keys_of_configuration_are_no_place_where_something_is_done(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = "def run_once(job):\n    # the same job does not run twice\n    return job.run()\n"
    workflow = "on: push\njobs:\n  run:\n    steps:\n      - run: twice the same job\n"
    root = write(tmp_path / "jobs", {"run.py": code, "ci/wheels.yaml": workflow})
    result = located(context_in(root, "Where is the same job run twice?"))
    assert "`run_once`" in result.summary
    assert "`jobs`" not in result.summary


def test_file_that_only_has_the_words_of_a_hint_or_related_ones_stays(
    tmp_path: Path, context_in: ContextIn
) -> None:
    files = {
        "redaction.js": "function redaction (opts) {\n  return censor(opts)\n}\n",
        "users.js": "function check (credential) {\n  return credential.output\n}\n",
        "vault.js": "function lock (password) {\n  return password\n}\n",
    }
    context = context_in(write(tmp_path / "log", files), "How are credentials kept away from the output?")
    assert "vault.js:1" in map(str, located(context).references)
    hinted = replace(context, question=context.question.with_hints(["redaction", "censor"]))
    assert "redaction.js:1" in map(str, located(hinted).references)


def test_class_of_one_capitalised_word_comes_first(tmp_path: Path, context_in: ContextIn) -> None:
    files = {
        f"src/supervisor_{n}.py": f"def supervisor_{n}(supervisor):\n    return supervisor\n"
        for n in range(4)
    }
    files["src/life.py"] = "class Supervisor:\n    def start(self):\n        return 1\n"
    found = locate(context_in(write(tmp_path / "life", files), "where is Supervisor defined?"), 8, Stop())
    assert str(found.references[0]) == "src/life.py:1"
    assert found.summary.startswith("`Supervisor` is defined in src/life.py.")
