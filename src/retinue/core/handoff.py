"""The handoff: the typed request to an agent of a workflow and its typed response.

Nothing else passes between phases. Import this module only to create or read a handoff: pydantic takes longer
to load than `retinue --help` may take.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from retinue.core.workflow import Decision, Expected, Phase, Progress

HANDOFF_SUMMARY_TOKENS = 500
"""Tokens a `context_summary` may have. The server cuts longer ones."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HandoffContext(_Model):
    feature: str
    spec_path: str | None = None
    relevant_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    previous_findings: str | None = None
    """The `context_summary` of the previous phase, never its findings."""


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
    """Fields that depend on the phase. They stay on the server."""
    context_summary: Annotated[str, Field(min_length=1)]
    """The only text that the next phase receives."""
    tokens_used: Annotated[int, Field(ge=0)]
    """The number that the server measured, not the one the agent wrote."""
    issues: tuple[str, ...] = ()


def handoff_schemas() -> dict[str, Any]:
    """The JSON Schemas of the request and the response."""
    return {
        "request": HandoffRequest.model_json_schema(),
        "response": HandoffResponse.model_json_schema(),
    }
