"""Compares an answer about code with the code that the agent was shown.

An answer counts only if it names something that was seen: a place, a name, a number or a quoted text. What
the task itself says does not count, because a model can repeat it without looking. Two answers to one task
are compared in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from retinue.tools import SeenCode, content_words, word_coverage

_PATH = re.compile(r"(?<![\w/.-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}(?![\w/-])")
_NAME = re.compile(
    r"\b[A-Za-z]\w*_\w+\b|\b_\w{2,}\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b[A-Z][A-Z0-9]{2,}\b"
    r"|\b[A-Za-z]{2,}\d+\b|\b\w+(?=\()"
)
_COMMON = frozenset(
    ("API", "CLI", "CPU", "DNS", "HTML", "HTTP", "HTTPS", "JSON", "SQL", "TCP", "URI", "URL", "XML")
)
"""Common acronyms that need not occur in the code."""
_QUOTED = re.compile(r"`([^`\n]{1,80})`|\"([^\"\n]{2,80})\"|'([^'\n]{2,80})'")
_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?:[._]\d+)*(?![\w/])")
_PLACE = re.compile(r"(?P<path>" + _PATH.pattern + r"):(?P<line>[1-9]\d{0,6})(?:-[1-9]\d{0,6})?")
_ANY_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)", re.I)
_GROUPED_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_PRODUCT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) *\* *(\d+(?:\.\d+)?)(?!\w)")
_TIMES = (24, 60, 3600, 86_400)
"""How many of one unit of time make a larger one."""
_IS_TIME = re.compile(r"[ -]?(?:s|min|h|d|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)\b", re.I)
_ONE_UNIT = re.compile(r"\b(?:every|each|per|once an?|one|1) (millisecond|second|minute|hour|day)\b", re.I)
_UNIT_ALONE = r"(?<![\w.*])(?<!\* )\w+\.{unit}s?(?!\w)(?! *\*)"
"""A unit as the member of something, such as `time.Second`, that is not multiplied."""
_PLACE_WORDS = re.compile(r"\blines?\s+\d+(?:\s*[-–]\s*\d+)?|:\d+(?:-\d+)?\b|#L\d+(?:-L\d+)?", re.I)
_NOT_FOUND = re.compile(
    r"\b(?:not (?:found|shown|present|there|defined|implemented|supported|mentioned|contained|in the code)"
    r"|(?:could|can|did|do|does|was|were|is|are)(?: ?n[o']t|not) (?:be )?(?:find|found|see|seen|exist|appear|"
    r"contain|show|shown|have|any|there|present|defined|mention|implement|support)\w*"
    r"|(?:no|without) (?:such|evidence|mention|sign|code|match|definition|implementation|support|trace)\w*"
    r"|nothing (?:was |is )?(?:found|shown|matches|there)|unable to find|there (?:is|are) no)\b",
    re.I,
)
_QUESTION = re.compile(
    r"(?:^|[.:;]\s)\W*(?:please\s+)?(?:where|how|what|which|who|whose|why|when|is|are|does|do|did|can|could|has|"
    r"have|find|explain|locate|look|name|describe|tell|check|review|inspect|verify|validate|audit|assess|examine|"
    r"analy[sz]e|investigate|research|search|summari[sz]e|identify|determine|compare|list|count)\b|\?",
    re.I | re.M,
)
_PROCEEDS = re.compile(r"\bdecision\W{1,6}PROCEED\b")
_JSON_KEY = re.compile(r'"[\w-]+"\s*:')
_CITED_PLACE = re.compile(r"\S+:\d+")
_WHOLE_NUMBER = re.compile(r"(?<![\w.:])\d+(?!\w)")
MIN_SAME_WORDS = 0.8
"""The share of the words of a second answer that the first must have to say the same."""


@dataclass(frozen=True, slots=True)
class Support:
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


def asks_a_question(task: str) -> bool:
    """Return whether a task asks to look at something, so that its answer must name what was found."""
    return _QUESTION.search(task) is not None


def says_proceed(answer: str) -> bool:
    """Return whether an answer is the response of a workflow's phase that claims that its work is done."""
    return _PROCEEDS.search(answer) is not None


def says_not_found(answer: str) -> bool:
    """Return whether an answer says that what was asked for is not there."""
    return _NOT_FOUND.search(answer) is not None


def support_of(answer: str, task: str, seen: SeenCode) -> Support:
    """Compare what an answer names with what was seen."""
    shown = seen.text()
    folded, asked = shown.casefold(), task.casefold()
    found: dict[str, bool] = {}
    for readings, is_firm in _claims(answer):
        if any(reading.casefold() in asked for reading in readings):
            continue
        there = next((reading for reading in readings if _occurs(reading, shown, folded)), None)
        if there or is_firm:
            found[there or readings[-1]] = there is not None
    return Support(
        tuple(claim for claim, there in found.items() if there),
        tuple(claim for claim, there in found.items() if not there),
    )


def with_plain_numbers(answer: str, code: str) -> str:
    """Return an answer in which a number such as 10,000 is written as the code writes it, if it has it."""
    shown = code.replace("_", "")

    def plain(number: re.Match[str]) -> str:
        digits = number[0].replace(",", "")
        return digits if _has_number(digits, shown) else number[0]

    return _GROUPED_NUMBER.sub(plain, answer)


