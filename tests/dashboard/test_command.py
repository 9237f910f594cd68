"""The real command, its pages on loopback, and runs that belong to other processes (P5, P6, P7)."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.dashboard.access import HEADERS
from retinue.dashboard.site import STATIC
from retinue.store import Store
from tests.conftest import RETINUE
from tests.dashboard.conftest import Opened
from tests.node.npm import NODE

Dashboard = Callable[..., Opened]
AskedFor = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def agent(environment: Mapping[str, str]) -> Generator[AskedFor]:
    """Starts `retinue agent asks`: a run with a supervisor of its own, in a process of its own."""
    processes: list[subprocess.Popen[str]] = []

    def start(tool: str, **arguments: object) -> subprocess.Popen[str]:
        order = json.dumps({"do": "call", "calls": [{"tool": tool, "arguments": arguments}]})
        process = subprocess.Popen(
            [*RETINUE, "agent", "asks", order],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(environment),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=10)


def shown_when(browser: httpx2.Client, words: str) -> str:
    """The first page, once it says that: it is looked at again whenever its stream tells of a change."""
    shown = browser.get("/").text
    with browser.stream("GET", "/live") as stream:
        lines = stream.iter_lines()
        while words not in shown:
            assert next(line for line in lines if line.startswith("event:")) == "event: change"
            shown = browser.get("/").text
    return shown


def question_in(shown: str) -> dict[str, str]:
    """Where the one form on the page leads, and which message it answers."""
    [[action]] = [re.findall(r'<form method="post" action="([^"]+)"', shown)]
    [message] = re.findall(r'name="message" value="(\w+)"', shown)
    return {"action": action, "message": message}


def test_answer_on_the_page_reaches_a_run_of_another_process(dashboard: Dashboard, agent: AskedFor) -> None:
    browser, run = dashboard("--no-open").browser(), agent("ask_parent", question="which <b>one</b>?")
    asked = question_in(shown_when(browser, "which &lt;b&gt;one&lt;/b&gt;?"))
    sent = browser.post(asked["action"], data={"message": asked["message"], "answer": "the left one"})
    assert (sent.status_code, sent.headers["Location"]) == (303, "/")
    told, _ = run.communicate(timeout=20)
    assert json.loads(told)["answer"] == "the left one"
    assert run.returncode == 0
    late = browser.post(asked["action"], data={"message": asked["message"], "answer": "the right one"})
    assert late.status_code == 409
    assert "the left one" in late.text and "the right one" in late.text
    assert "Nothing waits for you." in browser.get("/").text
    browser.close()


@pytest.mark.parametrize(("verdict", "behavior"), [("always", "allow"), ("deny", "deny")])
def test_permission_is_decided_on_the_page_for_a_run_of_another_process_P7(
    dashboard: Dashboard, agent: AskedFor, own_folders: Path, verdict: str, behavior: str
) -> None:
    browser = dashboard("--no-open").browser()
    run = agent("request_permission", tool_name="Bash", input={"command": "touch x"})
    asked = question_in(shown_when(browser, "wants a permission"))
    sent = browser.post(asked["action"], data={"message": asked["message"], "verdict": verdict})
    assert sent.status_code == 303
    told, _ = run.communicate(timeout=20)
    assert json.loads(told)["behavior"] == behavior
    with Store.open(own_folders) as store:
        assert store.permissions.of("asks") == (("Bash(touch x)",) if verdict == "always" else ())
    browser.close()


def test_run_of_another_process_is_canceled_on_its_page(dashboard: Dashboard, agent: AskedFor) -> None:
    browser, run = dashboard("--no-open").browser(), agent("ask_parent", question="which one?")
    asked = question_in(shown_when(browser, "which one?"))
    page = asked["action"].removesuffix("/answer")
    assert "Cancel…" in browser.get(page).text
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert browser.post(f"{page}/cancel", headers=form).headers["Location"] == page
    assert run.wait(20) == 3
    assert '<span class="status canceled">' in browser.get(page).text
    browser.close()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order_when_told_to_with_a_page_open(dashboard: Dashboard, by: signal.Signals) -> None:
    """P5: the page is told, nothing is left running, and nothing is said that sounds like a failure."""
    opened = dashboard("--no-open")
    browser = opened.browser()
    with browser.stream("GET", "/live") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert all(stream.headers[name] == value for name, value in HEADERS.items())
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        family = [psutil.Process(opened.process.pid), *psutil.Process(opened.process.pid).children(True)]
        opened.process.send_signal(by)
        assert [line for line in lines if line.startswith("event:")] == ["event: end"]
    out, err = opened.process.communicate(timeout=10)
    assert (opened.process.returncode, out, err) == (0, "", "")
    assert psutil.wait_procs(family, 5)[1] == []
    browser.close()


def test_it_is_served_on_loopback_alone(dashboard: Dashboard) -> None:
    opened = dashboard()  # not on a terminal: no browser is opened either
    listening = [
        each.laddr.ip
        for each in psutil.Process(opened.process.pid).net_connections()
        if each.status == "LISTEN"
    ]
    assert listening == ["127.0.0.1"]
    assert httpx2.get(opened.address).status_code == 403


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_browser_is_opened_from_a_terminal_with_a_link_for_one_visit_P6(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Its command line can be read by others, so the token is not on it."""
    visited, script = tmp_path / "visited", tmp_path / "browser"
    os.mkfifo(visited)
    script.write_text(f'#!/bin/sh\necho "$1" > {visited}; exec sleep 1000\n')
    script.chmod(0o700)
    ours, theirs = pty.openpty()
    environ = {**environment, "BROWSER": str(script)}
    with subprocess.Popen([*RETINUE, "dashboard"], stdout=theirs, stderr=theirs, env=environ) as process:
        try:
            opened = visited.read_text().strip()
            printed = os.read(ours, 1000).decode().strip()
            assert opened != printed and opened.partition("=")[0] == printed.partition("=")[0]
            assert [httpx2.get(opened).status_code for _ in range(2)] == [303, 403]
            assert [httpx2.get(printed).status_code for _ in range(2)] == [303, 303]
            started = psutil.Process(process.pid).children(True)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    for each in started:  # whoever looks at the page has a browser still
        with suppress(psutil.NoSuchProcess):
            each.kill()
    os.close(ours)
    os.close(theirs)


def test_port_that_is_taken_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(main, ["dashboard", "--no-open", "--port", port])
    assert done.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr and "leave out --port" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--port", "x"], ["--root", "/no/such/folder"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, ["dashboard", "--no-open", *arguments])
    assert done.exit_code == 2
    assert done.stdout == ""


def test_run_of_ours_cannot_open_the_page_it_would_be_judged_on_P7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "x")
    done = CliRunner().invoke(main, ["dashboard", "--no-open"])
    assert done.exit_code == 1
    assert "a run cannot open the dashboard" in done.stderr


def test_script_of_the_pages_can_be_read_by_an_engine() -> None:
    script = STATIC / "live.js"
    done = subprocess.run([NODE, "--check", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_other_commands_load_nothing_of_it() -> None:
    code = (
        "import sys\nfrom retinue.cli.main import main\n"
        "try:\n    main(['dashboard', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'starlette', 'uvicorn', 'asyncio', 'retinue.dashboard'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
