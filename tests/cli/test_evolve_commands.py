"""`retinue evolve`: friction, trials and promotions at a terminal, with a scripted model (P8)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from retinue.core import Prompt
from retinue.learning.draft_audit import AUDIT_FILE
from tests.cli.conftest import run
from tests.conftest import RETINUE
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine
from tests.service.agent_support import write_agent
from tests.service.test_evolution import NAMER, POINT

DRAFT = f"---\nname: british-colours\ndescription: How colours are written here\n---\n1. {POINT}\n"


async def answer(prompt: Prompt) -> ScriptLine:
    has_skill = any(POINT in turn.text for turn in prompt.turns)
    return '{"colour": "red"}' if has_skill else '{"color": "red"}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".retinue/skills/drafts").mkdir(parents=True)
    (folder / ".retinue/skills/drafts/british-colours.md").write_text(DRAFT)
    write_agent(Path.home(), ".config/retinue/agents/namer.md", NAMER)
    return folder


def test_draft_goes_from_friction_over_a_trial_into_use_and_back(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeModelServer(ScriptedModel([answer] * 200), SERVER_BEHAVIOURS["lmstudio"])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve_fake(server)) as url:
        monkeypatch.setenv("RETINUE_MODELS__ENDPOINT", url)
        monkeypatch.chdir(project)
        assert run("agents", "trust", str(project)).exit_code == 0
        for page in range(6):
            task = f"name the main colour of the company logo on page {page}"
            assert run("agent", "namer", task).exit_code == 1
        [friction] = json.loads(run("evolve", "--json").stdout)["friction"]
        assert (friction["kind"], friction["times"], friction["agent"]) == ("repeated task", 6, "namer")
        assert (friction["tokens_estimated"], friction["waited_s"]) == (False, 0)
        shown = run("evolve").stdout
        assert "and 1 more\n" in shown, "of six runs"
        header, row = shown.splitlines()[2:4]
        assert header.split("  ")[-1] == "AGENT" and "TOKENS LOST" in header and "WAITED" in header
        assert row.split()[4:] == [str(friction["tokens_lost"]), "-", "namer"]

        refused = run("evolve", "promote", "british-colours")
        assert refused.exit_code == 1
        assert "was not tried as it is now" in refused.stderr
        assert "Promote" not in refused.stdout + refused.stderr, "nobody is asked in vain"

        tried = run("evolve", "try", "british-colours")
        assert "Verdict: helps." in tried.stdout, tried.stderr
        assert tried.stderr.count("with the draft: passed") == 6

        asked = subprocess.run(
            [*RETINUE, "evolve", "promote", "british-colours"], capture_output=True, stdin=subprocess.DEVNULL
        )
        assert asked.returncode == 1, "without a terminal nobody says yes"
        assert b"nobody answered" in asked.stderr and b"Traceback" not in asked.stderr
        in_use = project / ".retinue/skills/british-colours.md"
        assert not in_use.exists()

        promoted = run("evolve", "promote", "british-colours", "--yes")
        assert (promoted.exit_code, in_use.read_text()) == (0, DRAFT)
        undone = run("evolve", "rollback", "british-colours")
        assert (undone.exit_code, in_use.exists()) == (0, False)
        actions = [each["action"] for each in json.loads(run("evolve", "list", "--json").stdout)["history"]]
        assert actions == ["try", "promote", "rollback"]


def test_promotion_is_never_unasked() -> None:
    unasked = run("evolve", "promote", "british-colours", "--json")
    assert (unasked.exit_code, "add --yes" in unasked.output) == (2, True)


FORGED: list[dict[str, Any]] = [
    {"action": "create"},
    {"action": "create", "draft": "british-colours", "at": "\ud800", "friction": {"kind": "\ud800"}},
    {"action": "create", "draft": "british-colours", "friction": "x", "runs": [1, {}], "at": {}, "by": [1]},
    {"action": "try", "draft": "british-colours", "text": DRAFT, "figures": {}},
    {"action": "try", "draft": "british-colours", "text": DRAFT, "figures": {"verdict": ["helps"]}},
    {"action": "promote", "draft": "british-colours", "undo": {"rule": 5, "agent": []}, "reason": [1]},
]
"""Lines of an audit file that a clone may bring."""


@pytest.mark.parametrize("line", FORGED)
@pytest.mark.parametrize(
    "command", [(), ("list",), ("list", "--json"), ("show", "british-colours"), ("diff", "british-colours")]
)
def test_forged_audit_file_breaks_no_command(
    command: tuple[str, ...], line: dict[str, Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / AUDIT_FILE).write_text(json.dumps(line) + "\n")
    monkeypatch.chdir(project)
    done = run("evolve", *command)
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert "helps" not in done.stdout
