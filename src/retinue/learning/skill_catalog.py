"""Finds the skills in all folders, decides which of them may be used, and reads them on demand.

Precedence: projects, in the order of the roots, then the user's own folders. A skill of a project is used
only if the user trusts the project and has approved the skill's content. A change of any of its files needs a
new approval. A skill that may not be used does not take a name. Knows nothing of tasks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from retinue.core import InvalidInput, Unauthorized
from retinue.definitions import (
    DRAFTS,
    AgentSources,
    DefinitionProblem,
    MalformedDefinition,
    SkillFile,
    SkillFolder,
    SkillText,
    did_you_mean,
    list_bundle,
    project_skill_folders,
    read_skill,
    read_skill_header,
    user_skill_folders,
)
from retinue.store import Approval, ApprovedSkills

APPROVE_HINT = "read it, then approve it with `retinue skills approve {name}`"


class FoundSkill(NamedTuple):
    """A skill in one of the folders, and whether it may be used."""

    file: SkillFile
    project: Path | None = None
    """The project that it belongs to; None for the user's own."""
    refusal: str | None = None
    """Why it is not used; None if it is."""
    hint: str | None = None
    """What to do about the refusal."""

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def needs_approval(self) -> bool:
        """Whether an approval would let the skill be used."""
        return self.refusal is not None and self.hint == APPROVE_HINT.format(name=self.name)


