"""The report of a research question: the results of its roles, how each role ended, and the summary.

Hosts rely on the shapes and names that `as_dict` returns. Knows nothing of how results are found.
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

Intent = Literal["where", "how", "callers", "options", "examples", "exists", "error", "changes"]
"""What a question asks for. It decides the shape of the answer."""

RESEARCH_ROLES = ("locator", "analyzer", "patterns", "thoughtsLocator", "thoughtsAnalyzer", "web")
"""The roles a report may contain, in the order of their keys."""


def answer_order(intent: Intent | None) -> tuple[str, ...]:
    """Return the roles in the order in which they answer a question of this intent."""
    match intent:
        case "examples":
            first = ("patterns", "locator", "analyzer")
        case "where" | "exists":
            first = ("locator", "analyzer", "patterns")
        case _:
            first = ("analyzer", "locator", "patterns")
    return (*first, "thoughtsLocator", "thoughtsAnalyzer", "web")


class ReportId(Id):
    """The id under which the full report is stored."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleResult:
    """The findings of one research role."""

    summary: str
    references: tuple[Reference, ...] = ()
    """Best first, without duplicates."""
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
    """Why a research role failed."""

    name: str
    """The code of the error, such as `unavailable`."""
    message: str

    def as_dict(self) -> dict[str, object]:
        return {"name": self.name, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOutcome:
    """How a role ended. It has a value if the status is `ok`, otherwise an error."""

    status: RoleStatus
    value: RoleResult | None = None
    error: RoleError | None = None
    started_at: int
    """Milliseconds since 1970."""
    elapsed_ms: int

    def __post_init__(self) -> None:
        ok = self.status == "ok"
        if ok != (self.value is not None) or ok != (self.error is None):
            raise InvalidInput(f"a role with status {self.status} must have either a value or an error")

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
    """How much work a report took."""

    spawned: int
    """How many roles were started."""
    elapsed_ms: int
    files_read: int
    bytes_read: int
    keywords: tuple[str, ...] = ()
    """The search terms."""

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
class Clarification:
    """A question back to the caller, whose own question cannot be answered as it is."""

    question: str
    """What the caller should say."""
    roots: tuple[str, ...] = ()
    """The roots to choose from, if there are several."""
    components: tuple[str, ...] = ()
    """Parts of the project that the caller may mean."""
    keywords: tuple[str, ...] = ()
    """Words of the question that occur nowhere."""

    def as_dict(self) -> dict[str, object]:
        return {
            "question": self.question,
            "roots": list(self.roots),
            "components": list(self.components),
            "keywords": list(self.keywords),
        }

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> Clarification:
        return cls(
            question=shown["question"],
            roots=tuple(shown["roots"]),
            components=tuple(shown["components"]),
            keywords=tuple(shown["keywords"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExplanation:
    """A model's explanation of the findings. The only part of a report that depends on a model."""

    model: str
    """The model that wrote it."""
    sentences: tuple[str, ...]
    """Each ends with its place. Its names and numbers occur in the code that the model was shown."""
    searched: tuple[str, ...] = ()
    """Names that the model proposed for a second search."""
    references: tuple[Reference, ...] = ()
    """Places that only the second search found."""

    def as_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {"model": self.model, "sentences": list(self.sentences)}
        if self.references:
            shown |= {"searched": list(self.searched), "references": list(map(str, self.references))}
        return shown

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> ModelExplanation:
        return cls(
            model=shown["model"],
            sentences=tuple(shown["sentences"]),
            searched=tuple(shown.get("searched", ())),
            references=tuple(map(Reference.parse, shown.get("references", ()))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to a research question."""

    id: ReportId
    question: str
    roots_searched: tuple[str, ...]
    """Absolute paths; all other paths of a report are relative."""
    roles: Mapping[str, RoleOutcome]
    """The outcome of each role. The locator is missing only if another single role was requested."""
    summary: str
    """The answer in a few sentences."""
    notes: tuple[str, ...] = ()
    """What was cut, dropped, limited or is missing."""
    root_of: Mapping[str, int] = field(default_factory=dict[str, int])
    """With several roots: the index of the root of each reference."""
    progress: ReportProgress | None = None
    artifact: str | None = None
    """The path of the Markdown memo, if one was requested."""
    intent: Intent | None = None
    """What the question asks for. Reports of earlier versions have none."""
    constraints: Mapping[str, int] = field(default_factory=dict[str, int])
    """The limits of the request, by the names that callers use."""
    clarification: Clarification | None = None
    """Set if the question cannot be answered as it is."""
    explanation: ModelExplanation | None = None
    """What a model says about the findings, if one was asked."""

    def __post_init__(self) -> None:
        if not self.roles or not set(self.roles) <= set(RESEARCH_ROLES):
            raise InvalidInput(f"a report needs at least one role and no unknown ones: {sorted(self.roles)}")

    def absolute_path(self, reference: Reference) -> str:
        """The normalised absolute path of a reference."""
        root = self.roots_searched[self.root_of.get(str(reference), 0)]
        return os.path.normpath(Path(root) / reference.path)

    def as_dict(self) -> dict[str, object]:
        """The report as hosts see it. Optional keys without a value are left out."""
        shown: dict[str, object] = {
            "question": self.question,
            "rootsSearched": list(self.roots_searched),
            **({"intent": self.intent} if self.intent else {}),
            "summary": self.summary,
            **({"clarification": self.clarification.as_dict()} if self.clarification else {}),
            **({"explanation": self.explanation.as_dict()} if self.explanation else {}),
        }
        shown |= {role: self.roles[role].as_dict() for role in RESEARCH_ROLES if role in self.roles}
        optional = {
            "rootOf": dict(self.root_of),
            "notes": list(self.notes),
            "constraints": dict(self.constraints),
            "progress": self.progress and self.progress.as_dict(),
            "artifactPath": self.artifact,
        }
        return shown | {key: value for key, value in optional.items() if value} | {"id": str(self.id)}

    def role_as_dict(self, role: str) -> dict[str, object]:
        """The result of a single role, without the rest of the report."""
        outcome = self.roles[role]
        shown: dict[str, object] = {
            "question": self.question,
            "rootsSearched": list(self.roots_searched),
            **({"intent": self.intent} if self.intent else {}),
            "status": outcome.status,
        }
        if outcome.value is not None:
            notes = [*([outcome.value.notes] if outcome.value.notes else []), *self.notes]
            shown |= replace(outcome.value, notes=" ".join(notes) or None).as_dict()
        if outcome.error is not None:
            shown["error"] = outcome.error.as_dict()
        shown["timing"] = {"startedAt": outcome.started_at, "elapsedMs": outcome.elapsed_ms}
        optional = {
            "clarification": self.clarification and self.clarification.as_dict(),
            "explanation": self.explanation and self.explanation.as_dict(),
            "rootOf": dict(self.root_of),
            "constraints": dict(self.constraints),
        }
        return shown | {key: value for key, value in optional.items() if value}

    @classmethod
    def from_dict(cls, shown: Mapping[str, Any]) -> Report:
        """The inverse of `as_dict`. Raises KeyError, TypeError or InvalidInput for any other value."""
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
            intent=shown.get("intent"),
            constraints=dict(shown.get("constraints", {})),
            clarification=Clarification.from_dict(shown["clarification"])
            if "clarification" in shown
            else None,
            explanation=ModelExplanation.from_dict(shown["explanation"]) if "explanation" in shown else None,
        )
