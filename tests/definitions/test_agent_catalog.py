"""Definitions from all folders are merged by precedence; a broken file does not affect others (P6, P8)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from retinue.core import Agent
from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources, definition_files
from retinue.definitions.definition_files import MAX_FILES_PER_FOLDER

ALL_PLACES = (
    ".retinue/agents/{}.md",
    "agents/{}/agent.md",
    ".claude/agents/{}.md",
    ".opencode/agents/{}.md",
    ".opencode/agent/{}.md",
    ".smallcode/agents/{}.md",
)


def write(folder: Path, path: str, header: str = "description: d", body: str = "") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{header}\n---\n{body}\n")
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def catalog(
    project: Path, home: Path, *, trusted: bool = False, configured: tuple[AgentDefinition, ...] = ()
) -> AgentCatalog:
    return AgentCatalog(
        AgentSources(
            projects=(project,),
            config=home / ".config" / "retinue",
            home=home,
            configured=configured,
            is_trusted=lambda _: trusted,
            reserved=frozenset({"main", "jarvis"}),
        )
    )


def command(name: str) -> AgentDefinition:
    agent = Agent(name=name, description="", executor="command", command=("x",), source="settings")
    return AgentDefinition(name=name, scope="settings", source="settings", agent=agent)


def test_agents_in_every_folder_are_found(project: Path, home: Path) -> None:
    for number, place in enumerate(ALL_PLACES):
        write(project, place.format(f"p{number}"))
    own = (".config/retinue/agents", ".claude/agents", ".config/opencode/agent", ".smallcode/agents")
    for number, place in enumerate(own):
        write(home, f"{place}/u{number}.md")
    found = catalog(project, home).agents()
    assert {f"p{number}" for number in range(6)} | {f"u{number}" for number in range(4)} <= set(found)
    assert found["p1"].source == "agents/p1/agent.md"
    assert found["p1"].agent is not None and found["p1"].agent.executor == "claude"
    assert found["u0"].source == "~/.config/retinue/agents/u0.md"
    assert (found["u0"].trusted, found["p0"].trusted) == (True, False)


def test_main_drafts_and_readme_files_are_not_agents(project: Path, home: Path) -> None:
    for path in ("agents/main/agent.md", "agents/drafts/agent.md", ".retinue/agents/drafts/x.md"):
        write(project, path)
    write(project, ".retinue/agents/.#open-in-an-editor.md")
    for path in (".claude/agents/README.md", ".claude/agents/main.md", ".claude/agents/notes.txt"):
        write(project, path)
    (project / "agents" / "no-agent").mkdir()
    found = catalog(project, home).agents()
    assert {each.scope for each in found.values()} == {"built in"}


def test_definition_with_precedence_lists_what_it_overrides(project: Path, home: Path) -> None:
    write(project, ".retinue/agents/reviewer.md")
    write(project, ".claude/agents/reviewer.md")
    write(home, ".config/retinue/agents/reviewer.md")
    trusted = catalog(project, home, trusted=True, configured=(command("reviewer"),)).agents()["reviewer"]
    assert trusted.source == ".retinue/agents/reviewer.md"
    assert trusted.shadows == (
        ".claude/agents/reviewer.md",
        "settings",
        "~/.config/retinue/agents/reviewer.md",
    )


def test_untrusted_project_cannot_override_the_users_agents(project: Path, home: Path) -> None:
    write(project, ".retinue/agents/reviewer.md", "description: evil")
    write(project, ".retinue/agents/locator.md", "description: the project's own")
    assert catalog(project, home, configured=(command("reviewer"),)).agents()["reviewer"].scope == "settings"
    write(home, ".claude/agents/reviewer.md")
    assert catalog(project, home).agents()["reviewer"].scope == "user"
    assert catalog(project, home).agents()["locator"].scope == "built in"
    trusted = catalog(project, home, trusted=True).agents()["locator"]
    assert (trusted.scope, trusted.replaces_builtin) == ("project", True)


def test_broken_file_is_listed_with_its_error_and_keeps_its_name(project: Path, home: Path) -> None:
    """Silently running the built-in agent instead would be a surprise."""
    (project / ".retinue" / "agents").mkdir(parents=True)
    (project / ".retinue" / "agents" / "locator.md").write_bytes(b"---\nname: \xff\n---\n")
    write(project, ".retinue/agents/fine.md")
    found = catalog(project, home, trusted=True).agents()
    broken = found["locator"]
    assert broken.agent is None
    assert broken.error is not None and broken.error.line == 2
    assert broken.shadows == ("built in/locator.md",)
    assert found["fine"].agent is not None


def test_changed_files_are_read_again_and_others_are_not(project: Path, home: Path) -> None:
    file = write(project, ".retinue/agents/a.md", "description: one")
    known = catalog(project, home)
    first = known.agents()["a"]
    assert known.agents()["a"].agent is first.agent
    write(project, ".retinue/agents/a.md", "description: two longer")
    assert (agent := known.agents()["a"].agent) is not None and agent.description == "two longer"
    write(project, ".retinue/agents/b.md")
    assert "b" in known.agents()
    file.unlink()
    assert "a" not in known.agents()


def test_agent_cannot_have_the_name_of_a_caller(project: Path, home: Path) -> None:
    """`allowed_callers` could not distinguish it from the host."""
    write(project, ".retinue/agents/jarvis.md")
    found = catalog(project, home, configured=(command("main"),)).agents()
    assert found["jarvis"].agent is None
    assert found["main"].agent is None
    assert "is reserved for the host" in str(found["main"].error)


def test_files_in_home_stay_the_users_own_if_home_is_a_project(home: Path) -> None:
    write(home, ".claude/agents/mine.md")
    found = catalog(home, home).agents()["mine"]
    assert (found.scope, found.trusted, found.shadows) == ("user", True, ())


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
def test_files_outside_a_project_are_not_read(project: Path, home: Path) -> None:
    """P6: neither through a link to a file nor to a folder; a pipe does not block."""
    secret = write(home, "secret.md", "description: a secret")
    (project / ".retinue" / "agents").mkdir(parents=True)
    (project / ".retinue" / "agents" / "link.md").symlink_to(secret)
    (project / ".retinue" / "agents" / "loop.md").symlink_to("loop.md")
    os.mkfifo(project / ".retinue" / "agents" / "pipe.md")
    (project / ".retinue" / "agents" / "folder.md").mkdir()
    (project / ".claude").mkdir()
    outside = write(home, "agents/out.md").parent
    (project / ".claude" / "agents").symlink_to(outside)
    write(project, "real/inside.md")
    (project / ".retinue" / "agents" / "inside.md").symlink_to(project / "real" / "inside.md")
    found = catalog(project, home).agents()
    assert {name for name in ("link", "loop", "pipe", "folder", "out") if found[name].agent is None} == {
        *("link", "loop", "pipe", "folder", "out")
    }
    assert "is outside its project" in str(found["link"].error)
    assert "a secret" not in repr(found["link"])
    assert found["inside"].agent is not None


def test_users_own_files_may_be_links(project: Path, home: Path, tmp_path: Path) -> None:
    target = write(tmp_path, "dotfiles/mine.md")
    folder = home / ".config" / "retinue" / "agents"
    folder.mkdir(parents=True)
    (folder / "mine.md").symlink_to(target)
    assert catalog(project, home).agents()["mine"].agent is not None


def test_files_beyond_the_limit_of_a_folder_are_ignored(project: Path, home: Path) -> None:
    for number in range(MAX_FILES_PER_FOLDER + 2):
        write(project, f".retinue/agents/a{number}.md")
    found = catalog(project, home).agents().values()
    assert sum(each.scope == "project" for each in found) == MAX_FILES_PER_FOLDER


def test_user_profiles_replace_built_in_ones(project: Path, home: Path) -> None:
    write(project, ".retinue/agents/a.md", "description: d\nprofile: read-only")
    known = catalog(project, home)
    before = known.agents()["a"].agent
    assert before is not None and "Read" in (before.tools or ())
    write(home, ".config/retinue/profiles/read-only.md", "description: less\ntools: [Glob]")
    after = known.agents()["a"]
    assert after.agent is not None and after.agent.tools == ("Glob",)
    assert after.origins["tools"] == "profile read-only (profiles/read-only.md)"
    write(home, ".config/retinue/profiles/read-only.md", "description: broken\ntool: [Glob]")
    assert known.agents()["a"].agent is None
    assert "did you mean tools?" in str(known.profile_problems[0][1])


def test_working_folders_go_up_to_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    assert definition_files.working_folders(inner, tmp_path / "home") == (inner,)
    (tmp_path / "repo" / ".git").mkdir()
    assert definition_files.working_folders(inner, tmp_path / "home") == (
        inner,
        inner.parent,
        tmp_path / "repo",
    )
    assert definition_files.working_folders(inner, tmp_path / "repo") == (inner,)
