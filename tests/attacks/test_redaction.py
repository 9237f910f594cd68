"""Attacks on redaction: secrets where output is cut, and output that tries to hide other output (P6)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.redaction_secrets import ALNUM, Maker, planted
from retinue.core import (
    ENDED_STATUSES,
    Budget,
    Outcome,
    Run,
    RunContext,
    RunLimits,
    RunSpec,
    Task,
    Unavailable,
    clip,
    clip_start,
)
from retinue.executors import CommandConfig, CommandExecutor, CommandTemplate, fork_server
from retinue.redaction import SecretRedactor
from retinue.runtime import PreparedRun, Supervisor
from retinue.store import Store, read_log
from tests.runtime.runtime_support import Server, server

pytestmark = pytest.mark.anyio

MADE = Maker(31)
TOKEN = "ghp_" + MADE.of(ALNUM, 36)
KEY_BLOCK, KEY_BODY = MADE.key_block()
SEAM = 1 << 16


class Programs:
    """Runs Python programs as runs of their own."""

    def __init__(self, at: Server, supervisor: Supervisor, folder: Path) -> None:
        self._at = at
        self._supervisor = supervisor
        self._folder = folder

    @property
    def store(self) -> Store:
        return self._at.store

    async def ended(self, code: str) -> Run:
        """Run a program to its end."""
        program = self._folder / "program.py"
        program.write_text(code, encoding="utf-8")
        template = CommandTemplate((sys.executable, "-I", "-S", str(program)))
        executor = CommandExecutor(CommandConfig(template, grace=0.1), {"PATH": os.environ["PATH"]})
        spec = RunSpec(agent="a", task="t", executor="command", limits=RunLimits(budget=Budget()))
        run = await self._supervisor.start(PreparedRun(spec, executor, self._folder))
        await self._at.becomes(run.id, *ENDED_STATUSES)
        return self.store.runs.get(run.id)

    def log(self, run: Run) -> str:
        """Return the run's log as it is on disk, without the prefixes of its lines."""
        page = read_log(self.store.folder.log(run.id), 0, max_bytes=1 << 24)
        return "\n".join(line.text for line in page.lines)


@asynccontextmanager
async def programs(folder: Path) -> AsyncGenerator[Programs]:
    async with server(folder, 4) as at, Supervisor(at.store, at.pool, SecretRedactor()) as supervisor:
        yield Programs(at, supervisor, folder)
    fork_server.close()


@pytest.mark.parametrize("offset", [1, 5, 20, 39])
async def test_token_across_the_seam_of_a_long_line_is_not_in_the_log(tmp_path: Path, offset: int) -> None:
    """A line of output is read in pieces of 65,536 characters. The pieces of a token are not tokens."""
    async with programs(tmp_path) as at:
        run = await at.ended(f"print('x' * {SEAM - offset - 1} + ' {TOKEN} ' + 'y' * {SEAM})")
        log = at.log(run)
    assert "[redacted:github-pat]" in log
    assert not any(TOKEN[at : at + 12] in log for at in range(len(TOKEN) - 11))
    assert TOKEN[-12:] not in str(run.result)


async def test_key_printed_line_by_line_is_not_in_the_log(tmp_path: Path) -> None:
    """Each line of a key looks harmless alone, and the program may flush after each."""
    async with programs(tmp_path) as at:
        run = await at.ended(f"for line in {KEY_BLOCK!r}.splitlines(): print(line, flush=True)")
        log = at.log(run)
    assert not any(line in log for line in KEY_BODY.splitlines())


async def test_secret_of_kubernetes_printed_line_by_line_is_not_in_the_log(tmp_path: Path) -> None:
    """`kubectl` prints the entries before the line that says that they are secret."""
    value = MADE.base64(18)
    text = f"apiVersion: v1\ndata:\n  entry: {value}\nkind: Secret\nmetadata:\n  name: db\n"
    async with programs(tmp_path) as at:
        run = await at.ended(f"for line in {text!r}.splitlines(): print(line, flush=True)")
        log = at.log(run)
    assert value not in log
    assert value not in str(run.result)


async def test_beginning_of_a_key_hides_no_other_output(tmp_path: Path) -> None:
    """A program that prints the first line of a key could otherwise hide what it does next."""
    begin = KEY_BLOCK.splitlines()[0]
    async with programs(tmp_path) as at:
        run = await at.ended(f"print({begin!r})\nfor n in range(390): print('removed file', n)")
        log = at.log(run)
    assert log.splitlines()[1:] == [f"removed file {number}" for number in range(390)]


