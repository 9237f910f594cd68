"""The parts that all roles share: the context of a request, a soft deadline, and the check of evidence."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from retinue.answers.question_reader import Question
from retinue.answers.request import ResearchRequest
from retinue.answers.scope import ReferenceNamer, SearchScope
from retinue.answers.source_files import SourceFiles
from retinue.codebase import Claim, FileEntry, check_claims
from retinue.core import Confidence, Reference, Report, Spending, Stop, Stopped, counted

SOFT_DEADLINE_SHARE = 0.8
"""The share of the remaining time for searching; the rest is for checking what was found."""


@dataclass(frozen=True, slots=True)
class RoleContext:
    """The input of a role: the question, where to look, and the files it may read."""

    request: ResearchRequest
    question: Question
    scope: SearchScope
    sources: SourceFiles
    before: SearchScope | None = None
    """A scope whose roots the report lists first; its files keep their names."""
    earlier: Report | None = None
    """The report that the request follows up on."""
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    """Maps each reference to the number of its root in the report."""
    found_with: Confidence = "med"
    """How sure the locator is of the places that it found."""

    def with_spending(self, spending: Spending) -> RoleContext:
        """Return a copy of the context that charges further reading to `spending`."""
        return replace(self, sources=self.sources.with_spending(spending))

    def reference(self, entry: FileEntry, line: int | None = None) -> Reference:
        """Return the reference under which the report names a file, and remember its root."""
        reference, root = ReferenceNamer(self.scope, self.before).name(entry, line)
        self.root_of.setdefault(str(reference), root)
        return reference


@dataclass(slots=True)
class SoftDeadline:
    """A stop with a deadline before the real one."""

    stop: Stop
    note: str | None = None
    """Set if the time ran out before the work was done."""


@contextmanager
def soft_deadline(stop: Stop) -> Generator[SoftDeadline]:
    """End the block quietly when most of the time is gone, so that findings can still be checked (P2).

    A cancellation and the real deadline are still raised.
    """
    left = stop.remaining()
    soft = SoftDeadline(Stop(None if left is None else left * SOFT_DEADLINE_SHARE))
    with stop.watch(soft.stop.cancel):
        try:
            yield soft
        except Stopped:
            stop.check()  # raises for a cancel or the real deadline
            soft.note = "The deadline came before all of it was traced."


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of a report with its evidence."""

    text: str
    claims: tuple[Claim, ...]
    """What must be true for the text to be true."""


@dataclass(frozen=True, slots=True)
class VerifiedFindings:
    """The findings whose evidence still holds."""

    texts: tuple[str, ...]
    references: tuple[Reference, ...]
    """The references of all texts, in order and without duplicates."""
    note: str | None
    """Says how many findings were dropped; None if none were."""


def verify_findings(context: RoleContext, findings: Sequence[Finding], stop: Stop) -> VerifiedFindings:
    """Open the files again and keep the findings whose evidence still holds (P3)."""
    claims = dict.fromkeys(claim for finding in findings for claim in finding.claims)
    held = set(check_claims(context.scope.codebase, claims, stop, context.sources.charge).held)
    kept = [finding for finding in findings if held.issuperset(finding.claims)]
    references = dict.fromkeys(
        context.reference(claim.entry, claim.line) for finding in kept for claim in finding.claims
    )
    dropped = len(findings) - len(kept)
    note = f"{counted(dropped, 'finding')} dropped: the evidence did not hold." if dropped else None
    return VerifiedFindings(tuple(finding.text for finding in kept), tuple(references), note)
