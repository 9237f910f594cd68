"""Gives agents and hosts their skills: a compact index, the instructions that a task calls for, and each on
demand.

The index has the names of all skills, and the descriptions of those that fit the task best. If it gets too
long, the names that fit least are left out, which it says. A task that contains a trigger of a skill gets the
skill's instructions. Knows nothing of MCP or of how runs are performed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from retinue.core import (
    USE_SKILL,
    Agent,
    InvalidInput,
    Redactor,
    RetinueError,
    SkillNotes,
    clip,
    counted,
    escape_invisible_characters,
    estimate_tokens,
)
from retinue.definitions import MalformedDefinition, read_skill_file
from retinue.learning.skill_catalog import FoundSkill, SkillCatalog

INDEX_CHARS = 1_200
"""The length of the index at most. Thirty skills with short names take about 240 characters of it."""
LIKELY_SKILLS, LIKELY_CHARS = 3, 120
"""How many skills the index describes, and how long each description may be."""
LIKELY_SHARE = 0.5
"""A skill is described if it fits at least this share as well as the best one."""
TRIGGERED_CHARS = 4_000
"""Length of all instructions that triggers bring in."""
NAMED_CHARS = 12_000
"""Length of all instructions that an agent's file asks for."""
MIN_BODY_CHARS = 400
"""Instructions of which less would fit are left out instead of cut."""
MAX_TASK_CHARS = 20_000
"""The beginning of a task in which triggers are looked for. The rest is probably pasted."""
CUT_NOTE_CHARS = 140
"""Room for the note that says what was cut."""
NAME_WEIGHT, TRIGGER_WEIGHT, DESCRIPTION_WEIGHT = 3.0, 2.0, 1.0

INDEX_HEADING = f"Skills (read with {USE_SKILL}): "
LIKELY_HEADING = "These fit best; read them before you start:"