async def test_end_of_an_output_that_was_cut_shows_no_half_of_a_secret(tmp_path: Path) -> None:
    """A result keeps the end of a long output. The beginning of a secret may be before it."""
    lines = KEY_BODY.splitlines()
    begin = KEY_BLOCK.splitlines()[0]
    code = (
        f"print({begin!r})\nfor line in {lines!r}: print(line)\n"
        f"print('the key has no end')\nfor n in range(44): print('step', n)\nraise SystemExit(1)"
    )
    async with programs(tmp_path) as at:
        run = await at.ended(code)
    assert "step 43" in str(run.result)
    assert not any(line in str(run.result) for line in lines)


async def test_error_of_a_run_is_redacted_in_its_log(tmp_path: Path) -> None:
    """The log shows why a run failed, and the reason may contain a secret."""

    class Failing:
        async def run(self, task: Task, ctx: RunContext) -> Outcome:
            raise Unavailable(f"no access with {TOKEN}", hint="try again")

    async with server(tmp_path, 4) as at, Supervisor(at.store, at.pool, SecretRedactor()) as supervisor:
        spec = RunSpec(agent="a", task="t", executor="scripted", limits=RunLimits(budget=Budget()))
        run = await supervisor.start(PreparedRun(spec, Failing(), tmp_path))
        await at.becomes(run.id, *ENDED_STATUSES)
        text = at.store.folder.log(run.id).read_text(encoding="utf-8")
    assert "no access with [redacted:github-pat]" in text


@pytest.mark.parametrize(
    "value",
    [
        "DB_PASSWORD=letmein",
        {"note": "DB_PASSWORD=letmein"},
        {"env": ["DB_PASSWORD=letmein", "MODE=test"]},
        {"output": "DB_PASSWORD=letmein\nMODE=test\n"},
        {"data": {"stdout": "export API_TOKEN=letmein"}},
    ],
)
def test_secret_at_the_beginning_of_a_value_is_hidden(value: object) -> None:
    """A value begins where a line begins, whatever stands before it in JSON."""
    assert "letmein" not in str(SecretRedactor().redact_value(value))


def test_text_that_is_cut_before_it_is_redacted_shows_no_half_of_a_secret() -> None:
    """Messages and notes are shortened where they arise, before they are redacted."""
    redactor = SecretRedactor()
    for secret in planted(seed=50):
        if "\n" in secret.text or secret.kind == "kubernetes":  # secret by what stands further away
            continue
        text = f"the server said\n{secret.text}\nand closed the connection"
        for limit in range(8, len(text), 3):
            for shown in (clip(text, limit), clip_start(text, limit)):
                assert len(shown) <= limit
                redacted = redactor.redact(shown)
                assert secret.secret not in redacted
                if " " not in secret.secret:
                    assert not half_of(secret.secret, redacted), shown


def half_of(secret: str, text: str) -> bool:
    """Whether a text shows a beginning or an end of a secret of at least eight characters."""
    shown = re.sub(r"\[redacted:[\w-]+\]", "", text)
    return len(secret) >= 12 and (secret[:8] in shown or secret[-8:] in shown)


@pytest.mark.parametrize(
    "text",
    [
        f"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K{TOKEN[4:]}",
        f"{TOKEN[:20]}\x1b[1m{TOKEN[20:]}\x1b[0m",
        f"\x1b[34mpassword\x1b[0m\x1b[90m=\x1b[0m\x1b[32m{TOKEN[4:20]}\x1b[0m",
        f'\x1b[34;1m"password"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;32m"{TOKEN[4:20]}"\x1b[0m',
    ],
)
def test_secret_in_the_colours_of_a_terminal_is_hidden(text: str) -> None:
    """`grep --color` and `jq -C` print colours inside a token, and between a name and its value."""
    shown = SecretRedactor().redact(f"before {text} after\n")
    assert "[redacted:" in shown and shown.startswith("before ") and shown.endswith(" after\n")
    assert TOKEN[8:18] not in shown and TOKEN[24:] not in shown
    assert SecretRedactor().redact(shown) == shown


def test_colours_make_no_ordinary_text_secret() -> None:
    text = "\x1b[32mok\x1b[0m  token \x1b[1mcount\x1b[0m: 12\n\x1b[31mpassword\x1b[0m is required\n"
    assert SecretRedactor().redact(text) == text


@pytest.mark.parametrize("at", [2, 4, 7, 20, 39])
@pytest.mark.parametrize(
    "inside",
    [
        "\r",
        "\b",
        "x\b \b",
        "x\b",
        "\\\n",
        "\\\r\n",
        "\u200b",
        "\u00ad",
        "\x1b(B\x1b[m",
        "\x1b]8;;https://h.test\x1b\\",
    ],
)
def test_token_with_invisible_characters_inside_is_hidden(inside: str, at: int) -> None:
    """Terminals move back, shells join lines, pages break words: whoever copies the text has the token."""
    text = f"use {TOKEN[:at]}{inside}{TOKEN[at:]} now\n"
    for shown in (SecretRedactor().redact(text), streamed(text)):
        assert shown.startswith("use [redacted:") and shown.endswith("] now\n")
        assert TOKEN[max(at, 8) :] not in shown and TOKEN[: min(at, 30)] not in shown
        assert SecretRedactor().redact(shown) == shown


