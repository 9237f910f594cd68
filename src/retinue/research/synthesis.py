"""Role outcomes become one report: merged, deduped and bounded, with the answer in front.

Pure: the same outcomes give the same report. Reads no files and knows nothing of how roles work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from retinue.core import RESEARCH_ROLES, Reference, RoleOutcome, RoleResult, clip

SUMMARY_CHARS = 900
ROLE_SUMMARY_CHARS = 400
FINDINGS = 12
FINDING_CHARS = 300
SNIPPET_CHARS = 1_200
"""Of a finding with several lines, which is an example with its code."""
NOTE_CHARS = 400


def merge(outcomes: Mapping[str, RoleOutcome]) -> dict[str, RoleOutcome]:
    """Bounded, and each reference in one role alone: the first that has it. Findings stay with their role."""
    seen: set[Reference] = set()
    merged: dict[str, RoleOutcome] = {}
    for role in RESEARCH_ROLES:
        outcome = outcomes.get(role)
        if outcome is None:
            continue
        if outcome.value is not None:
            value = _bounded(outcome.value)
            references = tuple(reference for reference in value.references if reference not in seen)
            seen.update(references)
            outcome = replace(outcome, value=replace(value, references=references))
        merged[role] = outcome
    return merged


def _bounded(value: RoleResult) -> RoleResult:
    findings = dict.fromkeys(
        clip(finding, SNIPPET_CHARS if "\n" in finding else FINDING_CHARS) for finding in value.key_findings
    )
    return replace(
        value,
        summary=clip(value.summary, ROLE_SUMMARY_CHARS),
        references=tuple(dict.fromkeys(value.references)),
        key_findings=tuple(findings)[:FINDINGS],
        notes=value.notes and clip(value.notes, NOTE_CHARS),
    )


def answer(roles: Mapping[str, RoleOutcome]) -> str:
    """What was traced, then where to look, then what is missing and why."""
    values = {role: outcome.value for role, outcome in roles.items() if outcome.value is not None}
    nothing = "locator" in values and not values["locator"].references
    order = (*(() if nothing else ("analyzer", "patterns")), "thoughtsLocator", "thoughtsAnalyzer")
    first = ("analyzer", "locator") if not nothing else ("locator",)
    sentences = [values[role].summary for role in dict.fromkeys((*first, *order)) if role in values]
    sentences += [
        f"The {role} ended with {outcome.status}: {outcome.error.message}."
        for role, outcome in roles.items()
        if outcome.error is not None
    ]
    return clip(" ".join(filter(None, dict.fromkeys(sentences))), SUMMARY_CHARS)
