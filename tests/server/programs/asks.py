"""A program that a run starts. It connects to its parent and follows its task.

It uses the relay of coding CLIs, or the command that its task names: `child` or `serve`, which take half a
second to start. It writes plain JSON lines, because importing the SDK's client would take most of its time.
`small_claude.py` uses the SDK's client.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RELAY = Path(__file__).parents[3] / "src" / "retinue" / "executors" / "cli" / "relay.py"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "asks", "version": "1"}}


class Parent:
    """The server that the program talks to through two pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._asked = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self.send({"id": self._asked, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                return message["result"]
        raise AssertionError(f"the server ended without an answer to {method}")

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


def main() -> None:
    order = json.loads(sys.stdin.read())
    command = [sys.executable, "-IS", str(RELAY)]
    if "command" in order:
        command = [sys.executable, "-m", "retinue", order["command"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        parent = Parent(process)
        parent.request("initialize", HELLO)
        parent.send({"method": "notifications/initialized"})
        if order["do"] == "list":
            print(json.dumps(sorted(tool["name"] for tool in parent.request("tools/list", {})["tools"])))
            return
        answer: dict[str, Any] = {}
        for call in order["calls"]:
            known = json.dumps(call["arguments"]).replace("$run_id", answer.get("run_id", ""))
            given = {"name": call["tool"], "arguments": json.loads(known)}
            result = parent.request("tools/call", given)
            text = result["content"][0]["text"]
            answer = result.get("structuredContent") or json.loads(text)
            print(json.dumps(answer), flush=True)


main()
