"""A host gets its first answers before the MCP library is loaded, and they are the library's own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from retinue.server.first_answers import MAX_REMEMBERED, MAX_WAITING_LINES, HostLines
from retinue.store import KnownAnswersFile
from retinue.store.known_answers import MAX_ANSWERS, MAX_FILES
from tests.conftest import RETINUE, environment_in

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
LISTED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def hello(version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        },
    }


LEGACY = [
    hello(),
    {"method": "notifications/initialized"},
    *({"id": number, "method": method} for number, method in enumerate(LISTED, 1)),
]
MODERN = [
    {"id": number, "method": method, "params": {"_meta": META}}
    for number, method in enumerate(("server/discover", *LISTED), 1)
]


class Host:
    """A host of the real command on stdio, which sends one line after the other."""

    def __init__(self, environment: Mapping[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*RETINUE, "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
        )

    def ask(self, message: Mapping[str, Any]) -> bytes:
        """Send a message, and return the line that answers it; nothing if it is a notification."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() if "id" in message else b""

    def close(self) -> bytes:
        """Close the input. Returns what the server still wrote; it must end by itself."""
        rest, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0
        return rest

    def kill(self) -> None:
        """End the server at once, without waiting for the library."""
        self.process.kill()
        self.process.communicate(timeout=30)

    def has_loaded(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()


def conversation(environment: Mapping[str, str], messages: list[dict[str, Any]]) -> list[bytes]:
    host = Host(environment)
    answers = [host.ask(message) for message in messages]
    assert host.close() == b""
    return answers


class EarlierStart(NamedTuple):
    """A server that has kept its answers. Several tests start it again, and change none of its files."""

    environment: Mapping[str, str]
    answers: list[bytes]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> EarlierStart:
    environment = environment_in(tmp_path_factory.mktemp("home"))
    return EarlierStart(environment, conversation(environment, LEGACY))


@pytest.mark.parametrize("messages", [LEGACY, MODERN], ids=["handshake", "stateless"])
def test_kept_answers_equal_those_of_the_library_byte_for_byte(
    environment: Mapping[str, str], messages: list[dict[str, Any]]
) -> None:
    first = conversation(environment, messages)
    assert all(b'"result"' in answer for answer in first if answer)
    again = conversation(environment, messages)
    assert again == first


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_first_answers_come_before_the_library_is_loaded(earlier: EarlierStart) -> None:
    host = Host(earlier.environment)
    host.ask(hello())
    assert not host.has_loaded("pydantic_core")
    host.ask({"method": "notifications/initialized"})
    assert b"research_codebase" in host.ask({"id": 1, "method": "tools/list"})
    called = host.ask({"id": 2, "method": "tools/call", "params": {"name": "ping", "arguments": {}}})
    assert json.loads(called)["result"]["content"][0]["text"] == "pong"
    assert host.has_loaded("pydantic_core")
    host.close()


def test_host_hears_of_a_list_that_has_changed_since_the_last_start(environment: Mapping[str, str]) -> None:
    first = conversation(environment, LEGACY)
    [file] = (Path(environment["RETINUE_DATA_DIR"]) / "first-answers").glob("*.json")
    answers: dict[str, str] = json.loads(file.read_text())
    [tools] = [request for request in answers if "tools/list" in request]
    file.write_text(json.dumps({**answers, tools: '{"tools":[]}'}))

    host = Host(environment)
    host.ask(hello())
    host.ask({"method": "notifications/initialized"})
    assert json.loads(host.ask({"id": 1, "method": "tools/list"}))["result"] == {"tools": []}
    assert host.process.stdout
    assert json.loads(host.process.stdout.readline())["method"] == "notifications/tools/list_changed"
    assert host.ask({"id": 1, "method": "tools/list"}) == first[2]
    host.close()
    assert conversation(environment, LEGACY) == first


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_host_that_subscribes_first_need_not_wait_for_the_library(environment: Mapping[str, str]) -> None:
    """P9: Claude Code asks for the tools only after the acknowledgement of its subscription."""
    params = {"_meta": META, "notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    listen = {"id": "listen:0", "method": "subscriptions/listen", "params": params}

    def talk() -> tuple[Host, list[bytes]]:
        host = Host(environment)
        return host, [host.ask(message) for message in (MODERN[0], listen, MODERN[1])]

    host, first = talk()
    assert json.loads(first[1])["method"] == "notifications/subscriptions/acknowledged"
    host.close()
    host, again = talk()
    assert (again, host.has_loaded("pydantic_core")) == (first, False)
    called = host.ask({"id": 9, "method": "tools/call", "params": {"name": "ping", "_meta": META}})
    assert json.loads(called)["id"] == 9, "the acknowledgement of the library is not sent again"
    host.close()


REFUSED: dict[str, dict[str, Any]] = {
    "not of JSON-RPC 2.0": {**hello(), "jsonrpc": "1.0"},
    "no name": {**hello(), "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    "wrong capability": hello(roots=5),
    "no version": {**hello(), "params": {**hello()["params"], "protocolVersion": 5}},
    "half a surrogate pair": {**hello(), "id": "\ud800"},
    "stateless, no capabilities": {
        "jsonrpc": "2.0",
        **MODERN[0],
        "params": {"_meta": {key: META[key] for key in META if not key.endswith("Capabilities")}},
    },
}


def test_requests_that_the_library_refuses_are_refused_and_cost_no_answer(
    environment: Mapping[str, str],
) -> None:
    """P8, P9: one wrong request neither ends the server nor makes the next start late."""
    conversation(environment, LEGACY)
    [file] = (Path(environment["RETINUE_DATA_DIR"]) / "first-answers").glob("*.json")
    kept = file.read_bytes()
    host = Host(environment)
    assert host.process.stdin and host.process.stdout
    lines = [json.dumps(request) for reason, request in REFUSED.items() if "stateless" not in reason]
    host.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    host.process.stdin.flush()
    assert all("error" in json.loads(host.process.stdout.readline()) for _ in lines)
    assert host.close() == b""
    assert file.read_bytes() == kept


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_no_kept_answer_is_given_to_a_request_that_the_library_refuses(
    known: KnownAnswersFile, request_: dict[str, Any]
) -> None:
    for method, version in (
        ("initialize", "2025-11-25"),
        ("initialize", "5"),
        ("server/discover", "2026-07-28"),
    ):
        known.put(json.dumps([method, version, "{}"]), "{}")
    pipes = Pipes(known)
    pipes.send(request_, {**hello(), "id": "next"})
    assert json.loads(pipes.answer())["id"] == "next"
    assert json.loads(asyncio.run(forwarded(pipes))[0]) == request_


def test_other_settings_have_their_own_answers(earlier: EarlierStart) -> None:
    everything = {**earlier.environment, "RETINUE_TOOLS__GROUPS": "all"}
    more = conversation(everything, LEGACY)
    assert len(more[2]) > len(earlier.answers[2])
    assert conversation(earlier.environment, LEGACY) == earlier.answers
    assert conversation(everything, LEGACY) == more


def test_host_with_an_extension_has_its_own_answers(earlier: EarlierStart) -> None:
    host = Host(earlier.environment)
    host.ask(hello(elicitation={}))
    assert not host.has_loaded("pydantic_core")
    host.kill()
    host = Host(earlier.environment)
    host.ask(hello(extensions={"org.example/x": {}}))
    assert host.has_loaded("pydantic_core")
    host.close()


def test_answers_are_right_in_another_environment_unless_there_are_own_agents(
    earlier: EarlierStart, environment: Mapping[str, str], own_folders: Path
) -> None:
    """A host adds variables and folders of its own to what the user's shell has."""

    def in_host(environment: Mapping[str, str]) -> Host:
        added = {"ADDED_BY_THE_HOST": "1", "PATH": environment["PATH"] + ":/added"}
        host = Host({**environment, **added})
        host.ask(hello())
        return host

    host = in_host(earlier.environment)
    assert not host.has_loaded("pydantic_core")
    host.kill()
    file = own_folders.parent / ".config" / "retinue" / "agents" / "gardener.md"
    file.parent.mkdir(parents=True)
    file.write_text(
        "---\ndescription: Waters.\ncommand: [cat]\nenv: {A: '${ADDED_BY_THE_HOST}'}\n---\nWater.\n"
    )
    conversation(environment, LEGACY)
    host = in_host(environment)
    assert host.has_loaded("pydantic_core")
    host.close()


def test_agent_that_was_added_is_in_the_next_instructions(
    environment: Mapping[str, str], own_folders: Path
) -> None:
    groups = {**environment, "RETINUE_TOOLS__GROUPS": "all"}
    conversation(groups, LEGACY)
    folder = own_folders.parent / ".config" / "retinue" / "agents"
    folder.mkdir(parents=True)
    (folder / "gardener.md").write_text(
        "---\ndescription: Waters.\nexecutor: command\ncommand: [cat]\n---\nWater.\n"
    )
    assert b"gardener" in conversation(groups, LEGACY)[0]


class Pipes:
    """The lines of a host without any server behind them."""

    def __init__(self, known: KnownAnswersFile) -> None:
        incoming, self.to_server = os.pipe()
        self.from_server, outgoing = os.pipe()
        self.lines = HostLines(known, incoming, outgoing)

    def send(self, *messages: Mapping[str, Any] | bytes) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self.to_server, line + b"\n")

    def answer(self) -> str:
        return os.read(self.from_server, 65_536).decode()


@pytest.fixture
def known(tmp_path: Path) -> KnownAnswersFile:
    return KnownAnswersFile(tmp_path / "answers", "f")


async def all_lines(pipes: Pipes) -> list[str]:
    return [line async for line in pipes.lines]


async def forwarded(pipes: Pipes) -> list[str]:
    os.close(pipes.to_server)
    return await all_lines(pipes)


def test_change_of_a_list_goes_to_the_subscription(known: KnownAnswersFile) -> None:
    """In the newer protocol, hosts hear only what belongs to a subscription."""
    params = {"_meta": META, "notifications": {"toolsListChanged": True}}
    listen = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
    asker = ["2026-07-28", "{}"]
    known.put(json.dumps(["tools/list", *asker]), '{"tools":[]}')
    known.put(json.dumps(["subscriptions/listen", *asker, '{"toolsListChanged": true}']), '{"old":true}')
    meta = '{"io.modelcontextprotocol/subscriptionId":7}'
    right = (
        '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",'
        f'"params":{{"_meta":{meta},"notifications":{{"toolsListChanged":true}}}}}}\n'
    )
    pipes = Pipes(known)
    pipes.send(listen, {"jsonrpc": "2.0", **MODERN[1]})
    heard = ""
    while '{"tools":[]}' not in heard:
        heard += pipes.answer()
    assert '{"old":true}' in heard
    asyncio.run(pipes.lines.write(right))
    assert pipes.answer() == right, "the host was told something else"
    asyncio.run(pipes.lines.write('{"jsonrpc":"2.0","id":2,"result":{"tools":[1]}}\n'))
    changed = json.loads(pipes.answer())
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"] == json.loads(meta)


@pytest.mark.parametrize("request_id", [7, "seven", "sieben‑ß", -1])
def test_library_gets_every_line_and_its_answers_are_not_repeated(
    known: KnownAnswersFile, request_id: str | int
) -> None:
    async def serve(pipes: Pipes) -> list[str]:
        lines = await forwarded(pipes)
        for line in lines:
            message = json.loads(line)
            if message["id"] == request_id:
                result = '{"jsonrpc":"2.0","id":' + json.dumps(request_id, ensure_ascii=False)
                await pipes.lines.write(result + ',"result":{"a":1}}\n')
        await pipes.lines.write('{"jsonrpc":"2.0","method":"end"}\n')
        return lines

    asked = {**hello(), "id": request_id}
    for expected in ('{"jsonrpc":"2.0","id":', '{"jsonrpc":"2.0","method":"end"}\n'):
        pipes = Pipes(known)
        pipes.send(asked)
        if expected.endswith("\n"):
            assert json.loads(pipes.answer()) == {"jsonrpc": "2.0", "id": request_id, "result": {"a": 1}}
        assert [json.loads(line) for line in asyncio.run(serve(pipes))] == [asked]
        assert pipes.answer().startswith(expected)


def test_request_of_the_server_with_the_id_of_a_request_is_sent(known: KnownAnswersFile) -> None:
    """Both sides count from one. A host that never hears a question never answers it."""
    known.put(json.dumps(["initialize", "2025-11-25", "{}"]), '{"a":1}')
    pipes = Pipes(known)
    pipes.send({**hello(), "id": 1})
    assert json.loads(pipes.answer())["result"] == {"a": 1}
    question = '{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n'
    asyncio.run(pipes.lines.write(question))
    assert pipes.answer() == question
    for line in ('{"jsonrpc":"2.0","id":1,"result":{"a":1}}\n', '{"jsonrpc":"2.0","method":"end"}\n'):
        asyncio.run(pipes.lines.write(line))
    assert "end" in pipes.answer(), "the answer of the library is not repeated"


def test_id_that_is_used_twice_is_answered_twice(known: KnownAnswersFile) -> None:
    known.put(json.dumps(["initialize", "2025-11-25", "{}"]), '{"a":1}')
    pipes = Pipes(known)
    answer = '{"jsonrpc":"2.0","id":0,"result":{"a":1}}\n'
    pipes.send(hello(), hello(), {**hello(), "id": "next"})
    heard = ""
    while '"next"' not in heard:
        heard += pipes.answer()
    assert heard.count(answer) == 1
    for _ in range(2):
        asyncio.run(pipes.lines.write(answer))
    assert pipes.answer() == answer, "the library answers the second request"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": 1}',
        b'{"id": true, "method": "initialize"}',
        b'{"id": {}, "method": "tools/list"}',
        b'{"id": 1, "method": "tools/list"}',
        b'{"id": 1, "method": "tools/list", "params": [1]}',
        b'{"id": 1, "method": "tools/list", "params": {"cursor": "x"}}',
        b'{"id": 1, "method": ["initialize"], "params": {"_meta": 1}}',
    ],
    ids=range(13),
)
def test_lines_that_are_no_first_requests_are_left_to_the_library(
    known: KnownAnswersFile, line: bytes
) -> None:
    pipes = Pipes(known)
    pipes.send(line)
    [forwarded_line] = asyncio.run(forwarded(pipes))
    assert forwarded_line == line.decode("utf-8", "replace") + "\n"


