"""Finds and reads the YAML files of workflows and teams.

A step is a table with one of the keys `best_of`, `agent`, `checks`, `chain`, `parallel` or `branch`, and
further keys that depend on its kind. All problems of a file are reported at once, each with its line. The
precedence of folders is the same as for agents, and an untrusted project cannot replace a built-in
definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from retinue.core import (
    PARALLEL_LIMIT,
    BestOf,
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
from retinue.definitions.value_readers import (
    ValueReader,
    choice,
    read_commands,
    read_dollars,
    read_flag,
    read_record,
    read_text,
    read_words,
    require_table,
    whole_number,
)
from retinue.definitions.yaml_tree import ListNode, Node, NodeEntry, ScalarNode, TableNode, read_yaml

CHECKS = ("types", "lint", "tests", "security")
"""Kinds of checks that a step can run."""
FINDING_TYPES = ("string", "number", "integer", "boolean")
MAX_STEPS = 2_000
MAX_YAML_VALUES = 20 * MAX_STEPS
DAY_S = 86_400
MAX_TEXT_CHARS = 200_000

STEP_KINDS = ("best_of", "agent", "checks", "chain", "parallel", "branch")
MAX_TRIES = 20
WORKFLOW_BUDGET_READERS: Mapping[str, ValueReader[Any]] = {
    "tokens": whole_number(1),
    "steps": whole_number(1),
    "cost_usd": read_dollars,
    "wall_ms": whole_number(1),
    "runs": whole_number(1),
}


WorkflowKind = Literal["workflow", "team"]
WORKFLOW_FOLDERS: Mapping[WorkflowKind, tuple[str, ...]] = {
    "workflow": (".retinue/workflows",),
    "team": (".retinue/teams", ".smallcode/teams"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWorkflow:
    """The result of reading one file: a workflow or team, or the problems in it."""

    name: str
    kind: WorkflowKind
    scope: DefinitionScope
    source: str
    """The path to show to people and hosts."""
    workflow: Workflow | None = None
    problems: tuple[DefinitionProblem, ...] = ()
    trusted: bool = True

    @property
    def problem(self) -> DefinitionProblem | None:
        """The first problem."""
        return self.problems[0] if self.problems else None


class WorkflowCatalog:
    """All workflows and teams in all folders. Reads the files again at each call."""

    def __init__(self, sources: AgentSources) -> None:
        self._sources = sources

    def by_name(self, kind: WorkflowKind) -> Mapping[str, FoundWorkflow]:
        """Return the definitions by name. For each name, the one with the highest precedence wins.

        A broken file keeps its name, because silently running another definition would be a surprise.
        """
        nearest: dict[str, FoundWorkflow] = {}
        for each in self.all_definitions(kind):
            nearest.setdefault(each.name, each)
        return dict(sorted(nearest.items()))

    def all_definitions(self, kind: WorkflowKind) -> list[FoundWorkflow]:
        """Return all definitions in order of precedence."""
        sources = self._sources
        trusted_files: list[FoundWorkflow] = []
        untrusted_files: list[FoundWorkflow] = []
        for project in sources.projects:
            trusted = sources.is_trusted(project)
            for folder in WORKFLOW_FOLDERS[kind]:
                found = _workflows_in(project / folder, kind, "project", folder, project)
                marked = (replace(each, trusted=trusted) for each in found)
                (trusted_files if trusted else untrusted_files).extend(marked)
        user_files: list[FoundWorkflow] = []
        if sources.config is not None:
            user_files += _workflows_in(sources.config / f"{kind}s", kind, "user", f"(user)/{kind}s")
        if sources.home is not None and kind == "team":
            smallcode = ".smallcode/teams"
            user_files += _workflows_in(sources.home / smallcode, kind, "user", f"~/{smallcode}")
        builtin_files = list(_workflows_in(BUILTIN / f"{kind}s", kind, "built in", "built in"))
        builtin_names = {each.name for each in builtin_files}
        taken = [_reject_builtin(each) for each in untrusted_files if each.name.casefold() in builtin_names]
        others = [each for each in untrusted_files if each.name.casefold() not in builtin_names]
        return [*trusted_files, *user_files, *others, *builtin_files, *taken]

    def read(self, file: Path, kind: WorkflowKind) -> FoundWorkflow:
        """Read one file from any folder."""
        return _read_workflow_file(file, kind, "project", str(file))


def _reject_builtin(found: FoundWorkflow) -> FoundWorkflow:
    """Turn a definition of an untrusted project that has a built-in name into a broken one."""
    problem = DefinitionProblem(
        1, f"an untrusted project cannot replace the built-in {found.name}", "choose another name"
    )
    return replace(found, workflow=None, problems=(problem, *found.problems))


def _workflows_in(
    folder: Path, kind: WorkflowKind, scope: DefinitionScope, shown: str, base: Path | None = None
) -> Iterator[FoundWorkflow]:
    """Yield the workflows in a folder of YAML files. `shown` replaces the folder's path in messages."""
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
    """Read one file. Problems are part of the result."""
    found = FoundWorkflow(name=file.stem, kind=kind, scope=scope, source=source)
    try:
        data = read_definition_file(file, base)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise MalformedDefinition(1, "not UTF-8 text", "save the file as UTF-8") from None
        read = read_workflow if kind == "workflow" else read_team
        workflow = read(text, file.stem, source)
    except MalformedDefinition as error:
        return replace(found, problems=error.problems)
    return replace(found, name=workflow.name, workflow=workflow)


