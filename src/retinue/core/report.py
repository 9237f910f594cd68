"""What research returns: a role's result, how the role ended, and the report of them all.

The shapes and names of `as_dict` are a contract with hosts. Knows nothing of how a result is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from retinue.core.errors import InvalidInput
from retinue.core.reference import Reference

Confidence = Literal["low", "med", "high"]
Status = Literal["ok", "timeout", "canceled", "error"]

ROLES = ("locator", "analyzer", "patterns", "thoughts_locator", "thoughts_analyzer")
"""Every role a report may have a key for, in the order of the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleResult:
    summary: str
    references: tuple[Reference, ...] = ()
    """Best first, each once."""
    key_findings: tuple[str, ...] = ()
    confidence: Confidence = "low"
    notes: str | None = None

    def as_dict(self) -> dict[str, object]:
        return {
            "summary": self.summary,
            "references": [str(reference) for reference in self.references],
            "key_findings": list(self.key_findings),
            "confidence": self.confidence,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class RoleError:
    name: str
    """The stable code of the error."""
    message: str

    def as_dict(self) -> dict[str, object]:
        return {"name": self.name, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOutcome:
    """How a role ended: with a value exactly when it is `ok`, with an error exactly when it is not."""

    status: Status
    value: RoleResult | None = None
    error: RoleError | None = None
    started_at: int
    """Milliseconds since 1970."""
    elapsed_ms: int

    def __post_init__(self) -> None:
        ok = self.status == "ok"
        if ok == (self.value is None) or ok == (self.error is not None):
            raise InvalidInput(f"a role that ended {self.status} needs a value or an error, not both")

    def as_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {"status": self.status}
        if self.value is not None:
            shown["value"] = self.value.as_dict()
        if self.error is not None:
            shown["error"] = self.error.as_dict()
        shown["timing"] = {"startedAt": self.started_at, "elapsedMs": self.elapsed_ms}
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done for a report."""

    spawned: int
    """Roles that were started."""
    elapsed_ms: int
    files_read: int
    bytes_read: int
    keywords: tuple[str, ...] = ()
    """What was searched for."""

    def as_dict(self) -> dict[str, object]:
        return {
            "spawnedTasks": self.spawned,
            "elapsedMs": self.elapsed_ms,
            "filesRead": self.files_read,
            "bytesRead": self.bytes_read,
            "keywords": list(self.keywords),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    id: str
    question: str
    roots_searched: tuple[str, ...]
    """Absolute; the only absolute paths of a report."""
    roles: Mapping[str, RoleOutcome]
    """By key, of which `locator` is always there."""
    summary: str
    """The answer in a few sentences."""
    notes: tuple[str, ...] = ()
    """What was cut, dropped, limited or missing."""
    root_of: Mapping[str, int] = field(default_factory=dict[str, int])
    """With several roots: the root of each reference that is not in the first one, by its place in the list."""
    progress: Progress | None = None
    artifact: str | None = None
    """Where the memo was written, if one was asked for."""

    def __post_init__(self) -> None:
        if "locator" not in self.roles or not set(self.roles) <= set(ROLES):
            raise InvalidInput(f"a report has a locator and no unknown roles: {sorted(self.roles)}")

    def as_dict(self) -> dict[str, object]:
        """The contract's keys first; those of ours that have nothing to say are left out."""
        shown: dict[str, object] = {
            "question": self.question,
            "rootsSearched": list(self.roots_searched),
            "summary": self.summary,
        }
        shown |= {role: self.roles[role].as_dict() for role in ROLES if role in self.roles}
        ours = {
            "rootOf": dict(self.root_of),
            "notes": list(self.notes),
            "progress": self.progress and self.progress.as_dict(),
            "artifactPath": self.artifact,
            "id": self.id,
        }
        return shown | {key: value for key, value in ours.items() if value}
