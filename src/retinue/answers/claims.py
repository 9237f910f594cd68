"""Compares what an answer names with the code that was shown: its names, paths, numbers and quoted texts.

What the task itself says is no evidence, because a model can repeat it without looking. Knows nothing of
models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retinue.answers.question_reader import asks_a_question

_PATH = r"(?<![\w/.-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}(?![\w/-])"
_CLAIM = re.compile(
    rf"(?P<path>{_PATH})(?::[1-9]\d{{0,6}}(?:-\d+)?)?"
    r"|`(?P<code>[^`\n]{1,80})`|\"(?P<text>[^\"\n]{2,80})\""
    r"|(?P<name>\b[A-Za-z]\w*_\w+\b|\b_\w{2,}\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b"
    r"|\b[A-Z][A-Z0-9]{2,}\b|\b\w+(?=\())"
    r"|\blines?\s+\d+(?:\s*[-–]\s*\d+)?|(?P<number>(?<![\w.:/-])\d+(?:[._,]\d+)*(?![\w/]))"
)
"""What an answer may name. The numbers of lines are none of the project's numbers."""
_PLACE = re.compile(rf"(?P<path>{_PATH}):(?P<line>[1-9]\d{{0,6}})")
_NO_CLAIM = re.compile(r'"[\w-]+"\s*:|\\[nrt](?=\w)')
"""The keys of JSON, and line breaks that are escaped in it."""
_NOT_FOUND = re.compile(
    r"\b(?:not (?:found|shown|present|there|defined|implemented|supported|mentioned|contained|in the code)"
    r"|(?:could|can|did|do|does|was|were|is|are)(?: ?n[o']t|not) (?:be )?(?:find|found|see|seen|exist|appear|"
    r"contain|show|shown|have|any|there|present|defined|mention|implement|support)\w*"
    r"|(?:no|without) (?:such|evidence|mention|sign|code|match|definition|implementation|support|trace)\w*"
    r"|nothing (?:was |is )?(?:found|shown|matches|there)|unable to find|there (?:is|are) no)\b",
    re.I,
)
_COMMON = frozenset(
    ("API", "CLI", "CPU", "DNS", "HTML", "HTTP", "HTTPS", "JSON", "SQL", "TCP", "URI", "URL", "XML")
)
"""Common acronyms that need not occur in the code."""


@dataclass(frozen=True, slots=True)
class ClaimSupport:
    """The names in an answer, and which of them were seen."""

    seen: tuple[str, ...]
    """Names, numbers and paths of the answer that the agent has seen, and that the task does not contain."""
    unseen: tuple[str, ...]
    """Names and paths of the answer that neither the task nor any seen code contains."""

    @property
    def is_empty(self) -> bool:
        """Whether the answer names nothing at all."""
        return not (self.seen or self.unseen)

    @property
    def holds(self) -> bool:
        """Whether the answer names something that was seen, and not mostly things that were not."""
        return bool(self.seen) and len(self.unseen) <= len(self.seen)


def says_not_found(answer: str) -> bool:
    """Return whether an answer says that what was asked for is not there."""
    return _NOT_FOUND.search(answer) is not None


def support_of(answer: str, task: str, shown: str) -> ClaimSupport:
    """Compare what an answer names with a text that was seen."""
    folded, asked = shown.casefold(), task.casefold()
    found: dict[str, bool] = {}
    for claim, is_firm in _claims(answer):
        if claim.casefold() in asked:
            continue
        is_there = has_number(claim, shown) if claim[0].isdigit() else _is_in(claim, folded)
        if is_there or is_firm:
            found[claim] = is_there
    return ClaimSupport(
        tuple(claim for claim, is_there in found.items() if is_there),
        tuple(claim for claim, is_there in found.items() if not is_there),
    )


def names_beyond_task(answer: str, task: str) -> tuple[str, ...]:
    """Return the names and paths of an answer that its task does not contain."""
    asked = task.casefold()
    return tuple(
        dict.fromkeys(
            claim for claim, is_firm in _claims(answer) if is_firm and claim.casefold() not in asked
        )
    )


def describe_claims(answer: str, task: str) -> str | None:
    """Return a clause on the names in an answer that its task lacks; None if the answer claims nothing."""
    claims = names_beyond_task(answer, task)
    if not answer.strip() or not (claims or asks_a_question(task)):
        return None
    return f", but it names {', '.join(map(repr, claims[:3]))}" if claims else ""


def numbers_in(text: str) -> tuple[str, ...]:
    """Return the numbers of a text that are not those of lines."""
    return tuple(found["number"] for found in _CLAIM.finditer(text) if found["number"])


def has_number(number: str, text: str) -> bool:
    """Return whether a text has a number, whatever separates its thousands."""
    plain, shown = re.sub(r"[_,]", "", number), re.sub(r"(?<=\d)[_,](?=\d{3})", "", text)
    return re.search(rf"(?<![\w.]){re.escape(plain)}(?!\w)", shown) is not None


def cited_places(text: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the line of each place in a text."""
    for match in _PLACE.finditer(_NO_CLAIM.sub(" ", text)):
        yield match["path"].removeprefix("./"), int(match["line"])


def _claims(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield what an answer names, and whether it must be somewhere in the code if the answer is right."""
    answer = _NO_CLAIM.sub(" ", answer)
    for found in _CLAIM.finditer(answer):
        if name := found["path"] or found["name"]:
            yield name, name not in _COMMON
        elif quoted := found["code"] or found["text"]:
            yield quoted.strip() or quoted, False
            inner = (one for one in _CLAIM.finditer(quoted) if one["path"] or one["name"])
            yield from ((one["path"] or one["name"], one["name"] not in _COMMON) for one in inner)
        elif found["number"]:
            yield found["number"], False


def _is_in(claim: str, folded: str) -> bool:
    return claim.casefold().removesuffix("()") in folded
