"""Finds the agents in all folders and picks one definition for each name. Precedence:

    trusted projects  >  the user's settings and files  >  untrusted projects  >  built in

A cloned project therefore cannot replace one of the user's own agents. It cannot replace a built-in one
either: workflows call those by name, also to judge its work. Such files of untrusted projects are left out.
A broken file keeps its name, because silently running another definition of that name would be a surprise.
Files are read on demand and cached
until they change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.core import EXECUTORS, ExecutorTable
from retinue.definitions import definition_files, profiles
from retinue.definitions.agent_files import AgentDefinition, FileOrigin, read_definition
from retinue.definitions.definition_files import (
    NATIVE,
    AgentFolder,
    DefinitionStamp,
    file_stamp,
    read_definition_file,
)
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition
from retinue.definitions.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSources:
    """Where to look for agents, and what the user configured about them."""

    projects: tuple[Path, ...] = ()
    """Project folders in order of precedence."""
    config: Path | None = None
    """The user's configuration folder."""
    home: Path | None = None
    configured: tuple[AgentDefinition, ...] = ()
    """Agents that are defined in settings instead of files."""
    is_trusted: Callable[[Path], bool] = field(default=lambda _: False)
    """Whether the user trusts a project folder."""
    executor: str | None = None
    """The executor that the user prefers for files that do not name one."""
    executors: ExecutorTable = field(default_factory=lambda: EXECUTORS)
    """The executors that files may name."""
    reserved: frozenset[str] = frozenset()
    """Names of callers. An agent may not use one, because it could be mistaken for that caller."""


