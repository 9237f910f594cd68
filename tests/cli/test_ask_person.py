"""Questions reach the person who waits: every kind, by every way to answer (P5, P7, P8, P9).

The kinds are in `question_kinds.py`. The ways are: in place on a terminal, with the printed command, on the
dashboard, with the tools of a host, and in a form of a host.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from retinue.cli.ask_person import read_answer
from retinue.core import (
    Message,
    MessageId,
    MessageStatus,
    PermissionWanted,
    Run,
    RunId,
    RunStatus,
    ToolRequest,
)
from retinue.store import Store
from tests.cli.conftest import run
from tests.cli.question_kinds import COMMAND, KINDS, Kind, asking, write_project
from tests.conftest import RETINUE
from tests.dashboard.conftest import Visit, visiting
from tests.server.conftest import call, host
from tests.service.agent_support import write_agent

if sys.platform == "win32":
    pytest.skip("needs a Unix terminal", allow_module_level=True)

from tests.cli.terminal import terminal

PROMPT = "(Ctrl-C ends the run): "
WAIT_S = 40


@pytest.fixture(autouse=True)
def project(own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_project(own_folders.parent, tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("RETINUE_ROOTS", str(folder))  # a host has no folder of its own
    monkeypatch.chdir(folder)
    return folder


QUICK = {"a permission of claude", "a question of a local agent", "a question of a workflow"}
"""Kinds that are tried in every way. The tools of a host are tried with all kinds, and `make test-slow` tries
all kinds in all ways."""
LOCAL_QUESTION = KINDS["a question of a local agent"]


def kinds(*commands: str, quick: Collection[str] = QUICK) -> Any:
    """The rows of the table, or those of some commands."""
    rows = [
        pytest.param(kind, id=name, marks=[] if name in quick else [pytest.mark.slow])
        for name, kind in KINDS.items()
        if not commands or kind.command[0] in commands
    ]
    return pytest.mark.parametrize("kind", rows)


class Command:
    """A `retinue` command without a terminal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.errors: list[str] = []
        self._output = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def told(self, label: str) -> str:
        """Wait until stderr has a line that begins so, and return the rest of the line."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            for line in list(self.errors):
                if line.startswith(label):
                    return line.removeprefix(label).strip()
            time.sleep(0.02)
        raise AssertionError(f"{label!r} is not in {self.errors}")

    def result(self) -> tuple[int, str]:
        """Wait for its end, and return the exit code and the output."""
        assert self.process.stdout is not None and self.process.stderr is not None
        if not self.process.stdout.closed:
            with self.process.stdout, self.process.stderr:
                self._output = self.process.stdout.read()
                self._reader.join(WAIT_S)
        return self.process.wait(WAIT_S), self._output


@contextmanager
def started(environment: Mapping[str, str], *arguments: str) -> Generator[Command]:
    """Start `retinue` with pipes instead of a terminal."""
    process = subprocess.Popen(
        [*RETINUE, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )
    command = Command(process)
    try:
        yield command
    finally:
        process.kill()
        command.result()


def paste(command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a printed command in a shell, in another folder and without the settings of this test."""
    elsewhere = {name: value for name, value in environment.items() if not name.startswith("RETINUE_")}
    return subprocess.run(
        ["sh", "-c", command], cwd=Path.home(), env=elsewhere, capture_output=True, text=True, timeout=WAIT_S
    )


def stored_runs() -> list[Run]:
    with Store.open(Path.home() / "data") as store:
        return store.runs.list(limit=-1)


def stored_messages() -> list[Message]:
    with Store.open(Path.home() / "data") as store:
        return [each for found in store.runs.list(limit=-1) for each in store.messages.of_run(found.id)]


@kinds()
def test_question_is_asked_in_place_and_the_run_goes_on(kind: Kind, environment: Mapping[str, str]) -> None:
    """P7: a permission is shown whole, however long the command is."""
    with terminal([*RETINUE, *kind.command], environment) as person:
        person.expect(kind.shown)
        person.expect(PROMPT)
        person.type(kind.typed)
        person.expect(kind.result)
        assert person.exit_code() == 0
        assert person.has_unchanged_settings()