def read_workflow(text: str, name: str, source: str) -> Workflow:
    """Parse the YAML text of a workflow. Raises `MalformedDefinition` with all problems.

    `name` is used if the text does not set one; `source` is the path to show to people.
    """
    readers: dict[str, ValueReader[Any]] = {
        "name": read_agent_name,
        "description": read_text,
        "budget": _read_budget,
        "steps": partial(_read_chain, name="steps"),
    }
    values = _read_table(_parse_table(text), readers, "a workflow", "steps")
    return Workflow(
        name=values.get("name", name),
        description=values.get("description", ""),
        body=values["steps"],
        source=source,
        kind="workflow",
        text=text,
        budget=values.get("budget", Budget()),
    )


def read_team(text: str, name: str, source: str) -> Workflow:
    """Parse the YAML text of a team: a chain of agents, where each answer is the next task.

    Raises `MalformedDefinition` with all problems.
    """
    readers: dict[str, ValueReader[Any]] = {
        "name": read_agent_name,
        "description": read_text,
        "agents": _read_members,
    }
    values = _read_table(_parse_table(text), readers, "a team", "agents")
    steps = [Step(id=agent, agent=agent, plain=True) for agent in values["agents"]]
    return Workflow(
        name=values.get("name", name),
        description=values.get("description", ""),
        body=Chain(id="agents", steps=_with_unique_ids(steps)),
        source=source,
        kind="team",
        text=text,
    )


def _read_table(
    table: TableNode, readers: Mapping[str, ValueReader[Any]], what: str, required: str
) -> dict[str, Any]:
    """Read a table that may have only these keys and must have the key `required`."""
    problems = ProblemCollector()
    if required not in table.entries:
        problems.add(table.line, f"{what} needs `{required}`")
    values = problems.read(lambda node: read_record(node, readers, what), table)
    problems.raise_if_any()
    return values or {}


def _parse_table(text: str) -> TableNode:
    """Parse YAML text whose top level is a table."""
    if len(text) > MAX_TEXT_CHARS:
        raise MalformedDefinition(1, f"more than {MAX_TEXT_CHARS} characters", "shorten it")
    tree = read_yaml(text, 1, MAX_YAML_VALUES)
    if not isinstance(tree, TableNode):
        raise MalformedDefinition(1, "expected a table of `key: value` pairs")
    return tree


def _read_budget(node: Node) -> Budget:
    """Read the limits of a workflow."""
    values = read_record(node, WORKFLOW_BUDGET_READERS, "a budget")
    return Budget(
        tokens=values.get("tokens"),
        steps=values.get("steps"),
        cost_micros=values.get("cost_usd"),
        wall_ms=values.get("wall_ms"),
        spawns=values.get("runs"),
    )


def _read_members(node: Node) -> tuple[str, ...]:
    """Read the agents of a team: at least one."""
    found = read_words(node)
    if not found:
        raise MalformedDefinition(node.line, "a team needs at least one agent")
    return found


