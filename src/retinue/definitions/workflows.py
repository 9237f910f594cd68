"""A workflow's YAML becomes a value: every mistake with its line. Knows nothing of where files lie.

A step is a table with one of `agent`, `checks`, `chain`, `parallel` or `branch`; its other keys say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retinue.core.budget import Budget
from retinue.core.phase import Phase
from retinue.core.workflow import AT_ONCE, Branch, Chain, FieldType, Node, Parallel, Step, Workflow
from retinue.definitions import nodes, values
from retinue.definitions.fields import NAME, agent_name
from retinue.definitions.nodes import Listing, Scalar, Table
from retinue.definitions.problem import Malformed, did_you_mean
from retinue.definitions.yaml_tree import read_yaml

CHECKS = ("types", "lint", "tests", "security")
TYPES = ("string", "number", "integer", "boolean")
MOST_STEPS = 2_000
MOST_PARTS = 20 * MOST_STEPS
DAY_S = 86_400
LONGEST_TEXT = 200_000

KINDS = ("agent", "checks", "chain", "parallel", "branch")
STEP_KEYS = (
    *("id", "agent", "phase", "instructions", "constraints", "finding", "checks"),
    *("timeout_s", "idempotent"),
)
KEYS = {
    "agent": STEP_KEYS,
    "checks": STEP_KEYS,
    "chain": ("id", "chain"),
    "parallel": ("id", "parallel", "rule", "at_once"),
    "branch": ("id", "branch", "cases", "otherwise"),
}
BUDGET: Mapping[str, values.Read[Any]] = {
    "tokens": values.whole(1),
    "steps": values.whole(1),
    "cost_usd": values.dollars,
    "wall_ms": values.whole(1),
    "runs": values.whole(1),
}


def read_workflow(text: str, name: str, source: str) -> Workflow:
    """The workflow in the text; `Malformed` says what is wrong and in which line."""
    top = _top(text)
    known = ("name", "description", "budget", "steps")
    _refuse_unknown(top, known, "a workflow")
    given = {key: entry.value for key, entry in top.entries.items()}
    if "steps" not in given:
        raise Malformed(top.line, "a workflow needs `steps`")
    return Workflow(
        name=agent_name(given["name"]) if "name" in given else name,
        description=values.text(given["description"]) if "description" in given else "",
        body=_chain(given["steps"], "steps"),
        source=source,
        kind="workflow",
        text=text,
        budget=_budget(given["budget"]) if "budget" in given else Budget(),
    )


def read_team(text: str, name: str, source: str) -> Workflow:
    """A team: agents in order, each with the answer of the one before as its task."""
    top = _top(text)
    given = {key: entry.value for key, entry in top.entries.items()}
    _refuse_unknown(top, ("name", "description", "agents"), "a team")
    if "agents" not in given:
        raise Malformed(top.line, "a team needs `agents`, a list of names")
    agents = values.words(given["agents"])
    if not agents:
        raise Malformed(given["agents"].line, "a team needs an agent at least")
    steps = [Step(id=agent, agent=agent, plain=True) for agent in agents]
    return Workflow(
        name=agent_name(given["name"]) if "name" in given else name,
        description=values.text(given["description"]) if "description" in given else "",
        body=Chain(id="agents", steps=_with_ids(steps)),
        source=source,
        kind="team",
        text=text,
    )


def _top(text: str) -> Table:
    if len(text) > LONGEST_TEXT:
        raise Malformed(1, f"more than {LONGEST_TEXT} characters", "shorten it")
    tree = read_yaml(text, 1, MOST_PARTS)
    if not isinstance(tree, Table):
        raise Malformed(1, "a table of `key: value` is wanted here")
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


def _chain(node: nodes.Node, name: str) -> Chain:
    if not isinstance(node, Listing) or not node.items:
        raise Malformed(node.line, "a list of steps is wanted here, one at least")
    found: list[Node] = []
    for item in node.items:
        step = _node(item)
        if isinstance(step, Branch):
            _agree(step, found[-1] if found else None, item.line)
        found.append(step)
    return Chain(id=name, steps=_with_ids(found))


def _node(node: nodes.Node) -> Node:
    if isinstance(node, Listing):
        return _chain(node, "chain")
    table = values.table(node)
    kinds = [kind for kind in KINDS if kind in table.entries]
    if not kinds:
        raise Malformed(table.line, f"a step needs one of: {', '.join(KINDS)}")
    kind = kinds[0]
    _refuse_unknown(table, KEYS[kind], f"a step with `{kind}`")
    given = {key: entry.value for key, entry in table.entries.items()}
    name = _id(given["id"]) if "id" in given else ""
    match kind:
        case "chain":
            return replace(_chain(given["chain"], "chain"), id=name or "chain")
        case "parallel":
            return _parallel(given, name)
        case "branch":
            return _branch(given, name)
        case _:
            return _step(given, name)


def _step(given: Mapping[str, nodes.Node], name: str) -> Step:
    agent = agent_name(given["agent"]) if "agent" in given else None
    checks = _checks(given["checks"]) if "checks" in given else ()
    validates = "validate" if checks else "research"
    phase = Phase(values.one_of(*Phase)(given["phase"])) if "phase" in given else Phase(validates)
    seconds = values.whole(1, DAY_S)
    return Step(
        id=name or agent or "checks",
        agent=agent,
        phase=phase,
        instructions=values.text(given["instructions"]) if "instructions" in given else "",
        constraints=values.words(given["constraints"]) if "constraints" in given else (),
        finding=_finding(given["finding"]) if "finding" in given else {},
        checks=checks,
        timeout_s=seconds(given["timeout_s"]) if "timeout_s" in given else None,
        # To look at something twice does no harm; to write it twice may.
        idempotent=values.flag(given["idempotent"]) if "idempotent" in given else phase is not Phase.WRITE,
    )


def _parallel(given: Mapping[str, nodes.Node], name: str) -> Parallel:
    node = given["parallel"]
    if not isinstance(node, Listing) or not node.items:
        raise Malformed(node.line, "a list of steps is wanted here, one at least")
    if len(node.items) > MOST_STEPS:
        raise Malformed(node.line, f"more than {MOST_STEPS} steps")
    found = [_node(item) for item in node.items]
    for step, item in zip(found, node.items, strict=True):
        if isinstance(step, Branch):
            raise Malformed(item.line, "a branch has no step before it here", "put both into a `chain`")
    return Parallel(
        id=name or "parallel",
        steps=_with_ids(found),
        rule=values.one_of("all", "any", "majority")(given["rule"]) if "rule" in given else "all",
        at_once=values.whole(1, MOST_STEPS)(given["at_once"]) if "at_once" in given else AT_ONCE,
    )


def _branch(given: Mapping[str, nodes.Node], name: str) -> Branch:
    if "cases" not in given:
        raise Malformed(given["branch"].line, "a branch needs `cases`")
    cases = {case: _chain(entry.value, case) for case, entry in values.table(given["cases"]).entries.items()}
    return Branch(
        id=name or "branch",
        on=values.text(given["branch"]),
        cases=cases,
        otherwise=_chain(given["otherwise"], "otherwise") if "otherwise" in given else None,
    )


def _agree(branch: Branch, before: Node | None, line: int) -> None:
    """A branch may only look at what the step before it must find, and must know what to do with it."""
    if not isinstance(before, Step) or branch.on not in before.finding:
        raise Malformed(
            line,
            f"the step before this branch has no finding {branch.on!r}",
            f"give it `finding: {{{branch.on}: [one, another]}}`",
        )
    kind = before.finding[branch.on]
    possible = ("true", "false") if kind == "boolean" else kind
    if not isinstance(possible, tuple):
        if branch.otherwise is None:
            raise Malformed(line, f"{branch.on} may be any {kind}", "add `otherwise`")
        return
    for case in branch.cases:
        if case not in possible:
            raise Malformed(line, f"{branch.on} is never {case!r}", did_you_mean(case, possible))
    missing = [each for each in possible if each not in branch.cases]
    if missing and branch.otherwise is None:
        raise Malformed(line, f"there is no case for {', '.join(missing)}", "add it, or `otherwise`")


def _finding(node: nodes.Node) -> dict[str, FieldType]:
    return {name: _type(entry.value) for name, entry in values.table(node).entries.items()}


def _type(node: nodes.Node) -> FieldType:
    if isinstance(node, Listing):
        return values.words(node)
    return values.one_of(*TYPES)(node)


def _checks(node: nodes.Node) -> tuple[str, ...]:
    if isinstance(node, Scalar) and node.text == "all":
        return CHECKS
    found = values.words(node)
    for check in found:
        if check not in CHECKS:
            known = did_you_mean(check, CHECKS) or f"known are: {', '.join(CHECKS)}"
            raise Malformed(node.line, f"{check!r} is no check", known)
    if not found:
        raise Malformed(node.line, "name a check, or `all`")
    return found


def _id(node: nodes.Node) -> str:
    given = values.text(node)
    if not NAME.fullmatch(given):
        raise Malformed(node.line, f"{given[:80]!r} cannot be an id", "letters, digits, `-` and `_`")
    return given


def _with_ids(found: list[Node] | list[Step]) -> tuple[Node, ...]:
    """Each with an id that no other step beside it has: it becomes the key of what the step gave."""
    taken: dict[str, int] = {}
    unique: list[Node] = []
    for node in found:
        taken[node.id] = taken.get(node.id, 0) + 1
        name = node.id if taken[node.id] == 1 else f"{node.id}-{taken[node.id]}"
        while name != node.id and name in taken:
            name += "-"
        taken.setdefault(name, 1)
        unique.append(replace(node, id=name))
    return tuple(unique)


def _refuse_unknown(table: Table, known: tuple[str, ...], what: str) -> None:
    for key, entry in table.entries.items():
        if key not in known:
            hint = did_you_mean(key, known) or f"known are: {', '.join(known)}"
            raise Malformed(entry.line, f"{what} has no key {key!r}", hint)
