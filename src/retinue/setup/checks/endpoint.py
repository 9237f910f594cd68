"""Whether a model answers. Speaks to this machine alone, and knows nothing of how models are used."""

from __future__ import annotations

import http.client
import ipaddress
import json
from dataclasses import dataclass
from functools import partial
from typing import cast
from urllib.parse import SplitResult, urlsplit

from retinue.setup.checks.check import Check
from retinue.setup.checks.together import Failure, together

WELL_KNOWN = {1234: "LM Studio", 11434: "Ollama", 8080: "llama.cpp", 8000: "vLLM"}

START_ONE = "`lms server start` (LM Studio), `ollama serve` (Ollama) or `llama-server -m FILE` (llama.cpp)"
MAX_BODY = 512 * 1024
MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class Reply:
    status: int | None
    """None when nothing answered in time."""
    models: tuple[str, ...] | None = None
    """None when what answered is not an OpenAI-compatible endpoint."""


def endpoint(url: str | None, seconds: float = 2.0) -> list[Check]:
    """The configured endpoint; without one, whatever listens on the well-known ports."""
    return [_around() if url is None else _given(url, seconds)]


def _given(url: str, seconds: float) -> Check:
    name = "model endpoint"
    try:
        parts = urlsplit(url)
        shown = _shown(parts)
        local = _is_loopback(parts.hostname or "")
    except ValueError:
        parts, shown, local = urlsplit(""), "", False
    if parts.scheme not in ("http", "https") or not parts.hostname:
        fix = "write it as http://127.0.0.1:1234/v1"
        return Check(name, "problem", "the configured URL is not an http or https URL", fix)
    if not local:
        finding = f"{shown} is not on this machine and was not contacted"
        return Check(name, "warning", finding, f"try it yourself: curl {shown}/models")
    answered = together([partial(models_at, parts, seconds)], seconds + 0.5)[0]
    reply = Reply(None) if isinstance(answered, Failure) else answered
    if reply.models:
        return Check(name, "ok", f"{shown} answers with {_names(reply.models)}")
    if reply.models is not None:
        return Check(name, "warning", f"{shown} answers, but has no model", "download or load one there")
    if reply.status is None:
        fix = f"start it: {START_ONE}; or correct the URL"
        return Check(name, "problem", f"{shown} does not answer", fix)
    if reply.status in (401, 403):
        fix = "set the endpoint's key in the configuration"
        return Check(name, "warning", f"{shown} asks for a key", fix)
    finding = f"{shown} answers, but not as an OpenAI-compatible endpoint (status {reply.status})"
    return Check(name, "problem", finding, "correct the URL; it usually ends in /v1")


def _around() -> Check:
    ports = list(WELL_KNOWN)
    addresses = [urlsplit(f"http://127.0.0.1:{port}/v1") for port in ports]
    replies = together([partial(models_at, address, 0.5) for address in addresses], 1.0)
    found = [
        f"http://127.0.0.1:{port}/v1 ({WELL_KNOWN[port]}'s port) answers with {_names(reply.models)}"
        for port, reply in zip(ports, replies, strict=True)
        if isinstance(reply, Reply) and reply.models is not None
    ]
    if found:
        fix = "name it in the configuration if agents shall use it; `retinue config` shows how"
        return Check("model endpoint", "ok", f"none is configured; {'; '.join(found)}", fix)
    finding = "none is configured and none was found; research works without one"
    return Check("model endpoint", "ok", finding, f"to start one: {START_ONE}")


def models_at(base: SplitResult, seconds: float) -> Reply:
    """What the endpoint's list of models holds."""
    kind = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    connection = kind(base.hostname or "", base.port, timeout=seconds)
    path = base.path.rstrip("/")
    try:
        connection.request("GET", f"{path}/models" if path.endswith("/v1") else f"{path}/v1/models")
        response = connection.getresponse()
        body = response.read(MAX_BODY)
    except (OSError, http.client.HTTPException):
        return Reply(None)
    finally:
        connection.close()
    return Reply(response.status, _models(body) if response.status == 200 else None)


def _models(body: bytes) -> tuple[str, ...] | None:
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return None
    entries = cast("list[object]", listed)
    names = [cast("dict[str, object]", entry).get("id") for entry in entries if isinstance(entry, dict)]
    return tuple(name for name in names if isinstance(name, str))


def _names(models: tuple[str, ...]) -> str:
    if not models:
        return "no model"
    printable = ["".join(c for c in name if c.isprintable())[:60] for name in models[:MAX_NAMES]]
    more = f" and {len(models) - MAX_NAMES} more" if len(models) > MAX_NAMES else ""
    return ", ".join(printable) + more


def _shown(parts: SplitResult) -> str:
    """The URL without the parts that may hold a password or a key."""
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
