"""Checks the answer of an agent before it counts: evidence, references, and the promised schema.

An answer about code must name something that the agent has seen. Other answers need no evidence. The file
of every reference is opened again (P3); references that do not hold are marked, and so are places that the
agent never opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from retinue.answers import (
    NOT_FOUND as NOTHING_FOUND,
    asks_a_question,
    cited_places,
    describe_claims,
    says_not_found,
    support_of,
)
from retinue.core import Json, NotJson, Unverified, any_value
from retinue.executors.local.instructions import NOT_ASKED
from retinue.executors.local.replies import FILE_KEYS, first_json_value
from retinue.executors.wrappers import (
    OutputSchema,
    ReferenceVerdict,
    complete_references,
    remove_wrong_references,
)
from retinue.tools import SeenCode

UNSEEN_MARK = " [not opened]"
"""Follows a place in an answer that exists, but that the agent has not looked at."""
NOT_THERE = "these places do not exist"
NOT_OPENED = "you have not seen these places"
NOT_FOUND = "these places are not in what was found"
USE_NAMES = "ask about one thing and name it as the code does, or use a stronger model"
NO_CODE = "no code of this project was looked at for it"
NOTHING_SEEN = "it names nothing that you have seen: use the places, names and values of the code"

_PROCEEDS = re.compile(r"\bdecision\W{1,6}PROCEED\b")
"""The response of a workflow's phase that claims that its work is done."""
_LINE_KEYS = ("line", "line_number", "lineno", "start_line", "start", "lineNumber")
"""Fields of a JSON answer that name a line of the file in another field."""
_LINES = re.compile(r"(?:lines?\s*|L)?(\d+)(?:\s*(?:[-–]|to)\s*L?(\d+))?", re.IGNORECASE)
_LAST_LINE = re.compile(r"-\d+$")
_POSSIBLE_LINES = re.compile(r"[1-9]\d{0,6}(?:-[1-9]\d{0,6})?")
"""Lines that a file can have. References with others are not recognised as such."""

CheckReferences = Callable[[str], Awaitable[ReferenceVerdict]]
"""Opens the file of every `path:line` in a text again and returns which references hold."""


class InvalidAnswer(Exception):
    """An answer is not accepted. The message explains why, for the model."""


