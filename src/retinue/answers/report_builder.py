"""Merges the outcomes of roles into one report and cuts it to a token budget.

Merging removes duplicates and bounds every list. Cutting (P4) keeps what matters most and says what was cut:
first the best places, then what the question asks for, then examples and other findings, then historical
notes. Each role orders its own lists in the same way.

Deterministic: the same outcomes give the same report. Reads no files and does not know how roles work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from retinue.core import (
    RESEARCH_ROLES,
    Intent,
    Reference,
    Report,
    RoleOutcome,
    RoleResult,
    answer_order,
    clip,
    counted,
    estimate_tokens,
)

MAX_SUMMARY_CHARS = 900
MAX_ROLE_SUMMARY_CHARS = 400
MAX_FINDINGS = 40
"""How many findings one role may have. A list of callers has the most."""
MAX_FINDING_CHARS = 300
MAX_SNIPPET_CHARS = 1_200
"""The limit for a finding with several lines, which is an example with code."""
MAX_NOTE_CHARS = 400


def merge_outcomes(
    outcomes: Mapping[str, RoleOutcome], intent: Intent | None = None
) -> dict[str, RoleOutcome]:
    """Return the outcomes with bounded texts. A sentence or a reference is not told twice.

    If several roles have a reference, the first one keeps it, but no role loses all of its references, and
    each example keeps its own. A place is explained by the role that answers the question.
    """
    values = {role: _bound_result(one.value) for role, one in outcomes.items() if one.value is not None}
    findings = _findings_told_once(values, intent)
    seen: set[Reference] = set()
    merged: dict[str, RoleOutcome] = {}
    for role in [role for role in RESEARCH_ROLES if role in outcomes]:
        outcome = outcomes[role]
        if (value := values.get(role)) is not None:
            own = value.references
            references = tuple(reference for reference in own if reference not in seen)
            references = own if role == "patterns" or not references else references
            seen.update(references)
            outcome = replace(
                outcome, value=replace(value, references=references, key_findings=findings[role])
            )
        merged[role] = outcome
    return merged


def _findings_told_once(
    values: Mapping[str, RoleResult], intent: Intent | None
) -> dict[str, tuple[str, ...]]:
    """Return the findings of each role without those that a role before it tells, in the order of answers."""
    sentences: set[str] = set()
    places: set[str] = set()
    findings: dict[str, tuple[str, ...]] = {}
    for role in [role for role in answer_order(intent) if role in values]:
        explains = role in LOCATORS or intent in ("where", "exists", "examples")
        findings[role] = tuple(
            finding
            for finding in values[role].key_findings
            if finding not in sentences and not (explains and _first_place(finding) in places)
        )
        sentences.update(findings[role])
        places.update(map(_first_place, findings[role]))
    return findings


LOCATORS = ("locator", "thoughtsLocator")


def _first_place(finding: str) -> str:
    """Return the reference that a finding starts with."""
    return finding.split(maxsplit=1)[0].rstrip(":") if finding else ""


def _bound_result(value: RoleResult) -> RoleResult:
    """Cut the texts and lists of a result to their limits, without duplicates."""
    findings = dict.fromkeys(
        clip(finding, MAX_SNIPPET_CHARS if "\n" in finding else MAX_FINDING_CHARS)
        for finding in value.key_findings
    )
    return replace(
        value,
        summary=clip(value.summary, MAX_ROLE_SUMMARY_CHARS),
        references=tuple(dict.fromkeys(value.references)),
        key_findings=tuple(findings)[:MAX_FINDINGS],
        notes=value.notes and clip(value.notes, MAX_NOTE_CHARS),
    )


def summarize(roles: Mapping[str, RoleOutcome], intent: Intent | None = None) -> str:
    """Summarize a report: the answer, then what is missing and why. The locator tells how much was found."""
    values = {role: outcome.value for role, outcome in roles.items() if outcome.value is not None}
    found_nothing = "locator" in values and not values["locator"].references
    order = answer_order(intent)
    if found_nothing or intent in ("where", "exists"):
        order = tuple(role for role in order if role not in ("analyzer", "patterns"))
    elif intent == "examples":
        order = tuple(role for role in order if role != "analyzer")
    answer = next((role for role in order if role in values and values[role].summary), None)
    if answer != "locator":
        order = tuple(role for role in order if role != "locator")
    if not found_nothing:  # "no document found" would read as if nothing was found
        order = tuple(
            role for role in order if not role.startswith("thoughts") or _has_references(values, role)
        )
    sentences = [values[role].summary for role in order if role in values]
    sentences += [
        f"The {role} ended with {outcome.status}: {outcome.error.message}."
        for role, outcome in roles.items()
        if outcome.error is not None
    ]
    return clip(" ".join(filter(None, dict.fromkeys(sentences))), MAX_SUMMARY_CHARS)


def _has_references(values: Mapping[str, RoleResult], role: str) -> bool:
    return role in values and bool(values[role].references)


ABOVE, NOTHING = "See the summary of the report.", "Not found."
"""What a role says instead of a sentence that the report's summary tells already."""


