"""A workflow's YAML becomes a value: every mistake with its line. Knows nothing of where files lie.

A step is a table with one of `agent`, `checks`, `chain`, `parallel` or `branch`; its other keys say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from retinue.definitions import nodes, values
from retinue.definitions.fields import NAME, agent_name
from retinue.definitions.nodes import ListNode, NodeEntry, ScalarNode, TableNode
from retinue.definitions.problem import MalformedDefinition, Mistakes, did_you_mean, each
from retinue.definitions.yaml_tree import read_yaml

CHECKS = ("types", "lint", "tests", "security")
TYPES = ("string", "number", "integer", "boolean")
MOST_STEPS = 2_000
MOST_PARTS = 20 * MOST_STEPS
DAY_S = 86_400
LONGEST_TEXT = 200_000

KINDS = ("agent", "checks", "chain", "parallel", "branch")
BUDGET: Mapping[str, values.Read[Any]] = {
    "tokens": values.whole(1),
    "steps": values.whole(1),
    "cost_usd": values.dollars,
    "wall_ms": values.whole(1),
    "runs": values.whole(1),
}


def read_workflow(text: str, name: str, source: str) -> Workflow:
    """The workflow in the text; `MalformedDefinition` says all that is wrong, each in its line."""
    readers: dict[str, values.Read[Any]] = {
        "name": agent_name,
        "description": values.text,
        "budget": _budget,
        "steps": _steps,
    }
    given = _read(_top(text), readers, "a workflow", "steps")
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
    readers: dict[str, values.Read[Any]] = {
        "name": agent_name,
        "description": values.text,
        "agents": _members,
    }
    given = _read(_top(text), readers, "a team", "agents")
    steps = [Step(id=agent, agent=agent, plain=True) for agent in given["agents"]]
    return Workflow(
        name=given.get("name", name),
        description=given.get("description", ""),
        body=Chain(id="agents", steps=_with_ids(steps)),
        source=source,
        kind="team",
        text=text,
    )


def _read(
    table: TableNode, readers: Mapping[str, values.Read[Any]], what: str, needed: str
) -> dict[str, Any]:
    """A table with these keys alone, one of which must be there; all that is wrong with it."""
    mistakes = Mistakes()
    if needed not in table.entries:
        mistakes.note(table.line, f"{what} needs `{needed}`")
    given = mistakes.read(lambda node: values.record(node, readers, what), table)
    mistakes.tell()
    return given or {}


def _top(text: str) -> TableNode:
    if len(text) > LONGEST_TEXT:
        raise MalformedDefinition(1, f"more than {LONGEST_TEXT} characters", "shorten it")
    tree = read_yaml(text, 1, MOST_PARTS)
    if not isinstance(tree, TableNode):
        raise MalformedDefinition(1, "a table of `key: value` is wanted here")
    return tree


def _budget(node: nodes.Node) -> Budget:
    given = values.record(node, BUDGET)
    return Budget(
        tokens=given.get("tokens"),
        steps=given.get("steps"),
        cost_micros=given.get("cost_usd"),
        wall_ms=given.get("wall_ms"),
        spawns=given.get("runs"),
    )


def _members(node: nodes.Node) -> tuple[str, ...]:
    found = values.words(node)
    if not found:
        raise MalformedDefinition(node.line, "a team needs an agent at least")
    return found


def _chain(node: nodes.Node, name: str) -> Chain:
    items = _items(node)
    mistakes = Mistakes()
    found = [mistakes.read(_node, item) for item in items]
    for at, (step, item) in enumerate(zip(found, items, strict=True)):
        before = found[at - 1] if at else None
        if isinstance(step, Branch) and (before is not None or not at):
            mistakes.read(lambda line, step=step, before=before: _agree(step, before, line), item.line)
    mistakes.tell()
    return Chain(id=name, steps=_with_ids([step for step in found if step is not None]))


def _items(node: nodes.Node) -> tuple[nodes.Node, ...]:
    if not isinstance(node, ListNode) or not node.items:
        raise MalformedDefinition(node.line, "a list of steps is wanted here, one at least")
    return node.items


def _node(node: nodes.Node) -> WorkflowNode:
    if isinstance(node, ListNode):
        return _nested(node)
    table = values.table(node)
    kind = next((kind for kind in KINDS if kind in table.entries), None)
    if kind is None:
        raise MalformedDefinition(table.line, f"a step needs one of: {', '.join(KINDS)}")
    needed = "cases" if kind == "branch" else kind
    given = _read(table, READERS[kind], f"a step with `{kind}`", needed)
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
            return _step(given)


def _step(given: Mapping[str, Any]) -> Step:
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


def _beside(node: nodes.Node) -> tuple[WorkflowNode, ...]:
    """The steps of a `parallel`."""
    items = _items(node)
    if len(items) > MOST_STEPS:
        raise MalformedDefinition(node.line, f"more than {MOST_STEPS} steps")

    def read(item: nodes.Node) -> WorkflowNode:
        step = _node(item)
        if isinstance(step, Branch):
            raise MalformedDefinition(
                item.line, "a branch has no step before it here", "put both into a `chain`"
            )
        return step

    return _with_ids(each(read, items))


def _cases(node: nodes.Node) -> dict[str, Chain]:
    def read(item: tuple[str, NodeEntry]) -> tuple[str, Chain]:
        case, entry = item
        return case, _chain(entry.value, case)

    return dict(each(read, values.table(node).entries.items()))


def _agree(branch: Branch, before: WorkflowNode | None, line: int) -> None:
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
    mistakes = Mistakes()
    for case in branch.cases:
        if case not in possible:
            mistakes.note(line, f"{branch.on} is never {case!r}", did_you_mean(case, possible))
    missing = [value for value in possible if value not in branch.cases]
    if missing and branch.otherwise is None:
        mistakes.note(line, f"there is no case for {', '.join(missing)}", "add it, or `otherwise`")
    mistakes.tell()


def _finding(node: nodes.Node) -> dict[str, FieldType]:
    def read(item: tuple[str, NodeEntry]) -> tuple[str, FieldType]:
        name, entry = item
        return name, _type(entry.value)

    return dict(each(read, values.table(node).entries.items()))


def _type(node: nodes.Node) -> FieldType:
    if isinstance(node, ListNode):
        return values.words(node)
    return values.one_of(*TYPES)(node)


def _checks(node: nodes.Node) -> tuple[str, ...]:
    if isinstance(node, ScalarNode) and node.text == "all":
        return CHECKS
    found, mistakes = values.words(node), Mistakes()
    for check in found:
        if check not in CHECKS:
            known = did_you_mean(check, CHECKS) or f"known are: {', '.join(CHECKS)}"
            mistakes.note(node.line, f"{check!r} is no check", known)
    if not found:
        mistakes.note(node.line, "name a check, or `all`")
    mistakes.tell()
    return found


def _phase(node: nodes.Node) -> Phase:
    return Phase(values.one_of(*Phase)(node))


def _otherwise(node: nodes.Node) -> Chain:
    return _chain(node, "otherwise")


def _steps(node: nodes.Node) -> Chain:
    return _chain(node, "steps")


def _nested(node: nodes.Node) -> Chain:
    return _chain(node, "chain")


def _id(node: nodes.Node) -> str:
    given = values.text(node)
    if not NAME.fullmatch(given):
        raise MalformedDefinition(
            node.line, f"{given[:80]!r} cannot be an id", "letters, digits, `-` and `_`"
        )
    return given


def _with_ids(found: list[WorkflowNode] | list[Step]) -> tuple[WorkflowNode, ...]:
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


STEP: Mapping[str, values.Read[Any]] = {
    "id": _id,
    "agent": agent_name,
    "phase": _phase,
    "instructions": values.text,
    "constraints": values.words,
    "finding": _finding,
    "checks": _checks,
    "timeout_s": values.whole(1, DAY_S),
    "idempotent": values.flag,
}
READERS: Mapping[str, Mapping[str, values.Read[Any]]] = {
    "agent": STEP,
    "checks": STEP,
    "chain": {"id": _id, "chain": _nested},
    "parallel": {
        "id": _id,
        "parallel": _beside,
        "rule": values.one_of("all", "any", "majority"),
        "at_once": values.whole(1, MOST_STEPS),
    },
    "branch": {"id": _id, "branch": values.text, "cases": _cases, "otherwise": _otherwise},
}
"""What each kind of step may say, and how it is read."""
