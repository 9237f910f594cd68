"""The doctor checks model endpoints on this machine only, and shows no secret (P6, P8, P10)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import anyio.to_thread
import pytest

from retinue.models import EndpointPlan, ModelPlan, TierPlan
from retinue.setup import DoctorCheck, model_checks as module
from retinue.setup.model_checks import check_model_endpoints
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel


class Models(BaseHTTPRequestHandler):
    """A fake endpoint. The first part of the path selects its behaviour."""

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


def only(checks: list[DoctorCheck]) -> DoctorCheck:
    assert len(checks) == 1
    return checks[0]


def endpoint(url: str, seconds: float = 30, model: str = "") -> DoctorCheck:
    return only(check_model_endpoints(ModelPlan(endpoint=url, model=model), {}, seconds))


async def examined(
    kind: str, state: FakeServerState, plan: ModelPlan, url_of: str = "it"
) -> list[DoctorCheck]:
    async with serve_fake(FakeModelServer(ScriptedModel([]), SERVER_BEHAVIOURS[kind], state)) as url:
        whole = ModelPlan(endpoint=url_of, model=plan.model, endpoints={url_of: EndpointPlan(url)})
        checks = await anyio.to_thread.run_sync(partial(check_model_endpoints, whole, {}, 30))
    return [
        DoctorCheck(each.name, each.status, each.finding.replace(url, "URL"), each.fix) for each in checks
    ]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_working_endpoint_is_reported_with_its_model(port: int, host: str, tail: str) -> None:
    found = endpoint(f"http://{host}:{port}/good{tail}")
    assert found.status == "ok"
    assert (
        "is an unknown server with model-0[0m "
        "(the server does not tell its context, 4,096 tokens assumed, 1 slot, supports tools)"
    ) in found.finding
    assert "models.context" in found.fix


def test_context_that_the_user_tells_is_used(port: int) -> None:
    plan = ModelPlan(endpoint=f"http://127.0.0.1:{port}/good", context=32_768)
    found = only(check_model_endpoints(plan, {}, 30))
    assert "model-0[0m (32,768 tokens of context, 1 slot, supports tools)" in found.finding
    assert found.fix == ""


def test_context_is_for_the_default_endpoint_only() -> None:
    named = EndpointPlan("http://127.0.0.1:1", context=2_048)
    plan = ModelPlan(endpoint="http://127.0.0.1:2", context=9_000, endpoints={"named": named})
    assert {name: each.context for name, each in plan.servers().items()} == {
        "named": 2_048,
        "http://127.0.0.1:2": 9_000,
    }


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("empty", "has no model"),
        ("locked", "requires a key"),
        ("moved", "redirect"),
        ("list", "not as an OpenAI-compatible"),
        ("broken", "not as an OpenAI-compatible"),
        ("deep", "not as an OpenAI-compatible"),
    ],
)
def test_each_kind_of_wrong_answer_is_reported_differently(port: int, kind: str, words: str) -> None:
    found = endpoint(f"http://127.0.0.1:{port}/{kind}/v1")
    assert found.status == "problem"
    assert words in found.finding
    assert found.fix


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("lmstudio", "LM Studio with scripted (16,384 tokens of context, 4 slots, supports tools)"),
        ("ollama", "Ollama with scripted (16,384 tokens of context, 1 slot, no tool support)"),
        ("llamacpp", "llama.cpp with scripted (16,384 tokens of context, 2 slots, no tool support)"),
        ("vllm", "vLLM with scripted (16,384 tokens of context, 4 slots, supports tools)"),
    ],
)
async def test_every_server_kind_is_reported_with_its_capabilities(kind: str, words: str) -> None:
    state = FakeServerState(context=16_384, tools=False, slots=2 if kind == "llamacpp" else None)
    assert await examined(kind, state, ModelPlan()) == [
        DoctorCheck("model endpoint it", "ok", f"URL is {words}")
    ]


@pytest.mark.anyio
async def test_small_context_comes_with_advice() -> None:
    [found] = await examined("ollama", FakeServerState(), ModelPlan())
    assert found.status == "ok" and "8,192 tokens or more" in found.fix


@pytest.mark.anyio
async def test_model_that_is_not_loaded_yet_is_reported() -> None:
    [found] = await examined("lmstudio", FakeServerState(loaded=False), ModelPlan(model="scripted"))
    assert "scripted (not loaded yet, 4,096 tokens of context assumed" in found.finding


@pytest.mark.anyio
async def test_missing_model_is_a_problem_and_the_fix_lists_available_models() -> None:
    [found] = await examined("ollama", FakeServerState(), ModelPlan(model="qwen3"))
    assert found.status == "problem"
    assert "does not have qwen3" in found.finding and found.fix.endswith("scripted")


@pytest.mark.anyio
async def test_server_that_ignores_the_model_name_is_a_warning() -> None:
    """P8"""
    [found] = await examined("llamacpp", FakeServerState(), ModelPlan(model="qwen3"))
    assert found.status == "warning"
    assert found.fix == "this server ignores the model name and uses what it has: scripted"


def test_every_configured_endpoint_is_checked(port: int) -> None:
    plan = ModelPlan(
        endpoint=f"http://127.0.0.1:{port}/good",
        endpoints={
            "big": EndpointPlan(f"http://127.0.0.1:{port}/empty"),
            "far": EndpointPlan("https://192.0.2.1/v1"),
            "keyed": EndpointPlan(f"http://127.0.0.1:{port}/good", api_key_env="NO_SUCH_KEY"),
        },
        tiers={"strong": TierPlan("big")},
    )
    found = {check.name: check for check in check_model_endpoints(plan, {}, 30)}
    assert {name: check.status for name, check in found.items()} == {
        "model endpoint": "ok",
        "model endpoint big": "problem",
        "model endpoint far": "warning",
        "model endpoint keyed": "problem",
    }
    assert "NO_SUCH_KEY" in found["model endpoint keyed"].finding


def test_tier_with_an_unknown_endpoint_is_a_problem() -> None:
    found = only(check_model_endpoints(ModelPlan(tiers={"fast": TierPlan("nowhere")}), {}))
    assert found.status == "problem" and "no endpoint is called nowhere" in found.finding


def test_unreachable_endpoint_is_a_problem_and_the_fix_says_how_to_start_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert found.status == "problem"
    assert "does not answer" in found.finding and "ollama serve" in found.fix


def test_endpoint_that_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", 0.2)
    assert found.status == "problem"


def test_endpoint_that_speaks_no_http_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:

        def speak() -> None:
            with suppress(OSError):  # the listener was closed
                while True:
                    connection, _ = strange.accept()
                    with connection:
                        connection.sendall(b"SSH-2.0-x\r\n\r\n")

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        found = endpoint(f"http://127.0.0.1:{strange.getsockname()[1]}/v1")
        strange.shutdown(socket.SHUT_RDWR)
        speaker.join(5)
    assert found.status == "problem"


def test_remote_endpoint_is_not_contacted() -> None:
    """The address is reserved for documentation, so contacting it would time out."""
    found = endpoint("https://192.0.2.1:8443/v1", 0.1)
    assert found.status == "warning"
    assert "https://192.0.2.1:8443/v1 is not on this machine" in found.finding


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:1234", "ftp://127.0.0.1/", "http://", "http://h:99999999/", "http://[x/"),
        *("https://user:hunter2@192.0.2.1/v1", "https://192.0.2.1/v1?key=hunter2"),
    ],
)
def test_invalid_url_is_a_problem_and_is_not_shown(url: str) -> None:
    """P6"""
    found = only(check_model_endpoints(ModelPlan(endpoint="it", endpoints={"it": EndpointPlan(url)}), {}))
    assert found.status == "problem"
    assert "http://127.0.0.1:1234/v1" in found.fix
    assert "hunter2" not in str(found)


def test_without_configuration_the_well_known_ports_are_scanned() -> None:
    """P10: having no model is not a problem."""
    assert set(module.WELL_KNOWN_PORTS) == {1234, 11434, 8080, 8000}
    found = only(check_model_endpoints(ModelPlan(), {}))
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
        pytest.skip("another program listens on Ollama's port")
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        found = only(check_model_endpoints(ModelPlan(), {}))
        server.shutdown()
        thread.join(5)
    assert "http://127.0.0.1:11434/v1 (an unknown server) answers with model-0" in found.finding
