"""The verbs of skills: list, show, check, make, copy, remove, approve and read them.

Knows nothing of MCP or terminals.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retinue.core import (
    Conflict,
    InvalidInput,
    Redactor,
    RetinueError,
    Unauthorized,
    clip,
    counted,
    escape_invisible_characters,
)
from retinue.definitions import (
    OWN_SKILLS,
    SKILL_FILE,
    DefinitionProblem,
    MalformedDefinition,
    SkillEntry,
    SkillFolder,
    check_skill,
    granted_tools,
    home_relative,
    read_skill_bundle,
    read_skill_header,
)
from retinue.learning import (
    FoundSkill,
    SkillLibrary,
    check_skill_name,
    copy_skill,
    find_points,
    remove_skill,
    skill_document,
    write_skill,
)
from retinue.setup import DoctorCheck

HOSTS_HINT = "hosts do not see skills yet: `retinue config set tools.groups --add skills`"
MAX_FILE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillService:
    """The verbs of skills, for people, hosts and agents."""

    library: SkillLibrary
    redactor: Redactor
    removed: Path
    """The folder that removed skills are moved to."""
    for_hosts: bool
    """Whether hosts see the tool group of skills."""

    def list_all(
        self, *, drafts: bool = False, effects: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """All skills in order of precedence, with why some are not used; or all drafts.

        `effects` says how runs with a skill ended, by its name.
        """
        found = self.library.catalog.all_skills(drafts=drafts)
        if drafts:
            return self.redactor.redact_value({"drafts": [_row(each, None) for each in found]})
        first = {each.name: each for each in reversed(found) if each.refusal is None}
        rows = [
            _row(self._verified(each), first.get(each.name)) | dict((effects or {}).get(each.name, {}))
            for each in found
        ]
        view: dict[str, Any] = {"skills": rows}
        if first and not self.for_hosts:
            view["hint"] = HOSTS_HINT
        return self.redactor.redact_value(view)

    def show(self, name: str) -> dict[str, Any]:
        """A skill with its instructions, its files and whether it is used, for a person who decides on it."""
        skill = self._verified(self.library.catalog.find(name))
        view = _row(skill, None) | {"file": skill.file.file, "scope": skill.file.scope}
        if skill.hint:
            view["hint"] = skill.hint
        try:
            text = self.library.catalog.read_unapproved(skill)
        except InvalidInput as error:
            return self.redactor.redact_value(view | {"problem": error.message})
        more: dict[str, Any] = {
            "sha256": text.digest,
            "files": list(text.files),
            "points": [{"number": each.number, "line": each.line} for each in find_points(text.body)],
            "instructions": escape_invisible_characters(text.body),
        }
        if tools := granted_tools(text.header):
            more["allowed_tools"] = list(tools)
            more["note"] = "allowed-tools grants nothing here: an agent's own file decides"
        return self.redactor.redact_value(view | more)

    def check(self, paths: Sequence[Path] = ()) -> dict[str, Any]:
        """All problems in these skills, or in all skills, each with its file and line."""
        places = [_skill_at(path) for path in paths]
        found = [] if paths else self.library.catalog.all_skills()
        unopened = [each.file for each in found if not each.file.stamp]
        places += [(Path(each.file.file), each.file.is_folder) for each in found if each.file.stamp]
        rows = [_problem_row(each.file, each.problem) for each in unopened if each.problem is not None]
        places = list(dict.fromkeys(places))  # links lead to the same file
        rows += [row for file, is_folder in places for row in self._problems(file, is_folder)]
        errors = sum(row["level"] == "error" for row in rows)
        files = len(places) + len(unopened)
        return self.redactor.redact_value({"files": files, "errors": errors, "problems": rows})

    def new(
        self, name: str, description: str, triggers: Sequence[str] = (), *, for_user: bool = False
    ) -> dict[str, Any]:
        """Write a skill with a first text, for a person to fill in."""
        check_skill_name(name)
        self._refuse_taken(name)
        folder = self._own_folder(for_user=for_user)
        text = skill_document(name, description, triggers)
        if errors := [each for each in check_skill(text.encode(), name, is_folder=True) if each.fatal]:
            raise InvalidInput(errors[0].message, hint=errors[0].hint)
        file = write_skill(folder, name, text)
        return self._written(name, file, folder)

    def add(self, source: str, *, name: str | None = None, for_user: bool = False) -> dict[str, Any]:
        """Copy a skill into the project's folder or the user's own, and approve what was copied."""
        path = Path(source).expanduser()
        file, is_folder = _skill_at(path)
        if path.is_symlink() or file.is_symlink():
            raise InvalidInput(f"{source} is a link", hint="name the file or folder that it leads to")
        stem = file.parent.name if is_folder else name or file.stem
        where = SkillFolder(file.parent, "user", str(file.parent))
        header = read_skill_header(SkillEntry(stem, str(file), is_folder, str(path)), where)
        own = check_skill_name(stem if header is None else header.name)
        if name not in (None, own):
            raise InvalidInput(f"the skill's header names it {own}", hint="leave --name out, or change it")
        rows = self._problems(file, is_folder)
        if wrong := next((row for row in rows if row["level"] == "error"), None):
            raise InvalidInput(
                f"{wrong['file']}:{wrong['line']}: {wrong['message']}",
                hint="`retinue skills check` lists all problems; nothing was copied",
            )
        self._refuse_taken(own)
        folder = self._own_folder(for_user=for_user)
        copied = copy_skill(file.parent if is_folder else file, folder, own)
        warnings = [f"{row['line']}: {row['message']}" for row in rows]
        return self._written(own, copied, folder) | ({"warnings": warnings} if warnings else {})

    def remove(self, name: str) -> dict[str, Any]:
        """Move a skill out of its folder. It can be moved back."""
        skill = self.library.catalog.find(name)
        target = remove_skill(skill.file, self.removed)
        if skill.project is not None and not os.path.lexists(skill.file.file):  # else it was a link
            self.library.catalog.approved.withdraw([skill.file.file])
        view = {"removed": name, "from": skill.file.path, "to": str(target)}
        return self.redactor.redact_value(view)

    def approve(self, names: Sequence[str], *, everything: bool = False) -> dict[str, Any]:
        """Approve the present content of skills of trusted projects. A later change needs a new approval."""
        catalog = self.library.catalog
        unreadable: list[str] = []
        if everything:
            chosen, unreadable = self._waiting(catalog.all_skills())
        else:
            chosen = [self._approvable(name) for name in names]
        catalog.approve(chosen)
        rows = [
            {"name": each.name, "from": each.file.source, "sha256": catalog.read_unapproved(each).digest}
            for each in chosen
        ]
        view: dict[str, Any] = {"approved": rows} | ({"not_approved": unreadable} if unreadable else {})
        return self.redactor.redact_value(view)

    def withdraw(self, names: Sequence[str]) -> dict[str, Any]:
        """Withdraw the approval of skills, so that they are not used any more."""
        found = [self.library.catalog.find(name) for name in names]
        self.library.catalog.approved.withdraw([each.file.file for each in found])
        return self.redactor.redact_value({"withdrawn": [each.name for each in found]})

    def project_trust_changed(self, project: Path, *, trusted: bool) -> dict[str, Any]:
        """Approve the skills that a project has when it becomes trusted; withdraw that with the trust.

        Returns the names of those that are approved, and why others are not.
        """
        catalog = self.library.catalog
        found = catalog.in_project(project)
        if not trusted:
            catalog.approved.withdraw([each.file.file for each in found])
            return {}
        chosen, unreadable = self._waiting(found)
        catalog.approve(chosen)
        names = list(dict.fromkeys(each.name for each in chosen))
        view = {"approved_skills": names, "skills_not_approved": unreadable}
        return self.redactor.redact_value({key: value for key, value in view.items() if value})

    def use(self, name: str, file: str | None = None, first_line: int = 1) -> dict[str, Any]:
        """A skill's instructions, or a file of it, for a host."""
        return _text_view(name, file, self.library.read(name, file, first_line))

    def use_in_run(
        self, run_id: str, name: str, file: str | None = None, first_line: int = 1
    ) -> dict[str, Any]:
        """The same for the agent of a run, which may see only some skills."""
        notes = self.library.of_run(run_id)
        if notes is None:
            raise Unauthorized("this run has no skills", hint="go on without them")
        return _text_view(name, file, notes.use(name, file, first_line, self.library.tokens))

    def is_open_for(self, run_id: str) -> bool:
        """Whether the agent of a run may read skills."""
        notes = self.library.of_run(run_id)
        return notes is not None and bool(notes.index)

    def instructions(self) -> str:
        """The index of skills for the server's instructions."""
        return self.library.index()

    def names(self) -> frozenset[str]:
        """The names of all skills, whether they can be used or not."""
        return frozenset(each.name for each in self.library.catalog.all_skills())

    def descriptions(self) -> dict[str, str]:
        """The skills that can be used, each with its description."""
        live = self.library.catalog.live()
        return self.redactor.redact_value({name: each.file.description for name, each in live.items()})

    def diagnose(self) -> list[DoctorCheck]:
        """Return the doctor's checks of skills; none if there are no skills."""
        found = self.library.catalog.all_skills()
        used = len(self.library.catalog.live())
        waiting = sum(each.needs_approval for each in found)
        if not found:
            return []
        finding = f"{counted(used, 'skill')} in use" + (f", {waiting} not approved" if waiting else "")
        if waiting:
            return [DoctorCheck("skills", "warning", finding, "`retinue skills list` says what to do")]
        return [DoctorCheck("skills", "ok", finding, HOSTS_HINT if used and not self.for_hosts else "")]

    def _problems(self, file: Path, is_folder: bool) -> list[dict[str, Any]]:
        """The problems of one skill, and secrets in its files."""
        try:
            bundle = read_skill_bundle(file.parent) if is_folder else {file.name: _read(file)}
            data = bundle[file.name]
        except MalformedDefinition as error:
            return [_problem_row(str(file), each) for each in error.problems]
        except (OSError, KeyError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a regular file"
            return [_problem_row(str(file), DefinitionProblem(1, f"the file cannot be read: {reason}"))]
        name = file.parent.name if is_folder else file.stem
        rows = [_problem_row(str(file), each) for each in check_skill(data, name, is_folder=is_folder)]
        for path, content in bundle.items():
            if (line := self._first_secret(content)) is not None:
                found = DefinitionProblem(line, "seems to contain a secret", "remove it", fatal=False)
                rows.append(_problem_row(str(file.parent / path), found))
        return rows

    def _first_secret(self, data: bytes) -> int | None:
        """The line of the first secret in a text; None if there is none."""
        if b"\0" in data[:8_192] or len(data) > MAX_FILE_BYTES:
            return None
        text = data.decode("utf-8", "replace")
        clean = self.redactor.redact(text)
        if clean == text:
            return None
        lines = zip(text.split("\n"), clean.split("\n"), strict=False)
        return next((number for number, (one, other) in enumerate(lines, 1) if one != other), 1)

    def _verified(self, skill: FoundSkill) -> FoundSkill:
        """The skill as it is: one whose other files have changed is not used either."""
        if skill.refusal is not None or skill.project is None:
            return skill
        try:
            self.library.catalog.read(skill)
        except Unauthorized as error:
            return skill._replace(refusal="it has changed since it was approved", hint=error.hint)
        except RetinueError as error:
            return skill._replace(refusal=error.message, hint=error.hint)
        return skill

    def _waiting(self, skills: Iterable[FoundSkill]) -> tuple[list[FoundSkill], list[str]]:
        """The skills that an approval would let be used, and why others cannot be approved."""
        waiting: list[FoundSkill] = []
        unreadable: list[str] = []
        for skill in map(self._verified, skills):
            if skill.needs_approval:
                try:
                    self.library.catalog.read_unapproved(skill)
                    waiting.append(skill)
                except InvalidInput as error:
                    unreadable.append(f"{skill.name} is not approved: {error.message}")
        return waiting, unreadable

    def _approvable(self, name: str) -> FoundSkill:
        skill = self._verified(self.library.catalog.find(name))
        if skill.project is None:
            raise InvalidInput(f"the skill {name} is your own", hint="it needs no approval")
        if skill.refusal is not None and not skill.needs_approval:
            raise Unauthorized(f"the skill {name} cannot be approved: {skill.refusal}", hint=skill.hint)
        return skill

    def _refuse_taken(self, name: str) -> None:
        taken = {each.casefold(): each for each in self.library.catalog.taken_names()}
        if (other := taken.get(name.casefold())) is not None:
            raise Conflict(f"there is a skill {other} already", hint=f"see `retinue skills show {other}`")

    def _own_folder(self, *, for_user: bool) -> SkillFolder:
        """The folder that new skills are written to: that of the first project, or the user's own."""
        sources = self.library.catalog.sources
        if for_user or not sources.projects:
            if sources.config is None or sources.home is None:
                raise InvalidInput("there is no folder for your own skills")
            path = sources.config / "skills"
            return SkillFolder(path, "user", home_relative(path, sources.home))
        project, *others = sources.projects
        for other in others:  # from the current folder up to the root of its repository
            project = other if project.is_relative_to(other) else project
        return SkillFolder(project / OWN_SKILLS, "project", OWN_SKILLS, project)

    def _written(self, name: str, file: Path, folder: SkillFolder) -> dict[str, Any]:
        """Approve what a person has just written into a trusted project, and say what comes next."""
        catalog = self.library.catalog
        view: dict[str, Any] = {"name": name, "file": str(file)}
        if folder.base is None:
            return self.redactor.redact_value(view | {"used": True})
        trusted = catalog.sources.is_trusted(folder.base)
        if trusted:
            catalog.approve([each for each in catalog.in_project(folder.base) if each.file.file == str(file)])
            view["next"] = f"after each change, approve it with `retinue skills approve {name}`"
        else:
            command = f"retinue agents trust {shlex.quote(str(folder.base))}"
            view["next"] = f"trust the project, so that it is used: `{command}`"
        return self.redactor.redact_value(view | {"used": trusted})


def _row(skill: FoundSkill, first: FoundSkill | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": skill.name,
        "description": clip(skill.file.description, 300),
        "from": skill.file.source,
        "used": skill.refusal is None and (first is None or first.file == skill.file),
    }
    if skill.file.triggers:
        row["triggers"] = list(skill.file.triggers)
    if skill.refusal is not None:
        row["unused_because"] = skill.refusal
    elif not row["used"] and first is not None:
        row["unused_because"] = f"{first.file.source} comes first"
    return row


def _problem_row(file: str, problem: DefinitionProblem) -> dict[str, Any]:
    level = "error" if problem.fatal else "warning"
    row = {"file": file, "line": problem.line, "level": level, "message": problem.message}
    return row | ({"hint": problem.hint} if problem.hint else {})


def _skill_at(path: Path) -> tuple[Path, bool]:
    """Return the file of a skill, and whether it has a folder of its own."""
    path = path.expanduser()
    if path.is_dir():
        inside = [path / each for each in (SKILL_FILE, SKILL_FILE.lower())]
        path = next((each for each in inside if each.is_file()), path)
    if not path.is_file():
        raise InvalidInput(f"{path} is not a skill", hint=f"name a folder with a {SKILL_FILE}, or a .md file")
    return path.absolute(), path.name in (SKILL_FILE, SKILL_FILE.lower())


def _read(file: Path) -> bytes:
    if not file.is_file():  # a pipe would never end
        raise OSError(errno.EINVAL, "not a regular file")
    with file.open("rb") as opened:
        return opened.read(MAX_FILE_BYTES + 1)


def _text_view(name: str, file: str | None, text: str) -> dict[str, Any]:
    if file is None:
        return {"skill": name, "instructions": text}
    return {"skill": name, "file": file, "text": text}
