"""What a reply of the model amounts to: calls, an answer, or something to be told about. Calls nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from retinue.core import Reply, ToolCall
from retinue.executors.local.printed_calls import printed_calls

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"^.*?</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
"""Some templates put the beginning of a thought into the prompt, so that only its end is in the reply."""
_LEFTOVERS = re.compile(r"<\|(?:im_end|eot_id|end|endoftext|eom_id)\|>|</s>")


@dataclass(frozen=True, slots=True)
class Calls:
    calls: tuple[ToolCall, ...]
    said: str = ""
    printed: bool = False
    """As text, not as calls."""


@dataclass(frozen=True, slots=True)
class Says:
    text: str
    cut: bool = False
    """Whether the server's limit ended it."""
    thought: bool = False
    """Whether it was found where only thoughts belong."""


@dataclass(frozen=True, slots=True)
class Broken:
    said: str
    why: str
    """One line for the model."""


Move = Calls | Says | Broken


def without_thoughts(text: str) -> str:
    """What a reply says once its thoughts are taken out."""
    text = _THOUGHT.sub("", text)
    return _LEFTOVERS.sub("", _END_OF_THOUGHT.sub("", text)).strip()


def read(reply: Reply, knows: Callable[[str], bool], step: int) -> Move:
    """`step` tells the printed calls of one reply from those of another."""
    text = without_thoughts(reply.text)
    if reply.calls:
        return Calls(reply.calls, text)
    found = printed_calls(text, knows)
    if found.calls:
        made = tuple(
            ToolCall(f"printed_{step}_{place}", call.name, call.arguments)
            for place, call in enumerate(found.calls)
        )
        return Calls(made, printed=True)
    if found.broken:
        cut = " It was cut off: make it shorter." if reply.finish == "length" else ""
        return Broken(
            text, f"Your tool call could not be read.{cut} Call the tool again, with JSON arguments."
        )
    if text:
        # Where nothing but reasoning came, it is the text: some servers put answers there too.
        return Says(text, cut=reply.finish == "length", thought=reply.text == reply.reasoning)
    if reply.finish == "length":
        return Broken("", "You thought for too long. Call a tool, or write the answer at once.")
    if reply.text.strip():
        return Broken("", "You only thought. Write the answer itself, or call a tool.")
    return Broken("", "Your reply was empty. Call a tool, or write the answer.")
