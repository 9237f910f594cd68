"""Proposals against friction: a skill, a change to one, an agent, a team, a rule or a memory.

A proposal comes from a model, so nothing in it is trusted. `read_proposal` refuses what does not pass every
gate: the name, one-line fields without control characters, triggers that are neither empty nor too common,
bodies of short numbered points, rules that people have granted before, and no secret anywhere. Knows nothing
of files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import yaml

from retinue.core import InvalidInput, Json, as_object_list, as_text, as_text_list, clip, counted
from retinue.learning.friction import content_words
from retinue.learning.skill_library import TaskWords
from retinue.learning.skill_writer import check_skill_name, skill_document

MAX_DESCRIPTION = 300
MAX_POINTS = 9
MAX_POINT = 400
MAX_TRIGGERS = 5
TRIGGER_LENGTH = range(3, 41)
MAX_TRIGGER_SHARE = 0.3
"""The largest share of recent tasks that a trigger may match. A trigger beyond it costs every run."""
MIN_TASKS = 10
"""Fewer recent tasks say nothing about how common a trigger is."""
MAX_EDITS = 3
"""Points of a skill that one draft changes: many changes at once cannot be told apart by a trial."""
MAX_MEMORY = 500
_LIST_MARK = re.compile(r"\A(?:\d{1,2}[.)]|[-*•])\s+(?=\S)")
REDACTED = "[redacted:"
"""The beginning of the marker that replaces a secret in the answer of a run."""
READING_TOOLS = ("Read", "Grep", "Glob")
"""The tools of a proposed agent. A person who wants it to write adds tools to its file."""


class DraftKind(StrEnum):
    """What a draft becomes when promoted. The values are part of `retinue evolve list --json`."""

    SKILL = "skill"
    EDIT = "edit"
    AGENT = "agent"
    TEAM = "team"
    RULE = "rule"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal that has passed all gates."""

    kind: DraftKind
    name: str
    description: str
    triggers: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    skill: str = ""
    """The skill that an edit changes."""
    edits: Mapping[int, str] = field(default_factory=dict[int, str])
    """New texts of the skill's numbered points. An empty text removes the point."""
    members: tuple[str, ...] = ()
    """The agents of a team, in order."""
    agent: str = ""
    """The agent that a rule is for."""
    rule: str = ""
    memory: str = ""

    def text(self) -> str:
        """The content of the draft's file."""
        body = "\n".join(f"{number}. {point}" for number, point in enumerate(self.points, 1))
        match self.kind:
            case DraftKind.SKILL:
                return skill_document(self.name, self.description, self.triggers, body + "\n")
            case DraftKind.AGENT:
                header = {"name": self.name, "description": self.description, "tools": list(READING_TOOLS)}
                return f"---\n{_yaml(header)}---\n{body}\n"
            case DraftKind.TEAM:
                return _yaml({"name": self.name, "description": self.description, "agents": [*self.members]})
            case DraftKind.EDIT:
                edits = {str(point): text for point, text in self.edits.items()}
                return _json({"skill": self.skill, "why": self.description, "points": edits})
            case DraftKind.RULE:
                return _json({"agent": self.agent, "rule": self.rule, "why": self.description})
            case DraftKind.MEMORY:
                return _json({"memory": self.memory, "why": self.description})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The facts that a proposal is checked against."""

    taken_names: Collection[str]
    """Names of live skills, agents, teams and drafts, in the project and in the user's folders."""
    agents: Collection[str]
    recent_tasks: Sequence[str]
    """Tasks besides those that the proposal is about."""
    granted: Mapping[str, Collection[str]]
    """The exact rules that people have granted again and again, by agent."""
    skill_points: Callable[[str], Sequence[str] | None]
    """The numbered points of a live skill that a draft may change; None if there is no such skill."""
    hides_secret: Callable[[str], bool]
    """Tells whether a text contains a secret."""
    slowed_tasks: Sequence[str] = ()
    """The tasks that the proposal is about."""


def read_proposal(given: Mapping[str, Any], gates: Gates) -> Proposal:
    """Return the proposal if it passes every gate. Raises `InvalidInput` with the first that it does not."""
    kind = _one_of(as_text(given.get("kind")), DraftKind)
    name = as_text(given.get("name"))
    if kind is DraftKind.EDIT and name == as_text(given.get("skill")):
        name = f"{name}-edit"
    try:
        check_skill_name(name)
    except InvalidInput as error:
        raise _refused(error.message) from None
    if name in {taken.casefold() for taken in gates.taken_names} or name in ("main", "drafts"):
        raise _refused(f"the name {name} is taken")
    description = _line("description", given.get("description"), MAX_DESCRIPTION)
    proposal = Proposal(kind=kind, name=name, description=description, **_fields(kind, given, gates))
    text = proposal.text()
    if REDACTED in text or gates.hides_secret(text):
        raise _refused("it contains a secret")
    return proposal


