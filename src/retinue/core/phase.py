"""The few words of a handoff that everybody needs: phases, decisions, states. Knows nothing of validation."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    RESEARCH = "research"
    WRITE = "write"
    VALIDATE = "validate"

    @property
    def expected(self) -> Expected:
        return _EXPECTED[self]


class Expected(StrEnum):
    """What the findings of a phase must hold."""

    FINDINGS = "structured_findings"
    FILES = "files_changed"
    VALIDATION = "validation_result"


class Decision(StrEnum):
    PROCEED = "PROCEED"
    STOP = "STOP"
    CLARIFY = "CLARIFY"


class Progress(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    BLOCKED = "blocked"


_EXPECTED = {
    Phase.RESEARCH: Expected.FINDINGS,
    Phase.WRITE: Expected.FILES,
    Phase.VALIDATE: Expected.VALIDATION,
}