def test_host_that_is_gone_ends_the_lines(known: KnownAnswersFile) -> None:
    known.put(json.dumps(["initialize", "2025-11-25", "{}"]), "{}")
    earlier = set(threading.enumerate())
    pipes = Pipes(known)
    os.close(pipes.from_server)
    pipes.send(hello())
    for reader in set(threading.enumerate()) - earlier:
        reader.join(20)
    assert asyncio.run(all_lines(pipes)) == []


def test_host_that_floods_the_server_waits_for_it(known: KnownAnswersFile) -> None:
    async def read(pipes: Pipes, process: subprocess.Popen[bytes]) -> int:
        os.close(pipes.to_server)
        await asyncio.sleep(0.3)
        assert process.poll() is None, "all lines were read ahead"
        return len([line async for line in pipes.lines])

    pipes = Pipes(known)
    count = MAX_WAITING_LINES * 200
    process = subprocess.Popen(["seq", str(count)], stdout=pipes.to_server)
    assert asyncio.run(read(pipes, process)) == count
    process.wait()


def test_answers_that_fail_are_not_kept(known: KnownAnswersFile) -> None:
    async def serve(pipes: Pipes) -> None:
        await forwarded(pipes)
        await pipes.lines.write('{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}\n')

    pipes = Pipes(known)
    pipes.send(hello())
    asyncio.run(serve(pipes))
    assert "error" in pipes.answer()
    again = Pipes(known)
    again.send(hello())
    assert len(asyncio.run(forwarded(again))) == 1
    os.set_blocking(again.from_server, False)
    with pytest.raises(BlockingIOError):
        again.answer()


