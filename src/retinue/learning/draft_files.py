"""The files of drafts and of what they become: where they are, and how they are read, written and deleted.

No link is followed on the way to a file, and nothing outside the project is touched (P6). Knows nothing of
decisions about drafts.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retinue.core import Conflict, Json, Unavailable, as_object, as_text, json_or_none
from retinue.definitions import (
    SKILL_FILE,
    MalformedDefinition,
    list_bundle,
    project_skill_folders,
    read_skill_bundle,
    split_skill,
)
from retinue.learning.proposals import DraftKind

MAX_DRAFT_BYTES = 64 * 1024
"""Maximum size of a draft, with all its files. The audit file keeps them."""
MAX_TRIED_CHARS = 12_000
"""Characters of a skill's other files that a trial shows, as many as an agent gets of the skills it names."""
MAX_DRAFTS = 500
"""Files of a folder that are looked at."""
FOLDERS: Mapping[DraftKind, tuple[str, str]] = {
    DraftKind.SKILL: (".retinue/skills", ".md"),
    DraftKind.EDIT: (".retinue/skills", ".edit.json"),
    DraftKind.AGENT: (".retinue/agents", ".md"),
    DraftKind.TEAM: (".retinue/teams", ".yaml"),
    DraftKind.RULE: (".retinue/rules", ".json"),
    DraftKind.MEMORY: (".retinue/memory", ".json"),
}
"""The folder whose `drafts` folder holds the drafts of a kind, and how their files' names end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDraft:
    """A draft that waits for a decision."""

    kind: DraftKind
    name: str
    path: str
    """Its file, relative to the project."""
    text: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """The other files of a skill that is a folder, by their path in it."""

    @property
    def record(self) -> dict[str, Json]:
        """The whole content, for the audit file."""
        return {"text": self.text, **({"files": dict(self.files)} if self.files else {})}

    @property
    def content(self) -> Mapping[str, Any]:
        """The values of a draft that is JSON."""
        return as_object(json_or_none(self.text))

    @property
    def edits(self) -> dict[int, str]:
        """The new texts of points, in a draft that changes a skill."""
        points = as_object(self.content.get("points"))
        return {int(number): as_text(text) for number, text in points.items() if number.isdigit()}

    @property
    def body(self) -> str:
        """The instructions in a draft of a skill, with its other files: trials do not offer `use_skill`."""
        files = "".join(f"\n\n{path}:\n{text}" for path, text in self.files.items())
        more = len(files) - MAX_TRIED_CHARS
        cut = f"\n[{more:,} characters of the other files are not shown]" if more > 0 else ""
        return split_skill(self.text.encode())[1] + files[:MAX_TRIED_CHARS] + cut

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder with a `SKILL.md`."""
        return Path(self.path).parent.name != "drafts"

    def contents(self) -> dict[str, str]:
        """The files of a draft where they go when it is promoted: out of its `drafts` folder.

        The draft's own file comes last, so that a skill whose files are being written is not found yet.
        """
        path = Path(self.path)
        parts = path.parts[-2:] if self.is_folder else path.parts[-1:]
        target = Path(*path.parts[: -len(parts) - 1], *parts)
        files = {(target.parent / name).as_posix(): text for name, text in self.files.items()}
        return {**files, target.as_posix(): self.text}


