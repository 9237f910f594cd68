"""Keeps drafts apart from what is in use until a person promotes them, and writes down what happens to them.

A draft is a file in a `drafts` folder of the project, such as `.retinue/skills/drafts/NAME.md`. A draft of a
skill may also be a folder with a `SKILL.md`. Nothing loads from a `drafts` folder. Every change is a line of
`.retinue/evolver-audit.jsonl`, so each promotion can be undone. No link is followed on the way to a file
(P6).
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import os
import secrets
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retinue.core import (
    Conflict,
    InvalidInput,
    Json,
    RetinueError,
    Unavailable,
    as_object,
    as_text,
    clip,
    json_or_none,
)
from retinue.definitions import (
    SKILL_FILE,
    MalformedDefinition,
    check_skill,
    list_bundle,
    project_skill_folders,
    read_skill_bundle,
    split_skill,
)
from retinue.learning.friction import Friction
from retinue.learning.in_use import InUse
from retinue.learning.proposals import DraftKind, Proposal
from retinue.store import lock_file

AUDIT_FILE = ".retinue/evolver-audit.jsonl"
MAX_DRAFT_BYTES = 64 * 1024
"""Maximum size of a draft, with all its files. The audit file keeps them."""
MAX_TRIED_CHARS = 12_000
"""Characters of a skill's other files that a trial shows, as many as an agent gets of the skills it names."""
MAX_DRAFTS = 500
"""Files of a folder that are looked at."""
MAX_AUDIT_BYTES = 8 * 1024 * 1024
"""How much of the end of the audit file is read."""
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