class AgentCatalog:
    """The agents from a set of sources. Caches the files it reads."""

    def __init__(self, sources: AgentSources) -> None:
        self.sources = sources
        self._cache: dict[Path, tuple[DefinitionStamp, AgentDefinition]] = {}
        self._profile_stamps: tuple[tuple[Path, DefinitionStamp | None], ...] = ()
        self._profiles: Mapping[str, Profile] = profiles.BUILTIN_PROFILES
        self.profile_problems: Sequence[tuple[Path, DefinitionProblem]] = ()
        """Problems in the user's own profiles, by file."""

    def agents(self) -> Mapping[str, AgentDefinition]:
        """Return the agents by name. For each name, the definition with the highest precedence wins.

        Skips excluded definitions, which have a `excluded_because` reason.
        """
        found: dict[str, list[AgentDefinition]] = {}
        for definition in self.all_definitions():
            if definition.excluded_because is None:
                found.setdefault(definition.name, []).append(definition)
        return {
            name: replace(
                nearest,
                shadows=tuple(each.source for each in farther),
                replaces_builtin=any(each.scope == "built in" for each in farther),
            )
            for name, (nearest, *farther) in sorted(found.items())
        }

    def all_definitions(self) -> list[AgentDefinition]:
        """Return all definitions from all folders in order of precedence."""
        sources = self.sources
        self._refresh_profiles()
        user_folders = list(self._user_folders())
        user_paths = {each.path.resolve() for each in user_folders if each.path.is_dir()}
        trusted_files: list[AgentDefinition] = []
        untrusted_files: list[AgentDefinition] = []
        for project in sources.projects:
            trusted = sources.is_trusted(project)
            for folder in definition_files.project_folders(project):
                if folder.path.is_dir() and folder.path.resolve() not in user_paths:
                    found = self._definitions_in(folder, trusted=trusted)
                    (trusted_files if trusted else untrusted_files).extend(found)
        user_files = [each for folder in user_folders for each in self._definitions_in(folder)]
        builtin_files = list(self._definitions_in(definition_files.builtin_folder()))
        builtin_names = {each.name for each in builtin_files}
        untrusted_files = [_reject_builtin(each, builtin_names) for each in untrusted_files]
        ordered = [*trusted_files, *sources.configured, *user_files, *untrusted_files, *builtin_files]
        return [_reject_reserved(each, sources.reserved) for each in ordered]

    def read(self, file: Path) -> AgentDefinition:
        """Read one agent file from any folder. The folder's name determines the format."""
        self._refresh_profiles()
        return self._read_agent_file(_folder_for(file), file, trusted=True)

    def _user_folders(self) -> Iterator[AgentFolder]:
        """Yield the user's folders of agents, if the sources name a configuration and a home folder."""
        if self.sources.config is not None and self.sources.home is not None:
            yield from definition_files.user_folders(self.sources.config, self.sources.home)

    def _definitions_in(self, folder: AgentFolder, *, trusted: bool = True) -> Iterator[AgentDefinition]:
        """Yield the definitions in a folder, from the cache if their files have not changed."""
        for file in folder.files():
            stamp = file_stamp(file)
            cached = self._cache.get(file)
            if stamp is None or cached is None or cached[0] != stamp or cached[1].trusted != trusted:
                definition = self._read_agent_file(folder, file, trusted=trusted)
                if stamp is not None:
                    self._cache[file] = (stamp, definition)
            else:
                definition = cached[1]
            yield definition

    def _read_agent_file(self, folder: AgentFolder, file: Path, *, trusted: bool) -> AgentDefinition:
        """Read one file of a folder. A file that cannot be opened gives a definition with problems."""
        origin = FileOrigin(
            name=folder.name_of(file),
            source=folder.label(file),
            format=folder.format,
            scope=folder.scope,
            file=str(file),
            executor=None if folder.scope == "built in" else self.sources.executor,
            executors=self.sources.executors,
        )
        try:
            data = read_definition_file(file, folder.base)
        except MalformedDefinition as error:
            broken = AgentDefinition(
                name=origin.name,
                scope=origin.scope,
                source=origin.source,
                file=origin.file,
                problems=error.problems,
            )
            return replace(broken, trusted=trusted)
        return replace(read_definition(data, origin, self._profiles), trusted=trusted)

    def _refresh_profiles(self) -> None:
        """Read the user's profiles again if any of their files has changed."""
        if self.sources.config is None:
            return
        folder = AgentFolder(self.sources.config / "profiles", NATIVE, "user", shown="profiles")
        seen = tuple((file, file_stamp(file)) for file in folder.files())
        if seen == self._profile_stamps:
            return
        found = dict(profiles.BUILTIN_PROFILES)
        problems: list[tuple[Path, DefinitionProblem]] = []
        for file, _ in seen:
            try:
                profile = profiles.read_profile(read_definition_file(file), file.stem, folder.label(file))
                found[profile.name] = profile
            except MalformedDefinition as error:
                found.pop(file.stem, None)  # do not fall back to the built-in profile of this name
                problems += [(file, problem) for problem in error.problems]
        self._profiles, self._profile_stamps, self.profile_problems = found, seen, problems
        self._cache.clear()


def _folder_for(file: Path) -> AgentFolder:
    """Return the file's folder with the format that its path implies, by default Retinue's own."""
    for folder, form in definition_files.PROJECT_FOLDERS:
        parent = file.parent.parent if form is definition_files.FOLDER_PER_AGENT else file.parent
        path_matches = (parent / "x").as_posix().endswith(f"/{folder}/x")
        if path_matches and (form is not definition_files.FOLDER_PER_AGENT or file.name == "agent.md"):
            return AgentFolder(parent, form, "project", None, parent.as_posix())
    return AgentFolder(file.parent, NATIVE, "project", None, file.parent.as_posix())


def _reject_builtin(definition: AgentDefinition, builtin: Collection[str]) -> AgentDefinition:
    """Leave out a definition of an untrusted project that has the name of a built-in agent, in any case."""
    if definition.name.casefold() not in builtin or definition.excluded_because is not None:
        return definition
    return replace(
        definition, excluded_because=f"an untrusted project cannot replace the built-in {definition.name}"
    )


def _reject_reserved(definition: AgentDefinition, reserved: Collection[str]) -> AgentDefinition:
    """Turn a definition with a reserved name into a broken one."""
    if definition.name not in reserved or definition.excluded_because is not None:
        return definition
    problem = DefinitionProblem(
        1, f"the name {definition.name!r} is reserved for the host", "choose another name"
    )
    return replace(definition, agent=None, problems=(*definition.problems, problem))