class DraftFiles:
    """The files of one project that drafts are in, and that they become. Paths are relative to it."""

    def __init__(self, project: Path) -> None:
        self.project = project.resolve()

    def drafts(self) -> Iterator[StoredDraft]:
        """Yield all drafts. Files and folders that cannot be drafts are left out."""
        for kind in DraftKind:
            for entry in self._entries(kind):
                with suppress(MalformedDefinition):
                    yield self._read(kind, entry)

    def reason_against(self, name: str) -> str | None:
        """Why a file or folder of this name is no draft; None if there is none."""
        for kind in DraftKind:
            for entry in self._entries(kind):
                if name in (entry.name, entry.name.removesuffix(FOLDERS[kind][1])):
                    try:
                        self._read(kind, entry)
                    except MalformedDefinition as error:
                        return error.problem.message
        return None

    def skill_folders(self) -> list[str]:
        """The project's folders of skills, Retinue's own first. Other programs keep drafts there, too."""
        return [folder.shown for folder in project_skill_folders(self.project)]

    def files_of_skill(self, folder: Path) -> Iterator[str]:
        """Yield the files of a skill that is a folder, without hidden ones. Raises `Conflict` for a link."""
        place = self.safe_path(folder.as_posix())
        if place.is_dir():
            try:
                yield from ((folder / name).as_posix() for name in list_bundle(place))
            except MalformedDefinition as error:
                raise Conflict(f"{folder}: {error.problem.message}", hint=error.problem.hint) from None

    def is_home(self, path: str) -> bool:
        """Whether a path is in a folder that promoted drafts are in."""
        return any(path.startswith(f"{folder}/") for folder in self._homes())

    def path_of(self, kind: DraftKind, name: str) -> str:
        folder, ending = FOLDERS[kind]
        return f"{folder}/drafts/{name}{ending}"

    def safe_path(self, path: str) -> Path:
        """Return a path of the project. Raises if a link leads to it, or out of the project (P6)."""
        place = self.project
        for part in Path(path).parts:
            place = place / part
            if part in ("..", "/") or place.is_symlink():
                raise Conflict(f"{path} is or goes through a link", hint="replace the link by a folder")
        return place

    def text_at(self, path: str) -> str | None:
        """The text of a file of the project; None if there is none."""
        file = self.safe_path(path)
        if not os.path.lexists(file):
            return None
        if not file.is_file():  # a pipe would never end
            raise Unavailable(f"{path} cannot be used: it is not a file", hint="rename or remove it")
        with using_file(path):
            return file.read_bytes().decode("utf-8", "replace")

    def delete(self, draft: StoredDraft) -> None:
        folder = Path(draft.path).parent
        self.remove([draft.path, *((folder / name).as_posix() for name in draft.files)])

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files of the project, and the folders of skills that are empty without them."""
        for path in paths:
            with using_file(path):
                self.safe_path(path).unlink(missing_ok=True)
        homes = self._homes()
        kept = {*homes, *(f"{home}/drafts" for home in homes)}
        for folder in (folder for path in paths for folder in Path(path).parents):
            if self.is_home(folder.as_posix()) and folder.as_posix() not in kept:
                with suppress(OSError):  # it has other files
                    self.safe_path(folder.as_posix()).rmdir()

    def write_new(self, path: str, text: str) -> None:
        """Write a file that does not exist yet. Nobody reads half of it, whenever the process ends."""
        file = self.safe_path(path)
        with using_file(path), _whole_file(file, text) as whole:
            try:
                os.link(whole, file)
            except FileExistsError:
                raise Conflict(f"{path} exists already", hint="rename or remove it") from None
            except OSError:  # not all file systems have links
                if os.path.lexists(file):
                    raise Conflict(f"{path} exists already", hint="rename or remove it") from None
                whole.replace(file)

    def replace(self, file: Path, text: str) -> None:
        """Replace a file of the project at once, so that nobody reads half of it."""
        path = file.relative_to(self.project).as_posix()
        file = self.safe_path(path)
        with using_file(path), _whole_file(file, text) as whole:
            whole.replace(file)

    def _entries(self, kind: DraftKind) -> Iterator[Path]:
        """Yield the files and folders that may be drafts of a kind."""
        folder, ending = FOLDERS[kind]
        folders = self.skill_folders() if kind is DraftKind.SKILL else [folder]
        for entry in (entry for each in folders for entry in self._files_in(f"{each}/drafts")):
            is_edit = entry.name.endswith(FOLDERS[DraftKind.EDIT][1])
            is_named = entry.name.endswith(ending) and is_edit == (kind is DraftKind.EDIT)
            if entry.name[0] != "." and (is_named or (kind is DraftKind.SKILL and entry.is_dir())):
                yield entry

    def _read(self, kind: DraftKind, entry: Path) -> StoredDraft:
        """Read a draft. Raises `MalformedDefinition` with the reason if it cannot be one."""
        if entry.is_symlink():
            raise MalformedDefinition(1, "it is a link")
        file, name = entry, entry.name.removesuffix(FOLDERS[kind][1])
        if entry.is_dir():
            contents, name = read_skill_bundle(entry, MAX_DRAFT_BYTES), entry.name
            file = entry / next((each for each in contents if each.lower() == SKILL_FILE.lower()), SKILL_FILE)
        else:
            contents = {entry.name: _read_file(entry)}
        texts: dict[str, str] = {}
        for path, data in contents.items():
            try:
                texts[path] = data.decode()
            except UnicodeDecodeError:
                raise MalformedDefinition(1, f"{path} is not a text file") from None
        if file.name not in texts:
            raise MalformedDefinition(1, f"it has no {SKILL_FILE}")
        shown = file.relative_to(self.project).as_posix()
        return StoredDraft(kind=kind, name=name, path=shown, text=texts.pop(file.name), files=texts)

    def _files_in(self, folder: str) -> list[Path]:
        try:
            return sorted(self.safe_path(folder).iterdir())[:MAX_DRAFTS]
        except OSError:
            return []

    def _homes(self) -> set[str]:
        """The folders that promoted drafts are in."""
        return {*(folder for folder, _ in FOLDERS.values()), *self.skill_folders()}


@contextmanager
def using_file(path: str) -> Generator[None]:
    """Tell a person which file cannot be used."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be used: {error.strerror}",
            hint="check the folder's permissions and the free space",
        ) from None


@contextmanager
def _whole_file(file: Path, text: str) -> Generator[Path]:
    """Write a hidden file beside `file`, which the caller puts into its place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        whole.write_text(text, encoding="utf-8", newline="\n")
        yield whole
    finally:
        whole.unlink(missing_ok=True)


def _read_file(file: Path) -> bytes:
    """Read a draft that is a single file. Raises `MalformedDefinition`."""
    try:
        if not file.is_file():
            raise MalformedDefinition(1, "it is not a regular file")
        with file.open("rb") as opened:
            data = opened.read(MAX_DRAFT_BYTES + 1)
    except OSError as error:
        raise MalformedDefinition(1, f"it cannot be read: {error.strerror}") from None
    if len(data) > MAX_DRAFT_BYTES:
        raise MalformedDefinition(1, f"it has more than {MAX_DRAFT_BYTES >> 10} KiB")
    return data
