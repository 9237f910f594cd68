"""The doctor finds the model that answers, on this machine alone, and repeats no secret (P6, P10)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from retinue.setup.checks import endpoint as module
from retinue.setup.checks.check import Check
from retinue.setup.checks.endpoint import endpoint


class Models(BaseHTTPRequestHandler):
    """An endpoint whose behaviour is the first part of its path."""

    def do_GET(self) -> None:
        kind, _, rest = self.path.strip("/").partition("/")
        body = {
            "good": json.dumps({"data": [{"id": f"model-{n}\x1b[0m"} for n in range(5)]}),
            "empty": json.dumps({"data": []}),
            "list": "[1]",
            "broken": '{"data": ',
            "deep": "[" * 100_000,
        }.get(kind, "{}")
        status = {"locked": 401, "moved": 302}.get(kind, 200) if rest == "v1/models" else 404
        self.send_response(status)
        if kind == "moved":
            self.send_header("Location", "http://192.0.2.1/")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Models) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join(5)


def only(checks: list[Check]) -> Check:
    assert len(checks) == 1
    return checks[0]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_endpoint_that_answers_is_told_with_its_models(port: int, host: str, tail: str) -> None:
    found = only(endpoint(f"http://{host}:{port}/good{tail}", 30))
    assert found.status == "ok"
    assert found.finding.endswith("model-0[0m, model-1[0m, model-2[0m and 2 more")


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("empty", "warning", "has no model"),
        ("locked", "warning", "asks for a key"),
        ("moved", "problem", "status 302"),
        ("list", "problem", "not as an OpenAI-compatible"),
        ("broken", "problem", "not as an OpenAI-compatible"),
        ("deep", "problem", "not as an OpenAI-compatible"),
    ],
)
def test_endpoint_that_answers_otherwise_is_told_apart(port: int, kind: str, status: str, words: str) -> None:
    found = only(endpoint(f"http://127.0.0.1:{port}/{kind}/v1", 30))
    assert found.status == status
    assert words in found.finding
    assert found.fix


def test_endpoint_that_is_not_there_is_a_problem_with_the_way_to_start_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = only(endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", 5))
    assert found.status == "problem"
    assert "does not answer" in found.finding and "ollama serve" in found.fix


def test_endpoint_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = only(endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", 0.2))
    assert found.status == "problem"


def test_endpoint_that_speaks_no_http_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:

        def speak() -> None:
            connection, _ = strange.accept()
            with connection:
                connection.sendall(b"SSH-2.0-x\r\n\r\n")

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        found = only(endpoint(f"http://127.0.0.1:{strange.getsockname()[1]}/v1", 5))
        speaker.join(5)
    assert found.status == "problem"


def test_endpoint_elsewhere_is_not_contacted_and_its_password_not_shown() -> None:
    """P6. The address is one that documentation reserves: contacting it would only time out."""
    found = only(endpoint("https://user:hunter2@192.0.2.1:8443/v1?key=swordfish", 0.1))
    assert found.status == "warning"
    assert "https://192.0.2.1:8443/v1 is not on this machine" in found.finding
    assert "hunter2" not in str(found) and "swordfish" not in str(found)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:1234", "ftp://127.0.0.1/", "http://", "http://h:99999999/", "http://[x/"]
)
def test_what_is_no_url_is_a_problem(url: str) -> None:
    found = only(endpoint(url))
    assert found.status == "problem"
    assert "http://127.0.0.1:1234/v1" in found.fix


def test_without_configuration_the_well_known_ports_are_looked_at() -> None:
    """P10: no model is no problem."""
    assert set(module.WELL_KNOWN) == {1234, 11434, 8080, 8000}
    found = only(endpoint(None))
    assert found.status == "ok"
    assert "none is configured" in found.finding
    assert found.fix


def test_model_on_a_well_known_port_is_found() -> None:
    class Ollama(Models):
        def do_GET(self) -> None:
            self.path = "/good" + self.path
            super().do_GET()

    try:
        server = ThreadingHTTPServer(("127.0.0.1", 11434), Ollama)
    except OSError:
        pytest.skip("something else listens on Ollama's port")
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        found = only(endpoint(None))
        server.shutdown()
        thread.join(5)
    assert "http://127.0.0.1:11434/v1 (Ollama's port) answers with model-0" in found.finding
