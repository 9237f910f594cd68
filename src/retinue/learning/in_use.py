"""The skills, permission rules and memories in use in a project. Promoted drafts go here, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.core import InvalidInput, NewMemory, SkillNotes, as_text, clip
from retinue.learning.memory import BLOCK_HEADING, Memories, MemoryAuthor
from retinue.learning.memory_page import quote
from retinue.learning.skill_catalog import FoundSkill, SkillCatalog
from retinue.learning.skill_writer import find_points
from retinue.store import RememberedPermissions

EVOLVER = "evolver"
"""The author of promoted memories."""


@dataclass(frozen=True, slots=True)
class InUse:
    """The skills, rules and memories of one project."""

    project: Path
    skills: SkillCatalog
    rules: RememberedPermissions
    memories: Memories

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the project."""
        return self.skills.sources.is_trusted(self.project)

    def skill_names(self) -> frozenset[str]:
        """The names of all skills and drafts of skills, of the project and of the user."""
        return self.skills.taken_names()

    def namesake(self, draft: Path, target: Path) -> FoundSkill | None:
        """A skill with the name of a draft, in another file than the one that the draft becomes."""
        drafts = self.skills.all_skills(drafts=True)
        names = {each.name.casefold() for each in drafts if Path(each.file.file) == draft}
        for each in self.skills.all_skills():
            if each.name.casefold() in names and Path(each.file.file) != target:
                return each
        return None

    def skill_points(self, name: str) -> Sequence[str] | None:
        """The numbered points of a skill of the project; None if there is no such skill, or it has none."""
        skill = self.skills.live().get(name)
        if skill is None or skill.project is None:
            return None
        points = find_points(self.skills.read(skill).body)
        if [point.number for point in points] != list(range(1, len(points) + 1)):
            return None
        return [point.text for point in points] or None

    def skill_file(self, name: str) -> Path:
        """The file of a skill of the project. Raises `InvalidInput` if a draft may not change it."""
        return Path(self._own_skill(name).file.file)

    def skill_body(self, name: str, edits: Mapping[int, str]) -> str:
        """The instructions of a skill of the project with changed points."""
        return change_points(self.skills.read(self._own_skill(name)).body, edits)

    def changed_skill(self, name: str, edits: Mapping[int, str]) -> str:
        """The whole text of a skill's file with changed points. Its line ends stay as they are."""
        skill = self._own_skill(name)
        text = Path(skill.file.file).read_bytes().decode()
        body, line_end = self.skills.read(skill).body, "\r\n" if "\r\n" in text else "\n"
        head, found, tail = text.partition(body.replace("\n", line_end))
        if not found:
            raise InvalidInput(
                f"the points of {name} cannot be changed", hint="save its file with LF line ends"
            )
        return head + change_points(body, edits).replace("\n", line_end) + tail

    def approve_skill(self, file: Path) -> None:
        """Approve a skill that a person has just promoted."""
        self.skills.approve(
            each for each in self.skills.in_project(self.project) if Path(each.file.file) == file.resolve()
        )

    def add_rule(self, agent: str, rule: str) -> None:
        self.rules.add(agent, rule)

    def remove_rule(self, agent: str, rule: str) -> None:
        self.rules.remove(agent, rule)

    def remember(self, text: str) -> str:
        """Store a tentative memory of the project, and return its id."""
        return as_text(self.memories.remember(NewMemory(text=text), MemoryAuthor(EVOLVER))["id"])

    def forget(self, memory: str) -> bool:
        """Delete a memory, unless someone else wrote or confirmed it. Returns whether it is deleted."""
        known = self.memories.get(memory).memory
        if known.author != EVOLVER or known.state == "confirmed":
            return False
        if known.forgotten_at is None:
            self.memories.forget([memory], MemoryAuthor(EVOLVER))
        return True

    def _own_skill(self, name: str) -> FoundSkill:
        skill = self.skills.live().get(name)
        if skill is None or skill.project is None:
            raise InvalidInput(
                f"the project has no skill {clip(name, 80)!r} in use",
                hint="a draft changes only skills of this project: `retinue skills list`",
            )
        return skill


def skill_text(name: str, body: str) -> str:
    """Return the text that a task gets if it triggers a skill."""
    return SkillNotes(bodies=((name, body),), read=lambda name, file, first_line, tokens: body).text()


def memory_text(memory: str) -> str:
    """Return the text that a task gets if this memory is recalled."""
    return f"{BLOCK_HEADING}\n{quote(memory)}"


def change_points(body: str, edits: Mapping[int, str]) -> str:
    """Return instructions with changed points: a new text, none at all, or one more after the last.

    The lines between points stay, and the points are numbered anew.
    """
    lines = body.split("\n")
    points = find_points(body)
    number = 0
    changed: list[str] = []
    position = 0
    for index, point in enumerate(points, 1):
        start, end = point.line - 1, point.last
        changed += lines[position:start]
        position = end
        text = edits.get(index, lines[start].split(maxsplit=1)[1])
        if not text:
            continue
        number += 1
        changed.append(f"{number}. {text}")
        if index not in edits:
            changed += lines[start + 1 : end]
    for _, text in sorted((at, text) for at, text in edits.items() if at > len(points) and text):
        number += 1
        changed.append(f"{number}. {text}")
    return "\n".join([*changed, *lines[position:]])
