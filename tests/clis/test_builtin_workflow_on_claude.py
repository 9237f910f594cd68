"""The built-in workflow on the real claude: from a failing project to a patch, without a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retinue.core import Assignment
from tests.clis.conftest import WAIT_S
from tests.clis.replies import Say, Use
from tests.clis.test_every_cli import MakeWorld
from tests.clis.words import CLAUDE
from tests.workflows.test_builtin_workflows import CODE, TASK, TESTS, UNITTEST, git, is_mended

pytestmark = [pytest.mark.anyio, pytest.mark.clis, pytest.mark.timeout(300)]

FOUND = {"decision": "PROCEED", "context_summary": "add() in calc.py:2 subtracts"}
WRITTEN = {"status": "complete", "context_summary": "add() adds", "files_changed": ["calc.py"]}


async def test_failing_project_ends_with_a_patch_that_makes_its_tests_pass_on_claude(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """P7: what the writer's profile grants needs no permission inside its worktree."""
    project = tmp_path / "workspace"
    (project / "calc.py").write_text(CODE)
    (project / "test_calc.py").write_text(TESTS)
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "first")
    script = [
        Use("Read", {"file_path": "calc.py"}),
        Say(json.dumps(FOUND)),
        Use("Read", {"file_path": "calc.py"}),
        Use("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}),
        Use("Write", {"file_path": "notes/done.txt", "content": "add() adds\n"}),
        Say(json.dumps(WRITTEN)),
    ]
    async with make_world(CLAUDE, script) as world:
        flows = world.service.workflows
        flows.confirm_checks({"tests": UNITTEST})
        run = await flows.start("research-write-validate", Assignment(feature=TASK), person=True)
        done = await flows.finish(run.id, WAIT_S)
    assert "questions" not in done, done
    assert (done["status"], done["decision"]) == ("success", "PROCEED"), json.dumps(done)
    assert done["executors"]["writer"] == "claude (claude is installed)"
    assert done["patch"]["files_changed"] == ["calc.py", "notes/done.txt"]
    git(project, *done["patch"]["apply"].split()[1:])
    assert is_mended(project)
