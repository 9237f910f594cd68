"""Retinue in real hosts, installed by `retinue install`, with a model that follows a script (P9)."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import psutil
import pytest

from retinue.setup import find_host
from tests.clis.replies import Reply, Say
from tests.clis.stub_api import ScriptedReply
from tests.hosts.conftest import Hosted, newest, text_of, wait_for
from tests.hosts.host_programs import ALL, CLAUDE, GOOSE, RUNS, HostProgram

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(900)]
HostIn = Callable[[HostProgram], AbstractContextManager[Hosted]]
every_host = pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)

ASK = json.dumps(
    {"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "which colour?"}}]}
)
APPROVED = {"codex", "gemini", "qwen"}
"""The hosts that call tools without a person only if their entry says so."""


def install(hosted: Hosted, *options: str) -> None:
    hosted.install(*(["--approve"] if hosted.program.name in APPROVED else []), *options)


def last(pattern: str, body: dict[str, Any]) -> str:
    found = re.findall(pattern, newest(body))
    assert found, newest(body)[-3000:]
    return found[-1]


@every_host
def test_model_of_the_host_uses_the_tools(program: HostProgram, host_in: HostIn) -> None:
    run_ids: list[str] = []

    def answer(body: dict[str, Any]) -> Reply:
        run_ids.append(last(r"run_?[iI]d['\"]*: ?['\"]([\w-]+)", body))
        message = last(r"messageId['\"]*: ?['\"]([\w-]+)", body)
        return program.call("reply_subagent", runId=run_ids[0], messageId=message, answer="the green one")

    with host_in(program) as hosted:
        install(hosted)
        hosted.start_once()
        hosted.run([Say("hello")])
        first = text_of(hosted.stub.requests[0])
        listed = "research_codebase" in first and "run_subagent" in first
        script: list[ScriptedReply] = [
            hosted.when_listed(program.call("list_roots")),
            program.call("research_codebase", question="where is the limit of retries?"),
            program.call("run_subagent", agent_name="asks", prompt=ASK, wait_s=45),
            answer,
            lambda body: program.call("wait_for_runs", run_ids=run_ids, wait_s=45),
            *([program.reads(RUNS)] if program.reads else []),
            Say("done"),
        ]
        said = hosted.run(script)
        told = [newest(body) for body in hosted.stub.requests]
        assert len(told) == len(script), said[-2000:]
        assert "done" in said
        _, roots, found, _, _, answered, *read = told
        # On a very busy machine they may be missing: `make bench-hosts` counts that.
        hosted.seen["tools in the first request"] = "yes" if listed else "no"
        shown = {
            "reads the open project": str(hosted.project) in roots,
            # Shown once, though it comes as text and as structure.
            "research": "client.py" in found and found.count("rootsSearched") == 1,
            "question answered": "the green one" in answered,
        }
        if program.reads:
            shown["resource read"] = run_ids[0] in read[0]
        else:
            hosted.seen["resource read"] = "has no tool for it"
        hosted.seen.update({column: "yes" if seen else "no" for column, seen in shown.items()})
        assert all(shown.values()), "\n".join(text[-1500:] for text in told)


@pytest.mark.parametrize("program", [each for each in ALL if each is not GOOSE], ids=lambda each: each.name)
def test_file_of_a_project_works_without_paths_of_this_machine(program: HostProgram, host_in: HostIn) -> None:
    with host_in(program) as hosted:
        install(hosted, "--scope", "project")
        file = hosted.project / str(find_host(program.name).project_file)
        assert "retinue" in file.read_text()
        assert not any(str(path) in file.read_text() for path in (hosted.project, sys.prefix))
        hosted.trust_project()
        hosted.run([hosted.when_listed(program.call("list_roots")), Say("done")])
        assert str(hosted.project) in newest(hosted.stub.requests[-1])
        hosted.seen["file of a project"] = "yes"


def test_agent_that_forks_claude_sees_its_conversation(host_in: HostIn) -> None:
    with host_in(CLAUDE) as hosted:
        agents = hosted.home / ".config" / "retinue" / "agents"
        agents.mkdir()
        header = "description: Goes on.\nexecutor: claude\nfork: true\nenv: {ANTHROPIC_BASE_URL: '%s'}"
        (agents / "twin.md").write_text(f"---\n{header % hosted.stub.url}\n---\n\nYou are the twin.\n")
        install(hosted)
        hosted.start_once()
        fork = CLAUDE.call("run_subagent", agent_name="twin", prompt="what was listed?", wait_s=60)
        said = hosted.run(
            [hosted.when_listed(CLAUDE.call("list_roots")), fork, Say("the twin says"), Say("done")]
        )
        [_, _, twin, last] = hosted.stub.requests
        assert "You are the twin." in text_of(twin["system"])
        assert "please work" in text_of(twin["messages"])  # what the host was told
        assert str(hosted.project) in text_of(twin["messages"])  # what its first call returned
        assert "what was listed?" in newest(twin)
        assert "run_subagent" not in text_of(
            [each for each in twin["messages"] if each["role"] == "assistant"]
        )
        assert "the twin says" in newest(last)
        assert "done" in said
        assert not list(hosted.home.glob(".local/share/retinue/clis/**/*.jsonl"))


@every_host
def test_interrupted_host_leaves_no_process_of_an_agent_P5(program: HostProgram, host_in: HostIn) -> None:
    """Ctrl-C while the host waits for a run."""
    with host_in(program) as hosted:
        install(hosted)
        hosted.start_once()
        sleep = program.call("run_subagent", agent_name="sleeps", prompt="x", wait_s=60)
        script = [
            hosted.when_listed(program.call("list_roots")),
            program.call("list_roots"),
            sleep,
            Say("done"),
        ]
        with hosted.running(script) as process:
            host = psutil.Process(process.pid)
            sleeper = wait_for(lambda: find(host, "sleep"), 120)
            started = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            gone = wait_for(lambda: not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE, 20)
            hosted.seen["cancel"] = f"Ctrl-C: agent gone in {time.monotonic() - started:.1f} s"
            assert gone


def find(host: psutil.Process, name: str) -> psutil.Process | None:
    for each in host.children(recursive=True):
        with suppress(psutil.Error):  # it may have ended
            if each.name() == name:
                return each
    return None
