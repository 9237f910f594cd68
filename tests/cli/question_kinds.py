"""Every kind of question that a run asks, with real programs: how it comes up and what an answer leads to."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.executors.cli import acp_agent
from tests.server.conftest import ASKS
from tests.service.agent_support import write_agent
from tests.workflows.conftest import PHASE

COMMAND = "curl -s https://example.org/" + "long/" * 300 + "end"
"""Longer than what questions show of a command."""
CLAUDE = f"""
import json, sys
sys.stdin.readline()
def say(**event):
    print(json.dumps(event), flush=True)
say(type="system", subtype="init", session_id="s1", model="m", tools=[])
given = {{"command": {COMMAND!r}, "description": "fetches a page"}}
wanted = {{"subtype": "can_use_tool", "tool_name": "Bash", "input": given, "tool_use_id": "t"}}
say(type="control_request", request_id="r1", request=wanted)
answer = json.loads(sys.stdin.readline())["response"]["response"]
say(type="result", subtype="success", result="was told: " + answer["behavior"], session_id="s1", num_turns=1)
sys.stdin.read()
"""
"""Claude Code in small: wants to use one tool and repeats the answer."""


def asking(question: str = "which one?") -> str:
    """The task of an agent that asks and then repeats the answer."""
    call = {"tool": "ask_parent", "arguments": {"question": question}}
    return json.dumps({"do": "call", "calls": [call]})


def starting(agent: str, task: str) -> str:
    """The task of an agent that starts another one."""
    call = {"tool": "run_subagent", "arguments": {"agent_name": agent, "prompt": task}}
    return json.dumps({"do": "call", "calls": [call]})


@dataclass(frozen=True)
class Kind:
    """A kind of question."""

    command: tuple[str, ...]
    """The arguments of `retinue` that lead to it."""
    shown: str
    """What the person must see of it."""
    typed: str
    """The answer at a prompt."""
    answer: str
    """The same answer elsewhere."""
    result: str
    """What the run answers then."""

    def tool_call(self) -> tuple[str, dict[str, Any]]:
        """The tool of the server that leads to the same question."""
        match self.command:
            case ("agent", name, task):
                return "run_subagent", {"agent_name": name, "prompt": task}
            case ("team", name, task):
                return "run_team", {"name": name, "task": task}
            case ("workflow", "run", name, task):
                return "run_workflow", {"name": name, "input": task}
            case _:
                raise AssertionError(self.command)


KINDS = {
    "an agent's question": Kind(("agent", "asks", asking()), "which one?", "left", "left", '"left"'),
    "a permission of claude": Kind(("agent", "claude", "go"), COMMAND, "a", "allow", "was told: allow"),
    "a permission of gemini": Kind(
        ("agent", "gemini", f"ask {COMMAND}"), COMMAND, "a", "allow", "chosen once"
    ),
    "a permission of an ACP program": Kind(
        ("agent", "acp", f"ask {COMMAND}"), COMMAND, "a", "allow", "chosen once"
    ),
    "a question of a workflow": Kind(
        ("workflow", "run", "unsure", "add login"), "Which provider?", "Google", "Google", "write done"
    ),
    "checks to confirm": Kind(
        ("workflow", "run", "checked", "x"), "tests: make test", "a", "allow", "PROCEED"
    ),
    "a question within a step": Kind(("team", "asking", asking()), "which one?", "left", "left", "left"),
    "a permission within a step": Kind(
        ("team", "fetching", f"ask {COMMAND}"), COMMAND, "a", "allow", "chosen once"
    ),
    "a question of a child of a step": Kind(
        ("team", "nesting", starting("asks", asking())), "which one?", "left", "left", "left"
    ),
}


def write_project(home: Path, bin_folder: Path) -> Path:
    """Write the agents, teams and workflows of all kinds. Returns the project's folder."""
    config = home / ".config" / "retinue"
    for name in ("teams", "workflows"):
        (config / name).mkdir(parents=True)
    python = sys.executable
    (config / "retinue.toml").write_text(
        f'[commands.asks]\nargv = ["{python}", "{ASKS}"]\n'
        f'[commands.nests]\nargv = ["{python}", "{ASKS}"]\nspawns = 1\n'
        f'[commands.unsure]\nargv = ["{python}", "{PHASE}", "clarify"]\n'
        f'[commands.writer]\nargv = ["{python}", "{PHASE}"]\n'
    )
    agents = ".config/retinue/agents"
    for executor in ("claude", "gemini"):
        write_agent(
            home, f"{agents}/{executor}.md", f"description: d\nexecutor: {executor}\nsandbox: none", ""
        )
    command = json.dumps([python, acp_agent.__file__])
    header = f"description: d\nexecutor: acp\nsandbox: none\ncommand: {command}"
    write_agent(home, f"{agents}/acp.md", header, "")
    for name, agent in (("asking", "asks"), ("fetching", "acp"), ("nesting", "nests")):
        (config / "teams" / f"{name}.yaml").write_text(f"description: d\nagents: [{agent}]\n")
    (config / "workflows" / "unsure.yaml").write_text(
        "steps: [{agent: unsure}, {agent: writer, phase: write}]\n"
    )
    (config / "workflows" / "checked.yaml").write_text("steps: [{id: look, checks: tests}]\n")
    bin_folder.mkdir()
    programs = {"claude": CLAUDE, "gemini": Path(acp_agent.__file__).read_text(encoding="utf-8")}
    for name, code in programs.items():
        (bin_folder / name).write_text(f"#!{python}\n{code}", encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    project = home / "project"
    project.mkdir()
    (project / "Makefile").write_text("test:\n\t@echo fine\n")
    return project
