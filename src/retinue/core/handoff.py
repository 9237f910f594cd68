"""The handoff: the typed request to an agent and its typed response. Nothing else crosses between phases.

Imported only where a handoff is made or read: pydantic takes longer to load than `retinue --help` may.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from retinue.core.workflow import Decision, Expected, Phase, Progress

HANDOFF_SUMMARY_TOKENS = 500
"""Of a `context_summary`; the server cuts what is longer."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HandoffContext(_Model):
    feature: str
    spec_path: str | None = None
    relevant_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    previous_findings: str | None = None
    """The `context_summary` of the phase before, never its findings."""


class HandoffRequest(_Model):
    """From the workflow to an agent."""

    task_id: str
    phase: Phase
    context: HandoffContext
    instructions: str
    expected_output: Expected


class HandoffResponse(_Model):
    """From an agent back to the workflow."""

    task_id: str
    phase: Phase
    status: Progress
    decision: Decision
    findings: dict[str, Any]
    """Phase-specific; stays with the server."""
    context_summary: Annotated[str, Field(min_length=1)]
    """All that the next phase is told."""
    tokens_used: Annotated[int, Field(ge=0)]
    """Measured by the server, whatever the agent wrote."""
    issues: tuple[str, ...] = ()


def handoff_schemas() -> dict[str, Any]:
    """Both as JSON Schema."""
    return {
        "request": HandoffRequest.model_json_schema(),
        "response": HandoffResponse.model_json_schema(),
    }