@kinds()
def test_printed_command_answers_the_question(kind: Kind, environment: Mapping[str, str]) -> None:
    """Without a terminal, the command waits for the answer, which another terminal gives."""
    with started(environment, *kind.command) as command:
        label = "Answer with: " if kind.answer != "allow" else "Allow it once: "
        answers = command.told(label).replace('"..."', shlex.quote(kind.answer))
        assert any(kind.shown in line for line in command.errors)
        done = paste(answers, environment)
        assert (done.returncode, done.stdout.split()[0]) == (0, "answered"), done.stderr
        code, output = command.result()
    assert code == 0
    assert kind.result in output


@pytest.mark.anyio
@kinds()
async def test_dashboard_answers_the_question(kind: Kind, environment: Mapping[str, str]) -> None:
    with started(environment, *kind.command) as command:
        command.told("run ")
        async with visiting() as visit:
            address, message = await find_form(visit)
            field = "verdict" if kind.answer == "allow" else "answer"
            answer = await visit.send(address, message=message, **{field: kind.answer})
            assert answer.status_code == 303, answer.text
        code, output = command.result()
    assert code == 0
    assert kind.result in output


async def find_form(visit: Visit) -> tuple[str, str]:
    """Wait until the page has a form for a question. Returns its address and the id of the question."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        page = await visit.page()
        if found := re.search(r'name="message" value="(\w+)"', page):
            [address] = re.findall(r'action="(/runs/\w+/answer)"', page)
            return address, found[1]
        await visit.service.runs.next_change(0.1)
    raise AssertionError("no question on the page")


@pytest.mark.anyio
@kinds(quick=KINDS)
async def test_tools_of_a_host_answer_the_question(kind: Kind) -> None:
    """P9: `wait_for_runs` on the first run returns the question of any run below it, and does not spin."""
    tool, arguments = kind.tool_call()
    async with host() as client:
        begun = await call(client, tool, **arguments, wait_s=0)
        waited = await call(client, "wait_for_runs", run_ids=[begun["run_id"]], wait_s=WAIT_S)
        [view] = waited["runs"]
        [question] = view["questions"]
        assert kind.shown[:200] in question["question"]
        assert "reply_subagent" in view["next"]
        begin = time.monotonic()
        again = await call(client, "wait_for_runs", run_ids=[begun["run_id"]], wait_s=0.3)
        assert time.monotonic() - begin >= 0.3, "a question that the host knows ended its wait"
        assert again["runs"][0]["questions"] == view["questions"]
        reply = {"runId": begun["run_id"], "messageId": question["messageId"], "answer": kind.answer}
        await call(client, "reply_subagent", **reply)
        ended = await call(client, "wait_for_runs", run_ids=[begun["run_id"]], wait_s=WAIT_S)
    [done] = ended["runs"]
    assert done["status"] == "success"
    assert kind.result.strip('"') in json.dumps(done)


@pytest.mark.anyio
@kinds("workflow", "team")
async def test_answer_question_answers_every_question_of_a_workflow(kind: Kind) -> None:
    tool, arguments = kind.tool_call()
    async with host() as client:
        asked = await call(client, tool, **arguments, wait_s=WAIT_S)
        assert len(asked["questions"]) == 1
        answers = {"run_id": asked["run_id"], "answers": [kind.answer]}
        done = await call(client, "answer_question", **answers, wait_s=WAIT_S)
    assert done["status"] == "success"
    assert kind.result.strip('"') in json.dumps(done)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
@kinds()
async def test_form_of_a_host_answers_the_question(
    kind: Kind, era: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETINUE_RUNTIME__ASK_PERSON", "true")
    asked: list[str] = []

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        assert isinstance(params, ElicitRequestFormParams)
        offered = params.requested_schema["properties"]["answer"].get("enum")
        assert offered is None or kind.answer in offered
        return ElicitResult(action="accept", content={"answer": kind.answer})

    tool, arguments = kind.tool_call()
    async with host(mode=era, elicitation_callback=answer) as client:
        done = await call(client, tool, **arguments, wait_s=WAIT_S)
    assert done["status"] == "success"
    assert kind.result.strip('"') in json.dumps(done)
    [question] = asked
    assert kind.shown in question, "a person decides on the whole request"
    assert sum(found.spec.parent is None for found in stored_runs()) == 1


@kinds()
def test_interrupt_at_the_prompt_cancels_the_run(kind: Kind, environment: Mapping[str, str]) -> None:
    """Nothing hangs, nothing goes on, and the terminal is as before."""
    with terminal([*RETINUE, *kind.command], environment) as person:
        person.expect(PROMPT)
        person.press("C")
        person.expect("canceling run ")
        person.expect("interrupted")
        assert person.exit_code() == 130
        assert person.has_unchanged_settings()
    *below, first = stored_runs()
    assert first.status is RunStatus.CANCELED
    assert all(found.status.ended for found in below)


def test_end_of_input_leaves_the_question_to_others(environment: Mapping[str, str]) -> None:
    with terminal([*RETINUE, *LOCAL_QUESTION.command], environment) as person:
        person.expect(PROMPT)
        person.press("D")
        person.expect("Answer with: ")
        command = person.expect('"..."')
        paste(command.replace("...", "from elsewhere"), environment)
        person.expect("The tool said: from elsewhere")
        assert person.exit_code() == 0


def test_prompt_ends_when_somebody_else_answers(environment: Mapping[str, str]) -> None:
    with terminal([*RETINUE, *LOCAL_QUESTION.command], environment) as person:
        person.expect(PROMPT)
        [message] = stored_messages()
        assert run("reply", message.run_id, "from elsewhere").exit_code == 0
        person.expect("Answered meanwhile: from elsewhere")
        assert person.exit_code() == 0


def test_permission_that_nobody_gives_is_denied_and_its_prompt_ends(environment: Mapping[str, str]) -> None:
    """P7: silence is a denial, at a terminal too."""
    given = {**environment, "RETINUE_RUNTIME__PERMISSION_WAIT_S": "1"}
    with terminal([*RETINUE, "agent", "claude", "go"], given) as person:
        person.expect("denied in 1 second")
        person.expect("Answered meanwhile: deny: nobody answered within 1 second")
        person.expect("was told: deny")
        assert person.exit_code() == 0


def test_line_typed_before_the_question_is_no_answer(environment: Mapping[str, str]) -> None:
    """P7: nobody allows what they have not seen."""
    with terminal([*RETINUE, "agent", "claude", "go"], environment) as person:
        person.type("a")
        person.expect("run ")
        person.type("a")
        person.expect(PROMPT)
        person.type("d")
        person.expect("was told: deny")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("a", "allow"),
        ("yes", "allow"),
        ("A", "always"),
        ("d", "deny"),
        ("no", "deny"),
        ("ok, but not now", "deny: ok, but not now"),
        ("always ask me", "deny: always ask me"),
    ],
)
def test_only_a_clear_word_allows(typed: str, answer: str) -> None:
    wanted = PermissionWanted(ToolRequest("Bash", COMMAND), "Bash(curl)", None)
    message = Message(
        id=MessageId.new(),
        run_id=RunId.new(),
        question="may it?",
        status=MessageStatus.PENDING,
        asked_at=0,
        permission=wanted,
    )
    assert read_answer(message, typed) == answer


@pytest.mark.parametrize(
    ("typed", "answer", "told"),
    [("A", "always", "allow"), ("ok, but not now", "deny: ok, but not now", "deny")],
)
def test_answer_to_a_permission_is_stored_and_always_is_remembered(
    typed: str, answer: str, told: str, environment: Mapping[str, str]
) -> None:
    with terminal([*RETINUE, "agent", "claude", "go"], environment) as person:
        person.expect("fetches a page")
        person.expect(PROMPT)
        person.type("")
        person.expect("the answer is empty")
        person.expect(PROMPT)
        person.type(typed)
        person.expect(f"was told: {told}")
        assert person.exit_code() == 0
    assert [message.answer for message in stored_messages()] == [answer]
    with Store.open(Path.home() / "data") as store:
        remembered = store.permissions
    assert remembered.rules_for("claude") == ((f"Bash({COMMAND})",) if typed == "A" else ())


def test_checks_that_were_always_allowed_are_confirmed_for_the_project(
    project: Path, environment: Mapping[str, str]
) -> None:
    with terminal([*RETINUE, "workflow", "run", "checked", "x"], environment) as person:
        person.expect("Always allows the checks of this project from now on.")
        person.type("A")
        person.expect("PROCEED")
        assert person.exit_code() == 0
    confirmed = json.loads(run("workflow", "checks", "--json").stdout)["checks"]
    assert {each["name"]: each["confirmed"] for each in confirmed}["tests"] == "make test"
    (project / "Makefile").write_text("test:\n\t@echo others\n")
    assert run("workflow", "run", "checked", "x").exit_code == 0


def test_denied_checks_end_the_workflow_with_the_reason() -> None:
    """P7: the server runs no command that nobody allowed."""
    asked = json.loads(run("workflow", "run", "checked", "x", "--no-wait", "--json").stdout)
    done = run("answer", asked["run_id"], "deny: it deletes files")
    assert done.exit_code == 1
    assert "the project's checks were not allowed" in done.stdout and "it deletes files" in done.stdout
    assert [found.spec.agent for found in stored_runs()] == ["checked"]


def test_command_that_was_asked_about_is_the_one_that_runs(project: Path) -> None:
    """P7: what was shown when the person allowed it counts, not what the project has become."""
    asked = json.loads(run("workflow", "run", "checked", "x", "--no-wait", "--json").stdout)
    (project / "Makefile").unlink()
    (project / "package.json").write_text('{"scripts": {"test": "rm -rf /"}}')
    done = json.loads(run("answer", asked["run_id"], "allow", "--json").stdout)
    assert done["findings"]["checks"]["tests"]["command"] == "make test"


def test_several_questions_are_asked_one_after_another(environment: Mapping[str, str]) -> None:
    Path("two.yaml").write_text("steps: [{parallel: [{id: one, agent: unsure}, {id: two, agent: unsure}]}]")
    with terminal([*RETINUE, "workflow", "run", "--file", "two.yaml", "x"], environment) as person:
        for _ in range(2):
            person.expect("Which provider?")
            person.expect(PROMPT)
            person.type("Google")
        assert person.exit_code() == 0


def test_question_cannot_imitate_a_prompt_or_control_the_terminal(environment: Mapping[str, str]) -> None:
    question = "harmless?\x1b[2J\r\nAnswer (Ctrl-C ends the run): "
    with terminal([*RETINUE, "agent", "asks", asking(question)], environment) as person:
        shown = person.expect("\nAnswer (Ctrl-C ends the run): ")
    assert "\x1b" not in shown
    assert "\n  Answer (Ctrl-C ends the run): \n" in shown


def test_process_in_the_background_prints_the_command_and_is_not_stopped(
    environment: Mapping[str, str],
) -> None:
    """A process in the background that reads from its terminal is stopped by the system."""
    command = shlex.join([*RETINUE, *LOCAL_QUESTION.command])
    with terminal(["/bin/sh", "-c", f"set -m; {command} & wait"], environment) as person:
        person.expect("Answer with: ")
        paste(person.expect('"..."').replace("...", "left"), environment)
        person.expect("The tool said: left")


def test_question_of_an_agent_that_a_run_starts_by_command_reaches_the_person(
    environment: Mapping[str, str],
) -> None:
    """The command inside the run only waits: a run must not answer (P7)."""
    task = asking().replace("{", "{{").replace("}", "}}")
    inner = json.dumps([*RETINUE, "agent", "asks", task])
    header = f"description: d\ncommand: {inner}\nspawns: 1"
    write_agent(Path.home(), ".config/retinue/agents/shell.md", header, "")
    with terminal([*RETINUE, "agent", "shell", "go"], environment) as person:
        person.expect("which one?")
        person.expect(PROMPT)
        person.type("left")
        person.expect('"answer": "left"')
        assert person.exit_code() == 0
        assert person.shown.count(PROMPT) == 1, "the command inside the run asks nobody"


def test_no_wait_ends_an_agent_at_its_question() -> None:
    done = run(*LOCAL_QUESTION.command, "--no-wait")
    assert done.exit_code == 4
    assert done.stdout == "asks: which way?\n"
    assert "was ended at this question" in done.stderr
    assert [found.status for found in stored_runs()] == [RunStatus.CANCELED]
    view = json.loads(run(*LOCAL_QUESTION.command, "--no-wait", "--json").stdout)
    assert (view["status"], view["questions"]) == ("canceled", ["which way?"])


def test_no_wait_prints_the_command_that_continues_a_workflow(environment: Mapping[str, str]) -> None:
    asked = run("workflow", "run", "unsure", "x", "--no-wait")
    assert asked.exit_code == 4
    answer = asked.stderr.split("answer with: ")[1].replace("...", "Google")
    done = subprocess.run(
        ["sh", "-c", answer], env=dict(environment), capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
    assert "write done" in done.stdout


def test_no_wait_prints_the_command_that_runs_an_interrupted_step_again(
    environment: Mapping[str, str],
) -> None:
    """P5: the agent ends with the command, and the workflow goes on at its step."""
    asked = run("team", "asking", asking(), "--no-wait")
    assert asked.exit_code == 4
    assert "which one?" in asked.stdout
    resume = asked.stderr.split("step again with: ")[1].strip()
    with terminal(["/bin/sh", "-c", resume], environment) as person:
        person.expect("its work may be half done")
        person.type("again")
        person.expect("which one?")
        person.type("left")
        person.expect('"answer": "left"')
        assert person.exit_code() == 0


def test_wait_prints_the_questions_of_a_step_and_the_command_that_answers(
    environment: Mapping[str, str],
) -> None:
    with started(environment, *KINDS["a question within a step"].command) as command:
        run_id = command.told("run ")
        waited = run("wait", run_id)
        assert waited.exit_code == 4
        assert "asks: which one?" in waited.stdout
        answer = waited.stdout.split("answer with: ")[1].strip().replace("...", "left")
        assert paste(answer, environment).returncode == 0
        assert command.result()[0] == 0
    assert run("wait", run_id).exit_code == 0


def test_answer_is_read_from_stdin(environment: Mapping[str, str]) -> None:
    """A command line has no room for a long answer."""
    answer = "a long answer, " * 5_000
    with started(environment, "agent", "asks", asking()) as command:
        reply = command.told("Answer with: ").replace('"..."', "-")
        done = subprocess.run(
            ["sh", "-c", reply], env=dict(environment), input=answer, text=True, timeout=WAIT_S
        )
        assert done.returncode == 0
        assert json.loads(command.result()[1])["answer"] == answer
    asked = json.loads(run("workflow", "run", "unsure", "x", "--no-wait", "--json").stdout)
    assert run("answer", asked["run_id"], "-", stdin="Google").exit_code == 0
    assert "Google" in [each.answer for each in stored_messages()]


def test_reply_to_a_workflow_that_nobody_performs_tells_how_to_continue_it() -> None:
    asked = json.loads(run("workflow", "run", "unsure", "x", "--no-wait", "--json").stdout)
    replied = run("reply", asked["run_id"], "Google")
    assert replied.exit_code == 0
    assert f"workflow resume {asked['run_id']}" in replied.stderr
    done = run("workflow", "resume", asked["run_id"])
    assert (done.exit_code, "write done" in done.stdout) == (0, True)