class SkillCatalog:
    """The skills of a set of sources. Caches what it reads until the files change."""

    def __init__(self, sources: AgentSources, approved: ApprovedSkills) -> None:
        self.sources = sources
        self.approved = approved
        self._headers: dict[tuple[str, str], SkillFile] = {}
        """By the place in a folder of skills and the file, because links lead several places to one file."""
        self._texts: dict[str, tuple[tuple[int, ...], SkillText]] = {}
        self.bodies_read = 0
        """How many skills were read as a whole."""

    def all_skills(self, *, drafts: bool = False) -> list[FoundSkill]:
        """Return all skills in order of precedence, those that may not be used too; or all drafts.

        Reads headers only, unless the file of an approved skill was written again.
        """
        if drafts:
            return [
                FoundSkill(file, project, "it is a draft")
                for folder, project in self._folders()
                for file in self._headers_in(_drafts_of(folder))
            ]
        approvals = self.approved.all()
        found: list[FoundSkill] = []
        for folder, project in self._folders():
            trusted = project is None or self.sources.is_trusted(project)
            found += (self._judge(file, project, trusted, approvals) for file in self._headers_in(folder))
        return found

    def live(self) -> Mapping[str, FoundSkill]:
        """Return the skills that may be used, by name. The first of a name counts."""
        found: dict[str, FoundSkill] = {}
        for each in self.all_skills():
            if each.refusal is None:
                found.setdefault(each.name, each)
        return dict(sorted(found.items()))

    def taken_names(self) -> frozenset[str]:
        """Return the names of all skills and drafts in all folders, whether they may be used or not."""
        return frozenset(each.name for drafts in (False, True) for each in self.all_skills(drafts=drafts))

    def find(self, name: str) -> FoundSkill:
        """Return the skill that a name means: the one that is used, else the first. Raises `InvalidInput`."""
        named = [each for each in self.all_skills() if each.name == name]
        if not named:
            known = sorted({each.name for each in self.all_skills()})
            hint = did_you_mean(name, known) or "`retinue skills list` lists all skills"
            raise InvalidInput(f"there is no skill {name[:80]!r}", hint=hint)
        return next((each for each in named if each.refusal is None), named[0])

    def read(self, skill: FoundSkill) -> SkillText:
        """Read the whole of a skill that may be used. Raises `InvalidInput` or `Unauthorized`."""
        if skill.refusal is not None:
            raise Unauthorized(f"the skill {skill.name} is not used: {skill.refusal}", hint=skill.hint)
        text = self.read_unapproved(skill)
        if skill.project is not None:
            approval = self.approved.find(skill.file.file)
            if approval is None or approval.digest != text.digest:
                raise Unauthorized(
                    f"the skill {skill.name} has changed since it was approved",
                    hint=APPROVE_HINT.format(name=skill.name),
                )
        return text

    def read_unapproved(self, skill: FoundSkill) -> SkillText:
        """Read the whole of a skill for a person, whether it may be used or not. Raises `InvalidInput`."""
        problem = skill.file.problem
        if problem is not None and not skill.file.stamp:  # such as a link to a file of the user
            raise _unreadable(skill, problem)
        try:
            stamps = _stamps(skill.file)
            cached = self._texts.get(skill.file.file)
            if cached is None or cached[0] != stamps:
                self.bodies_read += 1
                cached = (stamps, read_skill(skill.file))
                self._texts[skill.file.file] = cached
            return cached[1]
        except MalformedDefinition as error:
            raise _unreadable(skill, error.problem) from None

    def approve(self, skills: Iterable[FoundSkill]) -> None:
        """Approve the present content of skills. Raises `InvalidInput` for one that cannot be read."""
        contents = {
            each.file.file: Approval(self.read_unapproved(each).digest, each.file.stamp) for each in skills
        }
        if contents:
            self.approved.approve(contents)

    def in_project(self, project: Path) -> list[FoundSkill]:
        """Return the skills of one project, whether it is among the sources or not."""
        trusted, approvals = self.sources.is_trusted(project), self.approved.all()
        return [
            self._judge(file, project, trusted, approvals)
            for folder in project_skill_folders(project)
            for file in self._headers_in(folder)
        ]

    def stamps(self) -> list[tuple[str, str | None]]:
        """Return each skill with the text that a host gets. It changes when the answers to a host do."""
        return [(f"{each.file.source} {each.file.description}", each.refusal) for each in self.all_skills()]

    def _folders(self) -> Iterator[tuple[SkillFolder, Path | None]]:
        """Yield all folders of skills with their project, each folder once."""
        sources = self.sources
        seen: set[str] = set()
        own = (
            list(user_skill_folders(sources.config, sources.home))
            if sources.config is not None and sources.home is not None
            else []
        )
        # A home folder that is a root has the user's skills, which need no approval.
        seen.update(os.path.realpath(folder.path) for folder in own)
        for project in sources.projects:
            for folder in project_skill_folders(project):
                if (real := os.path.realpath(folder.path)) not in seen:
                    seen.add(real)
                    yield folder, project
        for folder in own:
            yield folder, None

    def _headers_in(self, folder: SkillFolder) -> Iterator[SkillFile]:
        """Yield the skills in a folder, from the cache if their files have not changed."""
        for entry in folder.entries():
            if entry.leads_out and self._is_known_folder(entry.file):
                continue  # the link leads to a skill that is found where it is
            cached = self._headers.get((entry.path, entry.file))
            if cached is not None and cached.stamp and cached.stamp == _stamp(entry.file):
                yield cached
                continue
            header = read_skill_header(entry, folder)
            if header is not None:
                self._headers[entry.path, header.file] = header
                yield header

    def _is_known_folder(self, file: str) -> bool:
        real = os.path.realpath(file)
        return any(real.startswith(os.path.realpath(folder.path) + os.sep) for folder, _ in self._folders())

    def _judge(
        self, file: SkillFile, project: Path | None, trusted: bool, approvals: Mapping[str, Approval]
    ) -> FoundSkill:
        """Decide whether a skill may be used."""
        if file.problem is not None:
            refusal = f"line {file.problem.line}: {file.problem.message}"
            return FoundSkill(file, project, refusal, file.problem.hint)
        if project is None:
            return FoundSkill(file)
        if not trusted:
            hint = f"read its skills, then trust it with `retinue agents trust {shlex.quote(str(project))}`"
            return FoundSkill(file, project, "its project is not trusted", hint)
        approval = approvals.get(file.file)
        hint = APPROVE_HINT.format(name=file.name)
        if approval is None:
            return FoundSkill(file, project, "it is not approved", hint)
        if approval.stamp != file.stamp:
            try:
                digest = self.read_unapproved(FoundSkill(file, project)).digest
            except InvalidInput as error:
                return FoundSkill(file, project, error.message, error.hint)
            if digest != approval.digest:
                return FoundSkill(file, project, "it has changed since it was approved", hint)
        return FoundSkill(file, project)


def _unreadable(skill: FoundSkill, problem: DefinitionProblem) -> InvalidInput:
    where = f"{skill.file.source}:{problem.line}"
    return InvalidInput(
        f"the skill {skill.name} cannot be read: {where}: {problem.message}", hint=problem.hint
    )


def _drafts_of(folder: SkillFolder) -> SkillFolder:
    return SkillFolder(folder.path / DRAFTS, folder.scope, f"{folder.shown}/{DRAFTS}", folder.base)


def _stamp(file: str) -> tuple[int, ...]:
    """Return a value that changes when the file does; empty if the file does not exist."""
    try:
        found = os.stat(file, follow_symlinks=False)  # noqa: PTH116
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _stamps(skill: SkillFile) -> tuple[int, ...]:
    """Return a value that changes when any file of a skill does."""
    if not skill.is_folder:
        return _stamp(skill.file)
    folder = Path(skill.folder)
    return tuple(part for name in list_bundle(folder) for part in (hash(name), *_stamp(str(folder / name))))