def _read_chain(node: Node, name: str) -> Chain:
    """Read a list of steps and check each branch against the step before it."""
    items = _require_items(node)
    problems = ProblemCollector()
    found = [problems.read(_read_step, item) for item in items]
    for at, (step, item) in enumerate(zip(found, items, strict=True)):
        before = found[at - 1] if at else None
        if isinstance(step, Branch) and (before is not None or not at):
            problems.read(lambda line, step=step, before=before: _check_branch(step, before, line), item.line)
    problems.raise_if_any()
    return Chain(id=name, steps=_with_unique_ids([step for step in found if step is not None]))


def _require_items(node: Node) -> tuple[Node, ...]:
    """Return the items of a list that is not empty."""
    if not isinstance(node, ListNode) or not node.items:
        raise MalformedDefinition(node.line, "expected a list with at least one step")
    return node.items


def _read_step(node: Node) -> WorkflowNode:
    """Read one step of any kind."""
    if isinstance(node, ListNode):
        return _read_chain(node, "chain")
    table = require_table(node)
    kind = next((kind for kind in STEP_KINDS if kind in table.entries), None)
    if kind is None:
        raise MalformedDefinition(table.line, f"a step needs one of: {', '.join(STEP_KINDS)}")
    needed = "cases" if kind == "branch" else kind
    values = _read_table(table, READERS_BY_KIND[kind], f"a step with `{kind}`", needed)
    match kind:
        case "chain":
            return replace(values["chain"], id=values.get("id", "chain"))
        case "parallel":
            return Parallel(
                id=values.get("id", "parallel"),
                steps=values["parallel"],
                rule=values.get("rule", "all"),
                at_once=values.get("at_once", PARALLEL_LIMIT),
            )
        case "best_of":
            return _make_best_of(values, table)
        case "branch":
            return Branch(
                id=values.get("id", "branch"),
                on=values["branch"],
                cases=values["cases"],
                otherwise=values.get("otherwise"),
            )
        case _:
            return _make_step(values)


def _make_step(values: Mapping[str, Any]) -> Step:
    """Build a step that runs an agent or checks."""
    agent, checks = values.get("agent"), values.get("checks", ())
    phase = values.get("phase", Phase.VALIDATE if checks else Phase.RESEARCH)
    return Step(
        id=values.get("id") or agent or "checks",
        agent=agent,
        phase=phase,
        instructions=values.get("instructions", ""),
        constraints=values.get("constraints", ()),
        finding=values.get("finding", {}),
        checks=checks,
        timeout_s=values.get("timeout_s"),
        # Repeating a step that only reads does no harm; repeating one that writes may.
        idempotent=values.get("idempotent", phase is not Phase.WRITE),
    )


def _make_best_of(values: Mapping[str, Any], table: TableNode) -> BestOf:
    """Build a step that gives one task to several agents, or several times to one."""
    tries, agent = values["best_of"], values.get("agent")
    if isinstance(tries, int) == (agent is None):
        message = "a number in `best_of` needs `agent`, and a list of agents must not have it"
        raise MalformedDefinition(table.line, message)
    names: tuple[str, ...] = (str(agent),) * tries if isinstance(tries, int) else tries
    if not (values.get("checks") or values.get("acceptance")):
        message = "`best_of` needs `checks` or `acceptance`: commands decide whose work counts"
        raise MalformedDefinition(table.line, message, "add `checks: tests`")
    steps = [
        Step(
            id=name,
            agent=name,
            phase=Phase.WRITE,
            instructions=values.get("instructions", ""),
            constraints=values.get("constraints", ()),
            timeout_s=values.get("timeout_s"),
            idempotent=True,  # the worktree of an interrupted try is gone
            acceptance=values.get("acceptance", ()),
            accept_checks=values.get("checks", ()),
        )
        for name in names
    ]
    unique = tuple(step for step in _with_unique_ids(steps) if isinstance(step, Step))
    at_once = values.get("at_once", PARALLEL_LIMIT)
    return BestOf(id=values.get("id", "best"), tries=unique, judge=values.get("judge"), at_once=at_once)


def _read_tries(node: Node) -> int | tuple[str, ...]:
    """Read a number of tries, or a list of agents."""
    if isinstance(node, ScalarNode):
        return whole_number(2, MAX_TRIES)(node)
    names = tuple(read_each(read_agent_name, _require_items(node)))
    if not 2 <= len(names) <= MAX_TRIES:
        raise MalformedDefinition(node.line, f"list 2 to {MAX_TRIES} agents")
    return names


