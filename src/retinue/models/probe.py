"""Finds out what a model can really do, with a few small requests, and remembers it with its speed.

Servers only say what their templates allow: many models that "support tools" never call one. So each model is
asked once for a tool call, for one among many tools if it makes that call, and for JSON under a schema. A
model that cannot choose among many tools is also asked whether a few lines of code answer a question. A probe
that was interrupted goes on where it ended. The speed is measured in every request (`client.py`).
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import TypeGuard, cast

from retinue.core import (
    FileLock,
    Json,
    JsonObject,
    Model,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Prompt,
    ToolSpec,
    Turn,
    as_object,
    chance_of_yes,
    look_prompt,
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
OTHER_TOOLS = (
    ("add_entry", "Add an entry with this number."),
    ("remove_entry", "Remove an entry by its number."),
    ("count_entries", "Count the entries from this number on."),
    ("list_entries", "List the entries from this number on."),
    ("rename_entry", "Rename an entry by its number."),
    ("copy_entry", "Copy an entry by its number."),
    ("move_entry", "Move an entry to this number."),
    ("print_entry", "Print an entry by its number."),
    ("lock_entry", "Lock an entry by its number."),
    ("share_entry", "Share an entry by its number."),
    ("compare_entries", "Compare the last two entries with this one."),
)
FEW_TOOLS, MANY_TOOLS = 5, 12
"""Numbers of tools among which a model has to choose. An agent that reads has about five."""
WANTED = 7
JUDGED = (
    (
        "Which port does the server listen on by default?",
        "src/server.py:\n12: DEFAULT_PORT = 8080\n13: \n14: def listen(port=DEFAULT_PORT):\n"
        '15:     """Listen for connections on a port."""\n16:     return open_socket(port)',
    ),
    (
        "Where is an e-mail sent?",
        "app/mail.rb:\n20: def send_mail(to, subject)\n"
        "21:   connection.deliver(to: to, subject: subject)\n22: end",
    ),
)
"""Questions with the code that answers each. The code of one does not answer the other."""
MIN_DIFFERENCE = 0.2
"""How much likelier a yes must be for the right code. For Qwen2.5-Coder it is 0.64 with 1.5B parameters, and
0.08 with 0.5B."""
REPLY_TOKENS = 64
FILLER_NUMBERS = 120
"""How many numbers a prompt has in front, so that the time to read it can be measured."""
MAX_AGE_S = 30 * 86_400
MAX_SPEED_AGE_S = 3_600
"""The speed of a model depends on what else the machine does, so an older one may be wrong by now."""
READING_FACTOR = 4
"""How much faster a model reads than it writes, as long as only one of both was measured."""
MAX_MODELS = 100
LOCK_TIMEOUT_S = 2.0
"""How long to wait for others that write. What takes longer is not remembered."""

Skill = bool | int | None
"""What a probe finds out for one field of `ModelSkills`."""


async def probe_model(
    model: Model,
    known: Mapping[str, Skill] | None = None,
    keep: Callable[[str, Skill], Awaitable[None]] | None = None,
) -> ModelSkills:
    """Ask the model for tool calls, for JSON and for a judgement of code.

    What an earlier probe has found is `known` and not asked for again. `keep` is told each new skill by the
    name of its field. Raises `Unavailable` if the server does not answer.
    """
    found = dict(known or {})

    async def skill(name: str, ask: Callable[[], Awaitable[Skill]]) -> Skill:
        if name not in found:
            found[name] = await ask()
            if keep is not None:
                await keep(name, found[name])
        return found[name]

    async def calls_tools() -> bool:
        return (await model.facts()).tools and await _calls_a_tool(model, 1)

    can_call = bool(await skill("calls_tools", calls_tools))
    max_tools = await skill("max_tools", partial(_most_tools, model)) if can_call else None
    is_strong = can_call and max_tools is None
    return ModelSkills(
        calls_tools=can_call,
        max_tools=max_tools,
        follows_schema=bool(await skill("follows_schema", partial(_follows_a_schema, model))),
        judges_code=is_strong or bool(await skill("judges_code", partial(_judges_code, model))),
    )


async def _follows_a_schema(model: Model) -> bool:
    # A new beginning each time: a server that remembers the prompt would answer too fast to be measured.
    filler = " ".join(str(secrets.randbelow(1000)) for _ in range(FILLER_NUMBERS))
    text = f"{filler}\n\nWhich number follows {WANTED - 1}? Reply with one JSON object."
    prompt = Prompt(
        turns=(Turn("user", text),), schema=NUMBER_SCHEMA, max_tokens=REPLY_TOKENS, temperature=0.0
    )
    try:
        value: object = json.loads((await model.reply(prompt)).text)
    except (ModelFailed, ValueError):
        return False
    return isinstance(value, Mapping) and isinstance(cast("Mapping[str, object]", value).get("number"), int)


async def _judges_code(model: Model) -> bool:
    """Return whether a model says yes about code that answers a question, and no about other code."""
    right, other = 0.0, 0.0
    for question, answer in JUDGED:
        for _, code in JUDGED:
            try:
                chance = chance_of_yes(await model.reply(look_prompt(code, question)))
            except ModelFailed:
                return False
            if chance is None:
                return False
            if code == answer:
                right += chance
            else:
                other += chance
    return (right - other) / len(JUDGED) >= MIN_DIFFERENCE


async def _most_tools(model: Model) -> int | None:
    """Return among how many tools a model still calls the right one; None if it does among many."""
    if await _calls_a_tool(model, MANY_TOOLS):
        return None
    return FEW_TOOLS if await _calls_a_tool(model, FEW_TOOLS) else 1


async def _calls_a_tool(model: Model, tools: int) -> bool:
    """Return whether a model calls the right one of so many tools, with the right argument."""
    others = [replace(LOOK_UP, name=name, description=text) for name, text in OTHER_TOOLS[: tools - 1]]
    prompt = Prompt(
        turns=(Turn("user", f"Use the tool to look up entry {WANTED}."),),
        tools=(*others[: tools // 2], LOOK_UP, *others[tools // 2 :]),
        max_tokens=REPLY_TOKENS,
        temperature=0.0,
    )
    try:
        calls = (await model.reply(prompt)).calls
        return (
            bool(calls)
            and calls[0].name == LOOK_UP.name
            and json.loads(calls[0].arguments or "{}") == {"number": WANTED}
        )
    except (ModelFailed, ValueError):
        return False


def skills_key(facts: ModelFacts) -> str:
    """The name under which the skills of a model are remembered."""
    return f"{facts.endpoint} {facts.model}"


def _is_skill(value: object) -> TypeGuard[Skill]:
    return value is None or isinstance(value, int)


class SkillsFile:
    """The skills of all models that were probed, in one file of the data folder that processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, model: str) -> ModelSkills | None:
        """Return what is known about a model; None if it was not probed lately."""
        entry = self._entry(model)
        at = entry.get("at")
        if not isinstance(at, int | float) or time.time() - at > MAX_AGE_S:
            return None
        skills = as_object(entry.get("skills"))
        if set(skills) != {field.name for field in fields(ModelSkills)}:  # written by another version
            return None
        return ModelSkills(**skills)

    def put(self, model: str, skills: ModelSkills) -> None:
        """Remember the skills of a model. Blocks."""
        self._merge(model, lambda _: {"at": time.time(), "skills": asdict(skills), "probe": {}})

    def probed(self, model: str) -> dict[str, Skill]:
        """Return what an interrupted probe has found out about a model."""
        return _probed_in(self._entry(model))

    def note_probed(self, model: str, name: str, value: Skill) -> None:
        """Remember one thing that a probe has found out, in case that the probe is interrupted. Blocks."""
        self._merge(model, lambda entry: {"probe": {**_probed_in(entry), name: value}})

    def speed(self, model: str) -> ModelSpeed | None:
        """Return how fast a model was in its last requests; None if that was never measured."""
        return _speed_in(self._entry(model))

    def note_speed(self, model: str, read: float | None, written: float | None) -> None:
        """Remember how many tokens a second a model has read and written; None was not measured. Blocks.

        One request may have waited for others, or have found its prompt in a cache that the server does not
        tell of. So the known speed moves halfway to the new one, and at most doubles or halves.
        """
        self._merge(model, lambda entry: _next_speed(_speed_in(entry), read, written))

    def _merge(self, model: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Set what `change` makes of a model's entry, one writer at a time.

        A file that cannot be written is left as it is.
        """
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(FileLock(self._path.with_name(f"{self._path.name}.lock"))) as lock:
                if lock.acquire(LOCK_TIMEOUT_S):
                    known = dict(list(self._read().items())[-MAX_MODELS:])
                    entry = as_object(known.get(model))
                    if values := change(entry):
                        self._write({**known, model: {**entry, **values}})

    def _write(self, known: JsonObject) -> None:
        draft = self._path.with_name(f".{self._path.name}-{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(known, file)
        draft.replace(self._path)

    def _entry(self, model: str) -> JsonObject:
        return as_object(self._read().get(model))

    def _read(self) -> JsonObject:
        try:
            return as_object(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}


def _probed_in(entry: JsonObject) -> dict[str, Skill]:
    names = {field.name for field in fields(ModelSkills)}
    found = as_object(entry.get("probe"))
    return {name: value for name, value in found.items() if name in names and _is_skill(value)}


def _speed_in(entry: JsonObject) -> ModelSpeed | None:
    timed = as_object(entry.get("speed"))
    match timed.get("at"), timed.get("prompt_tokens_s"), timed.get("reply_tokens_s"):
        case int() | float() as at, int() | float() as read, int() | float() as written if (
            read > 0 and written > 0 and time.time() - at <= MAX_AGE_S
        ):
            return ModelSpeed(read, written, is_old=time.time() - at > MAX_SPEED_AGE_S)
        case _:
            return None


def _next_speed(known: ModelSpeed | None, read: float | None, written: float | None) -> JsonObject:
    if known is None or known.is_old:
        old_read, old_written = (known.prompt_tokens_s, known.reply_tokens_s) if known else (None, None)
        read = read or old_read or (written and written * READING_FACTOR)
        written = written or old_written or (read and read / READING_FACTOR)
    else:
        read = _halfway(known.prompt_tokens_s, read)
        written = _halfway(known.reply_tokens_s, written)
    if not (read and written):
        return {}
    timed = {"prompt_tokens_s": round(read, 2), "reply_tokens_s": round(written, 2)}
    return {"speed": {"at": time.time(), **timed}}


def _halfway(known: float, measured: float | None) -> float:
    if not measured:
        return known
    return min(max(math.sqrt(known * measured), known / 2), known * 2)
