"""YAML files of workflows and teams are read, and problems are reported with their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from retinue.core import Branch, Chain, Parallel, Phase, Step, steps_of
from retinue.definitions import (
    CHECKS,
    AgentSources,
    MalformedDefinition,
    WorkflowCatalog,
    read_team,
    read_workflow,
)
from retinue.definitions.definition_files import BUILTIN
from scripts.make_docs import DOCS


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "a table"),
        ("- a", 1, "a table"),
        ("name: x", 1, "needs `steps`"),
        ("steps: []", 1, "expected a list with at least one step"),
        ("steps:\n  - agent: a\n    fase: write", 3, "no key 'fase'"),
        ("steps:\n  - agent: a\n    phase: writing", 3, "'writing' is not one of"),
        ("steps:\n  - agent: a b", 2, "is not a valid name"),
        ("steps:\n  - id: x", 2, "a step needs one of"),
        ("steps:\n  - just text", 2, "a table"),
        ("steps:\n  - agent: a\n  - branch: way\n    cases: {x: [{agent: a}]}", 3, "has no finding 'way'"),
        ("steps:\n  - branch: way\n    cases: {x: [{agent: a}]}", 2, "has no finding 'way'"),
        (
            "steps:\n  - {agent: a, finding: {way: [l, r]}}\n  - branch: way\n    cases: {l: [{agent: a}]}",
            3,
            "no case for r",
        ),
        (
            "steps:\n  - {agent: a, finding: {way: [l]}}\n  - branch: way\n    cases: {left: [{agent: a}]}",
            3,
            "way is never 'left'",
        ),
        (
            "steps:\n  - {agent: a, finding: {n: integer}}\n  - branch: n\n    cases: {'1': [{agent: a}]}",
            3,
            "may be any integer",
        ),
        ("steps:\n  - parallel:\n    - branch: x\n      cases: {a: [{agent: a}]}", 3, "no step before it"),
        ("steps:\n  - parallel: [{agent: a}]\n    rule: most", 3, "'most' is not one of"),
        ("steps:\n  - parallel: [{agent: a}]\n    at_once: 0", 3, "a whole number"),
        ("steps:\n  - checks: [tipes]", 2, "'tipes' is not a check"),
        ("steps:\n  - agent: a\n    timeout_s: soon", 3, "a whole number"),
        ("steps: [{agent: a}]\nbudget: {tokens: none}", 2, "a whole number"),
        ("steps: [{agent: a}]\nbuget: {}", 2, "no key 'buget'"),
        ("name: x\nsteps: [}", 2, "not valid YAML"),
    ],
)
def test_problem_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(MalformedDefinition) as caught:
        read_workflow(text, "x", "x.yaml")
    assert (caught.value.problem.line, message in caught.value.problem.message) == (line, True), str(
        caught.value.problem
    )


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    text = """
nmae: x
budget: {tokens: none, runs: 0}
steps:
  - agent: a
    fase: write
    timeout_s: soon
  - parallel:
      - {agent: a b}
      - {checks: [tipes, lynt]}
    rule: most
  - {agent: a, finding: {way: [l, r], n: numbr}}
  - branch: way
    cases: {l: [{agent: a, idempotent: maybe}]}
  - {agent: a, finding: {way: [l, r]}}
  - branch: way
    cases: {left: [{agent: a}]}
"""
    with pytest.raises(MalformedDefinition) as caught:
        read_workflow(text, "x", "x.yaml")
    lines = [problem.line for problem in caught.value.problems]
    assert lines == [2, 3, 3, 6, 7, 9, 10, 10, 11, 12, 14, 16, 16], caught.value.problems
    with pytest.raises(MalformedDefinition) as caught:
        read_team("nmae: x\ndescription: []", "x", "x.yaml")
    assert [problem.line for problem in caught.value.problems] == [1, 1, 2]


def test_patterns_nest_and_sibling_steps_have_unique_ids() -> None:
    text = """
name: nested
budget: {tokens: 5000, runs: 7, cost_usd: 0.5}
steps:
  - agent: a
    finding: {deep: boolean, n: number}
  - {agent: a, phase: write, instructions: do it, constraints: [x, y], timeout_s: 9}
  - parallel: [[{agent: a}, {agent: a}], {checks: all}]
    rule: majority
    at_once: 3
  - {agent: b, finding: {way: [l, r]}}
  - branch: way
    cases: {l: [{agent: a}]}
    otherwise: [{chain: [{agent: c}]}]
"""
    workflow = read_workflow(text, "file", "x")
    assert workflow.name == "nested"
    assert (workflow.budget.tokens, workflow.budget.spawns, workflow.budget.cost_micros) == (5000, 7, 500_000)
    first, write, wide, _, branch = workflow.body.steps
    assert isinstance(first, Step) and isinstance(write, Step)
    assert (first.id, write.id) == ("a", "a-2")
    assert (first.idempotent, write.idempotent) == (True, False)
    assert (write.phase, write.constraints, write.timeout_s) == (Phase.WRITE, ("x", "y"), 9)
    assert isinstance(wide, Parallel) and (wide.rule, wide.at_once) == ("majority", 3)
    chain, checks = wide.steps
    assert isinstance(chain, Chain) and [step.id for step in chain.steps] == ["a", "a-2"]
    assert isinstance(checks, Step) and (checks.checks, checks.phase) == (CHECKS, Phase.VALIDATE)
    assert isinstance(branch, Branch) and branch.otherwise is not None
    assert workflow.agents() == {"a", "b", "c"}


def test_generated_ids_do_not_collide_with_given_ones() -> None:
    text = "steps: [{agent: a}, {agent: b, id: a-2}, {agent: a}, {agent: a}]"
    ids = [node.id for node in read_workflow(text, "x", "x").body.steps]
    assert len(set(ids)) == 4
    assert ids[:2] == ["a", "a-2"]


@given(st.text(alphabet="abc:-[]{}'\"\n #*&|>!%@,?0", max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    for read in (read_workflow, read_team):
        try:
            read(text, "x", "x")
        except MalformedDefinition as error:
            assert error.problem.line >= 1


def test_built_in_workflows_are_complete() -> None:
    found = WorkflowCatalog(AgentSources()).by_name("workflow")
    assert set(found) == {"research-write-validate", "review-in-parallel", "simple-or-complex"}
    for each in found.values():
        assert each.problem is None, each.problem
        assert each.workflow is not None and each.workflow.description
        shipped = {file.stem for file in BUILTIN.glob("*.md")}
        assert each.workflow.agents() <= shipped
        assert all(step.agent or step.checks for step in steps_of(each.workflow.body))


def test_smallcode_team_is_read() -> None:
    """SmallCode's format: name, description, agents."""
    text = "name: build\ndescription: Recon — plan, verify.\nagents: [scout, planner, scout]\n"
    team = read_team(text, "file", "x")
    assert (team.name, team.kind) == ("build", "team")
    steps = list(steps_of(team.body))
    assert [step.agent for step in steps] == ["scout", "planner", "scout"]
    assert len({step.id for step in steps}) == 3
    assert all(step.plain and not step.idempotent for step in steps)


@pytest.mark.parametrize(
    ("text", "message"), [("name: x", "needs `agents`"), ("agents: []", "at least one agent")]
)
def test_team_without_agents_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedDefinition, match=message):
        read_team(text, "x", "x")


@pytest.mark.parametrize(
    "text", re.findall(r"```yaml\n(.*?)```", (DOCS / "workflows.md").read_text(), re.DOTALL)
)
def test_examples_in_the_docs_are_valid(text: str) -> None:
    assert (read_team if "agents:" in text else read_workflow)(text, "x", "x").name in (
        "best-of-two",
        "careful",
        "review",
    )


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_untrusted_project_cannot_override_the_users_teams(tmp_path: Path) -> None:
    project, config, home = tmp_path / "p", tmp_path / "c", tmp_path / "h"
    write(project / ".smallcode/teams/t.yaml", "agents: [of-project]")
    write(project / ".retinue/teams/drafts/quarantined.yaml", "agents: [draft]")
    write(config / "teams/t.yml", "agents: [of-user]")
    write(config / "workflows/simple-or-complex.yaml", "steps: [{agent: mine}]")
    write(config / "workflows/broken.yaml", "steps: []")

    def catalog(trusted: bool) -> WorkflowCatalog:
        return WorkflowCatalog(
            AgentSources(projects=(project,), config=config, home=home, is_trusted=lambda _: trusted)
        )

    for trusted, winner in ((False, "of-user"), (True, "of-project")):
        team = catalog(trusted).by_name("team")["t"].workflow
        assert team is not None and team.agents() == {winner}
    assert "quarantined" not in catalog(True).by_name("team")
    mine = catalog(False).by_name("workflow")["simple-or-complex"].workflow
    assert mine is not None and mine.agents() == {"mine"}
    broken = catalog(False).by_name("workflow")["broken"]
    assert broken.workflow is None and broken.problem is not None


def test_link_out_of_a_project_is_not_followed(tmp_path: Path) -> None:
    """P6"""
    outside = tmp_path / "secret.yaml"
    outside.write_text("agents: [a]")
    project = tmp_path / "p"
    (project / ".retinue/teams").mkdir(parents=True)
    (project / ".retinue/teams/t.yaml").symlink_to(outside)
    found = WorkflowCatalog(AgentSources(projects=(project,), is_trusted=lambda _: True)).by_name("team")["t"]
    assert found.workflow is None
    assert found.problem is not None and "outside" in found.problem.message