def test_only_the_first_requests_of_a_connection_are_remembered(known: KnownAnswersFile) -> None:
    async def serve(pipes: Pipes) -> None:
        for line in await forwarded(pipes):
            await pipes.lines.write(f'{{"jsonrpc":"2.0","id":{json.loads(line)["id"]},"result":{{}}}}\n')

    pipes = Pipes(known)
    pipes.send(*({**hello(f"v{number}"), "id": number} for number in range(MAX_REMEMBERED + 5)))
    asyncio.run(serve(pipes))
    asked = [json.dumps(["initialize", f"v{number}", "{}"]) for number in range(MAX_REMEMBERED + 5)]
    kept = [number for number, request in enumerate(asked) if known.get(request)]
    assert kept == list(range(MAX_REMEMBERED))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', "[" * 100_000, "\0"], ids=range(6))
def test_damaged_file_of_answers_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "f.json").write_text(content)
    answers = KnownAnswersFile(tmp_path, "f")
    assert answers.get("a") is None
    answers.put("a", "{}")
    assert KnownAnswersFile(tmp_path, "f").get("a") == "{}"


@pytest.mark.parametrize("kept", ["", "{", "[]", "1", '{"a":\n1}', "[" * 100_000], ids=range(6))
def test_damaged_answer_is_as_good_as_none(tmp_path: Path, kept: str) -> None:
    """P8: what is no answer is never sent to a host."""
    KnownAnswersFile(tmp_path / "answers", "f").put("a", kept)
    assert KnownAnswersFile(tmp_path / "answers", "f").get("a") is None


