"""Error responses of all servers are mapped to our errors."""

from __future__ import annotations

import json

import pytest

from retinue.core import ContextOverflow, ModelFailed, QuotaSpent, Throttled, ToolsUnsupported, Unavailable
from retinue.models.server_errors import error_from_response


@pytest.mark.parametrize(
    ("status", "error", "counts"),
    [
        (400, {"type": "exceed_context_size_error", "n_prompt_tokens": 5031, "n_ctx": 2048}, (5031, 2048)),
        (400, "request (5031 tokens) exceeds the available context size (2048 tokens)", (5031, 2048)),
        (
            400,
            "Trying to keep the first 5031 tokens when context the overflows. However, the model is loaded"
            " with context length of only 2048 tokens, which is not enough.",
            (5031, 2048),
        ),
        (400, "n_keep >= n_ctx", (None, None)),
        (200, "Reached context length of 2048 tokens with this model", (None, 2048)),
        (
            400,
            "This model's maximum context length is 2048 tokens. However, you requested 5031 tokens"
            " (5000 in the messages, 31 in the completion).",
            (5031, 2048),
        ),
        (
            400,
            "'max_tokens' is too large: 9000. This model's maximum context length is 2048 tokens and your"
            " request has 5031 input tokens",
            (5031, 2048),
        ),
        (
            400,
            "The decoder prompt (length 5031) is longer than the maximum model length of 2048.",
            (5031, 2048),
        ),
        (400, {"message": "too much", "code": "context_length_exceeded"}, (None, None)),
    ],
)
def test_every_overflow_message_is_recognised(
    status: int, error: object, counts: tuple[int | None, int | None]
) -> None:
    for body in ({"error": error}, {"object": "error", "message": error}):
        if isinstance(error, str) or "error" in body:
            found = error_from_response("here", status, json.dumps(body).encode())
            assert type(found) is ContextOverflow
            assert (found.data.get("n_prompt"), found.data.get("n_ctx")) == counts


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            '{"error":{"message":"registry.ollama.ai/library/x does not support tools"}}',
            ToolsUnsupported,
        ),
        (404, '{"error":{"message":"model \\"x\\" not found, try pulling it first"}}', Unavailable),
        (404, "404 page not found", Unavailable),
        (400, '{"error":{"message":"bad grammar"}}', ModelFailed),
        (422, '{"detail": "no"}', ModelFailed),
        (500, "", ModelFailed),
        (400, '{"error": ["odd"]}', ModelFailed),
    ],
)
def test_other_refusals_are_distinguished(status: int, body: str, kind: type[Exception]) -> None:
    assert type(error_from_response("here", status, body.encode())) is kind


def test_server_message_becomes_one_short_line() -> None:
    error = error_from_response("here", 500, b'{"error": "' + b"a\\n\\u001b[2J" * 1000 + b'"}')
    assert len(error.message) < 400 and error.message.isprintable()


@pytest.mark.parametrize("path", ["/home/me/models/x.gguf", "C:\\\\Users\\\\me\\\\x.gguf"])
def test_paths_in_server_messages_are_cut_to_the_file_name(path: str) -> None:
    """P6"""
    error = error_from_response(
        "http://127.0.0.1:1/v1", 500, f'{{"error": "cannot load \'{path}\': no memory"}}'.encode()
    )
    assert error.message == "http://127.0.0.1:1/v1 failed with status 500: cannot load 'x.gguf': no memory"


def test_names_with_slashes_in_server_messages_are_kept() -> None:
    error = error_from_response(
        "here", 400, b'{"error": {"message": "library/qwen3 does not support tools"}}'
    )
    assert "library/qwen3" in error.message


@pytest.mark.parametrize(
    ("body", "header", "kind", "known"),
    [
        (
            {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}},
            "",
            QuotaSpent,
            False,
        ),
        (
            {"error": {"message": "The usage limit has been reached", "resets_in_seconds": 900}},
            "",
            QuotaSpent,
            True,
        ),
        ({"error": {"message": "Too many requests"}}, "7", Throttled, True),
        ({"error": {"message": "Too many requests"}}, "3600", QuotaSpent, True),
        ({"error": {"message": "slow down"}}, "Fri, 31 Dec 2027 23:59:59 GMT", QuotaSpent, True),
        ({"error": {"message": "slow down"}}, "nonsense", Unavailable, False),
    ],
)
def test_429_is_a_spent_limit_a_throttle_or_a_busy_server(
    body: object, header: str, kind: type[Exception], known: bool
) -> None:
    found = error_from_response("here", 429, json.dumps(body).encode(), retry_after=header)
    assert type(found) is kind
    assert ("reset_at" in found.data or "retry_after_s" in found.data) is known
