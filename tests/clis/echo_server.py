"""A small MCP server on stdin and stdout, with one tool that also tells whether the server knows its key.

The benchmark compares us to a CLI with this server, so it imports only what it needs to start.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # known to type checkers by its name
if TYPE_CHECKING:
    from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def fingerprint(key: str) -> str:
    import hashlib

    return hashlib.sha256(key.encode()).hexdigest()[:12]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"name": "echo", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [{"name": "echo", "description": "Say it again.", "inputSchema": SCHEMA}]}
        case "tools/call":
            key = fingerprint(os.environ.get("ECHO_KEY", ""))
            said = f"echoed {params['arguments']['text']}, key {key}"
            return {"content": [{"type": "text", "text": said}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
