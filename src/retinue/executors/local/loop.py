"""The loop of one agent: ask, look, answer, and stop. It never raises but when it is itself cancelled.

Every mistake of a model is told to it in one line, and three in a row are enough. The last steps are kept for
the answer, so that what was found is not lost when a limit comes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from retinue.core import (
    BudgetExceeded,
    ContextOverflow,
    EmptyReply,
    LimitExceeded,
    ModelFailed,
    NotJson,
    OutputInvalid,
    RetinueError,
    ToolCall,
    ToolsUnsupported,
    clip,
    counted,
    estimate_tokens,
    parse_lenient_object,
)
from retinue.executors.local.answers import Answers, Judge
from retinue.executors.local.asker import ModelRequester, RequestOptions, Tell
from retinue.executors.local.caps import MAX_CALLS, Caps
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.modes import Actions, StepMode, ToolCalls
from retinue.executors.local.moves import Broken, Calls, Move, Says, read, without_thoughts
from retinue.executors.wrappers import is_placeholder, remove_wrong_references
from retinue.tools import Toolbox

CLOSING = (
    "No more tools can be used. Answer the task now, with what you have seen. Say what you did not find."
)
_ANNOUNCES = re.compile(
    r"\s*(?:(?:ok|okay|sure)\W+)?(?:I(?:'ll| will| need to| am going to)|let me|first, I)\b", re.I
)
LONGEST_ANNOUNCEMENT = 400


@dataclass(frozen=True, slots=True)
class LoopResult:
    output: str
    """The answer, or what was found before an error."""
    steps: int
    """Requests to the model."""
    tokens: int
    """Of all requests, prompts and replies."""
    peak_tokens: int = 0
    """Of the largest request: what the limit of tokens is about."""
    error: RetinueError | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {"output": self.output, "steps": self.steps, "tokens": self.tokens}
        return shown if self.error is None else shown | {"error": self.error.as_dict()}


class Loop:
    def __init__(
        self,
        *,
        asker: ModelRequester,
        conversation: Conversation,
        toolbox: Toolbox,
        caps: Caps,
        judge: Judge,
        tell: Tell,
        answers: Answers | None = None,
        native: bool = True,
    ) -> None:
        """`answers` for an agent that promises a schema; `native` if the server is said to take tools."""
        self._asker = asker
        self._conversation = conversation
        self._toolbox = toolbox
        self._caps = caps
        self._judge = judge
        self._tell = tell
        self._answers = answers
        self._mode: StepMode = ToolCalls(toolbox) if native else Actions(toolbox)
        self._native = native
        self._strikes = 0
        self._looked = False
        """Whether any call has worked."""
        self._nudged: set[str] = set()
        self._failure: ModelFailed | None = None
        """Of the last request, if the server failed it."""
        self._ended_by: RetinueError | None = None
        """The limit that ended the search."""
        self.notes: list[str] = []

    async def run(self) -> LoopResult:
        try:
            output = await (self._look() if self._toolbox.names else self._close())
        except RetinueError as error:
            return self.result(error)
        return replace(self.result(), output=output)

    def result(self, error: RetinueError | None = None) -> LoopResult:
        """Where it stands: what was found, if it ends here."""
        asker = self._asker
        found = "".join(asker.heard).strip() or self._conversation.found(self._caps.reply)
        notes = [*self.notes, *([f"another model answered: {asker.substitute}"] if asker.substitute else [])]
        return LoopResult(found, asker.steps, asker.tokens, asker.peak, error, tuple(notes))

    async def _look(self) -> str:
        """The first phase: tools, until the model answers or must."""
        kept = self._caps.tries if self._answers else 2
        while self._asker.steps_left > kept:
            move = await self._next()
            if isinstance(move, Says):
                complaint = self._complaint(move)
                if complaint is None:
                    return await self._settle(move.text)
                move = Broken(move.text, complaint)
            if isinstance(move, Calls):
                over = not await self._perform(move)
            else:
                over = move is not None and await self._strike(move.said, move.why)
            if over:
                break
        else:
            self._ended_by = LimitExceeded("steps", self._caps.steps + 1, self._caps.steps)
            self.notes.append(f"the limit of {counted(self._caps.steps, 'step')} ended the search")
        return await self._close()

    async def _next(self) -> Move | None:
        """What the model does next; None if it has to be asked in another way first."""
        try:
            reply = await self._asker.ask(self._conversation, self._mode.request())
        except ContextOverflow:
            raise
        except ToolsUnsupported:
            if not self._native:
                raise
            await self._fall_back("the server takes no tools")
            return None
        except EmptyReply:
            return Broken("", "Your reply was empty. Call a tool, or write the answer.")
        except ModelFailed as error:
            # Some servers fail when what the model wrote cannot be read as a call: it may do better now.
            self._failure = error
            return Broken("", "Your reply could not be read. Call one tool, or write the answer.")
        self._failure = None
        return self._mode.read(reply, self._asker.steps)

    async def _settle(self, text: str) -> str:
        """A text that the model means as its answer: checked, and brought into its schema."""
        if self._answers is not None:
            judged = await self._answers.accept(text)
            if isinstance(judged, str):
                self._conversation.add(Exchange(said=text))
                judged = await self._answers.ask(self._conversation)
            self._note(judged.verdict.note())
            return judged.output
        verdict = await self._judge(text)
        self._note(verdict.note())
        return str(remove_wrong_references(text, verdict.wrong))

    async def _close(self) -> str:
        """The second phase: no tools any more."""
        if self._answers is not None:
            judged = await self._answers.ask(self._conversation)
            self._note(judged.verdict.note())
            return judged.output
        request = RequestOptions(as_text=True, then=CLOSING if self._toolbox.names else "")
        for _ in range(min(2, self._asker.steps_left)):
            try:
                reply = await self._asker.ask(self._conversation, request)
            except EmptyReply:
                continue
            move = read(reply, self._toolbox.knows, self._asker.steps)
            complaint = self._complaint(move) if isinstance(move, Says) else CLOSING
            if isinstance(move, Says) and not complaint:
                return await self._settle(move.text)
            said = clip(without_thoughts(reply.text), 300)
            self._conversation.add(Exchange(said=said, told=complaint or ""))
        raise self._ended_by or OutputInvalid(
            "the model was asked for its answer and gave none", hint="use a stronger model"
        )

    async def _perform(self, move: Calls) -> bool:
        """Make the calls; False when there is no use in more of them."""
        calls = move.calls[:MAX_CALLS]
        exchange = Exchange(move.said)
        room = self._caps.tool_answer(self._asker.free, len(calls))
        good = 0
        spent: BudgetExceeded | None = None
        for call in calls:
            told, failed, spent = await self._one(call, room)
            good += not failed
            exchange.calls += (_sendable(call),)
            exchange.answers.append(told)
            size = counted(estimate_tokens(told), "token") if not failed else told
            shown = clip(" ".join(f"{call.name} {call.arguments}".split()), 160)
            await self._tell(f"step {self._asker.steps}: {shown} -> {clip(size, 160)}")
            if spent is not None:
                break
        if len(move.calls) > MAX_CALLS:
            exchange.told = (
                f"Only the first {counted(MAX_CALLS, 'call')} of your {len(move.calls)} were made."
            )
        self._conversation.add(exchange)
        if spent is not None:
            self._ended_by = spent
            self.notes.append(f"the budget of {spent.kind} was spent, which ended the search")
            return False
        if good:
            self._looked = True
            self._strikes = 0
            return True
        return not await self._strike(None, "")

    async def _one(self, call: ToolCall, room: int) -> tuple[str, bool, BudgetExceeded | None]:
        """What a call answers, whether it was broken, and the budget that ran out, if one did."""
        try:
            arguments = parse_lenient_object(call.arguments or "{}")
        except NotJson as error:
            return f"error: the arguments are not JSON: {error}. Send one object.", True, None
        if not self._toolbox.knows(call.name):
            return (await self._toolbox.call(call.name, arguments, room)).text, True, None
        if self._conversation.remembers(_sendable(call)):
            return "error: you made this very call before; use its answer, or answer the task.", True, None
        answer = await self._toolbox.call(call.name, arguments, room)
        return answer.text, False, answer.budget

    async def _strike(self, said: str | None, told: str) -> bool:
        """Count a mistake and tell it to the model; True when that was the last one allowed."""
        self._strikes += 1
        if said is not None:
            self._conversation.add(Exchange(said=clip(said, 400), told=told))
            await self._tell(f"step {self._asker.steps}: told: {told}")
        if self._strikes < self._caps.strikes:
            return False
        if self._native and not self._looked:
            await self._fall_back("the model does not manage to call tools")
            return False
        if not self._looked:
            raise self._failure or ModelFailed(
                f"{counted(self._caps.strikes, 'broken call')} in a row, and nothing found before",
                hint="use a model that was trained to call tools",
            )
        self.notes.append(f"{counted(self._caps.strikes, 'broken call')} in a row ended the search")
        return True

    async def _fall_back(self, why: str) -> None:
        self._native = False
        self._mode = Actions(self._toolbox)
        self._strikes = 0
        await self._tell(f"step {self._asker.steps}: {why}: the next action is asked for as JSON")

    def _complaint(self, move: Says) -> str | None:
        """What is wrong with a text as an answer. All but a placeholder is taken as it is the second time."""
        if not move.text.strip() or is_placeholder(move.text):
            return "That is a placeholder. Write the real answer."
        if move.thought:
            if not self._twice("thought"):
                return "You only thought. Write the answer itself, or call a tool."
            self.notes.append("the answer was found among the model's thoughts")
        if move.cut:
            if not self._twice("cut"):
                return "Your answer was cut off. Give it again, in fewer words."
            self.notes.append("the model's limit cut the answer off")
        announces = len(move.text) < LONGEST_ANNOUNCEMENT and _ANNOUNCES.match(move.text)
        if announces and not self._looked and self._toolbox.names and not self._twice("announcement"):
            return "Do not announce it: call the tool now, or give the answer."
        return None

    def _twice(self, what: str) -> bool:
        known = what in self._nudged
        self._nudged.add(what)
        return known

    def _note(self, note: str | None) -> None:
        if note:
            self.notes.append(note)


def _sendable(call: ToolCall) -> ToolCall:
    """As it may stand in the history: some servers refuse arguments that are not JSON."""
    try:
        parse_lenient_object(call.arguments or "{}")
    except NotJson:
        return replace(call, arguments="{}")
    return call
