"""The history of one agent: its task (P1), the model's replies, and the answers to its tool calls.

A conversation that becomes too long can shrink. Old tool answers are shortened to the lines that have most to
do with the task. Later they are dropped, and only a list of the calls remains. The task never changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from retinue.core import ToolCall, Turn, clip, counted, estimate_tokens

SHORTENED_TOKENS = 90
"""Limit for an old tool answer that was shortened."""
SHORTENED_NOTE = "[shortened; call again for all of it]"
MAX_SHORTENED_LINE_CHARS = 160
MAX_CALL_CHARS = 120
MIN_COPIED_WORDS = 4
"""A shorter answer, such as a decision, may well stand in the instructions too."""
_WORD = re.compile(r"[^\W\d_]{4,40}")


@dataclass(slots=True)
class Exchange:
    """One reply of the model and the answer to it."""

    reply_text: str
    calls: tuple[ToolCall, ...] = ()
    answers: list[str] = field(default_factory=list[str])
    """One for each call."""
    feedback: str = ""
    """A correction or a note for the model, after the answers."""
    is_whole: bool = True
    """Whether the answers are complete, not shortened."""


class Conversation:
    """The task of an agent and all exchanges with the model."""

    def __init__(self, system: str, task: str) -> None:
        self._system = system
        self._task = task
        self._task_words = _words(task)
        self._exchanges: list[Exchange] = []
        self._dropped_calls: list[str] = []
        self._last_exchange: dict[tuple[str, str], Exchange] = {}
        """The exchange in which each call was last made."""

    def repeats_instructions(self, text: str) -> bool:
        """Return whether a text of a few words or more is only copied from the system prompt."""
        words = text.split()
        return len(words) >= MIN_COPIED_WORDS and " ".join(words) in " ".join(self._system.split())

    def add(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)
        self._last_exchange |= {_key(call): exchange for call in exchange.calls}

    def turns(self, *, as_text: bool = False, last_turn: str = "") -> tuple[Turn, ...]:
        """Return the whole conversation, followed by `last_turn`.

        `as_text` writes tool calls as text, for a request without tools.
        """
        turns = [Turn("system", self._system), Turn("user", self._task)]
        if self._dropped_calls:
            calls = "; ".join(dict.fromkeys(self._dropped_calls[-12:]))
            count = counted(len(self._dropped_calls), "earlier call")
            turns.append(Turn("user", f"[{count} forgotten: {clip(calls, 600)}]"))
        for exchange in self._exchanges:
            turns += _text_turns(exchange) if as_text else _tool_turns(exchange)
        if last_turn:
            turns.append(Turn("user", last_turn))
        return tuple(_merge_user_turns(turns))

    def has_answer_to(self, call: ToolCall) -> bool:
        """Return whether the same call was made before and its full answer is still in the conversation."""
        exchange = self._last_exchange.get(_key(call))
        return exchange is not None and exchange.is_whole

    def forget_answers(self) -> None:
        """Allow every call again, because something has changed since it was answered."""
        self._last_exchange.clear()

    def shrink(self) -> bool:
        """Make the conversation one step shorter, oldest first. Return False if nothing is left to cut."""
        old, last = self._exchanges[:-1], self._exchanges[-1:]
        if any(self._shorten(exchange) for exchange in old):
            return True
        if old:
            old[0].is_whole = False
            self._dropped_calls += [_call_text(call) for call in old[0].calls]
            self._exchanges.pop(0)
            return True
        return any(self._shorten(exchange) for exchange in last)

    def findings(self, tokens: int) -> str:
        """Return what the agent has found so far, for a run that ends without an answer. May be empty."""
        answers = (exchange.reply_text for exchange in reversed(self._exchanges) if not exchange.calls)
        seen = [
            f"{_call_text(call)}\n{shorten(answer, self._task_words, tokens // 4)}"
            for exchange in self._exchanges
            for call, answer in zip(exchange.calls, exchange.answers, strict=False)
            if not answer.startswith("error: ")
        ]
        return "\n\n".join(filter(None, [next(filter(None, answers), ""), *seen[-4:]]))

    def _shorten(self, exchange: Exchange) -> bool:
        """Shorten the answers of an exchange once. Return whether that made it shorter."""
        if not exchange.is_whole:
            return False
        exchange.is_whole = False
        before = exchange.answers
        exchange.answers = [shorten(answer, self._task_words, SHORTENED_TOKENS) for answer in before]
        exchange.reply_text = clip(exchange.reply_text, 600) if exchange.calls else exchange.reply_text
        return exchange.answers != before


def shorten(answer: str, task_words: frozenset[str], tokens: int) -> str:
    """Cut an answer to its first line and the lines that share most words with the task, in their order."""
    lines = answer.split("\n")
    ranked = sorted(
        range(1, len(lines)),
        key=lambda number: (-len(task_words & _words(lines[number])), number),
    )
    room = tokens - estimate_tokens(SHORTENED_NOTE) - 2
    kept: list[int] = []
    for number in [0, *ranked]:
        room -= estimate_tokens(clip(lines[number], MAX_SHORTENED_LINE_CHARS)) + 1
        if room < 0 and kept:
            break
        kept.append(number)
    shown = [clip(lines[number], MAX_SHORTENED_LINE_CHARS) for number in sorted(kept)]
    short = "\n".join([*shown, SHORTENED_NOTE])
    return short if len(short) < len(answer) else answer


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text[:20_000]))


def _tool_turns(exchange: Exchange) -> Iterator[Turn]:
    """Yield an exchange with tool calls and answers in the API's own format."""
    yield Turn("assistant", exchange.reply_text, exchange.calls)
    for call, answer in zip(exchange.calls, exchange.answers, strict=False):
        yield Turn("tool", answer, answers=call.id)
    if exchange.feedback:
        yield Turn("user", exchange.feedback)


def _text_turns(exchange: Exchange) -> Iterator[Turn]:
    """Yield an exchange with tool calls and answers written as text."""
    reply = [exchange.reply_text, *(f"{call.name} {call.arguments}" for call in exchange.calls)]
    yield Turn("assistant", "\n".join(filter(None, reply)))
    answers = [
        f"{call.name}: {answer}" for call, answer in zip(exchange.calls, exchange.answers, strict=False)
    ]
    if answers or exchange.feedback:
        yield Turn("user", "\n\n".join(filter(None, [*answers, exchange.feedback])))


def _merge_user_turns(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Join consecutive user turns and fill empty model turns, because some chat templates require that."""
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "user":
            waiting.append(turn.text)
            continue
        if waiting:
            yield Turn("user", "\n\n".join(waiting))
            waiting = []
        is_empty = turn.role == "assistant" and not turn.text and not turn.calls
        yield Turn("assistant", "(nothing)") if is_empty else turn
    if waiting:
        yield Turn("user", "\n\n".join(waiting))


def _key(call: ToolCall) -> tuple[str, str]:
    """Return a key that is equal for calls with the same arguments in any order."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        return call.name, call.arguments


def _call_text(call: ToolCall) -> str:
    return clip(f"{call.name} {call.arguments}", MAX_CALL_CHARS)
