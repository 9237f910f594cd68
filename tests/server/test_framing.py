"""A line that is not a message gets an answer, with the id of the request if the line shows it (P8)."""

from __future__ import annotations

import pytest
from mcp_types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic import ValidationError

from retinue.server.framing import error_answer


def answer(line: str) -> tuple[object, int] | None:
    """The id and the code of the answer to a line; None if it gets none."""
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    error = error_answer(raised.value)
    return None if error is None else (error.id, error.error.code)


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"\ud800"}}', (7, PARSE_ERROR)),
        (r'{"jsonrpc":"2.0","id":"\ud800","method":"m"}', (None, PARSE_ERROR)),
        (r'{"jsonrpc":"2.0","id":"a","method":"m\udfff"}', ("a", PARSE_ERROR)),
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":' + NESTED + "}}", (7, PARSE_ERROR)),
        ('{"params":{"id":8,"x":' + NESTED + '},"id":7,"method":"m"}', (None, PARSE_ERROR)),
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":' + "9" * 5_000 + "}}", (7, PARSE_ERROR)),
        ('{"jsonrpc":"2.0","id":7,"method":', (7, PARSE_ERROR)),
        ('{"jsonrpc":"2.0","id":7', (None, PARSE_ERROR)),  # the number may go on
        ('{"id": "a\n}", "jsonrpc": 2, "method": 5}', (None, PARSE_ERROR)),
        ("\x00", (None, PARSE_ERROR)),
        ("\ufffd", (None, PARSE_ERROR)),
        ("[]", (None, INVALID_REQUEST)),
        ("{}", (None, INVALID_REQUEST)),
        ("7", (None, INVALID_REQUEST)),
        ('{"jsonrpc":"1.0","id":7,"method":"m"}', (7, INVALID_REQUEST)),
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":[]}', (7, INVALID_REQUEST)),
        ('{"jsonrpc":"2.0","id":{},"method":5}', (None, INVALID_REQUEST)),
    ],
)
def test_an_unreadable_request_is_answered(line: str, expected: tuple[object, int]) -> None:
    assert answer(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        " ",
        r'{"jsonrpc":"2.0","method":"m","params":{"x":"\ud800"}}',
        r'{"jsonrpc":"2.0","id":7,"result":{"x":"\ud800"}}',
        '{"jsonrpc":"1.0","id":7,"error":{}}',
    ],
    ids=["blank", "notification", "answer", "error"],
)
def test_what_nobody_waits_for_gets_no_answer(line: str) -> None:
    assert answer(line) is None


def test_the_reason_is_named_without_the_content() -> None:
    """P6: the line may contain secrets."""
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(r'{"id":7,"method":"secret","params":"\ud800"}', by_name=False)
    error = error_answer(raised.value)
    assert error is not None
    assert "hex escape" in error.error.message
    assert "secret" not in error.error.message
