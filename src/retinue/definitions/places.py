"""Where agents' files lie, and what that says about them: whose they are and in whose format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DefinitionScope = Literal["project", "user", "built in", "settings"]

BUILTIN = Path(__file__).parent / "builtin"
READ_BY_PEOPLE = frozenset({"readme", "changelog", "license", "contributing"})
SET_ASIDE = frozenset({"main", "drafts"})
"""The main agent is no subagent, and drafts wait for a person."""
MOST_FILES = 500
"""In one folder; whoever has more has something else in it."""


@dataclass(frozen=True, slots=True)
class AgentFormat:
    """What a file means that does not say."""

    executor: str
    ours: bool
    """Whether an unknown key is a mistake; another program's files may hold what only that program knows."""


OURS = AgentFormat("local", ours=True)
FOLDERS = AgentFormat("claude", ours=True)
CLAUDE = AgentFormat("claude", ours=False)
OPENCODE = AgentFormat("opencode", ours=False)
SMALLCODE = AgentFormat("local", ours=False)

IN_PROJECT = (
    (".retinue/agents", OURS),
    ("agents", FOLDERS),
    (".claude/agents", CLAUDE),
    (".opencode/agents", OPENCODE),
    (".opencode/agent", OPENCODE),
    (".smallcode/agents", SMALLCODE),
)
"""Below a project's folder, the nearest first."""
IN_HOME = (
    (".claude/agents", CLAUDE),
    (".config/opencode/agents", OPENCODE),
    (".config/opencode/agent", OPENCODE),
    (".smallcode/agents", SMALLCODE),
)


@dataclass(frozen=True, slots=True)
class AgentFolder:
    folder: Path
    format: AgentFormat
    scope: DefinitionScope
    base: Path | None = None
    """Its files may not lie outside of this, whatever links say; None where the user may link freely."""
    shown: str = ""
    """How its folder is named to people and hosts."""

    def files(self) -> Iterator[Path]:
        """By name; `agents/NAME/agent.md` in the one place that has a folder for each agent."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir() if entry.name[0] != ".")[:MOST_FILES]
        except OSError:
            return
        for name in names:
            stem, dot, ending = name.rpartition(".")
            if self.format is FOLDERS:
                if name.lower() not in SET_ASIDE and (self.folder / name / "agent.md").is_file():
                    yield self.folder / name / "agent.md"
            elif dot and ending.lower() == "md" and stem.lower() not in READ_BY_PEOPLE | SET_ASIDE:
                yield self.folder / name

    def name_of(self, file: Path) -> str:
        return file.parent.name if self.format is FOLDERS else file.stem

    def label(self, file: Path) -> str:
        return f"{self.shown}/{file.relative_to(self.folder).as_posix()}"


def of_project(project: Path) -> Iterator[AgentFolder]:
    for folder, form in IN_PROJECT:
        yield AgentFolder(project / folder, form, "project", project, folder)


def of_user(config: Path, home: Path) -> Iterator[AgentFolder]:
    """The user's own: what lies here is as trusted as their settings."""
    yield AgentFolder(config / "agents", OURS, "user", None, home_relative(config / "agents", home))
    for folder, form in IN_HOME:
        yield AgentFolder(home / folder, form, "user", None, f"~/{folder}")


def built_in() -> AgentFolder:
    return AgentFolder(BUILTIN, OURS, "built in", None, "built in")


def working_folders(start: Path, home: Path) -> tuple[Path, ...]:
    """The folders that a person in this one works in: up to the repository's own, else this one alone."""
    chain: list[Path] = []
    for folder in (start, *start.parents):
        if folder == home:
            break
        chain.append(folder)
        if (folder / ".git").exists():
            return tuple(chain)
    return (start,)


def home_relative(path: Path, home: Path) -> str:
    """A path as hosts may see it."""
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else f"…/{path.name}"
