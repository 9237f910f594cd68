"""Role outcomes become one report: merged, deduped and bounded, with the answer in front.

Pure: the same outcomes give the same report. Reads no files and knows nothing of how roles work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from retinue.core import (
    RESEARCH_ROLES,
    Reference,
    Report,
    RoleOutcome,
    RoleResult,
    clip,
    counted,
    estimate_tokens,
)

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


# MERGED fitting: A report cut to a token budget (P4): what matters most stays, and what was cut is said.
#
# First come direct answers with evidence, then entry points and call paths, then configuration and constants,
# then examples, then historical notes. Each role orders its own lists by the same priorities.

MARGIN = 0.92
"""The share of the budget that is filled: the estimate of tokens errs a little."""
FEWEST_TOKENS = 400
"""The frame of a report, without anything in it, takes most of this."""
QUESTION_CHARS = 400

_ELAPSED = re.compile(r'(?<="elapsedMs": )\d{1,5}\b')
_ID = re.compile(r"\b\d[0-9a-z]{14}\b")

ListName = Literal["references", "key_findings"]
ORDER: tuple[tuple[str, ListName, slice], ...] = (
    ("locator", "references", slice(5)),
    ("analyzer", "key_findings", slice(4)),
    ("patterns", "key_findings", slice(2)),
    ("locator", "key_findings", slice(None)),
    ("analyzer", "key_findings", slice(4, None)),
    ("analyzer", "references", slice(5)),
    ("locator", "references", slice(5, None)),
    ("analyzer", "references", slice(5, None)),
    ("patterns", "references", slice(None)),
    ("patterns", "key_findings", slice(2, None)),
    ("thoughtsLocator", "references", slice(None)),
    ("thoughtsAnalyzer", "key_findings", slice(None)),
    ("thoughtsLocator", "key_findings", slice(None)),
    ("thoughtsAnalyzer", "references", slice(None)),
)
"""Which part of which list is kept before which."""


@dataclass(frozen=True, slots=True)
class FittedItem:
    role: str
    list: ListName
    value: Reference | str

    @property
    def tokens(self) -> int:
        return estimate_tokens(f"\n        {json.dumps(str(self.value), ensure_ascii=False)},")


def tokens_of(report: Report) -> int:
    """Of the JSON as hosts receive it; times and ids count as the dearest of their kind.

    Else what is cut would hang on them, and the same question would have two answers.
    """
    text = json.dumps(report.as_dict(), ensure_ascii=False, indent=2)
    return estimate_tokens(_ID.sub("9" * 15, _ELAPSED.sub("99999", text)))


def fit_report(report: Report, tokens: int, rest: str) -> Report:
    """The report within the budget; `rest` tells how to have what was cut."""
    room = int(tokens * MARGIN)
    report = replace(report, question=clip(report.question, QUESTION_CHARS))
    if tokens_of(report) <= room:
        return report
    items = list(_items(report))
    frame = _frame(report, items, rest, room)
    left = room - tokens_of(_filled(frame, (), items, rest))
    kept: list[FittedItem] = []
    for item in items:
        if item.tokens <= left and item.role in frame.roles:
            kept.append(item)
            left -= item.tokens
    while tokens_of(fitted := _filled(frame, kept, items, rest)) > room and kept:
        kept.pop()
    return fitted


def _items(report: Report) -> Iterator[FittedItem]:
    for role, name, part in ORDER:
        value = report.roles[role].value if role in report.roles else None
        if value is not None:
            yield from (FittedItem(role, name, one) for one in getattr(value, name)[part])


def _frame(report: Report, items: Sequence[FittedItem], rest: str, room: int) -> Report:
    """The report with texts short enough to leave half of the room for its lists, if that can be."""
    frame = report
    for length in (400, 200, 100, 50):
        frame = replace(
            report,
            question=clip(report.question, length),
            summary=clip(report.summary, 2 * length),
            notes=tuple(clip(note, length) for note in report.notes[: length // 50]),
            roles={role: _shorter(outcome, length) for role, outcome in report.roles.items()},
            progress=report.progress if length >= 200 else None,
        )
        if tokens_of(_filled(frame, (), items, rest)) <= room / 2:
            return frame
    while tokens_of(_filled(frame, (), items, rest)) > room and len(frame.roles) > 1:
        *others, last = frame.roles
        frame = replace(
            frame,
            roles={role: frame.roles[role] for role in others},
            notes=(*frame.notes, f"The {last} is cut too."),
        )
    return frame


def _shorter(outcome: RoleOutcome, length: int) -> RoleOutcome:
    value, error = outcome.value, outcome.error
    return replace(
        outcome,
        value=value
        and replace(
            value, summary=clip(value.summary, length), notes=value.notes and clip(value.notes, length)
        ),
        error=error and replace(error, message=clip(error.message, length)),
    )


def _filled(frame: Report, kept: Sequence[FittedItem], items: Sequence[FittedItem], rest: str) -> Report:
    """The frame with these items, and a note about the others."""
    cut = set(items).difference(kept)
    amounts = (("references", "reference"), ("key_findings", "finding"))
    said = [
        counted(number, noun) for name, noun in amounts if (number := sum(item.list == name for item in cut))
    ]
    note = f"Cut to fit: {' and '.join(said)}. {rest}" if said else f"Texts cut to fit. {rest}"
    roles = {role: _with_lists(role, outcome, kept) for role, outcome in frame.roles.items()}
    shown = {str(item.value) for item in kept}
    return replace(
        frame,
        roles=roles,
        notes=(*frame.notes, note),
        root_of={name: root for name, root in frame.root_of.items() if name in shown},
    )


def _with_lists(role: str, outcome: RoleOutcome, kept: Sequence[FittedItem]) -> RoleOutcome:
    if outcome.value is None:
        return outcome
    own = [item for item in kept if item.role == role]
    references = tuple(item.value for item in own if isinstance(item.value, Reference))
    findings = tuple(item.value for item in own if isinstance(item.value, str))
    return replace(outcome, value=replace(outcome.value, references=references, key_findings=findings))