def names_one_unit(answer: str, code: str) -> bool:
    """Return whether an answer gives one unit of time that the code has as a value: `time.Second`."""
    units = _ONE_UNIT.findall(answer)
    return any(re.search(_UNIT_ALONE.format(unit=unit), code, re.I) for unit in units)


def unseen_numbers(answer: str, task: str, code: str) -> tuple[str, ...]:
    """Return the numbers of an answer that neither the task nor the code contains.

    A number may be written otherwise (`5e-3`), be a product that the code spells out (`10 * 1024`), be in
    another unit of time than the code's (`86400` is one day), or be an HTTP status that the code names
    (`StatusNotFound`).
    """
    shown = f"{task}\n{code}".replace("_", "")
    values = {float(number) for number in _ANY_NUMBER.findall(shown)}
    values |= {float(one) * float(other) for one, other in _PRODUCT.findall(shown)}
    values |= {1000 * value for value in values} | {value / 1000 for value in values}
    times = {value * factor for value in values for factor in _TIMES}
    times |= {value / factor for value in values for factor in _TIMES}
    values |= _statuses_in(shown)
    if names_one_unit(answer, code):
        values.add(1.0)
    plain = _PLACE_WORDS.sub(" ", _PATH.sub(" ", answer))
    return tuple(
        number[0]
        for number in _ANY_NUMBER.finditer(plain.replace("_", ""))
        if not any(math.isclose(float(number[0]), value) for value in values)
        and not (
            _IS_TIME.match(number.string, number.end())
            and any(math.isclose(float(number[0]), value) for value in times)
        )
    )


def _statuses_in(shown: str) -> set[float]:
    """Return the numbers of the HTTP statuses that code names, such as `http.StatusNotFound`."""
    joined = re.sub(r"[\W_]+", "", shown).casefold()
    names = {status.value: status.name.replace("_", "").casefold() for status in HTTPStatus}
    return {
        number for number, name in names.items() if f"status{name}" in joined or f"statuscode{name}" in joined
    }


def unseen_places(text: str, seen: SeenCode) -> tuple[str, ...]:
    """Return the `path:line` of a text whose file is in the project but whose line was not seen."""
    return tuple(
        dict.fromkeys(
            _readings(match)[-1]
            for match in _PLACE.finditer(text)
            if not any(
                seen.has_line(path, int(match["line"]))
                for path in seen.paths
                for written in _readings(match, "path")
                if path == written or path.endswith(f"/{written.removeprefix('./')}")
            )
        )
    )


def names_beyond_task(answer: str, task: str) -> tuple[str, ...]:
    """Return the names and paths of an answer that its task does not contain."""
    asked = task.casefold()
    firm = (readings for readings, is_firm in _claims(answer) if is_firm)
    beyond = (each for each in firm if not any(reading.casefold() in asked for reading in each))
    return tuple(dict.fromkeys(readings[-1] for readings in beyond))


def agrees(answer: str, other: str, task: str) -> bool:
    """Return whether two answers share a name or a number that the task does not have, or most words."""
    rest = _CITED_PLACE.sub(" ", answer)
    numbers = set(_WHOLE_NUMBER.findall(rest)) - set(_WHOLE_NUMBER.findall(task))
    return (
        shares_name(answer, other, task)
        or bool(numbers & set(_WHOLE_NUMBER.findall(other)))
        or (bool(content_words(other)) and word_coverage(other, rest) >= MIN_SAME_WORDS)
    )


def shares_name(answer: str, other: str, task: str) -> bool:
    """Return whether two answers share a name that the task does not have. Paths do not count."""
    folded = other.casefold()
    names = names_beyond_task(_CITED_PLACE.sub(" ", answer), task)
    plain = (name for name in names if "/" not in name and "." not in name)
    return any(name.casefold().removesuffix("()") in folded for name in plain)


def describe_claims(answer: str, task: str) -> str | None:
    """Return a clause on the names in an answer that its task lacks; None if the answer claims nothing."""
    claims = names_beyond_task(answer, task)
    if not answer.strip() or not (claims or asks_a_question(task)):
        return None
    return f", but it names {', '.join(map(repr, claims[:3]))}" if claims else ""


def _claims(answer: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield what an answer names, and whether it must be somewhere in the code if the answer is right.

    Each name comes with its possible readings.
    """
    answer = _JSON_KEY.sub(" ", answer)
    for match in _PATH.finditer(answer):
        yield _readings(match), True
    rest = _PATH.sub(" ", answer)
    for match in _QUOTED.finditer(rest):
        yield (next(filter(None, match.groups())).strip(),), False
    for match in _NAME.finditer(rest):
        yield _readings(match), match[0] not in _COMMON
    for match in _NUMBER.finditer(_PLACE_WORDS.sub(" ", rest)):
        yield (match[0],), False


def _readings(match: re.Match[str], group: str | int = 0) -> tuple[str, ...]:
    """Return a name as it is written and, if its first letter may be an escaped line break, without that."""
    name, start = match[group], match.start(group)
    is_escaped = match.string[max(0, start - 1) : start] == "\\" and name[:1] in ("n", "r", "t")
    return (name, name[1:]) if is_escaped and len(name) > 1 else (name,)


def _occurs(claim: str, shown: str, folded: str) -> bool:
    if claim[:1].isdigit():
        return _has_number(claim.replace("_", ""), shown.replace("_", ""))
    return claim.casefold().removesuffix("()") in folded


def _has_number(number: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(number)}(?!\w)", text) is not None
