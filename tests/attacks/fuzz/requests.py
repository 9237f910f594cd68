"""Requests on standard input: every line that is a request is answered or refused, and nothing else is.

Runs the SDK's parser and our answers to what it rejects, as the server does.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any, cast

from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

from retinue.server.framing import error_answer

NAME = "requests"
SHARE = 2

IDS: list[object] = [1, "a", 0, -5, 10**25, "", "ü", None, 1.5, True, [], {}]
METHODS: list[object] = ["ping", "tools/call", "", "x" * 500, 5, None, {}]
LETTERS = b'{}[]",:\\ud800 \x00\xff\xc3\n0123456789eE+-.truefalsn'


def make_line(random: Random) -> bytes:
    """A request, an answer, a notification, or something like them."""
    message: dict[str, object] = {"jsonrpc": random.choice(("2.0", "2.0", "2.0", "1.0", 2))}
    choices: list[tuple[str, list[Any]]] = [
        ("id", IDS),
        ("method", METHODS),
        ("params", [{}, {"name": "ping"}, [], None, 5, {"x": [[[[]]]]}]),
        ("result", [{}, None]),
        ("error", [{"code": 1, "message": "m"}, 5]),
    ]
    for key, values in choices:
        if random.random() < (0.8 if key in ("id", "method") else 0.3):
            message[key] = random.choice(values)
    keys = list(message)
    random.shuffle(keys)
    line = json.dumps({key: message[key] for key in keys}).encode()
    match random.randrange(6):
        case 0:  # half of a surrogate pair
            return line.replace(b'"', b'"\\ud800', random.randrange(1, 9))
        case 1:
            return line[: random.randrange(len(line))]
        case 2:
            at = random.randrange(len(line))
            return line[:at] + bytes(random.choices(LETTERS, k=random.randrange(6))) + line[at:]
        case 3:
            return line.replace(b"{}", b"[" * 300 + b"]" * 300)
        case 4:
            return bytes(random.choices(LETTERS, k=random.randrange(60)))
        case _:
            return line


def ids_in(line: str) -> list[object]:
    """The values that members named `id` begin with, in a line that is not JSON."""
    found: list[object] = []
    for member in re.finditer(r'"id"\s*:\s*', line):
        try:
            found.append(json.JSONDecoder(strict=False).raw_decode(line, member.end())[0])
        except ValueError:
            continue
    return found


def run_case(random: Random) -> None:
    line = make_line(random).decode("utf-8", "replace")
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        answer = error_answer(error)
        if answer is not None:
            answer.model_dump_json(by_alias=True, exclude_unset=True).encode()
        try:
            parsed: object = json.loads(line)
        except (ValueError, RecursionError):
            assert answer is None or answer.id is None or answer.id in ids_in(line), line
            return
        if answer is not None and answer.id is not None:
            assert isinstance(parsed, dict) and "id" in parsed, line
            assert answer.id == cast("dict[str, object]", parsed)["id"], line
        loose = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
        if "method" in loose and "id" in loose:
            assert answer is not None, line
            given = loose["id"]
            is_id = isinstance(given, int | str) and not isinstance(given, bool)
            if is_id and "result" not in loose and "error" not in loose:
                assert answer.id == given or "\ud800" in str(given), line
        return
    if isinstance(message, JSONRPCRequest):
        assert isinstance(message.id, int | str)