def _read_parallel_steps(node: Node) -> tuple[WorkflowNode, ...]:
    """Read the steps of a `parallel`."""
    items = _require_items(node)
    if len(items) > MAX_STEPS:
        raise MalformedDefinition(node.line, f"more than {MAX_STEPS} steps", "split the workflow")

    def read(item: Node) -> WorkflowNode:
        step = _read_step(item)
        if isinstance(step, Branch):
            raise MalformedDefinition(
                item.line, "a branch in `parallel` has no step before it", "put both into a `chain`"
            )
        return step

    return _with_unique_ids(read_each(read, items))


def _read_cases(node: Node) -> dict[str, Chain]:
    """Read the cases of a `branch`: a chain for each value."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, Chain]:
        case, entry = item
        return case, _read_chain(entry.value, case)

    return dict(read_each(read, require_table(node).entries.items()))


def _check_branch(branch: Branch, before: WorkflowNode | None, line: int) -> None:
    """Check that a branch uses a finding of the previous step and covers all its values."""
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
    problems = ProblemCollector()
    for case in branch.cases:
        if case not in possible:
            problems.add(line, f"{branch.on} is never {case!r}", did_you_mean(case, possible))
    missing = [value for value in possible if value not in branch.cases]
    if missing and branch.otherwise is None:
        problems.add(line, f"there is no case for {', '.join(missing)}", "add it, or `otherwise`")
    problems.raise_if_any()


def _read_finding(node: Node) -> dict[str, FieldType]:
    """Read the findings that a step reports, each with its type."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, FieldType]:
        name, entry = item
        return name, _read_finding_type(entry.value)

    return dict(read_each(read, require_table(node).entries.items()))


def _read_finding_type(node: Node) -> FieldType:
    """Read the type of a finding: the name of a type, or a list of allowed values."""
    if isinstance(node, ListNode):
        return read_words(node)
    return choice(*FINDING_TYPES)(node)


def _read_checks(node: Node) -> tuple[str, ...]:
    """Read a list of checks, or `all`."""
    if isinstance(node, ScalarNode) and node.text == "all":
        return CHECKS
    found, problems = read_words(node), ProblemCollector()
    for check in found:
        if check not in CHECKS:
            known = did_you_mean(check, CHECKS) or f"known checks: {', '.join(CHECKS)}"
            problems.add(node.line, f"{check!r} is not a check", known)
    if not found:
        problems.add(node.line, "list at least one check, or write `all`")
    problems.raise_if_any()
    return found


def _read_phase(node: Node) -> Phase:
    return Phase(choice(*Phase)(node))


def _read_id(node: Node) -> str:
    """Read the id of a step."""
    text = read_text(node)
    if not NAME_PATTERN.fullmatch(text):
        raise MalformedDefinition(
            node.line, f"{text[:80]!r} is not a valid id", "use letters, digits, `-` and `_`"
        )
    return text


def _with_unique_ids(found: list[WorkflowNode] | list[Step]) -> tuple[WorkflowNode, ...]:
    """Give each step an id that is unique among its siblings. The id is the key of the step's result."""
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


STEP_READERS: Mapping[str, ValueReader[Any]] = {
    "id": _read_id,
    "agent": read_agent_name,
    "phase": _read_phase,
    "instructions": read_text,
    "constraints": read_words,
    "finding": _read_finding,
    "checks": _read_checks,
    "timeout_s": whole_number(1, DAY_S),
    "idempotent": read_flag,
}
READERS_BY_KIND: Mapping[str, Mapping[str, ValueReader[Any]]] = {
    "agent": STEP_READERS,
    "checks": STEP_READERS,
    "best_of": {
        "id": _read_id,
        "best_of": _read_tries,
        "agent": read_agent_name,
        "instructions": read_text,
        "constraints": read_words,
        "checks": _read_checks,
        "acceptance": read_commands,
        "judge": read_agent_name,
        "timeout_s": whole_number(1, DAY_S),
        "at_once": whole_number(1, MAX_TRIES),
    },
    "chain": {"id": _read_id, "chain": partial(_read_chain, name="chain")},
    "parallel": {
        "id": _read_id,
        "parallel": _read_parallel_steps,
        "rule": choice("all", "any", "majority"),
        "at_once": whole_number(1, MAX_STEPS),
    },
    "branch": {
        "id": _read_id,
        "branch": read_text,
        "cases": _read_cases,
        "otherwise": partial(_read_chain, name="otherwise"),
    },
}
"""The keys of each kind of step with their readers."""
