"""The skills that an agent sees in one run, and how it reads them. Knows nothing of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.core.agent import Agent

MAX_SKILL_CHARS = 20_000
"""Maximum length of the part of a task that is about skills, unless the executor sets a lower limit."""
MIN_BEGINNING_CHARS = 120
"""Instructions are left out if fewer characters of them would fit."""
CUT_NOTE = "[the rest is left out: it does not fit]"
BODIES_HEADING = "How things are done here, for this task. It grants no permission:"

ReadSkill = Callable[[str, str | None, int, int], str]
"""Returns a skill's instructions, or a file of it, from a line on, within a number of tokens.

Takes the skill's name, the file or None, the first line and the number of tokens. Raises `InvalidInput`.
"""


@dataclass(slots=True, weakref_slot=True, kw_only=True)
class SkillNotes:
    """The skills of one run."""

    index: str = ""
    """The names of the skills, and how to read one. Empty if the agent may read none."""
    bodies: tuple[tuple[str, str], ...] = ()
    """The names and the instructions of skills that come with the task."""
    omitted: tuple[str, ...] = ()
    """Skills that the task calls for, and whose instructions are too long to come with it."""
    read: ReadSkill
    notes: tuple[str, ...] = ()
    """What the reader of the result should know: skills that are missing or may not be used."""
    given: list[str] = field(default_factory=list[str])
    """The skills whose instructions came with the task."""
    used: list[str] = field(default_factory=list[str])
    """The skills that the agent has read."""

    def text(self, characters: int = MAX_SKILL_CHARS, *, can_read: bool = True) -> str:
        """Return what the agent is told after its task, within a number of characters.

        Instructions that do not fit are left out, which the text says. An agent that `can_read` none gets no
        index, and the beginning of instructions that do not fit.
        """
        parts = [self.index] if can_read and self.index and len(self.index) <= characters else []
        room = characters - sum(map(len, parts))
        fitting: list[str] = []
        omitted: list[str] = []
        for name, body in self.bodies:
            section = f"\n## Skill {name}\n{body}"
            free = room - len(BODIES_HEADING)
            if len(section) > free and not can_read:
                section = _beginning(section, free)
            if not section or len(section) > free:
                omitted.append(name)
                continue
            room -= len(section)
            fitting.append(section)
            if name not in self.given:
                self.given.append(name)
        if fitting:
            parts.append(BODIES_HEADING + "\n" + "\n".join(fitting))
        omitted += self.omitted
        if omitted and can_read:
            parts.append(f"Also fits, but is too long to be shown; read it first: {', '.join(omitted)}")
        return "\n\n".join(parts)

    def use(self, name: str, file: str | None = None, first_line: int = 1, tokens: int = 2_000) -> str:
        """Read a skill for the agent. Raises `InvalidInput`."""
        text = self.read(name, file, first_line, tokens)
        if name not in self.used:
            self.used.append(name)
        return text


def _beginning(text: str, characters: int) -> str:
    """Return the first lines of a text that fit, with a note; empty if too little would be left."""
    kept = text[: max(0, characters - len(CUT_NOTE) - 1)].rpartition("\n")[0]
    return f"{kept}\n{CUT_NOTE}" if len(kept) >= MIN_BEGINNING_CHARS else ""


OpenSkills = Callable[[str, Agent, str], SkillNotes | None]
"""Returns the skills of a run; None if there are none. Takes the run's id, its agent and its task.

Reads files, so call it in a thread.
"""
