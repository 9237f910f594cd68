"""Every workflow and team there is, the nearest definition of a name first, in the order of agents' files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from retinue.core import Workflow
from retinue.definitions.catalog import AgentSources
from retinue.definitions.files import read_file
from retinue.definitions.places import BUILTIN, MOST_FILES, DefinitionScope
from retinue.definitions.problem import DefinitionProblem, MalformedDefinition
from retinue.definitions.workflows import read_team, read_workflow

WorkflowKind = Literal["workflow", "team"]
READERS = {"workflow": read_workflow, "team": read_team}
IN_PROJECT: Mapping[WorkflowKind, tuple[str, ...]] = {
    "workflow": (".retinue/workflows",),
    "team": (".retinue/teams", ".smallcode/teams"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWorkflow:
    """What one file defines, or why it does not."""

    name: str
    kind: WorkflowKind
    scope: DefinitionScope
    source: str
    """The file as people and hosts are shown it."""
    workflow: Workflow | None = None
    problems: tuple[DefinitionProblem, ...] = ()
    trusted: bool = True

    @property
    def problem(self) -> DefinitionProblem | None:
        """The first of them."""
        return self.problems[0] if self.problems else None


class WorkflowCatalog:
    def __init__(self, sources: AgentSources) -> None:
        self._sources = sources

    def found(self, kind: WorkflowKind) -> Mapping[str, FoundWorkflow]:
        """By name. A broken file keeps its name: to run another in its place would be a surprise."""
        nearest: dict[str, FoundWorkflow] = {}
        for each in self.everything(kind):
            nearest.setdefault(each.name, each)
        return dict(sorted(nearest.items()))

    def everything(self, kind: WorkflowKind) -> list[FoundWorkflow]:
        sources = self._sources
        near: list[FoundWorkflow] = []
        far: list[FoundWorkflow] = []
        for project in sources.projects:
            trusted = sources.is_trusted(project)
            for folder in IN_PROJECT[kind]:
                read = _in(project / folder, kind, "project", folder, project)
                (near if trusted else far).extend(replace(each, trusted=trusted) for each in read)
        own: list[FoundWorkflow] = []
        if sources.config is not None:
            own += _in(sources.config / f"{kind}s", kind, "user", f"(user)/{kind}s")
        if sources.home is not None and kind == "team":
            own += _in(sources.home / ".smallcode/teams", kind, "user", "~/.smallcode/teams")
        shipped = _in(BUILTIN / f"{kind}s", kind, "built in", "built in")
        return [*near, *own, *far, *shipped]

    def read(self, file: Path, kind: WorkflowKind) -> FoundWorkflow:
        return _read(file, kind, "project", str(file))


def _in(
    folder: Path, kind: WorkflowKind, scope: DefinitionScope, shown: str, base: Path | None = None
) -> Iterator[FoundWorkflow]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())[:MOST_FILES]
    except OSError:
        return
    for name in names:
        if name.lower().endswith((".yaml", ".yml")):
            yield _read(folder / name, kind, scope, f"{shown}/{name}", base)


def _read(
    file: Path, kind: WorkflowKind, scope: DefinitionScope, source: str, base: Path | None = None
) -> FoundWorkflow:
    found = FoundWorkflow(name=file.stem, kind=kind, scope=scope, source=source)
    try:
        data = read_file(file, base)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise MalformedDefinition(1, "not UTF-8 text", "save the file as UTF-8") from None
        workflow = READERS[kind](text, file.stem, source)
    except MalformedDefinition as error:
        return replace(found, problems=error.problems)
    return replace(found, name=workflow.name, workflow=workflow)
