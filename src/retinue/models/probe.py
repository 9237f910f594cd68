"""Finds out what a model can really do, with a few small requests, and remembers it with its speed.

Servers only say what their templates allow: many models that "support tools" never call one. So each model is
asked once for a tool call, for one among many tools if it makes that call, and for JSON under a schema. A
model that cannot choose among many tools is also asked whether a few lines of code answer a question. Each
answer is kept, so a probe that was interrupted goes on where it ended. A request that failed for a reason
that may pass is no answer. The speed is measured in every request (`client.py`).
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TypeGuard, cast

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    FileLock,
    Json,
    JsonObject,
    Model,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Prompt,
    Reply,
    ToolSpec,
    ToolsUnsupported,
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
MAX_TIMEOUTS = 2
"""How many probes may bring nothing before one that has no more time is left out."""
MAX_TIMEOUT_AGE_S = 3_600
"""A server may have been slow only because it had to load its model."""
REFUSALS = (400, 422)
"""The statuses of a server that does not take such a request, for example one with a schema."""
MAX_MODELS = 100
LOCK_TIMEOUT_S = 2.0
"""How long to wait for others that write. What takes longer is not remembered."""

Answer = bool | float | None
"""What one request of a probe has shown."""
LOOKS = [(question, code) for question in range(len(JUDGED)) for code in range(len(JUDGED))]
"""The numbers of a question and of the code that is shown with it."""
REQUESTS = {
    *(f"call {tools}" for tools in (1, FEW_TOOLS, MANY_TOOLS)),
    *(f"look {question} {code}" for question, code in LOOKS),
    "json",
}
"""The names under which the answers are kept."""


async def probe_model(
    model: Model,
    known: Mapping[str, Answer] | None = None,
    keep: Callable[[str, Answer], Awaitable[None]] | None = None,
) -> ModelSkills:
    """Ask the model for tool calls, for JSON and for a judgement of code.

    What an earlier probe has asked is `known` and not asked again. `keep` is told each new answer by the name
    of its request. Raises `Unavailable` if the server does not answer, and `ModelFailed` if a request failed
    for a reason that may pass.
    """
    answers = dict(known or {})

    async def ask(name: str, request: Callable[[], Awaitable[Answer]]) -> Answer:
        if name not in answers:
            answers[name] = await request()
            if keep is not None:
                await keep(name, answers[name])
        return answers[name]

    async def calls(tools: int) -> bool:
        return bool(await ask(f"call {tools}", partial(_calls_a_tool, model, tools)))

    can_call = await calls(1)
    if not (can_call and await calls(MANY_TOOLS)):
        if can_call:
            await calls(FEW_TOOLS)
        for question, code in LOOKS:
            if await ask(f"look {question} {code}", partial(_look, model, question, code)) is None:
                break
    await ask("json", partial(_follows_a_schema, model))
    return shown_skills(answers)


def shown_skills(answers: Mapping[str, Answer]) -> ModelSkills:
    """Return what a model has shown. If it was not asked for JSON, it is taken to follow schemas."""
    calls_tools = bool(answers.get("call 1"))
    max_tools = None
    if calls_tools and not answers.get(f"call {MANY_TOOLS}"):
        max_tools = FEW_TOOLS if answers.get(f"call {FEW_TOOLS}") else 1
    return ModelSkills(
        calls_tools=calls_tools,
        max_tools=max_tools,
        follows_schema=bool(answers.get("json", True)),
        judges_code=(calls_tools and max_tools is None) or _judges_code(answers),
    )


def _judges_code(answers: Mapping[str, Answer]) -> bool:
    """Return whether a model says yes about code that answers a question, and no about other code."""
    difference = 0.0
    for question, code in LOOKS:
        chance = answers.get(f"look {question} {code}")
        if chance is None:
            return False
        difference += chance if code == question else -chance
    return difference / len(JUDGED) >= MIN_DIFFERENCE


async def _reply(model: Model, prompt: Prompt) -> Reply | None:
    """Return the reply; None if there is none that can be used, or if the server refuses such a request.

    Raises `ModelFailed` if the same request may succeed later.
    """
    try:
        return await model.reply(prompt)
    except (EmptyReply, ToolsUnsupported, ContextOverflow):
        return None
    except ModelFailed as error:
        if error.data.get("status") in REFUSALS:
            return None
        raise


async def _follows_a_schema(model: Model) -> bool:
    # A new beginning each time: a server that remembers the prompt would answer too fast to be measured.
    filler = " ".join(str(secrets.randbelow(1000)) for _ in range(FILLER_NUMBERS))
    text = f"{filler}\n\nWhich number follows {WANTED - 1}? Reply with one JSON object."
    prompt = Prompt(
        turns=(Turn("user", text),), schema=NUMBER_SCHEMA, max_tokens=REPLY_TOKENS, temperature=0.0
    )
    reply = await _reply(model, prompt)
    try:
        value: object = json.loads(reply.text if reply else "")
    except ValueError:
        return False
    return isinstance(value, Mapping) and isinstance(cast("Mapping[str, object]", value).get("number"), int)


async def _look(model: Model, question: int, code: int) -> float | None:
    """Return how likely a model says that some code answers a question; None if it does not say."""
    reply = await _reply(model, look_prompt(JUDGED[code][1], JUDGED[question][0]))
    return chance_of_yes(reply) if reply else None


async def _calls_a_tool(model: Model, tools: int) -> bool:
    """Return whether a model calls the right one of so many tools, with the right argument."""
    if not (await model.facts()).tools:
        return False
    others = [replace(LOOK_UP, name=name, description=text) for name, text in OTHER_TOOLS[: tools - 1]]
    prompt = Prompt(
        turns=(Turn("user", f"Use the tool to look up entry {WANTED}."),),
        tools=(*others[: tools // 2], LOOK_UP, *others[tools // 2 :]),
        max_tokens=REPLY_TOKENS,
        temperature=0.0,
    )
    try:
        reply = await _reply(model, prompt)
    except ModelFailed:
        reply = await _second_reply(model, prompt)
    calls = reply.calls if reply else ()
    try:
        return (
            bool(calls)
            and calls[0].name == LOOK_UP.name
            and json.loads(calls[0].arguments or "{}") == {"number": WANTED}
        )
    except ValueError:
        return False


async def _second_reply(model: Model, prompt: Prompt) -> Reply | None:
    """Return the reply to a prompt that the server failed at; None if it fails again.

    Some servers fail whenever they cannot parse the model's call, which others do only for a moment.
    """
    try:
        return await _reply(model, prompt)
    except ModelFailed:
        return None


def skills_key(facts: ModelFacts) -> str:
    """The name under which the skills of a model are remembered."""
    return f"{facts.endpoint} {facts.model}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """How far the probe of a model has come."""

    answers: Mapping[str, Answer] = field(default_factory=dict[str, Answer])
    timeouts: tuple[float, ...] = ()
    """How many seconds each probe had that has brought no answer since the last one, in the last hour."""

    def is_hopeless(self, seconds: float) -> bool:
        """Return whether so many seconds were too few before."""
        return sum(had >= seconds for had in self.timeouts) >= MAX_TIMEOUTS


class SkillsFile:
    """The skills of all models that were probed, in one file of the data folder that processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, model: str) -> ModelSkills | None:
        """Return what is known about a model; None if it was not probed lately."""
        return _skills_in(self._entry(model))

    def put(self, model: str, skills: ModelSkills) -> None:
        """Remember the skills of a model. Blocks."""
        self._merge(model, lambda _: {"at": time.time(), "skills": asdict(skills), "probe": {}})

    def progress(self, model: str) -> ProbeProgress:
        """Return how far the probe of a model has come if it was interrupted lately."""
        return _progress_in(self._entry(model))

    def note_answer(self, model: str, name: str, answer: Answer) -> None:
        """Remember one answer, in case that the probe is interrupted. Blocks."""
        self._advance(model, lambda known: ProbeProgress({**known.answers, name: answer}))

    def note_timeout(self, model: str, began: ProbeProgress, seconds: float) -> None:
        """Remember that a probe had so many seconds, unless there was progress since it began. Blocks.

        A probe that ended early because a request failed counts as one that had no more time.
        """
        longer = replace(began, timeouts=(*began.timeouts, seconds))
        self._advance(model, lambda known: longer if known == began else known)

    def speed(self, model: str) -> ModelSpeed | None:
        """Return how fast a model was in its last requests; None if that was never measured."""
        return _speed_in(self._entry(model))

    def note_speed(self, model: str, read: float | None, written: float | None) -> None:
        """Remember how many tokens a second a model has read and written; None was not measured. Blocks.

        One request may have waited for others, or have found its prompt in a cache that the server does not
        tell of. So the known speed moves halfway to the new one, and at most doubles or halves.
        """
        self._merge(model, lambda entry: _next_speed(_speed_in(entry), read, written))

    def _advance(self, model: str, change: Callable[[ProbeProgress], ProbeProgress]) -> None:
        def advance(entry: JsonObject) -> JsonObject:
            if _skills_in(entry):  # another probe was faster
                return {}
            return {"probe": {"at": time.time(), **asdict(change(_progress_in(entry)))}}

        self._merge(model, advance)

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


