"""What holds for every role: evidence is checked again, deadlines and cancels end it (P2, P3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retinue.answers.flow import tell_flow
from retinue.answers.locator import locate
from retinue.answers.patterns import find_examples
from retinue.answers.role_context import Finding, RoleContext, verify_findings
from retinue.answers.source_files import ReadBudget, ReadReservation
from retinue.codebase import Claim, FileEntry
from retinue.core import BudgetKind, Canceled, DeadlineExceeded, RoleResult, Root, Stop
from tests.answers.conftest import ContextFor, write


def analyzed(context: RoleContext) -> RoleResult:
    return tell_flow(context, locate(context, 20, Stop()).places, Stop())


def patterns_of(context: RoleContext) -> RoleResult:
    return find_examples(context, locate(context, 20, Stop()).places, Stop())


def test_findings_whose_evidence_is_gone_are_dropped_and_counted(
    project: Path, context_for: ContextFor
) -> None:
    """P3: a file changes between reading and checking."""
    file = project / "src/shop/payment.py"
    telling = "return with_retry(lambda: gateway.charge(amount), RetryPolicy())"

    def change(text: str) -> str:
        """Change the file when its line is redacted, which happens after the last read."""
        if telling in text:
            file.write_text("nothing\n" * 9)
        return text

    def patterns_after(redact: Callable[[str], str]) -> RoleResult:
        question = "examples of with_retry"
        places = locate(context_for(question), 20, Stop()).places
        context = context_for(question)
        context.sources.redact = redact
        return find_examples(context, places, Stop())

    assert telling in "".join(patterns_after(str).key_findings)
    result = patterns_after(change)
    assert not [text for text in result.key_findings if "payment.py" in text]
    assert result.notes is not None
    assert "1 finding dropped: the evidence did not hold." in result.notes


def test_finding_is_kept_only_if_all_its_evidence_holds(project: Path, context_for: ContextFor) -> None:
    """P3: the references of a dropped finding are dropped too."""
    retry, payment = (FileEntry(Root.at(project), f"src/shop/{name}.py") for name in ("retry", "payment"))
    defined, used = Claim(retry, 18, ("with_retry",)), Claim(payment, 5, ("with_retry",))
    elsewhere = Claim(payment, 4, ("with_retry",))
    findings = [Finding("both", (defined, used)), Finding("half", (defined, elsewhere))]
    verified = verify_findings(context_for("with_retry"), findings, Stop())
    assert verified.texts == ("both",)
    assert [str(one) for one in verified.references] == ["src/shop/retry.py:18", "src/shop/payment.py:5"]
    assert verified.note == "1 finding dropped: the evidence did not hold."


@pytest.mark.parametrize("role", [tell_flow, find_examples])
def test_canceled_or_late_role_ends(context_for: ContextFor, role: Callable[..., RoleResult]) -> None:
    context = context_for("examples of with_retry")
    places = locate(context, 20, Stop()).places
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        role(context, places, stop)
    with pytest.raises(DeadlineExceeded):
        role(context, places, Stop(0))


@pytest.mark.parametrize(
    "text",
    [
        "def with_retry():\n    " + "a" * 400_000 + "(1)\n",
        "def with_retry():\n    " + "'\"`" * 130_000 + "\n",
        "def with_retry():\n    x = [" + "a.b(c)." * 60_000 + "]\n",
        "".join(f"{' ' * (number % 60)}def with_retry_{number}():\n" for number in range(8_000)),
    ],
    ids=["one word", "quotes", "calls", "definitions"],
)
def test_hostile_files_cost_no_more_than_ordinary_ones(
    project: Path, context_for: ContextFor, text: str
) -> None:
    """P2: a role ends, whatever a file contains."""
    write(project, {"src/odd.py": text})
    start = time.process_time()
    for role in (analyzed, patterns_of):
        role(context_for("examples of with_retry"))
    assert time.process_time() - start < 10


class AlmostOver(Stop):
    """A stop whose soft deadline comes when the test says so."""

    @contextmanager
    def watch(self, on_stop: Callable[[], None]) -> Generator[None]:
        self.most_is_gone = on_stop
        yield


class OneMoreRead(ReadBudget):
    """Lets the soft deadline come with the first read."""

    def __init__(self, stop: AlmostOver) -> None:
        super().__init__(max_files=50, max_bytes=1_000_000)
        self._stop = stop

    def reserve(self, kind: BudgetKind, amount: int) -> ReadReservation:
        if kind is BudgetKind.BYTES:
            self._stop.most_is_gone()
        return super().reserve(kind, amount)


def test_analysis_cut_short_by_the_deadline_keeps_its_findings_and_says_so(context_for: ContextFor) -> None:
    """P2: the locator's places stand anyway; what was traced in time is reported too."""
    context = context_for("how do charge_card and reserve_items work?")
    places = locate(context, 5, Stop()).places
    stop = AlmostOver(60)
    whole = tell_flow(context, places, stop)
    assert "deadline" not in str(whole.notes)
    again = context_for("how do charge_card and reserve_items work?")
    cut = tell_flow(again, places, stop, OneMoreRead(stop))
    assert 0 < len(cut.key_findings) < len(whole.key_findings)
    assert "The deadline came before all of it was traced." in str(cut.notes)
