"""Finds out what a model can really do, with two small requests, and remembers it.

Servers only say what their templates allow: many models that "support tools" never call one. So each model is
asked once for a tool call and once for JSON under a schema, and the time of its replies is measured.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

from retinue.core import (
    Json,
    Model,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Prompt,
    ToolSpec,
    Turn,
    as_object,
)

LOOK_UP = ToolSpec(
    "look_up",
    "Look up an entry by its number.",
    {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)
NUMBER_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
WANTED = 7
REPLY_TOKENS = 64
FILLER_NUMBERS = 120
"""How many numbers a prompt has in front, so that the time to read it can be measured."""
MAX_AGE_S = 30 * 86_400
MAX_SPEED_AGE_S = 3_600
"""The speed of a model depends on what else the machine does, so it is measured again after an hour."""
MAX_MODELS = 100


def is_probe(prompt: Prompt) -> bool:
    """Return whether a prompt is one of the two requests."""
    return prompt.tools == (LOOK_UP,) or prompt.schema == NUMBER_SCHEMA


async def probe_model(model: Model) -> ModelSkills:
    """Ask the model for a tool call and for JSON. Raises `Unavailable` if the server does not answer."""
    calls_tools = await _calls_a_tool(model) if (await model.facts()).tools else False
    pieces: list[float] = []

    async def note_time(_: str) -> None:
        pieces.append(time.monotonic())

    # A new beginning each time: a server that remembers the prompt would answer too fast.
    filler = " ".join(str(secrets.randbelow(1000)) for _ in range(FILLER_NUMBERS))
    text = f"{filler}\n\nWhich number follows {WANTED - 1}? Reply with one JSON object."
    began = time.monotonic()
    try:
        reply = await model.reply(
            Prompt(
                turns=(Turn("user", text),), schema=NUMBER_SCHEMA, max_tokens=REPLY_TOKENS, temperature=0.0
            ),
            note_time,
        )
        ended = time.monotonic()
        value: object = json.loads(reply.text)
    except (ModelFailed, ValueError):
        return ModelSkills(calls_tools=calls_tools, follows_schema=False)
    number = cast("Mapping[str, object]", value).get("number") if isinstance(value, Mapping) else None
    reading, writing = (pieces[0] - began, ended - pieces[0]) if pieces else (ended - began, 0.0)
    return ModelSkills(
        calls_tools=calls_tools,
        follows_schema=isinstance(number, int),
        prompt_tokens_s=_speed(reply.prompt_tokens, reading),
        reply_tokens_s=_speed(reply.reply_tokens and reply.reply_tokens - 1, writing),
    )


async def _calls_a_tool(model: Model) -> bool:
    prompt = Prompt(
        turns=(Turn("user", f"Use the tool to look up entry {WANTED}."),),
        tools=(LOOK_UP,),
        max_tokens=REPLY_TOKENS,
        temperature=0.0,
    )
    try:
        reply = await model.reply(prompt)
        return bool(reply.calls) and json.loads(reply.calls[0].arguments or "{}") == {"number": WANTED}
    except (ModelFailed, ValueError):
        return False


def _speed(tokens: int | None, seconds: float) -> float | None:
    return round(tokens / seconds, 1) if tokens and tokens > 0 and seconds > 0.001 else None


def skills_key(facts: ModelFacts) -> str:
    """The name under which the skills of a model are remembered."""
    return f"{facts.endpoint} {facts.model}"


class SkillsFile:
    """The skills of all models that were probed, in one file of the data folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, model: str) -> ModelSkills | None:
        """Return what is known about a model; None if it was not probed lately."""
        entry = as_object(self._read().get(model))
        at = entry.get("at")
        if not isinstance(at, int | float) or time.time() - at > MAX_AGE_S:
            return None
        try:
            return ModelSkills(**cast("dict[str, bool]", as_object(entry.get("skills"))))
        except TypeError:  # written by another version
            return None

    def put(self, model: str, skills: ModelSkills) -> None:
        """Remember the skills of a model."""
        self._write(model, {"at": time.time(), "skills": asdict(skills)})

    def speed(self, model: str) -> ModelSpeed | None:
        """Return how fast a model was when it was last asked, or when it was probed."""
        entry = as_object(self._read().get(model))
        timed = as_object(entry.get("speed"))
        match timed.get("at"), timed.get("prompt_tokens_s"), timed.get("reply_tokens_s"):
            case int() | float() as at, int() | float() as read, int() | float() as written if (
                time.time() - at <= MAX_SPEED_AGE_S and read > 0 and written > 0
            ):
                return ModelSpeed(read, written)
            case _:
                skills = self.get(model)
        if skills is None or not skills.prompt_tokens_s or not skills.reply_tokens_s:
            return None
        return ModelSpeed(skills.prompt_tokens_s, skills.reply_tokens_s)

    def put_speed(self, model: str, speed: ModelSpeed) -> None:
        """Remember how fast a model is."""
        self._write(model, {"speed": {"at": time.time(), **asdict(speed)}})

    def _write(self, model: str, values: Mapping[str, object]) -> None:
        """Set some values of a model. A file that cannot be written is left as it is."""
        known = dict(list(self._read().items())[-MAX_MODELS:])
        known[model] = {**as_object(known.get(model)), **values}
        draft = self._path.with_name(f".{self._path.name}-{secrets.token_hex(4)}")
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file)
            draft.replace(self._path)

    def _read(self) -> dict[str, object]:
        try:
            value: object = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast("dict[str, object]", value) if isinstance(value, dict) else {}
