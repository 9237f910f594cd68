"""Every agent there is: all places together, the nearest definition of a name first.

    a project that the user trusts  >  the user's settings and files  >  a project not trusted  >  built in

So a cloned project cannot take the place of an agent of the user's own. A broken file keeps its name: to run
another definition in its place would be a surprise. Files are read when they are asked for, and again when
they have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.core import EXECUTORS, ExecutorTable
from retinue.definitions import places, profiles
from retinue.definitions.agents import read_definition
from retinue.definitions.definition import AgentDefinition, Origin
from retinue.definitions.files import DefinitionStamp, read_file, stamp
from retinue.definitions.places import OURS, AgentFolder
from retinue.definitions.problem import DefinitionProblem, MalformedDefinition
from retinue.definitions.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSources:
    """Where to look, and what the user has said about it."""

    projects: tuple[Path, ...] = ()
    """Folders that may hold agents' files, the nearest first."""
    config: Path | None = None
    """The user's configuration folder."""
    home: Path | None = None
    given: tuple[AgentDefinition, ...] = ()
    """Defined by settings instead of files."""
    is_trusted: Callable[[Path], bool] = field(default=lambda _: False)
    executor: str | None = None
    """Of files that name none, if the user has a preference."""
    executors: ExecutorTable = field(default_factory=lambda: EXECUTORS)
    """What files may name."""
    reserved: frozenset[str] = frozenset()
    """Names that callers go by: an agent of that name could pass for one."""


class Catalog:
    def __init__(self, sources: AgentSources) -> None:
        self.sources = sources
        self._read: dict[Path, tuple[DefinitionStamp, AgentDefinition]] = {}
        self._profiles_seen: tuple[tuple[Path, DefinitionStamp | None], ...] = ()
        self._profiles: Mapping[str, Profile] = profiles.BUILT_IN
        self.profile_problems: Sequence[tuple[Path, DefinitionProblem]] = ()
        """Of the user's own profiles, as far as they were looked at."""

    def agents(self) -> Mapping[str, AgentDefinition]:
        """By name, the nearest of each; those that are left out are not among them."""
        found: dict[str, list[AgentDefinition]] = {}
        for definition in self.everything():
            if definition.left_out is None:
                found.setdefault(definition.name, []).append(definition)
        return {
            name: replace(nearest, shadows=tuple(each.source for each in farther))
            for name, (nearest, *farther) in sorted(found.items())
        }

    def everything(self) -> list[AgentDefinition]:
        """Every definition in every place, the nearest first."""
        sources = self.sources
        self._refresh_profiles()
        own = list(self._own_places())
        own_folders = {place.folder.resolve() for place in own if place.folder.is_dir()}
        near: list[AgentDefinition] = []
        far: list[AgentDefinition] = []
        for project in sources.projects:
            trusted = sources.is_trusted(project)
            for place in places.of_project(project):
                if place.folder.is_dir() and place.folder.resolve() not in own_folders:
                    (near if trusted else far).extend(self._in(place, trusted=trusted))
        users = [definition for place in own for definition in self._in(place)]
        shipped = list(self._in(places.built_in()))
        every = [*near, *sources.given, *users, *far, *shipped]
        return [_unless_reserved(each, sources.reserved) for each in every]

    def read(self, file: Path) -> AgentDefinition:
        """One file, wherever it lies, as its folder says it is to be read."""
        self._refresh_profiles()
        return self._definition(_place_around(file), file, trusted=True)

    def _own_places(self) -> Iterator[AgentFolder]:
        if self.sources.config is not None and self.sources.home is not None:
            yield from places.of_user(self.sources.config, self.sources.home)

    def _in(self, place: AgentFolder, *, trusted: bool = True) -> Iterator[AgentDefinition]:
        for file in place.files():
            seen = stamp(file)
            known = self._read.get(file)
            if seen is None or known is None or known[0] != seen or known[1].trusted != trusted:
                definition = self._definition(place, file, trusted=trusted)
                if seen is not None:
                    self._read[file] = (seen, definition)
            else:
                definition = known[1]
            yield definition

    def _definition(self, place: AgentFolder, file: Path, *, trusted: bool) -> AgentDefinition:
        origin = Origin(
            name=place.name_of(file),
            source=place.label(file),
            format=place.format,
            scope=place.scope,
            file=str(file),
            executor=None if place.scope == "built in" else self.sources.executor,
            executors=self.sources.executors,
        )
        try:
            data = read_file(file, place.base)
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
        if self.sources.config is None:
            return
        place = AgentFolder(self.sources.config / "profiles", OURS, "user", shown="profiles")
        seen = tuple((file, stamp(file)) for file in place.files())
        if seen == self._profiles_seen:
            return
        found = dict(profiles.BUILT_IN)
        problems: list[tuple[Path, DefinitionProblem]] = []
        for file, _ in seen:
            try:
                profile = profiles.read_profile(read_file(file), file.stem, place.label(file))
                found[profile.name] = profile
            except MalformedDefinition as error:
                found.pop(file.stem, None)  # what it should have been is not known
                problems += [(file, problem) for problem in error.problems]
        self._profiles, self._profiles_seen, self.profile_problems = found, seen, problems
        self._read.clear()


def _place_around(file: Path) -> AgentFolder:
    """The place whose folder this file's is named like; a file anywhere else is one of ours."""
    for folder, form in places.IN_PROJECT:
        parent = file.parent.parent if form is places.FOLDERS else file.parent
        named = (parent / "x").as_posix().endswith(f"/{folder}/x")
        if named and (form is not places.FOLDERS or file.name == "agent.md"):
            return AgentFolder(parent, form, "project", None, parent.as_posix())
    return AgentFolder(file.parent, OURS, "project", None, file.parent.as_posix())


def _unless_reserved(definition: AgentDefinition, reserved: Collection[str]) -> AgentDefinition:
    if definition.name not in reserved or definition.left_out is not None:
        return definition
    problem = DefinitionProblem(1, f"the name {definition.name!r} is the host's own", "choose another name")
    return replace(definition, agent=None, problems=(*definition.problems, problem))
