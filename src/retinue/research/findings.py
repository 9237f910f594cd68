"""Findings with their evidence, and the last look at it before they are told (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.codebase import Claim, check_claims
from retinue.core import Reference, Stop, counted
from retinue.research.role_context import Inquiry


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