@dataclass(slots=True, kw_only=True)
class AnswerCheck:
    """Checks the answers to one task."""

    task: str
    seen: SeenCode
    """The code that the agent has seen, also in its tools."""
    check_references: CheckReferences
    looks_at_code: bool
    """Whether the agent has tools that read code, so that it can be compared with its answers."""
    needs_evidence: bool = True
    """Whether the task is about the code, so that its answer must name something that was seen."""
    writes: bool = False
    """Whether the agent changes files or runs commands; its work is the evidence."""
    answers_json: bool = False
    """Whether the agent promises JSON instead of plain text."""
    schema: OutputSchema | None = None
    """The schema of the promised JSON; None accepts any JSON."""
    has_looked: bool = False
    """Whether any tool call has worked."""
    used_other_tools: bool = False
    """Whether a tool has worked that shows something else than the user's files. That is not compared."""
    found: str | None = None
    """The answer that a form is filled in from. Its places were judged; the form may name no others."""
    notes: list[str] = field(default_factory=list[str])
    """What the user should know about the answer."""

    @property
    def nothing_found(self) -> bool:
        """Whether a form is filled in from text without an answer, whose places nothing confirms."""
        return self.found is not None and self.found.startswith((NOTHING_FOUND, NOT_ASKED))

    def has_evidence(self, text: str) -> bool:
        """Return whether an answer names something that was seen, or claims nothing about code."""
        if not (self.looks_at_code and self.needs_evidence) or self.used_other_tools or self.writes:
            return True
        proceeds = _PROCEEDS.search(text) is not None
        if says_not_found(text) and not proceeds:
            return bool(self.seen) or self.has_looked
        support = support_of(text, self.task, self.seen.text())
        if support.is_empty and proceeds:  # what the task names counts, if it was looked at
            return bool(support_of(text, "", self.seen.text()).seen)
        if support.is_empty:
            return not asks_a_question(self.task)
        return support.holds

    def doubt(self, answer: str) -> str:
        """Return why nothing confirms an answer without any tool call; empty if there is no doubt."""
        if self.has_looked or self.writes:
            return ""
        if self.looks_at_code:
            return NO_CODE if not self.needs_evidence and asks_a_question(self.task) else ""
        claims = describe_claims(answer, self.task)
        return "" if claims is None else f"the agent called none of its tools{claims}"

    async def checked_text(self, text: str) -> str:
        """Return an answer in plain text with wrong references marked."""
        verdict = await self.check_references(text)
        text = str(complete_references(text, verdict.resolved))
        unseen = self._unseen_places(text, verdict)
        self._note_wrong_references(verdict, unseen)
        return str(_mark_references(text, verdict, unseen))

    async def checked_json(self, text: str) -> str:
        """Return the JSON in a text, without references that do not hold. Raises `InvalidAnswer`.

        Servers do not enforce schemas reliably, so every answer is validated here.
        """
        try:
            value = any_value(text) if self.schema is None else first_json_value(text)
        except NotJson as error:
            raise InvalidAnswer(f"it is not JSON: {error}") from None
        if self.schema is not None and (problem := self.schema.problem(value)):
            raise InvalidAnswer(problem)
        shown = json.dumps(value, ensure_ascii=False)
        if not self.has_evidence(shown):
            raise InvalidAnswer(NOTHING_SEEN)
        pairs = places_as_text(value)
        if foreign := [pair for pair in pairs.splitlines() if not self._was_found(pair)]:
            raise InvalidAnswer(f"{NOT_FOUND}: {', '.join(foreign[:5])}")
        verdict = await self.check_references(f"{shown}\n{pairs}")
        missing = [
            pair for pair in pairs.splitlines() if pair in verdict.wrong or self._has_impossible_line(pair)
        ]
        if missing:
            raise InvalidAnswer(f"{NOT_THERE}: {', '.join(missing[:5])}")
        if unseen_pairs := self._unseen_places(pairs, verdict):
            raise InvalidAnswer(f"{NOT_OPENED}: {', '.join(sorted(unseen_pairs)[:5])}")
        value = _complete_pairs(complete_references(value, verdict.resolved), verdict.resolved)
        unseen = self._unseen_places(json.dumps(value, ensure_ascii=False), verdict)
        value = _mark_references(value, verdict, unseen)
        if self.schema is not None and self.schema.problem(value):
            raise InvalidAnswer(f"{NOT_THERE}: {', '.join(sorted(verdict.wrong)[:5])}")
        self._note_wrong_references(verdict, unseen)
        return json.dumps(value, ensure_ascii=False)

    def unverified(self, problem: str = NOTHING_SEEN) -> Unverified | None:
        """Return the error of a run whose answer has this problem; None if that is a matter of form."""
        if problem.startswith((NOT_THERE, NOT_OPENED, NOT_FOUND)):
            return Unverified(problem, hint=USE_NAMES)
        if problem != NOTHING_SEEN:
            return None
        if not self.seen:
            return Unverified("the model answered without looking at any code", hint="use a stronger model")
        return Unverified("the answer names nothing that the model has seen", hint=USE_NAMES)

    def _was_found(self, place: str) -> bool:
        """Return whether a form may name a place, because the answer that it is filled in from has it."""
        if self.found is None:
            return True
        first = re.escape(_LAST_LINE.sub("", place))
        has_place = re.search(rf"{first}(?!\d)", self.found) is not None
        return has_place and not self.nothing_found

    def _has_impossible_line(self, place: str) -> bool:
        """Return whether a place names a file, and not `N/A` or the like, with a line such as 0."""
        file, _, lines = place.rpartition(":")
        names_file = PurePosixPath(file).suffix or file in self.seen.paths
        return bool(names_file) and _POSSIBLE_LINES.fullmatch(lines) is None

    def _unseen_places(self, text: str, verdict: ReferenceVerdict) -> frozenset[str]:
        """Return the places of an answer that exist but that the agent has not opened."""
        if not self.looks_at_code or self.used_other_tools:
            return frozenset()
        return frozenset(self._not_opened(text)) - verdict.wrong

    def _not_opened(self, text: str) -> Iterator[str]:
        """Yield the places of a text whose file the agent knows, but whose line it has not seen."""
        for path, line in cited_places(text):
            known = [one for one in self.seen.paths if one == path or one.endswith(f"/{path}")]
            if not any(self.seen.has_line(one, line) for one in known):
                yield f"{path}:{line}"

    def _note_wrong_references(self, verdict: ReferenceVerdict, unseen: frozenset[str]) -> None:
        if note := verdict.note():
            self.notes.append(note)
        if unseen:
            self.notes.append(f"places that the agent has not opened: {', '.join(sorted(unseen)[:5])}")


def _mark_references(value: Json, verdict: ReferenceVerdict, unseen: frozenset[str]) -> Json:
    """Remove or mark the references that do not hold, and those that the agent has not opened."""
    return remove_wrong_references(remove_wrong_references(value, verdict.wrong), unseen, UNSEEN_MARK)


def places_as_text(value: Json) -> str:
    """Write each pair of fields such as `file` and `line` in a JSON value as `path:line`, one a line."""
    return "\n".join(_place_pairs(value))


def _place_pairs(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _place_pairs(item)
    elif isinstance(value, Mapping):
        if pair := _place_pair(value):
            yield pair[1]
        for item in value.values():
            yield from _place_pairs(item)


def _complete_pairs(value: Json, resolved: Mapping[str, str]) -> Json:
    """Return a JSON value with whole paths in those fields whose `path:line` gives only the end of one."""
    if isinstance(value, list):
        return [_complete_pairs(item, resolved) for item in value]
    if not isinstance(value, Mapping):
        return value
    done = {key: _complete_pairs(item, resolved) for key, item in value.items()}
    if (pair := _place_pair(value)) and (whole := resolved.get(pair[1])):
        done[pair[0]] = whole.rpartition(":")[0]
    return done


def _place_pair(value: Mapping[str, Json]) -> tuple[str, str] | None:
    """Return the key of the file in an object that names a place with two fields, and that place."""
    file = next((key for key in FILE_KEYS if isinstance(value.get(key), str)), None)
    lines = next(filter(None, (_lines_in(value.get(key)) for key in _LINE_KEYS)), "")
    return (file, f"{value[file]}:{lines}") if file and lines and ":" not in str(value[file]) else None


def _lines_in(value: Json) -> str:
    """Return the line or the range of lines that a field has, such as "4" or "4-9"; empty if it has none."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        found = _LINES.fullmatch(value.strip())
        lines = filter(None, found.groups()) if found else ()
        return "-".join(line.lstrip("0") or "0" for line in lines)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