def _is_recent(at: object, max_age_s: float = MAX_AGE_S) -> bool:
    return _is_number(at) and time.time() - at <= max_age_s


def _skills_in(entry: JsonObject) -> ModelSkills | None:
    skills = as_object(entry.get("skills"))
    names = {each.name for each in fields(ModelSkills)}  # others were written by another version
    return ModelSkills(**skills) if set(skills) == names and _is_recent(entry.get("at")) else None


def _progress_in(entry: JsonObject) -> ProbeProgress:
    probe = as_object(entry.get("probe"))
    answers, timeouts = as_object(probe.get("answers")), probe.get("timeouts")
    fits = set(answers) <= REQUESTS and all(each is None or _is_number(each) for each in answers.values())
    if not (fits and isinstance(timeouts, list) and _is_recent(probe.get("at"))):  # or of another version
        return ProbeProgress()
    if not _is_recent(probe.get("at"), MAX_TIMEOUT_AGE_S):
        return ProbeProgress(answers)
    return ProbeProgress(answers, tuple(filter(_is_number, cast("list[object]", timeouts))))


def _speed_in(entry: JsonObject) -> ModelSpeed | None:
    timed = as_object(entry.get("speed"))
    match timed.get("at"), timed.get("prompt_tokens_s"), timed.get("reply_tokens_s"):
        case int() | float() as at, int() | float() as read, int() | float() as written if (
            read > 0 and written > 0 and _is_recent(at)
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
