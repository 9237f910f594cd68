"""A minimal host of MCP Apps: a page that shows the card of a call, a real server, and a real browser.

The page does what the specification asks of a host: it puts the page of the tool into a sandboxed frame
under the restrictive policy, answers `ui/initialize`, sends the input and the result of the call, and passes
calls of tools on to the server.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from queue import Queue
from typing import Any, cast

from tests.conftest import RETINUE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
APPS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; frame-src 'self'; object-src 'none'; base-uri 'self'"
)
"""That of the host. Its frames inherit it, so that the card cannot connect to anybody else."""
PAGE = """<!doctype html><meta charset="utf-8"><title>host</title>
<style>body { margin: 1rem; background: BACKGROUND } iframe { width: 640px; border: 0 }</style>
<script>
const call = CALL, theme = "THEME", seen = [];
const ask = async (method, params) => {
  const answer = await fetch("/rpc", { method: "POST", body: JSON.stringify({ method, params }) });
  return answer.json();
};
const frame = document.createElement("iframe");
frame.sandbox = "allow-scripts";
const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
addEventListener("message", async ({ data, source }) => {
  if (source !== frame.contentWindow) return;
  seen.push(data);
  if (data.method === "ui/initialize") {
    const host = { hostInfo: { name: "host", version: "1" }, hostCapabilities: { serverTools: {} } };
    send({ id: data.id, result: { protocolVersion: "2026-01-26", ...host, hostContext: { theme } } });
  } else if (data.method === "ui/notifications/initialized") {
    send({ method: "ui/notifications/tool-input", params: { arguments: call.arguments } });
    const { result, error } = await ask("tools/call", call);
    send({ method: "ui/notifications/tool-result", params: result ?? { content: [], isError: true } });
  } else if (data.method === "ui/notifications/size-changed") {
    frame.style.height = data.params.height + "px";
  } else if (data.method === "tools/call") {
    send({ id: data.id, ...(await ask(data.method, data.params)) });
  }
});
addEventListener("DOMContentLoaded", async () => {
  const { result } = await ask("resources/read", { uri: "URI" });
  frame.srcdoc = result.contents[0].text;
  document.body.append(frame);
});
</script>"""


class HostedServer:
    """A real server on stdio, to which several requests may be sent at once."""

    def __init__(self, environment: Mapping[str, str], capabilities: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [*RETINUE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment)
        )
        self._ids = count(1)
        self._answers: dict[int, Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        hello = {"name": "host", "version": "1"}
        self.request(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": dict(capabilities), "clientInfo": hello},
        )
        self._send({"method": "notifications/initialized"})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if "method" not in message:
                self._answers[message["id"]].put(message)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the whole answer, with `result` or `error`."""
        number = next(self._ids)
        self._answers[number] = Queue()
        self._send({"id": number, "method": method, "params": dict(params or {})})
        return self._answers[number].get(timeout=60)

    def close(self) -> None:
        self._process.communicate(timeout=20)


class AppHost:
    """Serves the page of the host."""

    def __init__(self, server: HostedServer) -> None:
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("text/html", host.page.encode(), **{"Content-Security-Policy": POLICY})

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = server.request(asked["method"], asked["params"])
                kept = {key: answer[key] for key in ("result", "error") if key in answer}
                self._answer("application/json", json.dumps(kept).encode())

            def _answer(self, kind: str, body: bytes, **headers: str) -> None:
                self.send_response(200)
                for name, value in {"Content-Type": kind, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.page = ""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/"

    def show(self, tool: str, theme: str = "light", **arguments: Any) -> str:
        """Prepare the page for a call. Returns its address."""
        call = json.dumps({"name": tool, "arguments": arguments}).replace("<", "\\u003c")
        ground = "#fff" if theme == "light" else "#14181b"
        page = PAGE.replace("BACKGROUND", ground).replace("THEME", theme).replace("URI", "ui://retinue/run")
        self.page = page.replace("CALL", call)
        return self.url

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class Browser:
    """Chromium, driven with its own protocol over two pipes."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._reading = incoming
        self._writing = outgoing
        self._ids = count(1)
        self._contexts: dict[str, int] = {}
        """Frames to the scripts in them."""
        self._rest = b""
        self.console: list[str] = []
        target = self._send("Target.createTarget", {"url": "about:blank"})
        attach = {"targetId": target["targetId"], "flatten": True}
        self._session: str | None = self._send("Target.attachToTarget", attach)["sessionId"]
        self._send("Page.enable")
        self._send("Runtime.enable")
        self._send("Log.enable")

    def _send(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": dict(params or {})}
        if not method.startswith("Target.") and self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._notice(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            self._rest += os.read(self._reading, 65_536)
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _notice(self, event: Mapping[str, Any]) -> None:
        params: dict[str, Any] = event.get("params", {})
        match event.get("method"):
            case "Runtime.executionContextCreated":
                context = params["context"]
                self._contexts[context["auxData"]["frameId"]] = context["id"]
            case "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled":
                self.console.append(json.dumps(params))
            case _:
                pass

    def open(self, url: str) -> None:
        self._contexts.clear()
        self._send("Page.navigate", {"url": url})
        self.until(lambda: self.run("document.querySelector('iframe') !== null", card=False))
        self.until(lambda: self.run("document.getElementById('card') !== null"))

    def run(self, script: str, *, card: bool = True) -> Any:
        """Evaluate a script in the card, or in the page of the host. None if that is not there yet."""
        tree = self._send("Page.getFrameTree")["frameTree"]
        frames = (
            [child["frame"]["id"] for child in tree.get("childFrames", ())] if card else [tree["frame"]["id"]]
        )
        context = self._contexts.get(frames[0]) if frames else None
        if context is None:
            return None
        given = {"expression": script, "contextId": context, "returnByValue": True, "awaitPromise": True}
        answer = self._send("Runtime.evaluate", given)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self) -> str:
        """What a reader sees of the card."""
        return cast("str", self.run("document.body.innerText"))

    def click(self, selector: str) -> None:
        """Press the mouse on the middle of an element of the card."""
        inner, outer = self._place(selector), self._place("iframe", card=False)
        x, y = inner["x"] + inner["width"] / 2, inner["y"] + inner["height"] / 2
        where = {"x": x + outer["x"], "y": y + outer["y"], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self._send("Input.dispatchMouseEvent", {"type": kind, **where})

    def _place(self, selector: str, *, card: bool = True) -> dict[str, float]:
        script = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()"
        return cast("dict[str, float]", self.run(script, card=card))

    def write(self, text: str) -> None:
        self._send("Input.insertText", {"text": text})

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._send("Page.captureScreenshot")["data"]))

    def until(self, check: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < end, (self.text(), self.console)
            time.sleep(0.05)


@contextmanager
def browsing() -> Generator[Browser]:
    assert CHROMIUM is not None
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-pipe",
        "--window-size=720,600",
    ]
    options += [
        "--no-first-run",
        "--disable-features=IsolateSandboxedIframes",
        "--disable-background-networking",
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # Chromium reads from descriptor 3 and writes to 4.
        script = f'exec 3<&{their_in} 4>&{their_out}; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", script, "-", CHROMIUM, *options, f"--user-data-dir={home}"],
            pass_fds=(their_in, their_out),
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
        )
        os.close(their_in)
        os.close(their_out)
        try:
            yield Browser(our_in, our_out)
        finally:
            process.terminate()
            process.wait(20)
            os.close(our_out)
            os.close(our_in)