def test_token_in_bold_letters_of_a_manual_page_is_hidden() -> None:
    """`nroff` prints a bold letter twice, and an underlined one over a `_`."""
    bold = "".join(f"{letter}\b{letter}" for letter in TOKEN)
    underlined = "".join(f"_\b{letter}" for letter in TOKEN)
    assert SecretRedactor().redact(f"see {bold}.") == "see g\b[redacted:github-pat]."
    assert SecretRedactor().redact(f"see {underlined}.") == "see _\b[redacted:github-pat]."


@pytest.mark.parametrize(
    "text",
    [
        "password = \\\n    {}\n",
        "password = \\\n    '{}'\n",
        "DB_PASSWORD=\\\n{}\n",
        "deploy --user me --password \\\n  {} \\\n  --now\n",
        "mysql -u root \\\r\n  -h db \\\r\n  -p{}\n",
        "curl -H 'Authorization: Bearer \\\n{}'\n",
    ],
)
def test_secret_in_the_next_line_of_a_command_is_hidden(text: str) -> None:
    """A backslash at the end of a line continues it, in shells, Makefiles and Python."""
    password = MADE.of(ALNUM, 14)
    whole = text.format(password)
    for shown in (SecretRedactor().redact(whole), streamed(whole)):
        assert password not in shown
        assert shown.replace("\r", "").count("\\\n") == whole.replace("\r", "").count("\\\n")
        assert SecretRedactor().redact(shown) == shown


def test_invisible_characters_and_continued_lines_make_no_ordinary_text_secret() -> None:
    text = (
        "token 1 of 9\rtoken 2 of 9\rtoken 3 of 9\r\npassword: \rpassword: \r\n"
        "#define TOKEN_TABLE \\\n    { 1, 2, \\\n      3 }\n"
        "SECRET_SRCS = \\\n\tsrc/crypt/aes.c \\\n\tmain.c\n"
        "N\bNA\bAM\bME\bE\n       passwd - change the _\bp_\ba_\bs_\bs_\bw_\bo_\br_\bd of a user\n"
        "if password is None and \\\n        token_count == 3:\n"
        "    assert secret_name in \\\n        {'a1', 'b2'}\n"
    )
    assert SecretRedactor().redact(text) == text
    assert streamed(text) == text


def streamed(text: str) -> str:
    """Redact a text that arrives line by line."""
    stream = SecretRedactor().stream()
    return "".join([*map(stream.feed, text.splitlines(keepends=True)), stream.finish()])


PASSWORD = "k7Rq!2mZx9Lw"
MISSED_KINDS = {
    "mnemonic": (
        "mnemonic: {}",
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
    ),
    "joined literals": ("key = '{}' + '{}'", TOKEN),
    "folded literal of YAML": ("api_key: >-\n  {}\n", MADE.of(ALNUM, 32)),
    "base64": ("value: {}", "RE" + "JfUEFTU1dPUkQ9bGV0bWVpbjEyMw=="),
    "default of Terraform": ('variable "db_password" {{\n  default = "{}"\n}}', PASSWORD),
    "SecureString": ('ConvertTo-SecureString "{}" -AsPlainText -Force', PASSWORD),
    "setter": ('builder.setPassword("{}");', PASSWORD),
    "Fernet key": ("FERNET_KEY={}", MADE.base64(32)),
    "German": ("Passwort: {}", PASSWORD),
    "default of a variable": ("const p = process.env.DB_PASSWORD ?? '{}'", PASSWORD),
    "short name": ('pw = "{}"', PASSWORD),
    "Secret of Kubernetes": ("kind: Secret\ndata:\n  entry: {}\n", MADE.base64(18)),
}


@pytest.mark.parametrize("kind", MISSED_KINDS)
def test_secret_of_a_kind_that_is_easily_missed_is_hidden(kind: str) -> None:
    """Whole and line by line."""
    form, secret = MISSED_KINDS[kind]
    parts = (secret[:20], secret[20:]) if form.count("{}") == 2 else (secret,)
    text = f"before\n{form.format(*parts)}\nafter\n"
    for shown in (SecretRedactor().redact(text), streamed(text)):
        assert not any(part in shown for part in parts)
        assert shown.startswith("before\n") and shown.endswith("\nafter\n")
