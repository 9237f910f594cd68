"""How each CLI is set up for the stub, and what its model calls the tools that tests use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.clis.replies import Use

KEY = "sk-stub-0123456789abcdef-key"
ECHO_KEY = "echo-secret-fedcba9876543210"


@dataclass(frozen=True)
class Words:
    name: str
    model: str
    key: str
    """The variable that holds the key of its model."""
    command: Callable[[str], Use]
    echo: str
    """The tool of the server `echo`."""
    asks: bool = True
    """Whether it asks before it runs a command."""
    header: Callable[[str], str] = lambda url: ""
    """More lines of an agent's header, for a stub at this address."""
    env: Callable[[str], dict[str, str]] = lambda url: {}
    """Variables of the server's, for a stub at this address."""


def _codex_header(url: str) -> str:
    provider = f'{{name="stub",base_url="{url}/v1",env_key="STUB_KEY",wire_api="responses"}}'
    flags = ["-c", "model_provider=stub", "-c", f"model_providers.stub={provider}"]
    return f"command: {json.dumps(['codex', *flags])}\nenv:\n  STUB_KEY: ${{STUB_KEY}}\n"


def _opencode_header(url: str) -> str:
    options = {"baseURL": f"{url}/v1", "apiKey": "{env:STUB_KEY}"}
    models = {"m1": {"name": "m1", "limit": {"context": 100_000, "output": 4_000}}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": options, "models": models}
    config = json.dumps(json.dumps({"provider": {"stub": provider}}))
    return f"env:\n  STUB_KEY: ${{STUB_KEY}}\n  OPENCODE_CONFIG_CONTENT: {config}\n"


CLAUDE = Words(
    name="claude",
    model="claude-sonnet-4-5",
    key="ANTHROPIC_API_KEY",
    command=lambda command: Use("Bash", {"command": command, "description": "a command"}),
    echo="mcp__echo__echo",
    env=lambda url: {"ANTHROPIC_BASE_URL": url},
)
CODEX = Words(
    name="codex",
    model="stub-model",
    key="STUB_KEY",
    command=lambda command: Use("exec_command", {"cmd": command}),
    echo="mcp__echo__echo",
    asks=False,
    header=_codex_header,
)
GEMINI = Words(
    name="gemini",
    model="gemini-2.5-pro",
    key="GEMINI_API_KEY",
    command=lambda command: Use("run_shell_command", {"command": command, "description": "a command"}),
    echo="mcp_echo_echo",
    env=lambda url: {"GOOGLE_GEMINI_BASE_URL": url},
)
OPENCODE = Words(
    name="opencode",
    model="stub/m1",
    key="STUB_KEY",
    command=lambda command: Use("bash", {"command": command, "description": "a command"}),
    echo="echo_echo",
    header=_opencode_header,
)
ALL = (CLAUDE, CODEX, GEMINI, OPENCODE)
ASKING = tuple(words for words in ALL if words.asks)
