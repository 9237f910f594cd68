"""What an agent is told about skills in one run, and how it reads them. Knows nothing of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.core.agent import Agent

MAX_SKILL_CHARS = 20_000
"""What a task carries about skills at most, on executors that set no lower limit."""
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
        index.
        """
        parts = [self.index] if can_read and self.index and len(self.index) <= characters else []
        room = characters - sum(map(len, parts))
        fitting: list[str] = []
        omitted: list[str] = []
        self.given.clear()
        for name, body in self.bodies:
            section = f"\n## Skill {name}\n{body}"
            if len(section) + len(BODIES_HEADING) > room:
                omitted.append(name)
                continue
            room -= len(section)
            self.given.append(name)
            fitting.append(section)
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


OpenSkills = Callable[[str, Agent, str], SkillNotes | None]
"""Returns the skills of a run; None if there are none. Takes the run's id, its agent and its task.

Reads files, so call it in a thread.
"""