@dataclass(frozen=True, slots=True)
class SkillLibrary:
    """The skills that may be used, for runs and for hosts."""

    catalog: SkillCatalog
    redactor: Redactor
    tokens: int
    """Maximum size of an answer."""
    for_agents: bool = True
    """Whether agents see skills that their files do not name."""
    _open: WeakValueDictionary[str, SkillNotes] = field(default_factory=WeakValueDictionary[str, SkillNotes])

    def open(self, run_id: str, agent: Agent, task: str) -> SkillNotes | None:
        """Return the skills of a run; None if it has none."""
        if agent.skills is None:
            notes = self._open_all(task) if self.for_agents else None
        else:
            notes = self._open_named(agent.skills, task) if agent.skills else None
        if notes is not None:
            self._open[run_id] = notes
        return notes

    def of_run(self, run_id: str) -> SkillNotes | None:
        """Return the skills of a run that this process performs."""
        return self._open.get(run_id)

    def index(self, task: str = "") -> str:
        """Return the index of all skills; empty if there are none."""
        return self.redactor.redact(index_text(self.catalog.live(), task))

    def read(
        self,
        name: str,
        file: str | None = None,
        first_line: int = 1,
        tokens: int | None = None,
        only: Sequence[str] | None = None,
    ) -> str:
        """Return a skill's instructions with the names of its files, or one of the files (P4).

        Raises `InvalidInput` or `Unauthorized`. `only` names the skills that may be read.
        """
        live = self.catalog.live()
        offered = live if only is None else {each: live[each] for each in only if each in live}
        skill = offered.get(name)
        if skill is None:
            raise self._unknown(name, offered)
        text = self._body(skill) if file is None else self._file(skill, file)
        return _page(self.redactor.redact(text), name, file, first_line, tokens or self.tokens)

    def _open_all(self, task: str) -> SkillNotes | None:
        found = self.catalog.all_skills()
        live: dict[str, FoundSkill] = {}
        for each in found:
            if each.refusal is None:
                live.setdefault(each.name, each)
        waiting = [each for each in triggered(found, task) if each.needs_approval and each.name not in live]
        notes = tuple(f"the skill {each.name} fits and is not used: {each.refusal}" for each in waiting)
        if not live:
            return SkillNotes(read=self.read, notes=notes) if notes else None
        found = self._bodies(triggered(list(live.values()), task), TRIGGERED_CHARS)
        return SkillNotes(
            index=self.redactor.redact(index_text(live, task, found.bodies)),
            bodies=tuple(found.bodies),
            omitted=tuple(found.omitted),
            read=self.read,
            notes=(*notes, *found.problems),
        )

    def _open_named(self, names: Sequence[str], task: str) -> SkillNotes:
        live = self.catalog.live()
        known = {each.name: each for each in reversed(self.catalog.all_skills())}
        problems = [
            f"the skill {name} is not used: {known[name].refusal}"
            if name in known
            else f"there is no skill {name}"
            for name in names
            if name not in live
        ]
        own = {name: live[name] for name in names if name in live}
        found = self._bodies(list(own.values()), NAMED_CHARS)

        def read(name: str, file: str | None, first_line: int, tokens: int) -> str:
            return self.read(name, file, first_line, tokens, only=tuple(own))

        return SkillNotes(
            index=self.redactor.redact(index_text(own, task, found.bodies)),
            bodies=tuple(found.bodies),
            omitted=tuple(found.omitted),
            read=read,
            notes=(*problems, *found.problems),
        )

    def _bodies(self, skills: Sequence[FoundSkill], characters: int) -> _Bodies:
        """Return the instructions of skills, within a length."""
        found = _Bodies()
        for skill in skills:
            if characters < MIN_BODY_CHARS:
                found.omitted.append(skill.name)
                continue
            try:
                text = self.redactor.redact(self._body(skill))
            except RetinueError as error:
                found.problems.append(error.message)
                continue
            characters -= len(text)
            if characters < 0:
                text = _cut(text, characters + len(text), skill.name)
            found.bodies.append((skill.name, text))
        return found

    def _body(self, skill: FoundSkill) -> str:
        """Return the instructions of a skill, with the names of its files."""
        text = self.catalog.read(skill)
        body = escape_invisible_characters(text.body)
        if not text.files:
            return body
        files = ", ".join(map(escape_invisible_characters, text.files))
        return f'{body}\n\nFiles of this skill, read with use_skill("{skill.name}", file=...): {files}'

    def _file(self, skill: FoundSkill, file: str) -> str:
        self.catalog.read(skill)  # it may have changed since it was approved
        try:
            return escape_invisible_characters(read_skill_file(skill.file, file))
        except MalformedDefinition as error:
            files = ", ".join(self.catalog.read(skill).files) or "none"
            raise InvalidInput(error.problem.message, hint=f"its files are: {files}") from None

    def _unknown(self, name: str, offered: Mapping[str, FoundSkill]) -> InvalidInput:
        """Return the error for a name that no skill has, with those that fit the words."""
        best = [f"{each.name}: {clip(each.file.description, LIKELY_CHARS)}" for each in likely(offered, name)]
        hint = "; ".join(best) or ", ".join(list(offered)[:20]) or "there are no skills"
        return InvalidInput(f"there is no skill {clip(name, 80)!r}", hint=self.redactor.redact(hint))