def _fields(kind: DraftKind, given: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    """The fields that only some kinds have."""
    match kind:
        case DraftKind.SKILL:
            return {"points": _points(given), "triggers": _triggers(given, gates)}
        case DraftKind.AGENT:
            return {"points": _points(given)}
        case DraftKind.EDIT:
            return _edits(given, gates)
        case DraftKind.TEAM:
            members = tuple(as_text_list(given.get("members")))
            if not 2 <= len(members) <= 5:
                raise _refused("a team has two to five members")
            if unknown := [each for each in members if each not in gates.agents]:
                raise _refused(f"there is no agent {clip(unknown[0], 80)}")
            return {"members": members}
        case DraftKind.RULE:
            agent, rule = as_text(given.get("agent")), as_text(given.get("rule"))
            if rule not in gates.granted.get(agent, ()):
                raise _refused("a rule has to be one that people have granted to that agent several times")
            return {"agent": agent, "rule": rule}
        case DraftKind.MEMORY:
            return {"memory": _line("memory", given.get("memory"), MAX_MEMORY)}


def _points(given: Mapping[str, Any]) -> tuple[str, ...]:
    points = tuple(map(_point, as_text_list(given.get("points"))))
    if not 1 <= len(points) <= MAX_POINTS:
        raise _refused(f"it has {counted(len(points), 'point')} instead of 1 to {MAX_POINTS}")
    return points


def _point(value: Any) -> str:
    """Return a point without the number or bullet that a model may have written before it."""
    return _LIST_MARK.sub("", _line("point", value, MAX_POINT))


def _triggers(given: Mapping[str, Any], gates: Gates) -> tuple[str, ...]:
    """Check the triggers: few, short, with a word that carries meaning, and not in most tasks."""
    triggers = tuple(
        dict.fromkeys(_line("trigger", each, 80).lower() for each in as_text_list(given.get("triggers")))
    )
    if not 1 <= len(triggers) <= MAX_TRIGGERS:
        raise _refused(f"it has {counted(len(triggers), 'trigger')} instead of 1 to {MAX_TRIGGERS}")
    tasks = [TaskWords(task) for task in gates.recent_tasks]
    for trigger in triggers:
        if len(trigger) not in TRIGGER_LENGTH or not content_words(trigger):
            raise _refused(f"the trigger {trigger!r} is too short, too long, or means nothing by itself")
        if len(tasks) >= MIN_TASKS and sum(task.contain(trigger) for task in tasks) > MAX_TRIGGER_SHARE * len(
            tasks
        ):
            raise _refused(f"the trigger {trigger!r} is in more than {MAX_TRIGGER_SHARE:.0%} of recent tasks")
    slowed = [TaskWords(task) for task in gates.slowed_tasks]
    if slowed and not any(task.contain(trigger) for task in slowed for trigger in triggers):
        raise _refused("none of its triggers is in a task that it is about")
    return triggers


def _edits(given: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    skill = as_text(given.get("skill"))
    points = gates.skill_points(skill)
    if points is None:
        raise _refused(f"there is no skill {clip(skill, 80)} whose body is a numbered list")
    edits: dict[int, str] = {}
    for each in as_object_list(given.get("edits")):
        number, text = each.get("point"), each.get("text")
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(points) + 1:
            raise _refused(f"{skill} has {counted(len(points), 'point')}, and none of number {number!r}")
        edits[number] = "" if text == "" else _point(text)
    if not 1 <= len(edits) <= MAX_EDITS:
        raise _refused(f"it changes {counted(len(edits), 'point')} instead of 1 to {MAX_EDITS}")
    changed = dict(enumerate(points, 1)) | edits
    left = [text for text in changed.values() if text]
    if not left or left == list(points):
        raise _refused("it changes nothing, or leaves nothing")
    if len(left) > MAX_POINTS:
        raise _refused(f"the skill would have more than {MAX_POINTS} points")
    return {"skill": skill, "edits": edits}


def _line(what: str, value: Any, limit: int) -> str:
    """Return a text of one line. Anything that could end a header or hide something is refused."""
    text = as_text(value).strip()
    if not text or len(text) > limit:
        raise _refused(f"a {what} has 1 to {limit} characters, and not {len(text)}")
    if not text.isprintable() or text.startswith(("---", "```")):
        raise _refused(f"a {what} is one line of plain text")
    return text


def _one_of(value: str, kinds: type[DraftKind]) -> DraftKind:
    try:
        return kinds(value)
    except ValueError:
        raise _refused(f"{clip(value, 40)!r} is not one of: {', '.join(kinds)}") from None


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(
        f"the proposal was refused: {reason}", hint="nothing was written; run `retinue evolve` again later"
    )


def _yaml(value: Mapping[str, Json]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, width=10_000)


def _json(value: Mapping[str, Json]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