def test_only_plain_files_of_the_user_are_read(tmp_path: Path) -> None:
    """P6: another user must not tell hosts what our tools do; a pipe must not keep the server waiting."""
    folder = tmp_path / "answers"
    KnownAnswersFile(folder, "f").put("a", "{}")
    file = folder / "f.json"
    content = file.read_bytes()
    file.chmod(0o622)
    assert KnownAnswersFile(folder, "f").get("a") is None
    file.chmod(0o600)
    assert KnownAnswersFile(folder, "f").get("a") == "{}"
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        assert KnownAnswersFile(folder, "f").get("a") is None
    other = tmp_path / "other.json"
    other.write_bytes(content)
    file.unlink()
    file.symlink_to(other)
    assert KnownAnswersFile(folder, "f").get("a") is None
    file.unlink()
    os.mkfifo(file)
    assert KnownAnswersFile(folder, "f").get("a") is None


def test_folder_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    for number in range(MAX_FILES + 3):
        (elsewhere / f"{number}.json").touch(mode=0o644)
    (tmp_path / "answers").symlink_to(elsewhere)
    answers = KnownAnswersFile(tmp_path / "answers", "f")
    answers.put("a", "{}")
    assert answers.get("a") == "{}"
    assert len(list(elsewhere.iterdir())) == MAX_FILES + 3
    assert {path.stat().st_mode & 0o777 for path in (elsewhere, elsewhere / "0.json")} == {0o755, 0o644}


