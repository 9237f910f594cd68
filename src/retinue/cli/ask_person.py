"""Follows a run for a person, and puts the questions of the run and of those below it to this person.

On a terminal, questions are asked in place, one after another. Elsewhere, each question is printed with the
commands that answer it, and the run waits for one of them, for the dashboard or for a host.

The terminal stays in its line mode: it edits the line, and Ctrl-C reaches this process as a signal. So there
is nothing to restore, whatever ends a prompt. `asyncio` is imported where it is used, because
`retinue --help` must not load it.
"""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from retinue.core import (
    Conflict,
    InvalidInput,
    Message,
    MessageStatus,
    clip,
    counted,
    escape_invisible_characters,
    find_program,
    strip_control_characters,
)

if TYPE_CHECKING:
    from retinue.core import MessageId, RunId
    from retinue.service import Service

FOLLOW_S = 0.2
"""Maximum number of seconds between two looks at a run's output."""
MAX_LINE_BYTES = 65_536
MAX_SHOWN_RULE = 200
ALLOW_WORDS = frozenset({"a", "allow", "y", "yes"})
ALWAYS_WORDS = frozenset({"A", "always"})
DENY_WORDS = frozenset({"d", "deny", "n", "no"})

no_wait_option = click.option(
    "--no-wait",
    is_flag=True,
    help="If a question comes up, print it and exit with code 4 instead of waiting for the answer.",
)


async def follow_run(
    service: Service,
    run_id: RunId,
    print_output: Callable[[], bool],
    *,
    no_wait: bool = False,
    in_run: bool = False,
) -> Sequence[Message]:
    """Wait until the run ends, and have its questions answered meanwhile. Ctrl-C cancels the run.

    `print_output` prints new output, and returns whether there is more of it. Returns the open questions if
    `no_wait` is set and one comes up, otherwise nothing. With `in_run`, this process belongs to a run. Then
    nobody here may answer; the questions reach whoever waits for the first run of the tree.
    """
    import asyncio

    from retinue.service import resume_answered

    click.echo(f"run {run_id}", err=True)
    person, runs = Person(service, is_absent=in_run), service.runs
    told: str | None = None
    try:
        while True:
            if (waits := runs.held_back(run_id)) != told:
                told = waits
                click.echo(strip_control_characters(waits or "the run goes on"), err=True)
            has_ended = runs.has_ended(run_id)
            has_more = print_output()
            if has_ended and not has_more:
                return ()
            if questions := runs.open_questions(run_id):
                if no_wait:
                    return questions
                if await person.present(questions):
                    continue
            await resume_answered(service, run_id)
            if not has_more:
                await runs.next_change(FOLLOW_S)
    except asyncio.CancelledError:
        if runs.waiter.is_performed_elsewhere(run_id):
            click.echo(f"\nrun {run_id} goes on in another process", err=True)
        else:
            click.echo(f"\ncanceling run {run_id}", err=True)
            await runs.cancel_and_wait(run_id)
        raise