class Drafts:
    """The drafts of one project."""

    def __init__(self, project: Path) -> None:
        self._project = project.resolve()

    def pending(self) -> list[StoredDraft]:
        """All drafts, by name."""
        found = [draft for kind in DraftKind for draft in self._in_folder(kind)]
        return sorted(found, key=lambda draft: draft.name)

    def get(self, name: str) -> StoredDraft:
        """Return a draft by its name."""
        drafts = self.pending()
        for draft in drafts:
            if draft.name == name:
                return draft
        if (reason := self._reason_against(name)) is not None:
            raise InvalidInput(f"the draft {name} cannot be used: {reason}", hint="correct it, or delete it")
        known = ", ".join(draft.name for draft in drafts) or "there are none"
        raise InvalidInput(f"there is no draft {clip(name, 80)!r}", hint=f"drafts: {known}")

    def create(self, proposal: Proposal, friction: Friction, by: str) -> StoredDraft:
        """Write a draft's file. `EvolverRun` calls this, at most once."""
        path = self._path(proposal.kind, proposal.name)
        self._audit_file()  # no draft without its line
        self._write_new(path, proposal.text())
        self.record(
            "create",
            proposal.name,
            kind=proposal.kind.value,
            by=by,
            friction={"kind": friction.kind.value, "agent": friction.agent, "what": friction.what},
            runs=list(friction.runs[:10]),
            hash=_digest(proposal.text()),
        )
        return self.get(proposal.name)

    def start_run(self, by: str) -> EvolverRun:
        """Begin a run of the evolver, which may create one draft. `by` names the model that proposes it."""
        return EvolverRun(self, by)

    def diff(self, name: str, in_use: InUse) -> str:
        """Return what promoting a draft would change."""
        draft = self.get(name)
        if draft.kind is not DraftKind.EDIT:
            contents = self._contents(draft)
            return "".join(_diff(path, None, text) for path, text in contents.items())
        skill = as_text(draft.content.get("skill"))
        path = in_use.skill_file(skill).relative_to(self._project).as_posix()
        return _diff(path, self._text_at(path), in_use.changed_skill(skill, draft.edits))

    def promote(self, name: str, in_use: InUse, *, forced: bool, figures: Json) -> dict[str, Json]:
        """Put a draft into use and return what to show. Only an edit changes a file that exists.

        How to undo it is recorded before anything changes, and the draft is deleted last. If the process is
        killed on the way, the promotion can be repeated or undone. Of two processes that promote the same
        draft, the second one finds none.
        """
        with self._deciding():
            draft = self.get(name)
            undo = self._plan(draft, in_use)
            facts: dict[str, Json] = {"kind": draft.kind.value, "forced": forced, "figures": figures}
            self.record("promote", name, **facts, undo=undo, **draft.record)
            try:
                self._put_into_use(draft, in_use, undo)
            except (RetinueError, OSError) as error:
                failed = f"it failed: {clip(str(error), 200)}"
                self.record("rollback", name, kind=draft.kind.value, reason=failed)
                raise
            self._delete(draft)
        return {"promoted": name, "kind": draft.kind.value, "place": self._place(draft, undo)}

    def reject(self, name: str, reason: str = "") -> None:
        """Delete a draft. The friction that it is about does not come back."""
        with self._deciding():
            draft = self.get(name)
            created = self.last("create", name)
            friction = created.get("friction") if created is not None else None
            facts: dict[str, Json] = {"kind": draft.kind.value, "friction": friction, "reason": reason}
            self.record("reject", name, **facts, **draft.record)
            self._delete(draft)

    def rollback(self, name: str, in_use: InUse) -> dict[str, Json]:
        """Undo the last promotion of this name. What somebody changed since then is not touched."""
        with self._deciding():
            promoted = self._promotion(name)
            if promoted is None:
                raise InvalidInput(
                    f"{clip(name, 80)!r} has no promotion to undo", hint="`retinue evolve list` shows them"
                )
            place = self._take_out_of_use(as_object(promoted.get("undo")), in_use)
            self.record("rollback", name, kind=as_text(promoted.get("kind")))
        return {"rolled_back": name, "place": place}

    def rejected_friction(self) -> list[tuple[str, str, str]]:
        """The friction of rejected drafts: kind, agent and what."""
        found = [as_object(each.get("friction")) for each in self.history() if each["action"] == "reject"]
        return [
            (as_text(each.get("kind")), as_text(each.get("agent")), as_text(each.get("what")))
            for each in found
        ]

    def names(self) -> set[str]:
        return {draft.name for draft in self.pending()}

    def record(self, action: str, name: str, **details: Json) -> None:
        """Append a line to the audit file."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"at": at, "action": action, "draft": name, **details}, ensure_ascii=False)
        path = self._audit_file()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with _writing(AUDIT_FILE):
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, flags, 0o666), "rb+", buffering=0) as file:
                if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                    line = "\n" + line  # a full disk or a killed process has cut the last line
                file.write(f"{line}\n".encode("utf-8", "replace"))  # at once: others may write, too

    def history(self) -> Iterator[dict[str, Any]]:
        """The lines of the audit file in order, each with its number. Lines that are no JSON are left out."""
        path, data = self._audit_file(), b""
        with suppress(FileNotFoundError, NotADirectoryError), path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_AUDIT_BYTES))
            data = file.read()
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n")):
            entry = as_object(json_or_none(line))
            if as_text(entry.get("action")):
                yield {**entry, "line": number}

    def _audit_file(self) -> Path:
        """The path of the audit file. Raises if something else is in its place, which a clone may bring."""
        path = self._safe(AUDIT_FILE)
        if os.path.lexists(path) and not (path.is_file() and os.access(path, os.R_OK)):
            raise Unavailable(f"{AUDIT_FILE} is not a file that can be read", hint="move it away")
        return path

    def last(self, action: str, name: str) -> dict[str, Any] | None:
        """The newest line of the audit file about this."""
        found = [each for each in self.history() if (each["action"], each.get("draft")) == (action, name)]
        return found[-1] if found else None

    def _promotion(self, name: str) -> dict[str, Any] | None:
        """The last promotion of this name, unless it was undone."""
        promoted, undone = self.last("promote", name), self.last("rollback", name)
        if promoted is None or (undone is not None and undone["line"] > promoted["line"]):
            return None
        return promoted

    @contextmanager
    def _deciding(self) -> Generator[None]:
        """Let one process at a time decide about drafts. The lock is on the audit file."""
        path = self._audit_file()
        with _writing(AUDIT_FILE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with lock_file(path, "another process is deciding about a draft"):
            yield

    def _in_folder(self, kind: DraftKind) -> Iterator[StoredDraft]:
        for entry in self._entries(kind):
            with suppress(MalformedDefinition):
                yield self._read(kind, entry)

    def _entries(self, kind: DraftKind) -> Iterator[Path]:
        """Yield the files and folders that may be drafts of a kind."""
        folder, ending = FOLDERS[kind]
        folders = self._skill_folders() if kind is DraftKind.SKILL else [folder]
        for entry in (entry for each in folders for entry in self._files_in(f"{each}/drafts")):
            is_edit = entry.name.endswith(FOLDERS[DraftKind.EDIT][1])
            is_named = entry.name.endswith(ending) and is_edit == (kind is DraftKind.EDIT)
            if entry.name[0] != "." and (is_named or (kind is DraftKind.SKILL and entry.is_dir())):
                yield entry

    def _read(self, kind: DraftKind, entry: Path) -> StoredDraft:
        """Read a draft. Raises `MalformedDefinition` with the reason if it cannot be one."""
        if entry.is_symlink():
            raise MalformedDefinition(1, "it is a link")
        folder = entry if entry.is_dir() else None
        if folder is None:
            entry, contents = entry, {entry.name: _read_file(entry)}
        else:
            contents = read_skill_bundle(folder, MAX_DRAFT_BYTES)
            entry = folder / next((name for name in contents if name.lower() == "skill.md"), SKILL_FILE)
        texts: dict[str, str] = {}
        for name, data in contents.items():
            try:
                texts[name] = data.decode()
            except UnicodeDecodeError:
                raise MalformedDefinition(1, f"{name} is not a text file") from None
        if entry.name not in texts:
            raise MalformedDefinition(1, f"it has no {SKILL_FILE}")
        return StoredDraft(
            kind=kind,
            name=entry.name.removesuffix(FOLDERS[kind][1]) if folder is None else folder.name,
            path=entry.relative_to(self._project).as_posix(),
            text=texts.pop(entry.name),
            files=texts,
        )

    def _reason_against(self, name: str) -> str | None:
        """Why a file or folder of this name is no draft; None if there is none."""
        for kind in DraftKind:
            for entry in self._entries(kind):
                if name in (entry.name, entry.name.removesuffix(FOLDERS[kind][1])):
                    try:
                        self._read(kind, entry)
                    except MalformedDefinition as error:
                        return error.problem.message
        return None

    def _files_in(self, folder: str) -> list[Path]:
        try:
            return sorted(self._safe(folder).iterdir())[:MAX_DRAFTS]
        except OSError:
            return []

    def _skill_folders(self) -> list[str]:
        """The project's folders of skills, Retinue's own first. Other programs keep drafts there, too."""
        return [folder.shown for folder in project_skill_folders(self._project)]

    def _plan(self, draft: StoredDraft, in_use: InUse) -> dict[str, Json]:
        """Return how to undo a promotion. Raises if the draft cannot be promoted. Changes no file."""
        match draft.kind:
            case DraftKind.RULE:
                return {
                    "agent": as_text(draft.content.get("agent")),
                    "rule": as_text(draft.content.get("rule")),
                }
            case DraftKind.MEMORY:  # the same text is stored once, however often this is repeated
                return {"memory": in_use.remember(as_text(draft.content.get("memory")))}
            case DraftKind.EDIT:
                skill = as_text(draft.content.get("skill"))
                file = in_use.skill_file(skill)
                path = file.resolve().relative_to(self._project).as_posix()
                before = self._text_at(path) or ""
                begun = self._promotion(draft.name) or {}
                undo = dict(as_object(begun.get("undo")))
                if (begun.get("text"), undo.get("file"), undo.get("hash")) == (
                    draft.text,
                    path,
                    _digest(before),
                ):
                    return undo  # killed after the change, which must not be made twice
                changed = in_use.changed_skill(skill, draft.edits)
                return {"file": path, "hash": _digest(changed), "before": before}
            case _:
                return self._plan_files(draft, in_use)

    def _plan_files(self, draft: StoredDraft, in_use: InUse) -> dict[str, Json]:
        """Return how to undo writing a draft's files. Raises if it would mix with something else."""
        contents = self._contents(draft)
        main = next(reversed(contents))
        taken = [path for path, text in contents.items() if self._text_at(path) not in (None, text)]
        taken += [path for path in self._beside(draft, main) if path not in contents]
        if taken:
            raise Conflict(f"{taken[0]} exists already", hint="rename or remove it")
        if draft.kind is DraftKind.SKILL:
            self._check_skill(draft, self._project / main, in_use)
        hashes: dict[str, Json] = {path: _digest(text) for path, text in contents.items()}
        undo: dict[str, Json] = {"file": main, "hash": hashes.pop(main)}
        return undo | ({"more": hashes} if hashes else {})

    def _check_skill(self, draft: StoredDraft, target: Path, in_use: InUse) -> None:
        """Raise if a skill breaks the format, or has the name of another one. Nobody checks drafts of clones."""
        problems = check_skill(draft.text.encode(), draft.name, is_folder=_is_folder(draft))
        if fatal := next((each for each in problems if each.fatal), None):
            raise InvalidInput(f"{draft.path}:{fatal.line}: {fatal.message}", hint=fatal.hint)
        if (other := in_use.namesake(self._project / draft.path, target)) is not None:
            raise Conflict(
                f"{other.file.source} has the name {other.name} already", hint="rename one of them"
            )

    def _beside(self, draft: StoredDraft, main: str) -> Iterator[str]:
        """Yield the files of a skill that has the same name already, in the same folder of skills."""
        home = Path(main).parent
        if _is_folder(draft):
            yield from self._files_of_skill(home)
            other = home.with_name(f"{home.name}.md")
        else:
            other = home / draft.name
        if draft.kind is DraftKind.SKILL and os.path.lexists(self._safe(other.as_posix())):
            yield other.as_posix()

    def _files_of_skill(self, folder: Path) -> Iterator[str]:
        """Yield the files of a skill that is a folder, without hidden ones. Raises `Conflict` for a link."""
        place = self._safe(folder.as_posix())
        if place.is_dir():
            try:
                yield from ((folder / name).as_posix() for name in list_bundle(place))
            except MalformedDefinition as error:
                raise Conflict(f"{folder}: {error.problem.message}", hint=error.problem.hint) from None

    def _put_into_use(self, draft: StoredDraft, in_use: InUse, plan: Mapping[str, Json]) -> None:
        """Perform what promotion means for the kind."""
        match draft.kind:
            case DraftKind.RULE:
                in_use.add_rule(as_text(plan["agent"]), as_text(plan["rule"]))
            case DraftKind.MEMORY:
                pass  # it has its id already
            case DraftKind.EDIT:
                path, skill = as_text(plan["file"]), as_text(draft.content.get("skill"))
                if _digest(self._text_at(path) or "") != plan["hash"]:
                    self._replace(self._project / path, in_use.changed_skill(skill, draft.edits))
                in_use.approve_skill(self._project / path)
            case _:
                for path, text in self._contents(draft).items():
                    if self._text_at(path) is None:
                        self._write_new(path, text)
                if draft.kind is DraftKind.SKILL:
                    in_use.approve_skill(self._project / as_text(plan["file"]))

    def _take_out_of_use(self, undo: Mapping[str, Any], in_use: InUse) -> str:
        if "rule" in undo:
            in_use.remove_rule(as_text(undo.get("agent")), as_text(undo["rule"]))
            return f"the permissions of {as_text(undo.get('agent'))}"
        if "memory" in undo:
            is_deleted = in_use.forget(as_text(undo["memory"]))
            return "the memory" if is_deleted else "nothing: the memory is not the evolver's alone"
        path = as_text(undo.get("file"))
        more = {name: as_text(hashed) for name, hashed in as_object(undo.get("more")).items()}
        folder = Path(path).parent
        files = {**more, path: as_text(undo.get("hash"))}
        is_folder = folder.parent.as_posix() in self._skill_folders()
        is_home = self._is_home(path) and all(is_folder and folder in Path(name).parents for name in more)
        if not is_home:  # the audit file is the project's
            raise Conflict(f"{clip(path, 80)} is no place of promoted drafts", hint="undo it by hand")
        texts = {name: self._text_at(name) for name in files}
        changed = [name for name, text in texts.items() if text is not None and _digest(text) != files[name]]
        if is_folder and "before" not in undo:
            changed += [name for name in self._files_of_skill(folder) if name not in files]
        if changed:
            raise Conflict(
                f"{changed[0]} was changed after its promotion",
                hint="undo it by hand: the audit file has the text of before",
            )
        if "before" in undo:
            self._replace(self._safe(path), as_text(undo["before"]))
            in_use.approve_skill(self._safe(path))
        else:
            self._remove_files([*reversed(files)])
        return path

    def _is_home(self, path: str) -> bool:
        """Whether a path is in a folder that promoted drafts are in."""
        return any(path.startswith(f"{folder}/") for folder in self._homes())

    def _homes(self) -> set[str]:
        """The folders that promoted drafts are in."""
        return {*(folder for folder, _ in FOLDERS.values()), *self._skill_folders()}

    def _place(self, draft: StoredDraft, undo: Mapping[str, Json]) -> str:
        return as_text(undo.get("file")) or {
            DraftKind.RULE: f"the permissions of {as_text(undo.get('agent'))}",
        }.get(draft.kind, "the memory")

    def _contents(self, draft: StoredDraft) -> dict[str, str]:
        """The files of a draft where they go when it is promoted: out of its `drafts` folder.

        The draft's own file comes last, so that a skill whose files are being written is not found yet.
        """
        path = Path(draft.path)
        parts = path.parts[-2:] if _is_folder(draft) else path.parts[-1:]
        target = Path(*path.parts[: -len(parts) - 1], *parts)
        files = {(target.parent / name).as_posix(): text for name, text in draft.files.items()}
        return {**files, target.as_posix(): draft.text}

    def _path(self, kind: DraftKind, name: str) -> str:
        folder, ending = FOLDERS[kind]
        return f"{folder}/drafts/{name}{ending}"

    def _safe(self, path: str) -> Path:
        """Return a path of the project. Raises if a link leads to it, or out of the project (P6)."""
        place = self._project
        for part in Path(path).parts:
            place = place / part
            if part in ("..", "/") or place.is_symlink():
                raise Conflict(f"{path} is or goes through a link", hint="replace the link by a folder")
        return place

    def _text_at(self, path: str) -> str | None:
        """The text of a file of the project; None if there is none."""
        file = self._safe(path)
        with _writing(path):
            return file.read_bytes().decode("utf-8", "replace") if os.path.lexists(file) else None

    def _delete(self, draft: StoredDraft) -> None:
        folder = Path(draft.path).parent
        self._remove_files([draft.path, *((folder / name).as_posix() for name in draft.files)])

    def _remove_files(self, paths: Sequence[str]) -> None:
        """Delete files of the project, and the folders of skills that are empty without them."""
        for path in paths:
            with _writing(path):
                self._safe(path).unlink(missing_ok=True)
        homes = self._homes()
        kept = {*homes, *(f"{home}/drafts" for home in homes)}
        for folder in (folder for path in paths for folder in Path(path).parents):
            if self._is_home(folder.as_posix()) and folder.as_posix() not in kept:
                with suppress(OSError):  # it has other files
                    self._safe(folder.as_posix()).rmdir()

    def _write_new(self, path: str, text: str) -> None:
        """Write a file that does not exist yet. Nobody reads half of it, whenever the process ends."""
        file = self._safe(path)
        with _writing(path), _whole_file(file, text) as whole:
            try:
                os.link(whole, file)
            except FileExistsError:
                raise Conflict(f"{path} exists already", hint="rename or remove it") from None
            except OSError:  # not all file systems have links
                if os.path.lexists(file):
                    raise Conflict(f"{path} exists already", hint="rename or remove it") from None
                whole.replace(file)

    def _replace(self, file: Path, text: str) -> None:
        """Replace a file of the project at once, so that nobody reads half of it."""
        path = file.relative_to(self._project).as_posix()
        file = self._safe(path)
        with _writing(path), _whole_file(file, text) as whole:
            whole.replace(file)


@contextmanager
def _writing(path: str) -> Generator[None]:
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


class EvolverRun:
    """One run of the evolver. It creates at most one draft, whatever its caller does."""

    def __init__(self, drafts: Drafts, by: str) -> None:
        self._drafts = drafts
        self._by = by
        self._created = False

    def create(self, proposal: Proposal, friction: Friction) -> StoredDraft:
        """Write the draft. Raises `Conflict` at the second call."""
        if self._created:
            raise Conflict("one run of the evolver creates one draft", hint="run `retinue evolve` again")
        self._created = True
        return self._drafts.create(proposal, friction, self._by)


def _is_folder(draft: StoredDraft) -> bool:
    """Whether a draft is a folder with a `SKILL.md`."""
    return Path(draft.path).parent.name != "drafts"


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


def _diff(path: str, before: str | None, after: str) -> str:
    """Return a change of a file in the unified format."""
    old, new = (io.StringIO(text, newline="\n").readlines() for text in (before or "", after))
    lines = difflib.unified_diff(old, new, f"a/{path}" if before else "/dev/null", f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
