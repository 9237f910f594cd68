"""A project with agents that are real programs, confirmed checks and a team."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PHASE = Path(__file__).parent / "programs" / "phase.py"
AGENTS = f"""
[commands.researcher]
argv = ["{sys.executable}", "{PHASE}"]
[commands.unsure]
argv = ["{sys.executable}", "{PHASE}", "clarify"]
[commands.writer]
argv = ["{sys.executable}", "{PHASE}"]
[commands.shout]
argv = ["tr", "a-z", "A-Z"]
[commands.sleeps]
argv = ["sleep", "1000"]
[commands.fails]
argv = ["sh", "-c", "echo broken; exit 3"]
"""


@pytest.fixture
def project(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config = own_folders.parent / ".config" / "retinue"
    (config / "teams").mkdir(parents=True)
    (config / "workflows").mkdir()
    (config / "retinue.toml").write_text(AGENTS)
    (config / "teams" / "loud.yaml").write_text("description: Shouts twice\nagents: [shout, shout]\n")
    (config / "workflows" / "ask.yaml").write_text(
        "steps: [{agent: unsure}, {agent: writer, phase: write}]\n"
    )
    folder = own_folders.parent / "project"
    folder.mkdir()
    (folder / "Makefile").write_text("lint:\n\t@echo clean\ntest:\n\t@test -f ok\n")
    monkeypatch.chdir(folder)
    return folder
