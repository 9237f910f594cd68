"""Lines that are no messages are answered, with the id of the request if they show it."""

from __future__ import annotations

import pytest
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from retinue.server.framing import error_answer


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        ('{"id": 7, "method": "ping"', 7),
        ('{"id": "seven", "method"', "seven"),
        ('{"id": "a\n}", "jsonrpc": 2, "method": 5}', None),
        ("{", None),
    ],
)
def test_broken_line_is_answered_with_the_id_that_it_shows(line: str, request_id: object) -> None:
    with pytest.raises(ValidationError) as caught:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    answer = error_answer(caught.value)
    assert answer is not None and answer.id == request_id
