"""A workflow's YAML becomes a value: every mistake with its line. Knows nothing of where files lie.

A step is a table with one of `agent`, `checks`, `chain`, `parallel` or `branch`; its other keys say more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from retinue.core import (
    PARALLEL_LIMIT,
    Branch,
    Budget,
    Chain,
    FieldType,
    Parallel,
    Phase,
    Step,
    Workflow,
    WorkflowNode,
)
from retinue.definitions import value_readers, yaml_tree
from retinue.definitions.agent_catalog import AgentSources
from retinue.definitions.agent_fields import NAME_PATTERN, read_agent_name
from retinue.definitions.definition_files import (
    BUILTIN,
    MAX_FILES_PER_FOLDER,
    DefinitionScope,
    read_definition_file,
)
from retinue.definitions.problems import (
    DefinitionProblem,
    MalformedDefinition,
    ProblemCollector,
    did_you_mean,
    read_each,
)
from retinue.definitions.yaml_tree import ListNode, NodeEntry, ScalarNode, TableNode, read_yaml

CHECKS = ("types", "lint", "tests", "security")
FINDING_TYPES = ("string", "number", "integer", "boolean")
MAX_STEPS = 2_000
MAX_YAML_VALUES = 20 * MAX_STEPS
DAY_S = 86_400
MAX_TEXT_CHARS = 200_000

STEP_KINDS = ("agent", "checks", "chain", "parallel", "branch")
WORKFLOW_BUDGET_READERS: Mapping[str, value_readers.ValueReader[Any]] = {
    "tokens": value_readers.whole_number(1),
    "steps": value_readers.whole_number(1),
    "cost_usd": value_readers.read_dollars,
    "wall_ms": value_readers.whole_number(1),
    "runs": value_readers.whole_number(1),
}


def read_workflow(text: str, name: str, source: str) -> Workflow:
    """The workflow in the text; `MalformedDefinition` says all that is wrong, each in its line."""
    readers: dict[str, value_readers.ValueReader[Any]] = {
        "name": read_agent_name,
        "description": value_readers.read_text,
        "budget": _read_budget,
        "steps": _read_steps,
    }
    given = _read_table(_parse_table(text), readers, "a workflow", "steps")
    return Workflow(
        name=given.get("name", name),
        description=given.get("description", ""),
        body=given["steps"],
        source=source,
        kind="workflow",
        text=text,
        budget=given.get("budget", Budget()),
    )


def read_team(text: str, name: str, source: str) -> Workflow:
    """A team: agents in order, each with the answer of the one before as its task."""
    readers: dict[str, value_readers.ValueReader[Any]] = {
        "name": read_agent_name,
        "description": value_readers.read_text,
        "agents": _read_members,
    }
    given = _read_table(_parse_table(text), readers, "a team", "agents")
    steps = [Step(id=agent, agent=agent, plain=True) for agent in given["agents"]]
    return Workflow(
        name=given.get("name", name),
        description=given.get("description", ""),
        body=Chain(id="agents", steps=_with_unique_ids(steps)),
        source=source,
        kind="team",
        text=text,
    )


def _read_table(
    table: TableNode, readers: Mapping[str, value_readers.ValueReader[Any]], what: str, needed: str
) -> dict[str, Any]:
    """A table with these keys alone, one of which must be there; all that is wrong with it."""
    mistakes = ProblemCollector()
    if needed not in table.entries:
        mistakes.note(table.line, f"{what} needs `{needed}`")
    given = mistakes.read(lambda node: value_readers.read_record(node, readers, what), table)
    mistakes.tell()
    return given or {}


def _parse_table(text: str) -> TableNode:
    if len(text) > MAX_TEXT_CHARS:
        raise MalformedDefinition(1, f"more than {MAX_TEXT_CHARS} characters", "shorten it")
    tree = read_yaml(text, 1, MAX_YAML_VALUES)
    if not isinstance(tree, TableNode):
        raise MalformedDefinition(1, "a table of `key: value` is wanted here")
    return tree


def _read_budget(node: yaml_tree.Node) -> Budget:
    given = value_readers.read_record(node, WORKFLOW_BUDGET_READERS)
    return Budget(
        tokens=given.get("tokens"),
        steps=given.get("steps"),
        cost_micros=given.get("cost_usd"),
        wall_ms=given.get("wall_ms"),
        spawns=given.get("runs"),
    )


def _read_members(node: yaml_tree.Node) -> tuple[str, ...]:
    found = value_readers.read_words(node)
    if not found:
        raise MalformedDefinition(node.line, "a team needs an agent at least")
    return found


def _read_chain(node: yaml_tree.Node, name: str) -> Chain:
    items = _require_items(node)
    mistakes = ProblemCollector()
    found = [mistakes.read(_read_step, item) for item in items]
    for at, (step, item) in enumerate(zip(found, items, strict=True)):
        before = found[at - 1] if at else None
        if isinstance(step, Branch) and (before is not None or not at):
            mistakes.read(lambda line, step=step, before=before: _check_branch(step, before, line), item.line)
    mistakes.tell()
    return Chain(id=name, steps=_with_unique_ids([step for step in found if step is not None]))


def _require_items(node: yaml_tree.Node) -> tuple[yaml_tree.Node, ...]:
    if not isinstance(node, ListNode) or not node.items:
        raise MalformedDefinition(node.line, "a list of steps is wanted here, one at least")
    return node.items


def _read_step(node: yaml_tree.Node) -> WorkflowNode:
    if isinstance(node, ListNode):
        return _read_nested(node)
    table = value_readers.require_table(node)
    kind = next((kind for kind in STEP_KINDS if kind in table.entries), None)
    if kind is None:
        raise MalformedDefinition(table.line, f"a step needs one of: {', '.join(STEP_KINDS)}")
    needed = "cases" if kind == "branch" else kind
    given = _read_table(table, READERS_BY_KIND[kind], f"a step with `{kind}`", needed)
    match kind:
        case "chain":
            return replace(given["chain"], id=given.get("id", "chain"))
        case "parallel":
            return Parallel(
                id=given.get("id", "parallel"),
                steps=given["parallel"],
                rule=given.get("rule", "all"),
                at_once=given.get("at_once", PARALLEL_LIMIT),
            )
        case "branch":
            return Branch(
                id=given.get("id", "branch"),
                on=given["branch"],
                cases=given["cases"],
                otherwise=given.get("otherwise"),
            )
        case _:
            return _make_step(given)


def _make_step(given: Mapping[str, Any]) -> Step:
    agent, checks = given.get("agent"), given.get("checks", ())
    phase = given.get("phase", Phase.VALIDATE if checks else Phase.RESEARCH)
    return Step(
        id=given.get("id") or agent or "checks",
        agent=agent,
        phase=phase,
        instructions=given.get("instructions", ""),
        constraints=given.get("constraints", ()),
        finding=given.get("finding", {}),
        checks=checks,
        timeout_s=given.get("timeout_s"),
        # To look at something twice does no harm; to write it twice may.
        idempotent=given.get("idempotent", phase is not Phase.WRITE),
    )


def _read_parallel_steps(node: yaml_tree.Node) -> tuple[WorkflowNode, ...]:
    """The steps of a `parallel`."""
    items = _require_items(node)
    if len(items) > MAX_STEPS:
        raise MalformedDefinition(node.line, f"more than {MAX_STEPS} steps")

    def read(item: yaml_tree.Node) -> WorkflowNode:
        step = _read_step(item)
        if isinstance(step, Branch):
            raise MalformedDefinition(
                item.line, "a branch has no step before it here", "put both into a `chain`"
            )
        return step

    return _with_unique_ids(read_each(read, items))


def _read_cases(node: yaml_tree.Node) -> dict[str, Chain]:
    def read(item: tuple[str, NodeEntry]) -> tuple[str, Chain]:
        case, entry = item
        return case, _read_chain(entry.value, case)

    return dict(read_each(read, value_readers.require_table(node).entries.items()))


def _check_branch(branch: Branch, before: WorkflowNode | None, line: int) -> None:
    """A branch may only look at what the step before it must find, and must know what to do with it."""
    if not isinstance(before, Step) or branch.on not in before.finding:
        raise MalformedDefinition(
            line,
            f"the step before this branch has no finding {branch.on!r}",
            f"give it `finding: {{{branch.on}: [one, another]}}`",
        )
    kind = before.finding[branch.on]
    possible = ("true", "false") if kind == "boolean" else kind
    if not isinstance(possible, tuple):
        if branch.otherwise is None:
            raise MalformedDefinition(line, f"{branch.on} may be any {kind}", "add `otherwise`")
        return
    mistakes = ProblemCollector()
    for case in branch.cases:
        if case not in possible:
            mistakes.note(line, f"{branch.on} is never {case!r}", did_you_mean(case, possible))
    missing = [value for value in possible if value not in branch.cases]
    if missing and branch.otherwise is None:
        mistakes.note(line, f"there is no case for {', '.join(missing)}", "add it, or `otherwise`")
    mistakes.tell()


def _read_finding(node: yaml_tree.Node) -> dict[str, FieldType]:
    def read(item: tuple[str, NodeEntry]) -> tuple[str, FieldType]:
        name, entry = item
        return name, _read_finding_type(entry.value)

    return dict(read_each(read, value_readers.require_table(node).entries.items()))


def _read_finding_type(node: yaml_tree.Node) -> FieldType:
    if isinstance(node, ListNode):
        return value_readers.read_words(node)
    return value_readers.choice(*FINDING_TYPES)(node)


def _read_checks(node: yaml_tree.Node) -> tuple[str, ...]:
    if isinstance(node, ScalarNode) and node.text == "all":
        return CHECKS
    found, mistakes = value_readers.read_words(node), ProblemCollector()
    for check in found:
        if check not in CHECKS:
            known = did_you_mean(check, CHECKS) or f"known are: {', '.join(CHECKS)}"
            mistakes.note(node.line, f"{check!r} is no check", known)
    if not found:
        mistakes.note(node.line, "name a check, or `all`")
    mistakes.tell()
    return found


def _read_phase(node: yaml_tree.Node) -> Phase:
    return Phase(value_readers.choice(*Phase)(node))


def _read_otherwise(node: yaml_tree.Node) -> Chain:
    return _read_chain(node, "otherwise")


def _read_steps(node: yaml_tree.Node) -> Chain:
    return _read_chain(node, "steps")


def _read_nested(node: yaml_tree.Node) -> Chain:
    return _read_chain(node, "chain")


def _read_id(node: yaml_tree.Node) -> str:
    given = value_readers.read_text(node)
    if not NAME_PATTERN.fullmatch(given):
        raise MalformedDefinition(
            node.line, f"{given[:80]!r} cannot be an id", "letters, digits, `-` and `_`"
        )
    return given


def _with_unique_ids(found: list[WorkflowNode] | list[Step]) -> tuple[WorkflowNode, ...]:
    """Each with an id that no other step beside it has: it becomes the key of what the step gave."""
    taken: dict[str, int] = {}
    unique: list[WorkflowNode] = []
    for node in found:
        taken[node.id] = taken.get(node.id, 0) + 1
        name = node.id if taken[node.id] == 1 else f"{node.id}-{taken[node.id]}"
        while name != node.id and name in taken:
            name += "-"
        taken.setdefault(name, 1)
        unique.append(replace(node, id=name))
    return tuple(unique)


STEP_READERS: Mapping[str, value_readers.ValueReader[Any]] = {
    "id": _read_id,
    "agent": read_agent_name,
    "phase": _read_phase,
    "instructions": value_readers.read_text,
    "constraints": value_readers.read_words,
    "finding": _read_finding,
    "checks": _read_checks,
    "timeout_s": value_readers.whole_number(1, DAY_S),
    "idempotent": value_readers.read_flag,
}
READERS_BY_KIND: Mapping[str, Mapping[str, value_readers.ValueReader[Any]]] = {
    "agent": STEP_READERS,
    "checks": STEP_READERS,
    "chain": {"id": _read_id, "chain": _read_nested},
    "parallel": {
        "id": _read_id,
        "parallel": _read_parallel_steps,
        "rule": value_readers.choice("all", "any", "majority"),
        "at_once": value_readers.whole_number(1, MAX_STEPS),
    },
    "branch": {
        "id": _read_id,
        "branch": value_readers.read_text,
        "cases": _read_cases,
        "otherwise": _read_otherwise,
    },
}
"""What each kind of step may say, and how it is read."""


# MERGED workflow_catalog: Every workflow and team there is, the nearest definition of a name first, in the order of agents' files.

WorkflowKind = Literal["workflow", "team"]
READER_BY_KIND = {"workflow": read_workflow, "team": read_team}
WORKFLOW_FOLDERS: Mapping[WorkflowKind, tuple[str, ...]] = {
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
            for folder in WORKFLOW_FOLDERS[kind]:
                read = _workflows_in(project / folder, kind, "project", folder, project)
                (near if trusted else far).extend(replace(each, trusted=trusted) for each in read)
        own: list[FoundWorkflow] = []
        if sources.config is not None:
            own += _workflows_in(sources.config / f"{kind}s", kind, "user", f"(user)/{kind}s")
        if sources.home is not None and kind == "team":
            own += _workflows_in(sources.home / ".smallcode/teams", kind, "user", "~/.smallcode/teams")
        shipped = _workflows_in(BUILTIN / f"{kind}s", kind, "built in", "built in")
        return [*near, *own, *far, *shipped]

    def read(self, file: Path, kind: WorkflowKind) -> FoundWorkflow:
        return _read_workflow_file(file, kind, "project", str(file))


def _workflows_in(
    folder: Path, kind: WorkflowKind, scope: DefinitionScope, shown: str, base: Path | None = None
) -> Iterator[FoundWorkflow]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())[:MAX_FILES_PER_FOLDER]
    except OSError:
        return
    for name in names:
        if name.lower().endswith((".yaml", ".yml")):
            yield _read_workflow_file(folder / name, kind, scope, f"{shown}/{name}", base)


def _read_workflow_file(
    file: Path, kind: WorkflowKind, scope: DefinitionScope, source: str, base: Path | None = None
) -> FoundWorkflow:
    found = FoundWorkflow(name=file.stem, kind=kind, scope=scope, source=source)
    try:
        data = read_definition_file(file, base)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise MalformedDefinition(1, "not UTF-8 text", "save the file as UTF-8") from None
        workflow = READER_BY_KIND[kind](text, file.stem, source)
    except MalformedDefinition as error:
        return replace(found, problems=error.problems)
    return replace(found, name=workflow.name, workflow=workflow)
