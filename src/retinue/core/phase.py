"""The few words of a handoff that everybody needs: phases, decisions, states. Knows nothing of validation."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    RESEARCH = "research"
    WRITE = "write"
    VALIDATE = "validate"

    @property
    def expected(self) -> ExpectedFindings:
        return _EXPECTED[self]


class ExpectedFindings(StrEnum):
    """What the findings of a phase must hold."""

    FINDINGS = "structured_findings"
    FILES = "files_changed"
    VALIDATION = "validation_result"


class Decision(StrEnum):
    PROCEED = "PROCEED"
    STOP = "STOP"
    CLARIFY = "CLARIFY"


class PhaseStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    BLOCKED = "blocked"


_EXPECTED = {
    Phase.RESEARCH: ExpectedFindings.FINDINGS,
    Phase.WRITE: ExpectedFindings.FILES,
    Phase.VALIDATE: ExpectedFindings.VALIDATION,
}
