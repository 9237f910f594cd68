"""The real `retinue dashboard` command with runs of other processes (P5, P6, P7)."""

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
    """Returns a function that starts `retinue agent asks` in another process."""
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
        process.communicate(timeout=20)


def shown_when(browser: httpx2.Client, words: str) -> str:
    """Return the home page as soon as it contains the words. Reloads it on every change event."""
    shown = browser.get("/").text
    with browser.stream("GET", "/live") as stream:
        lines = stream.iter_lines()
        while words not in shown:
            assert next(line for line in lines if line.startswith("event:")) == "event: change"
            shown = browser.get("/").text
    return shown


def question_in(shown: str) -> dict[str, str]:
    """Return the action and the message id of the only form on the page."""
    [[action]] = [re.findall(r'<form method="post" action="([^"]+)"', shown)]
    [message] = re.findall(r'name="message" value="(\w+)"', shown)
    return {"action": action, "message": message}


def test_answer_reaches_a_run_of_another_process(dashboard: Dashboard, agent: AskedFor) -> None:
    browser, run = dashboard("--no-open").browser(), agent("ask_parent", question="which <b>one</b>?")
    asked = question_in(shown_when(browser, "which &lt;b&gt;one&lt;/b&gt;?"))
    sent = browser.post(asked["action"], data={"message": asked["message"], "answer": "the left one"})
    assert (sent.status_code, sent.headers["Location"]) == (303, "/")
    output, _ = run.communicate(timeout=20)
    assert json.loads(output)["answer"] == "the left one"
    assert run.returncode == 0
    late = browser.post(asked["action"], data={"message": asked["message"], "answer": "the right one"})
    assert late.status_code == 409
    assert "the left one" in late.text and "the right one" in late.text
    assert "No run is waiting for you." in browser.get("/").text
    browser.close()


@pytest.mark.parametrize(("verdict", "behavior"), [("always", "allow"), ("deny", "deny")])
def test_permission_decision_reaches_a_run_of_another_process_P7(
    dashboard: Dashboard, agent: AskedFor, own_folders: Path, verdict: str, behavior: str
) -> None:
    browser = dashboard("--no-open").browser()
    run = agent("request_permission", tool_name="Bash", input={"command": "touch x"})
    asked = question_in(shown_when(browser, "asks for permission"))
    sent = browser.post(asked["action"], data={"message": asked["message"], "verdict": verdict})
    assert sent.status_code == 303
    output, _ = run.communicate(timeout=20)
    assert json.loads(output)["behavior"] == behavior
    with Store.open(own_folders) as store:
        assert store.permissions.rules_for("asks") == (("Bash(touch x)",) if verdict == "always" else ())
    browser.close()


def test_run_of_another_process_can_be_canceled(dashboard: Dashboard, agent: AskedFor) -> None:
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
def test_signal_ends_the_server_and_open_pages_cleanly(dashboard: Dashboard, by: signal.Signals) -> None:
    """P5: open pages get an event, no process stays, and nothing is printed."""
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
    out, err = opened.process.communicate(timeout=20)
    assert (opened.process.returncode, out, err) == (0, "", "")
    assert psutil.wait_procs(family, 20)[1] == []
    browser.close()


def test_server_listens_only_on_loopback(dashboard: Dashboard) -> None:
    opened = dashboard()  # stdout is not a terminal, so no browser is opened
    listening = [
        each.laddr.ip
        for each in psutil.Process(opened.process.pid).net_connections()
        if each.status == "LISTEN"
    ]
    assert listening == ["127.0.0.1"]
    assert httpx2.get(opened.address, timeout=20).status_code == 403


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_browser_is_opened_with_a_single_use_link_P6(environment: Mapping[str, str], tmp_path: Path) -> None:
    """Other users can read the browser's command line, so it must not contain the token."""
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
            assert [httpx2.get(opened, timeout=20).status_code for _ in range(2)] == [303, 403]
            assert [httpx2.get(printed, timeout=20).status_code for _ in range(2)] == [303, 303]
            started = psutil.Process(process.pid).children(True)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    for each in started:  # the browser outlives the dashboard
        with suppress(psutil.NoSuchProcess):
            each.kill()
    os.close(ours)
    os.close(theirs)


def test_taken_port_is_reported_with_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(main, ["dashboard", "--no-open", "--port", port])
    assert done.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr and "leave out --port" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--port", "x"], ["--root", "/no/such/folder"]])
def test_invalid_arguments_are_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, ["dashboard", "--no-open", *arguments])
    assert done.exit_code == 2
    assert done.stdout == ""


def test_run_cannot_open_the_dashboard_P7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "x")
    done = CliRunner().invoke(main, ["dashboard", "--no-open"])
    assert done.exit_code == 1
    assert "a run cannot open the dashboard" in done.stderr


def test_script_is_valid_javascript() -> None:
    script = STATIC / "live.js"
    done = subprocess.run([NODE, "--check", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_help_does_not_load_the_web_libraries() -> None:
    code = (
        "import sys\nfrom retinue.cli.main import main\n"
        "try:\n    main(['dashboard', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'starlette', 'uvicorn', 'asyncio', 'retinue.dashboard'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
