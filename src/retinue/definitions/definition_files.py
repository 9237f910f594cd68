"""Locates agent files, knows their formats and opens them safely.

A file's folder determines its format and its scope. Files are opened only if they are regular, of a bounded
size, and inside their project even through links (P6). Knows nothing of what is in a file.
"""

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
"""`main` is the host's own agent, and `drafts` holds agents that wait for a person's approval."""
MAX_FILES_PER_FOLDER = 500
"""Files beyond this number are ignored: a larger folder is probably not a folder of agents."""


@dataclass(frozen=True, slots=True)
class AgentFormat:
    """The format of the files in a folder."""

    executor: str
    """The executor of agents whose files do not name one."""
    native: bool
    """Whether the format is Retinue's own. Only then is an unknown key an error, because files of other
    programs may contain keys that only those programs know."""


NATIVE = AgentFormat("local", native=True)
FOLDER_PER_AGENT = AgentFormat("claude", native=True)
CLAUDE = AgentFormat("claude", native=False)
OPENCODE = AgentFormat("opencode", native=False)
SMALLCODE = AgentFormat("local", native=False)
TEMPLATE = AgentFormat("local", native=False)
"""Templates of sub-agents, which name no executor: they run on whichever the user has."""

SUB_AGENTS_FOLDER = ".claude/sub-agents"
PROJECT_FOLDERS = (
    (".retinue/agents", NATIVE),
    ("agents", FOLDER_PER_AGENT),
    (".claude/agents", CLAUDE),
    (".opencode/agents", OPENCODE),
    (".opencode/agent", OPENCODE),
    (".smallcode/agents", SMALLCODE),
    (f"{SUB_AGENTS_FOLDER}/templates", TEMPLATE),
)
"""Folders of agents within a project, in order of precedence."""
PROFILE_FOLDERS = (".retinue/profiles", f"{SUB_AGENTS_FOLDER}/profiles")
"""Folders of profiles within a project, in order of precedence."""
HOME_FOLDERS = (
    (".claude/agents", CLAUDE),
    (".config/opencode/agents", OPENCODE),
    (".config/opencode/agent", OPENCODE),
    (".smallcode/agents", SMALLCODE),
)


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder that holds agent files."""

    path: Path
    format: AgentFormat
    scope: DefinitionScope
    base: Path | None = None
    """The files must be inside this folder, even after following links. None allows any target."""
    shown: str = ""
    """The folder's name to show to people and hosts."""

    def files(self) -> Iterator[Path]:
        """Yield the agent files, sorted by name. In `agents/`, each agent has a folder: `NAME/agent.md`."""
        try:
            names = sorted(entry.name for entry in self.path.iterdir() if entry.name[0] != ".")[
                :MAX_FILES_PER_FOLDER
            ]
        except OSError:
            return
        for name in names:
            stem, dot, ending = name.rpartition(".")
            if self.format is FOLDER_PER_AGENT:
                if name.lower() not in RESERVED_NAMES and (self.path / name / "agent.md").is_file():
                    yield self.path / name / "agent.md"
            elif dot and ending.lower() == "md" and stem.lower() not in DOCUMENTATION_STEMS | RESERVED_NAMES:
                yield self.path / name

    def name_of(self, file: Path) -> str:
        """Return the agent's default name, for a file that does not set one."""
        return file.parent.name if self.format is FOLDER_PER_AGENT else file.stem

    def label(self, file: Path) -> str:
        """Return the path of a file to show to people and hosts."""
        return f"{self.shown}/{file.relative_to(self.path).as_posix()}"


def project_folders(project: Path) -> Iterator[AgentFolder]:
    """Yield the folders of a project that may hold agents."""
    for folder, form in PROJECT_FOLDERS:
        yield AgentFolder(project / folder, form, "project", project, folder)


def profile_folders(project: Path) -> Iterator[AgentFolder]:
    """Yield the folders of a project that may hold profiles."""
    for folder in PROFILE_FOLDERS:
        yield AgentFolder(project / folder, NATIVE, "project", project, folder)


def user_folders(config: Path, home: Path) -> Iterator[AgentFolder]:
    """Yield the user's own folders. Their files are trusted like the user's settings."""
    yield AgentFolder(config / "agents", NATIVE, "user", None, home_relative(config / "agents", home))
    for folder, form in HOME_FOLDERS:
        yield AgentFolder(home / folder, form, "user", None, f"~/{folder}")


def builtin_folder() -> AgentFolder:
    """Return the folder of the agents that come with Retinue."""
    return AgentFolder(BUILTIN, NATIVE, "built in", None, "built in")


def working_folders(start: Path, home: Path) -> tuple[Path, ...]:
    """Return the folders from `start` up to the root of its repository; only `start` outside a repository."""
    chain: list[Path] = []
    for folder in (start, *start.parents):
        if folder == home:
            break
        chain.append(folder)
        if (folder / ".git").exists():
            return tuple(chain)
    return (start,)


def home_relative(path: Path, home: Path) -> str:
    """Shorten a path for hosts: `~/...` for a path in the home folder, otherwise only its last part."""
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else f"…/{path.name}"


DefinitionStamp = tuple[int, ...]


def file_stamp(file: Path) -> DefinitionStamp | None:
    """Return a value that changes when the file does; None if the file does not exist."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read_definition_file(file: Path, base: Path | None = None) -> bytes:
    """Return a file's content, cut one byte after the size limit. Raises `MalformedDefinition` on failure.

    With `base`, the file must be inside that folder, even after following links.
    """
    try:
        real = file.resolve(strict=True)
        if base is not None and not real.is_relative_to(base.resolve()):
            raise MalformedDefinition(
                1, "the file is outside its project", "a link in a project may not point outside it"
            )
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(real, flags | getattr(os, "O_BINARY", 0)), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise MalformedDefinition(1, "not a regular file")
            if not os.path.samestat(found, file.resolve(strict=True).stat()):
                raise MalformedDefinition(1, "the file was replaced while it was read", "try again")
            return opened.read(MAX_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "circular links"
        raise MalformedDefinition(1, f"cannot be read: {reason}") from None
