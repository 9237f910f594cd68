"""Every kind of question that a run asks, with real programs: how it comes up and what an answer leads to."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from retinue.models.probe import LOOK_UP, WANTED
from tests.executors.cli_fakes import ACP_AGENT
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


LOCAL_COMMAND = "test " + "long" * 300 + " = end"
"""A command of an agent on a local model: harmless, and longer than what questions show."""
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "look up entry": (LOOK_UP.name, {"number": WANTED}),  # whether the model can call tools
    "asks you": ("ask_parent", {"question": "which way?"}),
    "runs it": ("run_command", {"command": LOCAL_COMMAND}),
}


class _Model(BaseHTTPRequestHandler):
    """A model server whose model makes one call, and then repeats what the tool said. Of the agent whose task
    is `is spent`, the usage limit is spent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "small", "max_model_len": 32_768}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turns = asked["messages"]
        task = next((name for name in CALLS if name in json.dumps(turns)), None)
        if "is spent" in json.dumps(turns):
            self._send(429, {"error": {"message": "quota exceeded", "type": "insufficient_quota"}}, "3600")
            return
        said: dict[str, Any] = {"role": "assistant", "content": f"The tool said: {turns[-1]['content']}"}
        if task is not None and turns[-1]["role"] != "tool" and asked.get("tools"):
            name, arguments = CALLS[task]
            function = {"name": name, "arguments": json.dumps(arguments)}
            said = {"role": "assistant", "content": ""}
            said["tool_calls"] = [{"index": 0, "id": "c1", "type": "function", "function": function}]
        reason = "tool_calls" if "tool_calls" in said else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        shape = "delta" if asked.get("stream") else "message"
        answer = {"model": "small", "choices": [{"index": 0, shape: said, "finish_reason": reason}]}
        self._send(200, {**answer, "usage": usage}, streamed=shape == "delta")

    def _send(self, status: int, body: object, wait: str | None = None, *, streamed: bool = False) -> None:
        text = json.dumps(body)
        data = (f"data: {text}\n\ndata: [DONE]\n\n" if streamed else text).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
        self.send_header("Content-Length", str(len(data)))
        if wait is not None:
            self.send_header("Retry-After", wait)
        self.end_headers()
        self.wfile.write(data)


@cache
def model_address() -> str:
    """Start the model server and return its address. It ends with the tests."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


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
    "a question of a local agent": Kind(
        ("agent", "curious", "asks you"), "which way?", "left", "left", "The tool said: left"
    ),
    "a permission of a local agent": Kind(
        ("agent", "local", "runs it"), LOCAL_COMMAND, "a", "allow", "exit code 1"
    ),
    "who performs the task of a spent account": Kind(
        ("agent", "spent", "is spent"), "is spent until", "other", "other", "is spent"
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
        f'[commands.other]\nargv = ["cat"]\n[models]\nendpoint = "{model_address()}"\n'
    )
    agents = ".config/retinue/agents"
    for executor in ("claude", "gemini"):
        write_agent(
            home, f"{agents}/{executor}.md", f"description: d\nexecutor: {executor}\nsandbox: none", ""
        )
    tools = "tools: [Read, Bash]\nisolation: worktree\nsandbox: none"
    write_agent(home, f"{agents}/local.md", f"description: d\n{tools}", "Work.")
    write_agent(home, f"{agents}/curious.md", "description: d\ntools: [ask_parent]", "Work.")
    write_agent(home, f"{agents}/spent.md", "description: d\ntools: []\nfallback: ask", "Work.")
    command = json.dumps([python, str(ACP_AGENT)])
    header = f"description: d\nexecutor: acp\nsandbox: none\ncommand: {command}"
    write_agent(home, f"{agents}/acp.md", header, "")
    for name, agent in (("asking", "asks"), ("fetching", "acp"), ("nesting", "nests")):
        (config / "teams" / f"{name}.yaml").write_text(f"description: d\nagents: [{agent}]\n")
    (config / "workflows" / "unsure.yaml").write_text(
        "steps: [{agent: unsure}, {agent: writer, phase: write}]\n"
    )
    (config / "workflows" / "checked.yaml").write_text("steps: [{id: look, checks: tests}]\n")
    bin_folder.mkdir()
    programs = {"claude": CLAUDE, "gemini": ACP_AGENT.read_text(encoding="utf-8")}
    for name, code in programs.items():
        (bin_folder / name).write_text(f"#!{python}\n{code}", encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    project = home / "project"
    project.mkdir()
    (project / "Makefile").write_text("test:\n\t@echo fine\n")
    return project
