"""Runs the loop of local agents against typical mistakes of small models. Generates docs/hostile-models.md.

Each mistake is made twice: by a model that recovers, and by one that never does.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Json,
    ModelFailed,
    Outcome,
    Prompt,
    ToolsUnsupported,
    counted,
)
from tests.executors.local.loop_support import Trial
from tests.models.scripted_model import ScriptLine, calls, says

ANSWER = "Retry is handled in src/app.py:4."
SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "places": {"type": "array", "items": {"type": "string"}}},
    "required": ["summary", "places"],
}
VALID = '{"summary": "Retry counts its attempts.", "places": ["src/app.py:4"]}'
LOOKS = calls("read_file", path="src/app.py")


@dataclass(frozen=True, slots=True)
class Behaviour:
    name: str
    does: str
    """What the model (or its server) does."""
    bad: Callable[[int], ScriptLine]
    """The n-th time."""
    then: tuple[ScriptLine, ...] = (ANSWER,)
    """What a model that recovers does afterwards."""
    before: tuple[ScriptLine, ...] = ()
    schema: Mapping[str, Json] | None = None
    once: int = 1
    """How often the model that recovers makes the mistake."""
    quietly: str = ""
    """What the loop does if it tells the model nothing."""

    def recovering(self) -> Iterable[ScriptLine]:
        return [*self.before, *map(self.bad, range(self.once)), *self.then]

    def lasting(self) -> Iterable[ScriptLine]:
        return itertools.chain(self.before, map(self.bad, itertools.count()))


def acting(action: str) -> Callable[[Prompt], ScriptLine]:
    """A model that writes actions when it is asked for them, and nonsense when it is given tools."""
    return lambda prompt: says(action) if prompt.schema else says("<tool_call>read the file</tool_call>")


MODELS = (
    Behaviour(
        "malformed arguments",
        'calls a tool with `{"path": src/app.py`',
        lambda n: calls("read_file", raw='{"path": src/app.py'),
    ),
    Behaviour(
        "unknown tools", "calls a tool that does not exist", lambda n: calls("open_editor", file="src/app.py")
    ),
    Behaviour(
        "empty replies",
        "replies with nothing, and the server reports success",
        lambda n: EmptyReply("nothing came"),
    ),
    Behaviour(
        "calls printed as text",
        "writes a call into its text: `<tool_call>{...}</tool_call>`, a fence or bare JSON",
        lambda n: says(
            f'<tool_call>{{"name": "search", "arguments": {{"pattern": "retry{n}"}}}}</tool_call>'
        ),
        quietly="reads the call and performs it",
    ),
    Behaviour(
        "thoughts in the text",
        "wraps everything in `<think>`, sometimes without an answer",
        lambda n: says("<think>I should look at the file first, or perhaps not"),
    ),
    Behaviour(
        "overflow during a run",
        "the server rejects the conversation as too long, although our estimate fits",
        lambda n: ContextOverflow("the conversation is too long"),
        before=(LOOKS, calls("read_file", path="README.md")),
    ),
    Behaviour("repeated calls", "makes the same call again and again", lambda n: LOOKS, before=(LOOKS,)),
    Behaviour(
        "cut JSON",
        "reaches its token limit in the middle of the JSON",
        lambda n: says('{"summary": "Retry counts its att', finish="length"),
        then=(VALID,),
        before=(LOOKS, "I know enough."),
        schema=SCHEMA,
    ),
    Behaviour(
        "the answer as reasoning",
        "leaves the text empty and answers in the field for reasoning",
        lambda n: says("", reasoning=ANSWER),
    ),
    Behaviour(
        "invented places",
        "cites files and lines that do not exist",
        lambda n: says("See src/app.py:4, src/app.py:900 and src/retry/core.py:12."),
        then=(),
        quietly="marks them `[not there]` or removes them from lists, and counts them",
    ),
    Behaviour(
        "no end",
        "calls one tool after another and never answers",
        lambda n: calls("search", pattern=f"retry{n}"),
        once=13,
        quietly="reserves the last two steps for the answer, without tools",
    ),
    Behaviour(
        "placeholders",
        'fills the schema with `"..."`, `"TODO"` or the schema itself',
        lambda n: says('{"summary": "...", "places": []}'),
        then=(VALID,),
        before=(LOOKS, "I know enough."),
        schema=SCHEMA,
    ),
)
SERVERS = (
    Behaviour(
        "no tools",
        "the server refuses tools",
        lambda n: ToolsUnsupported("this model takes no tools"),
        then=(
            '{"action": "read_file", "arguments": {"path": "src/app.py"}}',
            f'{{"action": "answer", "answer": "{ANSWER}"}}',
        ),
    ),
    Behaviour(
        "unreadable calls",
        "the model prints calls that cannot be parsed",
        lambda n: acting("nonsense"),
        then=(f'{{"line": "def retry(times):", "answer": "{ANSWER}", "found": "yes"}}',),
        once=3,
    ),
    Behaviour(
        "errors on calls",
        "the server answers 500 if it cannot parse a call",
        lambda n: ModelFailed("HTTP 500: failed to parse the tool call"),
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the loop did."""

    outcome: Outcome
    told: tuple[str, ...]
    """The lines that it told the model, or did for it."""

    @property
    def ending(self) -> str:
        outcome = self.outcome
        steps = counted(outcome.usage["steps"], "step")
        if outcome.error is not None:
            return f"`{outcome.error.code}` after {steps}"
        notes = "".join(f"; noted: {note}" for note in outcome.notes)
        return f"answer after {steps}{notes}"


async def perform(behaviour: Behaviour, script: Iterable[ScriptLine]) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), script, schema=behaviour.schema)
        outcome = await trial.run()
    return Seen(outcome, tuple(filter(None, map(_reaction, trial.events))))


def _reaction(event: str) -> str | None:
    """Of a line of the log, what it says of the loop's reaction to a mistake."""
    _, _, what = event.partition(": ")
    if what.startswith("told: "):
        return what.removeprefix("told: ")
    if " -> error: " in what:
        return what.partition(" -> error: ")[2]
    reactions = (
        "not a valid answer",
        "the conversation was too long",
        "the server takes no",
        "the model does not",
    )
    return what if what.startswith(reactions) else None


def page() -> str:
    return anyio.run(_page)


async def _page() -> str:
    lines = [
        "# Hostile models",
        "",
        "Small models often make mistakes, and always the same few. Here the loop of the `local` executor",
        "runs against each of them twice: with a model that recovers, and with one that never does. This",
        "page is generated from these runs (`make docs`), and a test fails if it is out of date.",
        "",
        "The loop never raises and always ends: after at most 15 requests, three broken calls in a row or",
        "three attempts at a schema. It tells the model about each mistake in one line.",
        "",
        *await _table("behaviour", MODELS),
        "",
        "If tool calls do not work at all, the loop asks for the next action as JSON and lets the server",
        "enforce a schema. Most servers can do that for every model.",
        "",
        *await _table("server", SERVERS),
    ]
    return "\n".join(lines) + "\n"


async def _table(title: str, behaviours: Iterable[Behaviour]) -> list[str]:
    rows = [
        f"| {title} | what happens | what the loop says or does | if the model recovers | if it never does |"
    ]
    rows.append("| --- | --- | --- | --- | --- |")
    for behaviour in behaviours:
        better = await perform(behaviour, behaviour.recovering())
        worse = await perform(behaviour, behaviour.lasting())
        told = next(iter((*better.told, *worse.told)), behaviour.quietly)
        cells = (behaviour.name, behaviour.does, told, better.ending, worse.ending)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows
