"""Finds the files of skills and reads them: the header alone for lists, the whole file on demand.

A skill is `NAME/SKILL.md`, `NAME.md` with a header, or a plain `NAME.md`. No link is followed out of a folder
of skills, and nothing in `drafts/` is a skill. Knows nothing of who may use a skill.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from retinue.core import clip, escape_invisible_characters
from retinue.definitions.definition_files import (
    DOCUMENTATION_STEMS,
    DefinitionScope,
    DefinitionStamp,
    home_relative,
    read_definition_file,
)
from retinue.definitions.frontmatter import (
    MAX_HEADER_CHARS,
    MarkdownDocument,
    decode_markdown,
    parse_markdown,
)
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition
from retinue.definitions.value_readers import read_words
from retinue.definitions.yaml_tree import ListNode, Node, ScalarNode, TableNode

SKILL_FILE = "SKILL.md"
DRAFTS = "drafts"
"""The folder of skills that wait for a person's decision. It is never searched for skills."""
OWN_SKILLS = ".retinue/skills"
PROJECT_SKILLS = (OWN_SKILLS, ".claude/skills", ".agents/skills", ".smallcode/skills")
"""Folders of skills in a project, in order of precedence."""
HOME_SKILLS = (".claude/skills", ".agents/skills", ".smallcode/skills", ".config/smallcode/skills")

MAX_SKILLS_PER_FOLDER = 1_000
LEADS_OUT = "the link leads out of the folder of skills"
TOO_MANY = f"only the first {MAX_SKILLS_PER_FOLDER:,} files of a folder are read: {{:,}} are left out"
MAX_DESCRIPTION_CHARS = 1_024
MAX_TRIGGERS, MAX_TRIGGER_CHARS = 20, 80
MAX_BUNDLE_FILES, MAX_BUNDLE_BYTES = 500, 16 << 20
"""Limits of a skill's folder. Beyond them it cannot be read as a whole, so it cannot be approved."""
HEAD_BYTES = 4_096
"""What is read of a file at first. Few headers are longer."""
SKILL_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
"""Names that a skill is loaded with. `retinue skills check` is stricter."""
_HEADER = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*(?:\r\n?|\n)(?:.*?(?:\r\n?|\n))??---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL
)
_FENCE = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r\n?|\n)")
TRIGGER_KEYS = ("triggers", "trigger", "keywords")
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)


class SkillEntry(NamedTuple):
    """A file in a folder of skills that is a skill if it exists."""

    name: str
    """The name of its folder, or its own without the suffix."""
    file: str
    is_folder: bool
    path: str
    """What is in the folder: a file, a folder, or a link to one of these."""
    refused: str | None = None
    """Why the file is not opened."""
    leads_out: bool = False
    """Whether it is a link to a place outside the folder."""


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A folder that holds skills."""

    path: Path
    scope: DefinitionScope
    shown: str
    """The folder's name to show to people and hosts."""
    base: Path | None = None
    """The project that the folder belongs to, and that it must not lead out of."""

    def entries(self) -> Iterator[SkillEntry]:
        """Yield the skills in the folder by name. Opens no file."""
        real = os.path.realpath(self.path)
        if self.base is not None and not _is_inside(real, os.path.realpath(self.base)):
            return
        try:
            with os.scandir(real) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries[:MAX_SKILLS_PER_FOLDER]:
            name = entry.name
            if name[0] == "." or name.lower() == DRAFTS:
                continue
            refused, place = None, entry.path
            if entry.is_symlink():
                target = os.path.realpath(place)
                if _is_inside(target, real):
                    place = target
                else:
                    refused = LEADS_OUT
            stem, dot, ending = name.rpartition(".")
            if dot and ending.lower() == "md":
                if stem.lower() not in DOCUMENTATION_STEMS:
                    yield SkillEntry(stem, place, False, entry.path, refused, leads_out=refused is not None)
            elif refused is not None or _is_folder(entry):
                file = f"{place}/{SKILL_FILE}"
                yield SkillEntry(name, file, True, entry.path, refused, leads_out=refused is not None)
        if rest := entries[MAX_SKILLS_PER_FOLDER:]:
            name = rest[0].name.removesuffix(".md")
            yield SkillEntry(name, rest[0].path, False, rest[0].path, TOO_MANY.format(len(rest)))


def project_skill_folders(project: Path) -> Iterator[SkillFolder]:
    """Yield the folders of a project that may hold skills."""
    for folder in PROJECT_SKILLS:
        yield SkillFolder(project / folder, "project", folder, project)


def user_skill_folders(config: Path, home: Path) -> Iterator[SkillFolder]:
    """Yield the user's own folders of skills."""
    yield SkillFolder(config / "skills", "user", home_relative(config / "skills", home))
    for folder in HOME_SKILLS:
        yield SkillFolder(home / folder, "user", f"~/{folder}")


class SkillFile(NamedTuple):
    """A skill as its header describes it."""

    name: str
    description: str
    file: str
    """The full path."""
    source: str
    """The path to show to people and hosts."""
    scope: DefinitionScope
    is_folder: bool
    """Whether the skill is a folder, whose other files belong to it."""
    path: str
    """What is in the folder of skills: the file, the skill's own folder, or a link to one of these."""
    triggers: tuple[str, ...] = ()
    """Words and phrases of a task that bring in the skill's text."""
    problem: DefinitionProblem | None = None
    """Why the skill cannot be loaded."""
    stamp: DefinitionStamp = ()
    """Changes with the file; empty if the file was not opened."""

    @property
    def folder(self) -> str:
        """The folder that holds the skill's own files; for a single file, the folder of skills."""
        return os.path.dirname(self.file)  # noqa: PTH120


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def read_skill_header(entry: SkillEntry, folder: SkillFolder) -> SkillFile | None:
    """Read the header of a skill; None if there is no such file.

    Never raises: a skill that cannot be loaded has a problem. Reads only the beginning of the file, unless
    the header is long.
    """
    shown = f"{folder.shown}/{entry.name}" + (f"/{SKILL_FILE}" if entry.is_folder else ".md")
    stamp: DefinitionStamp = ()
    try:
        if entry.refused is not None:
            hint = "copy the skill with `retinue skills add`" if entry.leads_out else "remove some"
            raise MalformedDefinition(1, entry.refused, hint)
        head, stamp = _read_head(entry.file)
        name, description, triggers = _read_fields(head, entry.name)
        problem = None
    except FileNotFoundError:
        if entry.is_folder and entry.file.endswith(SKILL_FILE):
            other = entry.file.removesuffix(SKILL_FILE) + SKILL_FILE.lower()
            return read_skill_header(entry._replace(file=other), folder)
        return None
    except MalformedDefinition as error:
        name, description, triggers, problem = _default_name(entry.name), "", (), error.problem
    return SkillFile(
        name=name,
        description=description,
        file=entry.file,
        source=shown,
        scope=folder.scope,
        is_folder=entry.is_folder,
        path=entry.path,
        triggers=triggers,
        problem=problem,
        stamp=stamp,
    )


def _read_head(file: str) -> tuple[bytes, DefinitionStamp]:
    """Return the beginning of a file, at least to the end of its header, and the file's stamp."""
    try:
        descriptor = os.open(file, _FLAGS)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise MalformedDefinition(1, "not a regular file")
            head = os.read(descriptor, HEAD_BYTES)
            # Most headers end in the first block. A bare CR ends lines in few files, which are read on.
            if len(head) == HEAD_BYTES and head.find(b"\n---", 3) < 0 and _FENCE.match(head):
                while len(head) < 4 * MAX_HEADER_CHARS and (more := os.read(descriptor, 1 << 16)):
                    head += more
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        hint = "replace the link by the file" if error.errno == errno.ELOOP else None
        raise MalformedDefinition(1, f"cannot be read: {error.strerror}", hint) from None
    return head, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _read_fields(head: bytes, default: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the name, the description and the triggers of a skill."""
    if not _FENCE.match(head):  # a plain file: its first line describes it
        text = head.decode("utf-8-sig", "ignore")
        first = next((line.strip() for line in text.splitlines() if line.strip(" \t#")), "")
        return _checked_name(_default_name(default), 1), _one_line(first.lstrip("# ")), ()
    header = _HEADER.match(head)
    document = parse_markdown(head if header is None else header[0], lenient=True)
    entries = document.header.entries
    if "name" not in entries:
        name, line = _default_name(default), 1
    else:
        name, line = unicodedata.normalize("NFKC", _text(entries["name"].value)), entries["name"].line
    description = _text(entries["description"].value) if "description" in entries else ""
    if not description and header is not None:
        rest = head[header.end() :].decode("utf-8", "ignore")
        description = next((each.strip("# \t") for each in rest.splitlines() if each.strip("# \t")), "")
    return _checked_name(name, line), _one_line(description), _read_triggers(document)


def _checked_name(name: str, line: int) -> str:
    if not SKILL_NAME.fullmatch(name):
        raise MalformedDefinition(
            line, f"{name[:80]!r} is not a valid name", "use at most 64 letters, digits and hyphens"
        )
    return name


def _default_name(written: str) -> str:
    """Return the name of a skill whose header has none: that of its file, in lower case and with hyphens."""
    name = "-".join(unicodedata.normalize("NFKC", written).lower().split())
    if SKILL_NAME.fullmatch(name):
        return name
    return re.sub(r"[^\w.-]+", "-", name).strip("-._")[:64] or "unnamed"


def _text(node: Node) -> str:
    return node.text.strip() if isinstance(node, ScalarNode) else ""


def _one_line(text: str) -> str:
    shown = text if text.isascii() and text.isprintable() else escape_invisible_characters(text)
    return clip(" ".join(shown.split()), MAX_DESCRIPTION_CHARS)


def _read_triggers(document: MarkdownDocument) -> tuple[str, ...]:
    """Read the phrases of `triggers`, in the header or in its `metadata`. Leaves out what is not a phrase."""
    tables = [document.header]
    if (more := document.header.entries.get("metadata")) and isinstance(more.value, TableNode):
        tables.append(more.value)
    for table in tables:
        for key in TRIGGER_KEYS:
            if key in table.entries:
                try:
                    words = read_words(table.entries[key].value)
                except MalformedDefinition:
                    return ()
                lines = (_one_line(word)[:MAX_TRIGGER_CHARS] for word in words)
                return tuple(dict.fromkeys(line for line in lines if line))[:MAX_TRIGGERS]
    return ()


@dataclass(frozen=True, slots=True)
class SkillText:
    """The whole of a skill: its instructions, its header and the files that belong to it."""

    body: str
    header: Mapping[str, Node]
    files: tuple[str, ...]
    """The paths of the other files of the skill, relative to its folder."""
    digest: str
    """SHA-256 of the skill's files. It changes with any of them."""


def read_skill(skill: SkillFile) -> SkillText:
    """Read a skill with all its files. Raises `MalformedDefinition`.

    The text that is returned is the text that the digest was made from.
    """
    folder = Path(skill.folder)
    if not skill.is_folder:
        data = read_definition_file(Path(skill.file), folder)
        header, body = split_skill(data)
        return SkillText(body, header, (), hashlib.sha256(data).hexdigest())
    bundle = read_skill_bundle(folder)
    own = os.path.basename(skill.file)  # noqa: PTH119
    if own not in bundle:  # the file system may ignore case
        own = next((name for name in bundle if name.lower() == own.lower()), own)
    if own not in bundle:
        raise MalformedDefinition(1, f"there is no {own}")
    data = bundle.pop(own)
    digest = hashlib.sha256(data)
    for name, content in bundle.items():
        digest.update(b"\0%b\0%d\0" % (name.encode("utf-8", "surrogateescape"), len(content)))
        digest.update(content)
    header, body = split_skill(data)
    return SkillText(body, header, tuple(bundle), digest.hexdigest())


def read_skill_bundle(folder: Path, max_bytes: int = MAX_BUNDLE_BYTES) -> dict[str, bytes]:
    """Return all files of a skill's folder by relative path. Raises `MalformedDefinition`."""
    found: dict[str, bytes] = {}
    left = max_bytes
    for name in list_bundle(folder):
        data = _read_bundled(folder, name, left)
        if (left := left - len(data)) < 0:
            raise MalformedDefinition(1, f"the skill has more than {max_bytes >> 10} KiB", "remove files")
        found[name] = data
    return found


def split_skill(data: bytes) -> tuple[Mapping[str, Node], str]:
    """Return the header of a skill, empty for a plain file, and its body. Raises `MalformedDefinition`."""
    if _FENCE.match(data):
        document = parse_markdown(data, lenient=True)
        return {key: entry.value for key, entry in document.header.entries.items()}, document.body
    return {}, re.sub(r"\r\n?", "\n", decode_markdown(data)).strip()


def list_bundle(folder: Path) -> tuple[str, ...]:
    """Return the files of a skill's folder, without hidden ones. Raises `MalformedDefinition` for a link."""
    found: list[str] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(folder / below) as entries:
                for entry in entries:
                    path = f"{below}{entry.name}"
                    if entry.name[0] == ".":
                        continue
                    if entry.is_symlink():
                        raise MalformedDefinition(1, f"{path} is a link", "replace it by the file")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
                    elif entry.is_file(follow_symlinks=False):
                        found.append(path)
                    if len(found) + len(waiting) > MAX_BUNDLE_FILES:
                        raise MalformedDefinition(
                            1, f"the skill's folder has more than {MAX_BUNDLE_FILES} files", "remove some"
                        )
        except OSError as error:
            raise MalformedDefinition(1, f"{below or 'the folder'}: {error.strerror}") from None
    return tuple(sorted(found))


def read_skill_file(skill: SkillFile, name: str) -> str:
    """Return the text of a file that belongs to a skill. Raises `MalformedDefinition`."""
    folder = Path(skill.folder)
    if not skill.is_folder or name not in list_bundle(folder):
        raise MalformedDefinition(1, f"the skill {skill.name} has no file {name[:120]!r}")
    data = _read_bundled(folder, name, MAX_BUNDLE_BYTES)
    if b"\0" in data[:8_192]:
        raise MalformedDefinition(1, f"{name} is not a text file")
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _read_bundled(folder: Path, name: str, limit: int) -> bytes:
    """Read one of the files that `list_bundle` returns, one byte more than `limit` at most."""
    try:
        descriptor = os.open(folder / name, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MalformedDefinition(1, f"{name} is not a regular file")
            return file.read(limit + 1)
    except OSError as error:
        raise MalformedDefinition(1, f"{name} cannot be read: {error.strerror}") from None


def granted_tools(header: Mapping[str, Node]) -> tuple[str, ...]:
    """Return what `allowed-tools` lists. It is shown to people; no agent gets a tool by it."""
    node = header.get("allowed-tools")
    if isinstance(node, ScalarNode | ListNode):
        try:
            return read_words(node)
        except MalformedDefinition:
            return ()
    return ()


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