def tell_once(report: Report) -> Report:
    """Return the report without summaries of roles that its own summary repeats."""
    roles = {role: _without_told(outcome, report.summary) for role, outcome in report.roles.items()}
    return replace(report, roles=roles)


def _without_told(outcome: RoleOutcome, told: str) -> RoleOutcome:
    value = outcome.value
    if value is None or not value.summary or value.summary.rstrip("…") not in told:
        return outcome
    return replace(outcome, value=replace(value, summary=ABOVE if value.references else NOTHING))


FILLED_SHARE = 0.92
"""The share of the token budget that is used, because the estimate of tokens is not exact."""
MIN_TOKENS = 400
"""The smallest budget that a caller may set. An empty report already takes most of it."""
SHOWN_QUESTION_CHARS = 400

_ELAPSED = re.compile(r'(?<="elapsedMs": )\d{1,5}\b')
_ID = re.compile(r"\b\d[0-9a-z]{14}\b")

ListName = Literal["references", "key_findings"]
FIRST, MORE = 5, 12
"""How many items of a role are kept before those of the next role, and how many places before both."""
WHOLE_SNIPPETS = 2
"""How many findings of a role keep all of their code if a report is cut. The others keep one line."""
SMALL_TOKENS = 1_000
"""In a report with a smaller budget, a flow keeps one line of code for each finding."""
TOLD = 2
"""How many references of a role are kept before further places: most of them are in its findings already."""