def test_only_files_of_answers_and_old_drafts_of_them_are_removed(tmp_path: Path) -> None:
    """P5: a server may be killed while it writes."""
    folder = tmp_path / "answers"
    folder.mkdir(mode=0o700)
    old, new, foreign = (folder / name for name in (".f.json-0a1b2c3d", ".f.json-0a1b2c3e", "My notes.json"))
    for file in (old, new, foreign):
        file.write_text("{")
    for file in (old, foreign):
        os.utime(file, (1, 1))
    for number in range(MAX_FILES + 3):
        KnownAnswersFile(folder, str(number)).put("a", "{}")
    assert [file.exists() for file in (old, new, foreign)] == [False, True, True]
    assert len(list(folder.glob("*.json"))) == MAX_FILES + 1


def test_file_of_answers_is_private_and_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    for number in range(MAX_FILES + 3):
        KnownAnswersFile(folder, str(number)).put("a", "{}")
    assert len(list(folder.iterdir())) == MAX_FILES
    answers = KnownAnswersFile(folder, "many")
    for number in range(MAX_ANSWERS + 3):
        answers.put(str(number), "{}")
    assert [answers.get(str(number)) for number in (2, 3)] == [None, "{}"]
    assert (folder / "many.json").stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


def test_processes_that_keep_answers_at_the_same_time_lose_none(tmp_path: Path) -> None:
    one, other = (KnownAnswersFile(tmp_path / "answers", "f") for _ in range(2))
    one.put("a", '{"n":1}')
    other.put("b", '{"n":2}')
    one.put("c", '{"n":3}')
    other.drop("a")
    again = KnownAnswersFile(tmp_path / "answers", "f")
    assert [again.get(request) for request in "abc"] == [None, '{"n":2}', '{"n":3}']


def test_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answers = KnownAnswersFile(tmp_path / "file" / "below", "f")
    answers.put("a", "{}")
    assert answers.get("a") == "{}"
