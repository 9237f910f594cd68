"""A fake model that replies from a script. Streams and can be cancelled like a real one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import anyio
import anyio.lowlevel

from retinue.core import (
    EmptyReply,
    FinishReason,
    Json,
    ModelFacts,
    ModelFailed,
    Prompt,
    Reply,
    ReplyPiece,
    ToolCall,
    estimate_tokens,
)

NAME = "scripted"
FACTS = ModelFacts(endpoint=NAME, kind="unknown", model=NAME, context=32_768, slots=1, tools=True)

ScriptLine: TypeAlias = "str | Reply | Exception | Callable[[Prompt], ScriptLine | Awaitable[ScriptLine]]"
"""A reply, an exception to raise, or a function that gets the prompt and returns one of them."""


def says(text: str, *, reasoning: str = "", finish: FinishReason = "stop") -> Reply:
    return Reply(text=text, reasoning=reasoning, finish=finish, model=NAME)


def calls(tool: str, *, raw: str | None = None, said: str = "", **arguments: Json) -> Reply:
    """A reply that calls one tool. `raw` replaces the arguments with text that need not be JSON."""
    written = json.dumps(arguments) if raw is None else raw
    return together(ToolCall("", tool, written), text=said)


def together(*tool_calls: ToolCall, text: str = "") -> Reply:
    """A reply with several tool calls. A call without an id gets one when the reply is sent."""
    return Reply(text=text, calls=tool_calls, finish="tool_calls", model=NAME)


def shares_a_word(prompt: Prompt) -> str:
    """Say of code that it answers a question if it has a word of it. A model says so that judges code."""
    code, _, question = prompt.turns[-1].text.partition("Question: ")
    words = re.findall(r"\w{4,}", question.partition("\n\n")[0].lower())
    return "yes" if any(word[:5] in code.lower() for word in words) else "no"


class ScriptedModel:
    """Replies with the next line of the script to each request. A script may be endless.

    Asked whether some code answers a question, it says yes or no without its script.
    """

    def __init__(self, script: Iterable[ScriptLine], facts: ModelFacts = FACTS) -> None:
        self._lines = iter(script)
        self._facts = facts
        self.prompts: list[Prompt] = []
        """All prompts it received, including those that failed."""
        self.cancelled = 0
        """Number of requests that were cancelled before their reply was complete."""
        self.says: str | Callable[[Prompt], str] = "yes"
        """What it says of code if it does not tell how likely that is."""
        self.chance: float | Callable[[Prompt], float] | None = None
        """How likely it is to say yes; None if it does not tell, as LM Studio."""

    async def facts(self) -> ModelFacts:
        return self._facts

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        self.prompts.append(prompt)
        try:
            await anyio.lowlevel.checkpoint()
            reply = _numbered(_with_text(await self._next(prompt)), len(self.prompts))
            if on_text is not None and reply.text:
                await on_text(reply.text)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return reply

    async def _next(self, prompt: Prompt) -> Reply:
        if prompt.alternatives:
            chance = self.chance(prompt) if callable(self.chance) else self.chance
            said = self.says(prompt) if callable(self.says) else self.says
            return _counted(says(said) if chance is None else _confirms(chance), prompt)
        line = next(self._lines, None)
        if line is None:
            raise ModelFailed("the script has no more replies")
        while not isinstance(line, str | Reply | Exception):
            answer = line(prompt)
            line = await answer if inspect.isawaitable(answer) else answer
        if isinstance(line, Exception):
            raise line
        reply = says(line) if isinstance(line, str) else line
        if reply.prompt_tokens is not None:
            return reply
        return _counted(reply, prompt)


def _confirms(chance: float) -> Reply:
    """Return a yes or a no, with the likely first words."""
    return replace(says("yes" if chance >= 0.5 else "no"), first_words={"yes": chance, "no": 1 - chance})


def _with_text(reply: Reply) -> Reply:
    """Use the reasoning as the text if a reply has nothing else, unless it was cut at the token limit."""
    if reply.text or reply.calls:
        return reply
    if reply.reasoning and reply.finish != "length":
        return replace(reply, text=reply.reasoning)
    raise EmptyReply("the server reported success but sent an empty reply")


def _counted(reply: Reply, prompt: Prompt) -> Reply:
    """Add the token counts that a server would report."""
    sent = [turn.text for turn in prompt.turns]
    sent += [call.name + call.arguments for turn in prompt.turns for call in turn.calls]
    sent += [json.dumps([tool.name, tool.description, dict(tool.parameters)]) for tool in prompt.tools]
    said = [reply.text, reply.reasoning, *(call.name + call.arguments for call in reply.calls)]
    return replace(
        reply,
        prompt_tokens=sum(estimate_tokens(text) for text in sent),
        reply_tokens=sum(estimate_tokens(text) for text in said),
    )


def _numbered(reply: Reply, number: int) -> Reply:
    named = tuple(
        call if call.id else replace(call, id=f"call_{number}_{place}")
        for place, call in enumerate(reply.calls)
    )
    return replace(reply, calls=named)