def priorities(intent: Intent | None) -> Iterator[tuple[str, ListName, slice]]:
    """Yield the parts of the lists in the order in which they are kept.

    The best places come first, then the whole answer, then an example, then what else was found. No role
    has findings without a reference.
    """
    answer, *others = [role for role in answer_order(intent) if not role.startswith("thoughts")]
    yield "locator", "references", slice(FIRST)
    yield answer, "references", slice(1)
    yield answer, "key_findings", slice(None if answer != "locator" else FIRST)
    if answer != "locator":
        yield answer, "references", slice(TOLD)
    yield "patterns", "key_findings", slice(2)
    yield "locator", "references", slice(FIRST, MORE)
    for role in others:
        yield role, "references", slice(1)
        yield role, "key_findings", slice(FIRST)
        if role != "locator":
            yield role, "references", slice(TOLD)
    yield "locator", "references", slice(MORE, None)
    for role in (answer, *others):
        yield role, "key_findings", slice(FIRST, None)
        yield role, "references", slice(None)
    for role in ("thoughtsLocator", "thoughtsAnalyzer"):
        yield role, "references", slice(None)
        yield role, "key_findings", slice(None)


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One item of a list in a report."""

    role: str
    list: ListName
    value: Reference | str

    @property
    def tokens(self) -> int:
        return estimate_tokens(f"\n        {json.dumps(str(self.value), ensure_ascii=False)},")


def estimate_report_tokens(report: Report) -> int:
    """Estimate the tokens of the report's JSON.

    Counts each time and id as if it had the greatest length. Otherwise the cuts would depend on them, and the
    same question would get different answers.
    """
    text = json.dumps(report.as_dict(), ensure_ascii=False, indent=2)
    return estimate_tokens(_ID.sub("9" * 15, _ELAPSED.sub("99999", text)))


def fit_report(report: Report, tokens: int, how_to_see_all: str) -> Report:
    """Return the report within the budget. `how_to_see_all` tells the reader how to get what was cut."""
    room = int(tokens * FILLED_SHARE)
    report = replace(report, question=clip(report.question, SHOWN_QUESTION_CHARS))
    if estimate_report_tokens(report) <= room:
        return report
    report = _shorten_snippets(report, "patterns", WHOLE_SNIPPETS)
    report = _shorten_snippets(report, "analyzer", 0 if tokens < SMALL_TOKENS else WHOLE_SNIPPETS)
    if estimate_report_tokens(report) <= room:
        return report
    items = list(_items_by_priority(report))
    frame = _shorten_texts(report, items, how_to_see_all, room)
    left = room - estimate_report_tokens(_fill(frame, (), items, how_to_see_all))
    kept: list[ReportItem] = []
    for item in items:
        if item.tokens <= left and item.role in frame.roles:
            kept.append(item)
            left -= item.tokens
    while estimate_report_tokens(fitted := _fill(frame, kept, items, how_to_see_all)) > room and kept:
        kept.pop()
    return fitted


def _shorten_snippets(report: Report, role: str, whole: int) -> Report:
    """Cut the code in the findings of a role to one line, except in the first ones that have code."""
    outcome = report.roles.get(role)
    if outcome is None or outcome.value is None:
        return report
    findings = list(outcome.value.key_findings)
    with_code = [number for number, finding in enumerate(findings) if "\n" in finding]
    for number in with_code[whole:]:
        findings[number] = _first_code_line(findings[number])
    shorter = replace(outcome, value=replace(outcome.value, key_findings=tuple(findings)))
    return replace(report, roles={**report.roles, role: shorter})


_COMMENT_LINE = re.compile(r"\s*(?:$|//|/?\*|#\s|\"\"\"|@|#\[)")


def _first_code_line(snippet: str) -> str:
    """Return the title of a snippet and its first line that is neither a comment nor a decorator."""
    title, *lines = snippet.split("\n")
    return "\n".join((title, *[line for line in lines if not _COMMENT_LINE.match(line)][:1]))


def _items_by_priority(report: Report) -> Iterator[ReportItem]:
    yielded: set[ReportItem] = set()
    for role, name, part in priorities(report.intent):
        value = report.roles[role].value if role in report.roles else None
        if value is not None:
            items = [ReportItem(role, name, one) for one in getattr(value, name)[part]]
            yield from (item for item in items if item not in yielded)
            yielded.update(items)


def _shorten_texts(report: Report, items: Sequence[ReportItem], how_to_see_all: str, room: int) -> Report:
    """Shorten the texts until they leave half of the room for the lists. Drop the last roles if needed."""
    frame = report
    for length in (400, 200, 100, 50):
        frame = replace(
            report,
            question=clip(report.question, length),
            summary=clip(report.summary, 2 * length),
            notes=tuple(clip(note, length) for note in report.notes[: length // 50]),
            roles={role: _shorten_outcome(outcome, length) for role, outcome in report.roles.items()},
            progress=report.progress if length >= 200 else None,
        )
        if estimate_report_tokens(_fill(frame, (), items, how_to_see_all)) <= room / 2:
            return frame
    while estimate_report_tokens(_fill(frame, (), items, how_to_see_all)) > room and len(frame.roles) > 1:
        *others, last = frame.roles
        frame = replace(
            frame,
            roles={role: frame.roles[role] for role in others},
            notes=(*frame.notes, f"The {last} is cut too."),
        )
    return frame


def _shorten_outcome(outcome: RoleOutcome, length: int) -> RoleOutcome:
    """Cut the texts of an outcome to `length` characters."""
    value, error = outcome.value, outcome.error
    return replace(
        outcome,
        value=value
        and replace(
            value, summary=clip(value.summary, length), notes=value.notes and clip(value.notes, length)
        ),
        error=error and replace(error, message=clip(error.message, length)),
    )


def _fill(
    frame: Report, kept: Sequence[ReportItem], items: Sequence[ReportItem], how_to_see_all: str
) -> Report:
    """Return the frame with the kept items, and a note about the others."""
    cut = set(items).difference(kept)
    nouns = (("references", "reference"), ("key_findings", "finding"))
    counts = [
        counted(number, noun) for name, noun in nouns if (number := sum(item.list == name for item in cut))
    ]
    note = (
        f"Cut to fit: {' and '.join(counts)}. {how_to_see_all}"
        if counts
        else f"Texts cut to fit. {how_to_see_all}"
    )
    shown = {str(item.value) for item in kept}
    return replace(
        frame,
        roles={role: _fill_lists(role, outcome, kept) for role, outcome in frame.roles.items()},
        notes=(*frame.notes, note),
        root_of={name: root for name, root in frame.root_of.items() if name in shown},
    )


def _fill_lists(role: str, outcome: RoleOutcome, kept: Sequence[ReportItem]) -> RoleOutcome:
    if outcome.value is None:
        return outcome
    own = [item for item in kept if item.role == role]
    references = tuple(item.value for item in own if isinstance(item.value, Reference))
    findings = tuple(item.value for item in own if isinstance(item.value, str))
    return replace(outcome, value=replace(outcome.value, references=references, key_findings=findings))
