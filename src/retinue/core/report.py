"""What research returns: a role's result, how the role ended, and the report of them all.

The shapes and names of `as_dict` are a contract with hosts. Knows nothing of how a result is found.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from retinue.core.errors import InvalidInput
from retinue.core.ids import Id
from retinue.core.reference import Reference

Confidence = Literal["low", "med", "high"]
RoleStatus = Literal["ok", "timeout", "canceled", "error"]

RESEARCH_ROLES = ("locator", "analyzer", "patterns", "thoughtsLocator", "thoughtsAnalyzer")
"""Every role a report may have a key for, in the order of the keys."""


class ReportId(Id):
    """Under which the whole of a report is kept."""

    __slots__ = ()


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

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> RoleResult:
        return cls(
            summary=shown["summary"],
            references=tuple(map(Reference.parse, shown["references"])),
            key_findings=tuple(shown["key_findings"]),
            confidence=shown["confidence"],
            notes=shown["notes"],
        )


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

    status: RoleStatus
    value: RoleResult | None = None
    error: RoleError | None = None
    started_at: int
    """Milliseconds since 1970."""
    elapsed_ms: int

    def __post_init__(self) -> None:
        ok = self.status == "ok"
        if ok != (self.value is not None) or ok != (self.error is None):
            raise InvalidInput(f"a role that ended {self.status} has a value or an error, never both")

    def as_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {"status": self.status}
        if self.value is not None:
            shown["value"] = self.value.as_dict()
        if self.error is not None:
            shown["error"] = self.error.as_dict()
        shown["timing"] = {"startedAt": self.started_at, "elapsedMs": self.elapsed_ms}
        return shown

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> RoleOutcome:
        return cls(
            status=shown["status"],
            value=RoleResult.from_dict(shown["value"]) if "value" in shown else None,
            error=RoleError(**shown["error"]) if "error" in shown else None,
            started_at=shown["timing"]["startedAt"],
            elapsed_ms=shown["timing"]["elapsedMs"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportProgress:
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

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> ReportProgress:
        return cls(
            spawned=shown["spawnedTasks"],
            elapsed_ms=shown["elapsedMs"],
            files_read=shown["filesRead"],
            bytes_read=shown["bytesRead"],
            keywords=tuple(shown["keywords"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    id: ReportId
    question: str
    roots_searched: tuple[str, ...]
    """Absolute; the only absolute paths of a report."""
    roles: Mapping[str, RoleOutcome]
    """By key; the locator is there unless another role was asked for alone."""
    summary: str
    """The answer in a few sentences."""
    notes: tuple[str, ...] = ()
    """What was cut, dropped, limited or missing."""
    root_of: Mapping[str, int] = field(default_factory=dict[str, int])
    """With several roots: for each reference that is not in the first one, which of them it is in."""
    progress: ReportProgress | None = None
    artifact: str | None = None
    """Where the memo was written, if one was asked for."""

    def __post_init__(self) -> None:
        if not self.roles or not set(self.roles) <= set(RESEARCH_ROLES):
            raise InvalidInput(f"a report has roles, and no unknown ones: {sorted(self.roles)}")

    def absolute_path(self, reference: Reference) -> str:
        """Where a file that it names lies, `..` taken out."""
        root = self.roots_searched[self.root_of.get(str(reference), 0)]
        return os.path.normpath(Path(root) / reference.path)

    def as_dict(self) -> dict[str, object]:
        """The contract's keys first; those of ours that have nothing to say are left out."""
        shown: dict[str, object] = {
            "question": self.question,
            "rootsSearched": list(self.roots_searched),
            "summary": self.summary,
        }
        shown |= {role: self.roles[role].as_dict() for role in RESEARCH_ROLES if role in self.roles}
        ours = {
            "rootOf": dict(self.root_of),
            "notes": list(self.notes),
            "progress": self.progress and self.progress.as_dict(),
            "artifactPath": self.artifact,
        }
        return shown | {key: value for key, value in ours.items() if value} | {"id": str(self.id)}

    def role_as_dict(self, role: str) -> dict[str, object]:
        """One role's result alone, without the wrapper around it."""
        outcome = self.roles[role]
        shown: dict[str, object] = {
            "question": self.question,
            "rootsSearched": list(self.roots_searched),
            "status": outcome.status,
        }
        if outcome.value is not None:
            notes = [*([outcome.value.notes] if outcome.value.notes else []), *self.notes]
            shown |= replace(outcome.value, notes=" ".join(notes) or None).as_dict()
        if outcome.error is not None:
            shown["error"] = outcome.error.as_dict()
        shown["timing"] = {"startedAt": outcome.started_at, "elapsedMs": outcome.elapsed_ms}
        return shown | ({"rootOf": dict(self.root_of)} if self.root_of else {})

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> Report:
        """The inverse of `as_dict`; a KeyError, TypeError or InvalidInput for anything else."""
        return cls(
            id=ReportId.parse(shown["id"]),
            question=shown["question"],
            roots_searched=tuple(shown["rootsSearched"]),
            roles={role: RoleOutcome.from_dict(shown[role]) for role in RESEARCH_ROLES if role in shown},
            summary=shown["summary"],
            notes=tuple(shown.get("notes", ())),
            root_of=dict(shown.get("rootOf", {})),
            progress=ReportProgress.from_dict(shown["progress"]) if "progress" in shown else None,
            artifact=shown.get("artifactPath"),
        )