class Person:
    """The person who waits for a run: at a terminal, or somewhere else."""

    def __init__(self, service: Service, *, is_absent: bool = False) -> None:
        self._service = service
        self._is_absent = is_absent
        self._has_left = False
        self._printed: set[MessageId] = set()

    async def present(self, messages: Sequence[Message]) -> bool:
        """Ask the first question on the terminal, or print those that are new. Returns whether it asked."""
        if not (self._is_absent or self._has_left) and can_ask():
            await self._ask(messages[0])
            return True
        for message in messages:
            if message.id not in self._printed:
                self._printed.add(message.id)
                self._print(message)
        return False

    def _print(self, message: Message) -> None:
        """Print a question and how to answer it."""
        click.echo(self._describe(message), err=True)
        if self._is_absent:
            click.echo("The question was passed on to whoever started this run.", err=True)
        else:
            click.echo(how_to_answer(message), err=True)

    async def _ask(self, message: Message) -> None:
        """Ask until there is an answer, from here or from elsewhere."""
        import asyncio

        flush_typed_lines()  # what was typed before the question was shown cannot be an answer to it
        click.echo(f"\n{self._describe(message)}", err=True)
        settled = asyncio.create_task(self._service.runs.waiter.until_settled(message))
        try:
            while not settled.done():
                click.echo(_prompt(message), err=True, nl=False)
                line = asyncio.create_task(read_line())
                try:
                    await asyncio.wait((line, settled), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    line.cancel()
                    await asyncio.wait((line,))
                if line.cancelled():
                    click.echo(f"\n{self._how_settled(message)}", err=True)
                elif await self._take(message, line.result()):
                    return
        finally:
            settled.cancel()

    async def _take(self, message: Message, line: str | None) -> bool:
        """Send the answer. Returns False if the line is not an answer; None is the end of the input."""
        from retinue.service import answer_run

        if line is None:
            self._has_left = True
            click.echo("\nThe run waits for an answer from elsewhere.", err=True)
            return True
        try:
            answer = read_answer(message, line)
            await answer_run(self._service, message.run_id, message.id, answer)
        except InvalidInput as error:
            click.echo(error.message, err=True)
            return False
        except Conflict as error:  # somebody else was quicker
            click.echo(error.message, err=True)
        return True

    def _how_settled(self, message: Message) -> str:
        """Say how a question was settled while this person was thinking."""
        now = self._service.runs.question(message.id) or message
        if now.status is MessageStatus.CLOSED:
            return "The run ended and needs no answer."
        answer = clip(_clean(self._service.redactor.redact(now.answer or "")), 200)
        return f"Answered meanwhile: {answer}"

    def _describe(self, message: Message) -> str:
        """Describe who asks for what. A permission is shown whole, because nobody can allow what is cut."""
        agent = self._service.runs.store.runs.get(message.run_id).spec.agent
        redact, wanted = self._service.redactor.redact, message.permission
        if wanted is None:
            return f"{_clean(agent)} asks (run {message.run_id}):\n{_indent(redact(message.question))}"
        parts = [f"{_clean(agent)} asks for permission (run {message.run_id}):"]
        parts.append(_indent(redact(wanted.whole)))
        parts += [wanted.warning] if wanted.warning else []
        if wanted.rule is not None:
            rule = _clean(redact(wanted.rule)) if len(wanted.rule) <= MAX_SHOWN_RULE else "exactly this call"
            parts.append(f"Always allows {rule} from now on.")
        if wanted.wait_s is not None:
            left = max(0, round(message.asked_at + wanted.wait_s - time.time()))
            parts.append(f"Without an answer it is denied in {counted(left, 'second')}.")
        return "\n".join(parts)


def _prompt(message: Message) -> str:
    if message.permission is None:
        return "Answer (Ctrl-C ends the run): "
    always = " / [A]lways" if message.permission.rule is not None else ""
    return f"[a]llow once{always} / [d]eny / text denies with a reason (Ctrl-C ends the run): "


def read_answer(message: Message, line: str) -> str:
    """Return the answer that a typed line means. Raises `InvalidInput` if the line is not an answer."""
    text = line.strip()
    if not text:
        raise InvalidInput("the answer is empty")
    if message.permission is None:
        return text
    if text in ALLOW_WORDS:
        return "allow"
    if text in ALWAYS_WORDS:
        if message.permission.rule is None:
            raise InvalidInput("this call cannot be allowed for good: allow it once, or deny it")
        return "always"
    # The prefix keeps a reason such as "ok, but not now" from being read as a yes.
    return "deny" if text in DENY_WORDS else f"deny: {text}"


def how_to_answer(message: Message) -> str:
    """The commands that answer a question from another terminal."""
    command = f"{retinue_command()} reply {message.run_id} --message {message.id}"
    if message.permission is None:
        return f'Answer with: {command} "..."'
    lines = [f"Allow it once: {command} allow"]
    if message.permission.rule is not None:
        lines.append(f"Allow it always: {command} always")
    return "\n".join([*lines, f'Deny it: {command} "deny: ..."'])


def retinue_command() -> str:
    """How another shell starts this program on the same data folder."""
    from retinue import wiring

    program = ["retinue"] if find_program("retinue") else [sys.executable, "-m", "retinue"]
    loaded = wiring.read_settings({})
    is_default = "data_dir" not in loaded.origins
    folder = "" if is_default else f"RETINUE_DATA_DIR={shlex.quote(str(loaded.settings.data_dir))} "
    return folder + shlex.join(program)


def can_ask() -> bool:
    """Whether this process has a terminal for input and output, and is in its foreground.

    A process in the background must not read: the system would stop it. Event loops on Windows cannot watch
    a console, so questions are printed there.
    """
    if sys.platform == "win32" or not all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)
    ):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal that controls no jobs
        return True


def flush_typed_lines() -> None:
    """Drop what was typed and not read yet."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_line() -> str | None:
    """Read a line from the terminal without blocking the event loop; None at the end of the input."""
    import asyncio

    loop, descriptor, typed = asyncio.get_running_loop(), sys.stdin.fileno(), bytearray()
    done: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            chunk = os.read(descriptor, MAX_LINE_BYTES)
        except OSError:  # the terminal is gone
            chunk = b""
        typed.extend(chunk)
        if (not chunk or typed.endswith(b"\n")) and not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, read)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
    return typed.decode(errors="replace") if typed else None


def _indent(text: str) -> str:
    """Indent every line of a run's text, so that it cannot imitate a prompt."""
    return textwrap.indent(_clean(text), "  ", lambda _: True)


def _clean(text: str) -> str:
    """Show invisible characters of a run's text, which could change what the terminal displays."""
    return strip_control_characters(escape_invisible_characters(text))
