"""A small MCP server as code for `python -c`. It needs no SDK, so it starts quickly."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from retinue.core import McpServer
from tests.executors.process_trees import BASICS

SERVER = (
    BASICS
    + """
import json
print("hello from the server", file=sys.stderr, flush=True)
def tool(name):
    return {"name": name, "description": "Does " + name, "inputSchema": {"type": "object", "properties": {}}}
def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}
def family():
    # starts children that ignore SIGTERM, one of them a daemon, and returns their numbers
    stubborn()
    r, w = os.pipe()
    def member():
        os.write(w, f"{os.getpid()} ".encode())
        time.sleep(1000)
    fork(member)
    daemon(member)
    found = b""
    while found.count(b" ") < 2:
        found += os.read(r, 100)
    return text(f"{os.getpid()} " + found.decode().strip())
def call(params):
    name, given = params["name"], params.get("arguments") or {}
    if name == "echo":
        return text(given.get("text", ""))
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name == "fail":
        return text("it cannot be done", isError=True)
    if name == "big":
        return text("a line of many words\\n" * 5000)
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    if name == "family":
        return family()
    if name == "die":
        os._exit(3)
    if name == "hang":
        time.sleep(1000)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, answer = asked["method"], {}
    if method == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "small", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [tool(n) for n in TOOLS]}
    elif method == "tools/call":
        answer = call(asked["params"])
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
)
ALL = ("echo", "env", "fail", "big", "picture", "family", "die", "hang")


def small_server(
    name: str = "small",
    offers: tuple[str, ...] = ALL,
    *,
    tools: tuple[str, ...] | None = None,
    env: Mapping[str, str] | None = None,
) -> McpServer:
    code = SERVER.replace("TOOLS", repr(offers))
    argv = (sys.executable, "-I", "-S", "-c", code)
    return McpServer(name=name, argv=argv, tools=tools, env=env or {})
