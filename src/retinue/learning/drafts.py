"""Keeps drafts apart from what is in use until a person promotes them, and writes down what happens to them.

A draft is a file in a `drafts` folder of the project, such as `.retinue/skills/drafts/NAME.md`. A draft of a
skill may also be a folder with a `SKILL.md`. Nothing loads from a `drafts` folder. Every decision is a line
of the audit file, so each promotion can be undone.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retinue.core import (
    ConfigInvalid,
    Conflict,
    InvalidInput,
    Json,
    PermissionRule,
    RetinueError,
    as_object,
    as_text,
    clip,
)
from retinue.definitions import MalformedDefinition, check_skill, read_team
from retinue.learning.draft_audit import AuditEntry, DraftAudit
from retinue.learning.draft_files import DraftFiles, StoredDraft
from retinue.learning.friction import Friction, FrictionKey
from retinue.learning.in_use import InUse
from retinue.learning.proposals import DraftKind, Proposal


class Drafts:
    """The drafts of one project."""

    def __init__(self, project: Path) -> None:
        self._files = DraftFiles(project)
        self.audit = DraftAudit(self._files)

    def pending(self) -> list[StoredDraft]:
        """All drafts, by name."""
        return sorted(self._files.drafts(), key=lambda draft: draft.name)

    def get(self, name: str) -> StoredDraft:
        """Return a draft by its name."""
        drafts = self.pending()
        for draft in drafts:
            if draft.name == name:
                return draft
        if (reason := self._files.reason_against(name)) is not None:
            raise InvalidInput(f"the draft {name} cannot be used: {reason}", hint="correct it, or delete it")
        known = ", ".join(draft.name for draft in drafts) or "there are none"
        raise InvalidInput(f"there is no draft {clip(name, 80)!r}", hint=f"drafts: {known}")

    def create(self, proposal: Proposal, friction: Friction, by: str) -> StoredDraft:
        """Write a draft's file. `EvolverRun` calls this, at most once."""
        path = self._files.path_of(proposal.kind, proposal.name)
        self.audit.path()  # no draft without its line
        self._files.write_new(path, proposal.text())
        self.audit.record(
            "create",
            proposal.name,
            kind=proposal.kind.value,
            by=by,
            friction={**friction.key._asdict()},
            runs=list(friction.runs[:10]),
            hash=_digest(proposal.text()),
        )
        return self.get(proposal.name)

    def start_run(self, by: str) -> EvolverRun:
        """Begin a run of the evolver, which may create one draft. `by` names the model that proposes it."""
        return EvolverRun(self, by)

    def check(self, draft: StoredDraft) -> None:
        """Raise `InvalidInput` if a draft has no valid content: nobody checks what people or clones write."""
        hint = "correct it, or reject it"
        match draft.kind:
            case DraftKind.RULE:
                if not as_text(draft.content.get("agent")):
                    raise InvalidInput(f"{draft.path}: it names no agent", hint=hint)
                try:
                    PermissionRule.parse(as_text(draft.content.get("rule")))
                except ConfigInvalid as error:
                    raise InvalidInput(f"{draft.path}: {error.message}", hint=hint) from None
            case DraftKind.MEMORY if not as_text(draft.content.get("memory")).strip():
                raise InvalidInput(f"{draft.path}: it has no memory", hint=hint)
            case DraftKind.EDIT if not draft.edits:
                raise InvalidInput(f"{draft.path}: it changes no point", hint=hint)
            case DraftKind.SKILL:
                problems = check_skill(draft.text.encode(), draft.name, is_folder=draft.is_folder)
                if fatal := next((each for each in problems if each.fatal), None):
                    raise InvalidInput(f"{draft.path}:{fatal.line}: {fatal.message}", hint=fatal.hint)
            case DraftKind.TEAM:
                try:
                    read_team(draft.text, draft.name, draft.path)
                except MalformedDefinition as error:
                    where = f"{draft.path}:{error.problem.line}"
                    raise InvalidInput(f"{where}: {error.problem.message}", hint=error.problem.hint) from None
            case _:
                pass

    def diff(self, name: str, in_use: InUse) -> str:
        """Return what promoting a draft would change."""
        draft = self.get(name)
        if draft.kind is not DraftKind.EDIT:
            contents = draft.contents()
            return "".join(_diff(path, None, text) for path, text in contents.items())
        skill = as_text(draft.content.get("skill"))
        path = in_use.skill_file(skill).relative_to(self._files.project).as_posix()
        return _diff(path, self._files.text_at(path), in_use.changed_skill(skill, draft.edits))

    def promote(self, name: str, in_use: InUse, *, forced: bool, figures: Json) -> dict[str, Json]:
        """Put a draft into use and return what to show. Only an edit changes a file that exists.

        How to undo it is recorded before anything changes, and the draft is deleted last. If the process is
        killed on the way, the promotion can be repeated or undone. Of two processes that promote the same
        draft, the second one finds none.
        """
        with self.audit.locked():
            draft = self.get(name)
            self.check(draft)
            undo = self._plan(draft, in_use)
            facts: dict[str, Json] = {"kind": draft.kind.value, "forced": forced, "figures": figures}
            self.audit.record("promote", name, **facts, undo=undo, **draft.record)
            try:
                self._put_into_use(draft, in_use, undo)
            except (RetinueError, OSError) as error:
                failed = f"it failed: {clip(str(error), 200)}"
                self.audit.record("rollback", name, kind=draft.kind.value, reason=failed)
                raise
            self._files.delete(draft)
        return {"promoted": name, "kind": draft.kind.value, "place": self._place(draft, undo)}

    def reject(self, name: str, reason: str = "") -> None:
        """Delete a draft. The friction that it is about does not come back."""
        with self.audit.locked():
            draft = self.get(name)
            created = self.audit.last("create", name)
            friction = None if created is None or created.friction is None else created.friction._asdict()
            facts: dict[str, Json] = {"kind": draft.kind.value, "friction": friction, "reason": reason}
            self.audit.record("reject", name, **facts, **draft.record)
            self._files.delete(draft)

    def rollback(self, name: str, in_use: InUse) -> dict[str, Json]:
        """Undo the last promotion of this name. What somebody changed since then is not touched."""
        with self.audit.locked():
            promoted = self._promotion(name)
            if promoted is None:
                raise InvalidInput(
                    f"{clip(name, 80)!r} has no promotion to undo", hint="`retinue evolve list` shows them"
                )
            place = self._take_out_of_use(promoted.undo, in_use)
            self.audit.record("rollback", name, kind=promoted.kind)
        return {"rolled_back": name, "place": place}

    def rejected_friction(self) -> list[FrictionKey]:
        """The friction of rejected drafts."""
        return [each.friction for each in self.audit.history() if each.action == "reject" and each.friction]

    def promoted_friction(self) -> list[tuple[FrictionKey, str]]:
        """The friction of drafts that are in use, with the times of their promotions."""
        about: dict[str, FrictionKey | None] = {}
        promoted: dict[str, str] = {}
        for each in self.audit.history():
            match each.action:
                case "create":
                    about[each.draft] = each.friction
                case "promote":
                    promoted[each.draft] = each.at
                case "rollback":
                    promoted.pop(each.draft, None)
                case _:
                    pass
        return [(key, at) for name, at in promoted.items() if (key := about.get(name)) is not None]

    def names(self) -> set[str]:
        return {draft.name for draft in self.pending()}

    def _promotion(self, name: str) -> AuditEntry | None:
        """The last promotion of this name, unless it was undone."""
        promoted, undone = self.audit.last("promote", name), self.audit.last("rollback", name)
        if promoted is None or (undone is not None and undone.line > promoted.line):
            return None
        return promoted

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
                path = file.resolve().relative_to(self._files.project).as_posix()
                before = self._files.text_at(path) or ""
                begun = self._promotion(draft.name)
                undo = {} if begun is None or begun.text != draft.text else dict(begun.undo)
                if (undo.get("file"), undo.get("hash")) == (path, _digest(before)):
                    return undo  # killed after the change, which must not be made twice
                changed = in_use.changed_skill(skill, draft.edits)
                return {"file": path, "hash": _digest(changed), "before": before}
            case _:
                return self._plan_files(draft, in_use)

    def _plan_files(self, draft: StoredDraft, in_use: InUse) -> dict[str, Json]:
        """Return how to undo writing a draft's files. Raises if it would mix with something else."""
        contents = draft.contents()
        main = next(reversed(contents))
        taken = [path for path, text in contents.items() if self._files.text_at(path) not in (None, text)]
        taken += [path for path in self._beside(draft, main) if path not in contents]
        if taken:
            raise Conflict(f"{taken[0]} exists already", hint="rename or remove it")
        project = self._files.project
        if draft.kind is DraftKind.SKILL and (other := in_use.namesake(project / draft.path, project / main)):
            raise Conflict(
                f"{other.file.source} has the name {other.name} already", hint="rename one of them"
            )
        hashes: dict[str, Json] = {path: _digest(text) for path, text in contents.items()}
        undo: dict[str, Json] = {"file": main, "hash": hashes.pop(main)}
        return undo | ({"more": hashes} if hashes else {})

    def _beside(self, draft: StoredDraft, main: str) -> Iterator[str]:
        """Yield the files of a skill that has the same name already, in the same folder of skills."""
        home = Path(main).parent
        if draft.is_folder:
            yield from self._files.files_of_skill(home)
            other = home.with_name(f"{home.name}.md")
        else:
            other = home / draft.name
        if draft.kind is DraftKind.SKILL and os.path.lexists(self._files.safe_path(other.as_posix())):
            yield other.as_posix()

    def _put_into_use(self, draft: StoredDraft, in_use: InUse, plan: Mapping[str, Json]) -> None:
        """Perform what promotion means for the kind."""
        match draft.kind:
            case DraftKind.RULE:
                in_use.add_rule(as_text(plan["agent"]), as_text(plan["rule"]))
            case DraftKind.MEMORY:
                pass  # it has its id already
            case DraftKind.EDIT:
                path, skill = as_text(plan["file"]), as_text(draft.content.get("skill"))
                if _digest(self._files.text_at(path) or "") != plan["hash"]:
                    self._files.replace(self._files.project / path, in_use.changed_skill(skill, draft.edits))
                in_use.approve_skill(self._files.project / path)
            case _:
                written: list[str] = []
                try:
                    for path, text in draft.contents().items():
                        if self._files.text_at(path) is None:
                            self._files.write_new(path, text)
                            written.append(path)
                    if draft.kind is DraftKind.SKILL:
                        in_use.approve_skill(self._files.project / as_text(plan["file"]))
                except (RetinueError, OSError):
                    self._files.remove(written)
                    raise

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
        is_folder = folder.parent.as_posix() in self._files.skill_folders()
        is_home = self._files.is_home(path) and all(
            is_folder and folder in Path(name).parents for name in more
        )
        if not is_home:  # the audit file is the project's
            raise Conflict(f"{clip(path, 80)} is no place of promoted drafts", hint="undo it by hand")
        texts = {name: self._files.text_at(name) for name in files}
        changed = [name for name, text in texts.items() if text is not None and _digest(text) != files[name]]
        if is_folder and "before" not in undo:
            changed += [name for name in self._files.files_of_skill(folder) if name not in files]
        if changed:
            raise Conflict(
                f"{changed[0]} was changed after its promotion",
                hint="undo it by hand: the audit file has the text of before",
            )
        if "before" in undo:
            self._files.replace(self._files.safe_path(path), as_text(undo["before"]))
            in_use.approve_skill(self._files.safe_path(path))
        else:
            self._files.remove([*reversed(files)])
        return path

    def _place(self, draft: StoredDraft, undo: Mapping[str, Json]) -> str:
        return as_text(undo.get("file")) or {
            DraftKind.RULE: f"the permissions of {as_text(undo.get('agent'))}",
        }.get(draft.kind, "the memory")


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


def _diff(path: str, before: str | None, after: str) -> str:
    """Return a change of a file in the unified format."""
    old, new = (io.StringIO(text, newline="\n").readlines() for text in (before or "", after))
    lines = difflib.unified_diff(old, new, f"a/{path}" if before else "/dev/null", f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
