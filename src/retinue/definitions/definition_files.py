"""Where agents' files lie, and what that says about them: whose they are and in whose format."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.definitions.frontmatter import MAX_BYTES
from retinue.definitions.problems import MalformedDefinition

DefinitionScope = Literal["project", "user", "built in", "settings"]

BUILTIN = Path(__file__).parent / "builtin"
DOCUMENTATION_STEMS = frozenset({"readme", "changelog", "license", "contributing"})
RESERVED_NAMES = frozenset({"main", "drafts"})
"""The main agent is no subagent, and drafts wait for a person."""
MAX_FILES_PER_FOLDER = 500
"""In one folder; whoever has more has something else in it."""


@dataclass(frozen=True, slots=True)
class AgentFormat:
    """What a file means that does not say."""

    executor: str
    ours: bool
    """Whether an unknown key is a mistake; another program's files may hold what only that program knows."""


NATIVE = AgentFormat("local", ours=True)
FOLDER_PER_AGENT = AgentFormat("claude", ours=True)
CLAUDE = AgentFormat("claude", ours=False)
OPENCODE = AgentFormat("opencode", ours=False)
SMALLCODE = AgentFormat("local", ours=False)

PROJECT_FOLDERS = (
    (".retinue/agents", NATIVE),
    ("agents", FOLDER_PER_AGENT),
    (".claude/agents", CLAUDE),
    (".opencode/agents", OPENCODE),
    (".opencode/agent", OPENCODE),
    (".smallcode/agents", SMALLCODE),
)
"""Below a project's folder, the nearest first."""
HOME_FOLDERS = (
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
            names = sorted(entry.name for entry in self.folder.iterdir() if entry.name[0] != ".")[
                :MAX_FILES_PER_FOLDER
            ]
        except OSError:
            return
        for name in names:
            stem, dot, ending = name.rpartition(".")
            if self.format is FOLDER_PER_AGENT:
                if name.lower() not in RESERVED_NAMES and (self.folder / name / "agent.md").is_file():
                    yield self.folder / name / "agent.md"
            elif dot and ending.lower() == "md" and stem.lower() not in DOCUMENTATION_STEMS | RESERVED_NAMES:
                yield self.folder / name

    def name_of(self, file: Path) -> str:
        return file.parent.name if self.format is FOLDER_PER_AGENT else file.stem

    def label(self, file: Path) -> str:
        return f"{self.shown}/{file.relative_to(self.folder).as_posix()}"


def project_folders(project: Path) -> Iterator[AgentFolder]:
    for folder, form in PROJECT_FOLDERS:
        yield AgentFolder(project / folder, form, "project", project, folder)


def user_folders(config: Path, home: Path) -> Iterator[AgentFolder]:
    """The user's own: what lies here is as trusted as their settings."""
    yield AgentFolder(config / "agents", NATIVE, "user", None, home_relative(config / "agents", home))
    for folder, form in HOME_FOLDERS:
        yield AgentFolder(home / folder, form, "user", None, f"~/{folder}")


def builtin_folder() -> AgentFolder:
    return AgentFolder(BUILTIN, NATIVE, "built in", None, "built in")


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


# MERGED files: Opening an agent's file: regular, of a bounded size, and inside its project whatever links say (P6).

DefinitionStamp = tuple[int, ...]


def file_stamp(file: Path) -> DefinitionStamp | None:
    """Changes when the file does; None if it is gone."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read_definition_file(file: Path, base: Path | None = None) -> bytes:
    """Its bytes, one more than is allowed at most; `MalformedDefinition` if it may not or cannot be read."""
    try:
        real = file.resolve(strict=True)
        if base is not None and not real.is_relative_to(base.resolve()):
            raise MalformedDefinition(
                1, "the file lies outside of its project", "a project's link may not leave it"
            )
        # Not blocking: a pipe would keep us waiting for whoever writes into it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(real, flags | getattr(os, "O_BINARY", 0)), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise MalformedDefinition(1, "not a regular file")
            if not os.path.samestat(found, file.resolve(strict=True).stat()):
                raise MalformedDefinition(1, "the file was swapped while it was read", "try again")
            return opened.read(MAX_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "links in a circle"
        raise MalformedDefinition(1, f"cannot be read: {reason}") from None