@dataclass(slots=True)
class _Bodies:
    """The instructions of some skills."""

    bodies: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Names and texts."""
    omitted: list[str] = field(default_factory=list[str])
    """Names of skills for which there was no room."""
    problems: list[str] = field(default_factory=list[str])


def _cut(text: str, characters: int, name: str) -> str:
    """Return the first lines of a text that fit, and how to read on."""
    kept = text[: characters - CUT_NOTE_CHARS].rpartition("\n")[0]
    if len(kept) < MIN_BODY_CHARS // 2:  # it has long lines
        return f'{clip(text, characters - CUT_NOTE_CHARS)}\n[cut here; use_skill("{name}") has all of it]'
    rest = kept.count("\n") + 2
    return f'{kept}\n[cut here; read on with use_skill("{name}", first_line={rest})]'


def index_text(
    skills: Mapping[str, FoundSkill], task: str = "", given: Collection[tuple[str, str]] = ()
) -> str:
    """Return the names of the skills on a line, and those that fit the task with their descriptions.

    Does not describe skills whose instructions are `given`.
    """
    if not skills:
        return ""
    ranked = rank_skills(list(skills.values()), task) if task else []
    names = list(skills)
    if sum(len(name) + 2 for name in names) > INDEX_CHARS - len(INDEX_HEADING):
        by_fit = [each.name for each, score in ranked if score]
        ordered = list(dict.fromkeys([*by_fit, *names]))
        names.clear()
        room = INDEX_CHARS - len(INDEX_HEADING) - 80
        for name in ordered:
            room -= len(name) + 2
            if room < 0:
                break
            names.append(name)
    text = INDEX_HEADING + ", ".join(names)
    if left := len(skills) - len(names):
        text += f", and {counted(left, 'skill')} that fit less; pass words instead of a name to search"
    known = {name for name, _ in given}
    if best := [each for each in _best(ranked) if each.name not in known]:
        lines = [f"- {each.name}: {clip(each.file.description, LIKELY_CHARS)}" for each in best]
        text += "\n" + "\n".join([LIKELY_HEADING, *lines])
    return text


def likely(skills: Mapping[str, FoundSkill], task: str) -> list[FoundSkill]:
    """Return the few skills that fit a task best, best first; none if none fits."""
    return _best(rank_skills(list(skills.values()), task))


def _best(ranked: Sequence[tuple[FoundSkill, float]]) -> list[FoundSkill]:
    top = ranked[0][1] if ranked else 0.0
    return [each for each, score in ranked[:LIKELY_SKILLS] if score and score >= LIKELY_SHARE * top]


def rank_skills(skills: Sequence[FoundSkill], task: str) -> list[tuple[FoundSkill, float]]:
    """Return the skills with a score for how well each fits a task, the best first."""
    from retinue.codebase import rank_texts  # slow to load, and most runs have no skills

    texts = [
        {
            each.name: NAME_WEIGHT,
            "; ".join(each.file.triggers): TRIGGER_WEIGHT,
            each.file.description: DESCRIPTION_WEIGHT,
        }
        for each in skills
    ]
    scored = zip(skills, rank_texts(task, texts), strict=True)
    return sorted(scored, key=lambda each: (-each[1], each[0].name))


def triggered(skills: Sequence[FoundSkill], task: str) -> list[FoundSkill]:
    """Return the skills with a trigger that the task contains, those with the longest trigger first."""
    with_triggers = [each for each in skills if each.file.triggers]
    if not with_triggers:
        return []
    words = TaskWords(task)
    found: list[tuple[int, str, FoundSkill]] = []
    for each in with_triggers:
        if matching := [trigger for trigger in each.file.triggers if words.contain(trigger)]:
            found.append((-max(map(len, matching)), each.name, each))
    return [each for *_, each in sorted(found, key=lambda item: item[:2])]


class TaskWords:
    """The words of a task, for looking up triggers. Forms of a word do not matter."""

    def __init__(self, task: str) -> None:
        task = task[:MAX_TASK_CHARS]
        self._stems = f" {_stems(task)} "
        self._folded = task.casefold()

    def contain(self, trigger: str) -> bool:
        stems = _stems(trigger)
        if stems and f" {stems} " in self._stems:
            return True
        return not trigger.isascii() and trigger.casefold() in self._folded


def _stems(text: str) -> str:
    """Return the stems of a text's words, separated by blanks."""
    from retinue.codebase import split_identifier, stem  # slow to load

    return " ".join(stem(word) for word in split_identifier(text))


def _page(text: str, name: str, file: str | None, first_line: int, tokens: int) -> str:
    """Return the lines of a text from one on, as many as fit, and how to read on (P4)."""
    lines = text.split("\n")
    if first_line < 1 or first_line > len(lines):
        raise InvalidInput(
            f"there is no line {first_line}", hint=f"it has {counted(len(lines), 'line')}; begin at line 1"
        )
    rest = lines[first_line - 1 :]
    used, shown = 0, 0
    for line in rest:
        used += estimate_tokens(line + "\n")
        if used > tokens - 60 and shown:
            break
        shown += 1
    if shown == len(rest) and used <= tokens:
        return "\n".join(rest)
    go_on = f'go on with use_skill("{name}"' + ("" if file is None else f', file="{file}"')
    if shown == 1 and used > tokens:  # one line that is longer than an answer
        more = f"; {go_on}, first_line={first_line + 1})" if len(rest) > 1 else ""
        return f"{clip(rest[0], max(100, 3 * tokens))}\n[cut: line {first_line} is too long{more}]"
    last = first_line + shown - 1
    note = f"[cut: {last} of {len(lines)} lines; {go_on}, first_line={last + 1})]"
    return "\n".join([*rest[:shown], note])
