"""One question at work: what was asked, where to look, and with what. What every role is given."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from retinue.codebase import Claim, FileEntry, check_claims
from retinue.core import Reference, Stop, Stopped, counted
from retinue.research.question import Earlier, ResearchQuestion
from retinue.research.scope import Naming, SearchScope
from retinue.research.source_files import Books, SourceFiles


@dataclass(frozen=True, slots=True)
class Inquiry:
    asked: ResearchQuestion
    scope: SearchScope
    sources: SourceFiles
    before: SearchScope | None = None
    """What the report names before this scope: its roots come first, and so do its references."""
    earlier: Earlier | None = None
    """The report that is followed up, if one is."""
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    """Where each reference that was made belongs, by its place among the report's roots."""

    def booked_by(self, books: Books) -> Inquiry:
        return replace(self, sources=self.sources.booked_by(books))

    def reference(self, entry: FileEntry, line: int | None = None) -> Reference:
        reference, root = Naming(self.scope, self.before).of(entry, line)
        self.root_of.setdefault(str(reference), root)
        return reference


# MERGED soft_deadline: Ending some time before the deadline, so that what was found can still be checked and told (P2).

SHARE = 0.8
"""Of the time that is left; the rest is for checking."""


@dataclass(slots=True)
class Soon:
    stop: Stop
    note: str | None = None
    """Said when the time came before the work was done."""


@contextmanager
def early(stop: Stop) -> Generator[Soon]:
    """Work in the block ends quietly when most of the time is gone; a cancel goes on."""
    left = stop.remaining()
    soon = Soon(Stop(None if left is None else left * SHARE))
    with stop.watch(soon.stop.cancel):
        try:
            yield soon
        except Stopped:
            stop.check()  # a cancel, or the deadline itself
            soon.note = "The deadline came before all of it was traced."


# MERGED findings: Findings with their evidence, and the last look at it before they are told (P3).


@dataclass(frozen=True, slots=True)
class Finding:
    text: str
    claims: tuple[Claim, ...]
    """What must hold for the text to be true."""


@dataclass(frozen=True, slots=True)
class Verified:
    findings: tuple[str, ...]
    references: tuple[Reference, ...]
    """Of the findings, in their order, each once."""
    notes: str | None
    """What was dropped."""


def verify(inquiry: Inquiry, findings: Sequence[Finding], stop: Stop) -> Verified:
    """The findings all of whose evidence holds when its files are opened again."""
    claims = dict.fromkeys(claim for finding in findings for claim in finding.claims)
    held = set(check_claims(inquiry.scope.codebase, claims, stop, inquiry.sources.ledger.charge).held)
    kept = [finding for finding in findings if held.issuperset(finding.claims)]
    references = dict.fromkeys(
        inquiry.reference(claim.entry, claim.line) for finding in kept for claim in finding.claims
    )
    dropped = len(findings) - len(kept)
    note = f"{counted(dropped, 'finding')} dropped: the evidence did not hold." if dropped else None
    return Verified(tuple(finding.text for finding in kept), tuple(references), note)
