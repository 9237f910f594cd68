"""The history of one agent: its task alone to begin with (P1), then what it said and what it was shown.

It can be made smaller before it overflows: old answers of tools are shortened to what bears on the task,
then forgotten but for the fact that they were asked for. The task is never touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from retinue.core import ToolCall, Turn, clip, counted
from retinue.executors.local.evidence import shortened, words_of

SHORT_TOKENS = 90
"""Of an old answer that is kept for its evidence."""
LONGEST_CALL = 120


@dataclass(slots=True)
class Exchange:
    """One reply of the model and what it led to."""

    said: str
    calls: tuple[ToolCall, ...] = ()
    answers: list[str] = field(default_factory=list[str])
    """One for each call."""
    told: str = ""
    """What it was told where there was no call to answer."""
    whole: bool = True
    """Whether the answers stand as they were given."""


class Conversation:
    def __init__(self, system: str, task: str) -> None:
        self._system = system
        self._task = task
        self._words = words_of(task)
        self._forgotten: list[str] = []
        self._made: dict[tuple[str, str], Exchange] = {}
        """Where each call was made last."""
        self.exchanges: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self._made |= {_key(call): exchange for call in exchange.calls}

    def turns(self, *, as_text: bool = False, then: str = "") -> tuple[Turn, ...]:
        """Everything, as turns. `as_text` writes calls as words, for a server that knows no tools; `then` is
        said last."""
        turns = [Turn("system", self._system), Turn("user", self._task), *self._past()]
        for exchange in self.exchanges:
            turns += _as_text(exchange) if as_text else _as_turns(exchange)
        if then:
            turns.append(Turn("user", then))
        return tuple(_alternating(turns))

    def remembers(self, call: ToolCall) -> bool:
        """Whether the very same call was made, and its answer still stands in full."""
        made = self._made.get(_key(call))
        return made is not None and made.whole

    def shrink(self) -> bool:
        """Make it one notch smaller, the oldest first; False when nothing but the task is left to cut."""
        *old, last = self.exchanges or [None]
        for exchange in old:
            if exchange is not None and exchange.whole and self._shorten(exchange):
                return True
        if old and old[0] is not None:
            old[0].whole = False
            self._forgotten += [_shown(call) for call in old[0].calls]
            self.exchanges.pop(0)
            return True
        if last is not None and last.whole:
            return self._shorten(last)
        return False

    def found(self, tokens: int) -> str:
        """What was learnt so far, for an agent that never came to answer; empty if there was nothing."""
        said = next((one.said for one in reversed(self.exchanges) if one.said and not one.calls), "")
        seen = [
            f"{_shown(call)}\n{shortened(answer, self._words, tokens // 4)}"
            for exchange in self.exchanges
            for call, answer in zip(exchange.calls, exchange.answers, strict=False)
            if not answer.startswith("error: ")
        ]
        return "\n\n".join(filter(None, [said, *seen[-4:]]))

    def _shorten(self, exchange: Exchange) -> bool:
        exchange.whole = False
        before = list(exchange.answers)
        exchange.answers = [shortened(answer, self._words, SHORT_TOKENS) for answer in before]
        exchange.said = clip(exchange.said, 600) if exchange.calls else exchange.said
        return exchange.answers != before

    def _past(self) -> Iterator[Turn]:
        if self._forgotten:
            calls = "; ".join(dict.fromkeys(self._forgotten[-12:]))
            yield Turn(
                "user", f"[{counted(len(self._forgotten), 'earlier call')} forgotten: {clip(calls, 600)}]"
            )


def _as_turns(exchange: Exchange) -> Iterator[Turn]:
    yield Turn("assistant", exchange.said, exchange.calls)
    for call, answer in zip(exchange.calls, exchange.answers, strict=False):
        yield Turn("tool", answer, answers=call.id)
    if exchange.told:
        yield Turn("user", exchange.told)


def _as_text(exchange: Exchange) -> Iterator[Turn]:
    written = [exchange.said, *(f"{call.name} {call.arguments}" for call in exchange.calls)]
    yield Turn("assistant", "\n".join(filter(None, written)))
    told = [f"{call.name}: {answer}" for call, answer in zip(exchange.calls, exchange.answers, strict=False)]
    if told or exchange.told:
        yield Turn("user", "\n\n".join(filter(None, [*told, exchange.told])))


def _alternating(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Two turns of the user in a row become one, and silence becomes a word: some templates take no other."""
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "user":
            waiting.append(turn.text)
            continue
        if waiting:
            yield Turn("user", "\n\n".join(waiting))
            waiting = []
        silent = turn.role == "assistant" and not turn.text and not turn.calls
        yield Turn("assistant", "(nothing)") if silent else turn
    if waiting:
        yield Turn("user", "\n\n".join(waiting))


def _key(call: ToolCall) -> tuple[str, str]:
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        return call.name, call.arguments


def _shown(call: ToolCall) -> str:
    return clip(f"{call.name} {call.arguments}", LONGEST_CALL)
