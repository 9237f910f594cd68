"""Templates, profiles and the protocol of `.claude/sub-agents`, and profiles of projects (P6, P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Agent
from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources, PickedExecutor, read_protocol
from retinue.definitions.sub_agent_files import template_with_header

RESEARCHER = """\
# Sub-Agent: Researcher

## Role

Find existing implementations, identify conflicts, gather context.

## Profile

research (Read, Grep, Glob, WebFetch, WebSearch, mcp**cclsp**_, mcp**context7**_)

## Behavior

1. Search for existing code matching the task
"""
VALIDATOR = """\
# Sub-Agent: Validator

## Role

Verify implementation quality through automated checks.

## Profile

read-only + Bash (Read, Grep, Glob, Bash, mcp**cclsp**\\*)
"""
READ_ONLY = """\
#### read-only Profile

```yaml
name: read-only
description: Read and search only, no modifications
tools:
  - Read
  - mcp__cclsp__find_definition
use_cases:
  - Code review
```
"""


def write(project: Path, path: str, text: str) -> None:
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def catalog(project: Path, *, trusted: bool) -> AgentCatalog:
    def pick(writes: bool) -> PickedExecutor:
        return PickedExecutor("claude" if writes else "local", "it is there")

    return AgentCatalog(AgentSources(projects=(project,), is_trusted=lambda _: trusted, pick_executor=pick))


def agent(definition: AgentDefinition) -> Agent:
    assert definition.agent is not None, definition.problems
    return definition.agent


def test_templates_become_agents_on_the_executor_that_the_user_has(tmp_path: Path) -> None:
    write(tmp_path, ".claude/sub-agents/templates/scout.md", RESEARCHER)
    write(tmp_path, ".claude/sub-agents/templates/judge.md", VALIDATOR)
    found = catalog(tmp_path, trusted=True).agents()
    scout, judge = agent(found["scout"]), agent(found["judge"])
    assert scout.description == "Find existing implementations, identify conflicts, gather context."
    assert (scout.executor, scout.isolation) == ("local", "none")
    assert set(scout.tools or ()) == {"Read", "Grep", "Glob", "WebFetch", "WebSearch"}
    assert scout.prompt.startswith("# Sub-Agent: Researcher")
    assert (judge.executor, judge.isolation, judge.tools) == (
        "claude",
        "worktree",
        ("Read", "Grep", "Glob", "Bash"),
    )
    assert found["judge"].origins["executor"] == "it is there"


def test_template_with_a_header_is_read_like_any_agent(tmp_path: Path) -> None:
    write(tmp_path, ".claude/sub-agents/templates/a.md", "---\ndescription: d\ntools: Read\n---\nDo it.")
    assert agent(catalog(tmp_path, trusted=True).agents()["a"]).tools == ("Read",)


def test_template_without_a_role_is_reported(tmp_path: Path) -> None:
    write(tmp_path, ".claude/sub-agents/templates/a.md", "# Just a text\n")
    found = catalog(tmp_path, trusted=True).agents()["a"]
    assert "## Role" in str(found.error)


def test_trusted_project_replaces_a_built_in_agent_and_an_untrusted_one_does_not_P7(tmp_path: Path) -> None:
    write(tmp_path, ".claude/sub-agents/templates/researcher.md", RESEARCHER)
    assert catalog(tmp_path, trusted=True).agents()["researcher"].scope == "project"
    assert catalog(tmp_path, trusted=False).agents()["researcher"].scope == "built in"


PROFILE_FOLDERS = (".retinue/profiles", ".claude/sub-agents/profiles")
USER = "---\ndescription: d\nprofile: mine\n---\nDo it."


@pytest.mark.parametrize("folder", PROFILE_FOLDERS)
def test_project_defines_profiles_for_its_agents(tmp_path: Path, folder: str) -> None:
    write(tmp_path, f"{folder}/mine.md", "---\ntools: [Read, Write, Bash]\n---\n")
    write(tmp_path, ".retinue/agents/a.md", USER)
    found = catalog(tmp_path, trusted=True).agents()["a"]
    assert agent(found).tools == ("Read", "Write", "Bash")
    assert found.origins["tools"] == f"profile mine ({folder}/mine.md)"


@pytest.mark.parametrize("folder", PROFILE_FOLDERS)
def test_profile_of_an_untrusted_project_keeps_only_tools_that_read_P7(tmp_path: Path, folder: str) -> None:
    write(tmp_path, f"{folder}/mine.md", "---\ntools: [Read, Write, Bash, All tools]\n---\n")
    write(tmp_path, ".retinue/agents/a.md", USER)
    found = agent(catalog(tmp_path, trusted=False).agents()["a"])
    assert (found.tools, found.untrusted_tools) == (("Read",), ("Write", "Bash", "*"))
    assert agent(catalog(tmp_path, trusted=True).agents()["a"]).untrusted_tools == ()


def test_tools_that_a_project_lacks_until_it_is_trusted_are_named(tmp_path: Path) -> None:
    write(tmp_path, ".retinue/profiles/mine.md", "---\ntools: [Read, Write]\n---\n")
    header = "description: d\nprofile: mine\ntools: [Read, Write, Bash]"
    write(tmp_path, ".retinue/agents/a.md", f"---\n{header}\n---\nDo it.")
    found = catalog(tmp_path, trusted=False).agents()["a"]
    assert agent(found).untrusted_tools == ("Write",)
    told = [each.message for each in found.problems]
    assert "Write is left out until you trust the project: `retinue agents trust DIR`" in told
    assert "Bash is not in the profile mine, so it is left out" in told


def test_untrusted_project_does_not_replace_a_profile_P7(tmp_path: Path) -> None:
    write(tmp_path, ".retinue/profiles/read-only.md", "---\ntools: ['*']\n---\n")
    write(tmp_path, ".retinue/agents/a.md", "---\ndescription: d\nprofile: read-only\n---\nDo it.")
    known = catalog(tmp_path, trusted=False)
    assert "Read" in (agent(known.agents()["a"]).tools or ())
    assert "cannot replace the profile read-only" in str(known.profile_problems[0][1])
    assert agent(catalog(tmp_path, trusted=True).agents()["a"]).tools is None


def test_profile_of_a_project_does_not_count_for_other_agents_P7(tmp_path: Path) -> None:
    """A built-in agent keeps the profile that it was made for, even in a trusted project."""
    write(tmp_path, ".retinue/profiles/research.md", "---\ntools: ['*']\n---\n")
    assert "Read" in (agent(catalog(tmp_path, trusted=True).agents()["researcher"]).tools or ())


def test_profile_in_a_fenced_block_is_read(tmp_path: Path) -> None:
    write(tmp_path, ".claude/sub-agents/profiles/read-only.md", READ_ONLY)
    write(tmp_path, ".retinue/agents/a.md", "---\ndescription: d\nprofile: read-only\n---\nDo it.")
    found = catalog(tmp_path, trusted=True).agents()["a"]
    assert agent(found).tools == ("Read",)  # it has no server `cclsp`


def test_broken_profile_is_reported_and_does_not_fall_back(tmp_path: Path) -> None:
    write(tmp_path, ".retinue/profiles/read-only.md", "---\ntool: [Read]\n---\n")
    write(tmp_path, ".retinue/agents/a.md", "---\ndescription: d\nprofile: read-only\n---\nDo it.")
    known = catalog(tmp_path, trusted=True)
    assert "there is no profile 'read-only'" in str(known.agents()["a"].error)
    assert "did you mean tools?" in str(known.profile_problems[0][1])


def test_profile_is_not_read_through_a_link_out_of_the_project_P6(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path, "mine.md", "---\ntools: [Read]\n---\n")
    (project / ".retinue/profiles").mkdir(parents=True)
    (project / ".retinue/profiles/mine.md").symlink_to(tmp_path / "mine.md")
    known = catalog(project, trusted=True)
    known.agents()
    assert "outside its project" in str(known.profile_problems[0][1])


def test_protocol_is_read_in_one_paragraph_and_bounded(tmp_path: Path) -> None:
    assert read_protocol(tmp_path) == ""
    write(tmp_path, ".claude/sub-agents/protocols/handoff.md", "# Handoff\n\nName places.\n" + "x " * 5_000)
    assert read_protocol(tmp_path).startswith("# Handoff Name places. x")
    assert len(read_protocol(tmp_path)) <= 1_210


def test_bytes_that_are_no_text_do_not_break_a_template() -> None:
    assert template_with_header(b"## Role\n\n\xff\xfe text\n").startswith(b"---\ndescription:")
