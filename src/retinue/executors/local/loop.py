"""The loop of one agent on a local model: ask the model, call tools, check the answer, stop.

Read `Loop.run` first. A question about the code goes to the reader (`answers/reader.py`) if the model calls
tools badly; there our own search finds the code and the model only answers from it. Any other task is done by
`_use_tools`, which lets the model call tools until it answers, or in one request if it cannot use them. Each
mistake of the model is explained to it in one line, and three mistakes in a row end the search. The last
steps are reserved for the answer, so that nothing found is lost at a limit.

The loop knows nothing of servers: `model_requests.py` sends the requests and enforces the limits of each,
`replies.py` interprets what comes back, and `answer_check.py` checks the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from retinue.answers import CodeReader, without_thoughts
from retinue.core import (
    FILE_TOOLS,
    RUN_COMMAND,
    WRITING_TOOLS,
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
from retinue.executors.local.answer_check import AnswerCheck
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.instructions import ANSWER_NOW, TOO_SLOW
from retinue.executors.local.json_answer import JSON_ANSWER_TRIES, JsonAnswer
from retinue.executors.local.model_requests import LoopLimits, ModelRequester, RequestOptions, WriteLog
from retinue.executors.local.replies import (
    EMPTY_REPLY,
    ONLY_REASONING,
    AnswerReply,
    ParsedReply,
    ToolCallsReply,
    UnreadableReply,
    action_request,
    read_action,
    read_reply,
)
from retinue.executors.wrappers import is_placeholder
from retinue.tools import Toolbox

MAX_CALLS_PER_REPLY = 8
STEPS_TO_WRITE = 6
"""Steps after which a writer that chooses actions as JSON may answer without having changed anything."""
MAX_MISTAKES = 3
"""Mistakes in a row that end the search."""
PLAIN_ANSWER_TRIES = 2
"""Requests for an answer in plain text, once no more tools are offered."""
MAX_ANNOUNCEMENT_CHARS = 400
_ANNOUNCEMENT = re.compile(
    r"\s*(?:(?:ok|okay|sure)\W+)?(?:I(?:'ll| will| need to| am going to)|let me|first, I)\b", re.I
)

Way = Literal["read", "answer", "tools", "actions"]
"""How a task begins: with the reader, without tools, with tool calls, or with actions as JSON."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The final result of a loop, or its current state."""

    output: str
    """The answer, or what was found before an error."""
    steps: int = 0
    """Requests to the model."""
    tokens: int = 0
    """Tokens of all requests together, prompts and replies."""
    peak_tokens: int = 0
    """Tokens of the largest request, which the token limit applies to."""
    error: RetinueError | None = None
    notes: tuple[str, ...] = ()


class CallResult(NamedTuple):
    """The answer to one tool call, as the model sees it."""

    text: str
    is_mistake: bool = False
    """Whether the call failed: broken arguments, an unknown tool, a repetition, or an error of the tool."""
    exhausted: BudgetExceeded | None = None
    """The budget that ran out during the call."""


class SearchEnded(Exception):
    """The model gets no more tools and must answer. The message is noted with the result."""

    def __init__(self, note: str, limit: RetinueError | None = None) -> None:
        """`limit` is the error of a run whose model gives no answer after this."""
        super().__init__(note)
        self.limit = limit


class ToolCallsUnusable(Exception):
    """The model cannot call tools, or answers about code without having seen any. The message says which."""

    def __init__(self, why: str, reader: CodeReader) -> None:
        super().__init__(why)
        self.reader = reader


@dataclass(slots=True, kw_only=True)
class Loop:
    """Performs one task with an agent on a local model."""

    requester: ModelRequester
    conversation: Conversation
    toolbox: Toolbox
    limits: LoopLimits
    check: AnswerCheck
    log: WriteLog
    way: Way
    reader: CodeReader | None = None
    """Answers from code that our own search finds; None if the task does not ask about the project's code."""

    _mistakes: int = field(default=0, init=False)
    """Mistakes in a row."""
    _is_reading: bool = field(default=False, init=False)
    """Whether the reader answers."""
    _has_written: bool = field(default=False, init=False)
    """Whether a call has changed a file or run a command."""
    _objections: set[str] = field(default_factory=set[str], init=False)
    """The kinds of objections to answers so far; each is raised only once."""
    _server_error: ModelFailed | None = field(default=None, init=False)
    """Why the server failed the last request."""
    _reached: RetinueError | None = field(default=None, init=False)
    """The limit that ended the search."""

    async def run(self) -> LoopResult:
        """Perform the task. Errors are part of the result; only a cancellation is raised."""
        try:
            text = await self._find_answer()
            if self.check.answers_json:
                output = await self._json_answer(text)
                return replace(self.result(), output=output)
            if text is None:
                text = await self._request_plain_answer()
            self.conversation.add(Exchange(text))  # it is a finding if the run ends during its check
            output = await self.check.checked_text(text)
        except RetinueError as error:
            return self.result(error)
        error = None if self.check.has_evidence(output) else self.check.unverified()
        return replace(self.result(error), output=output)

    def result(self, error: RetinueError | None = None) -> LoopResult:
        """Return the result if the run ends now, with what was found so far."""
        requester = self.requester
        notes = list(self.check.notes)
        if requester.substitute:
            notes.append(f"another model answered: {requester.substitute}")
        return LoopResult(
            output=self._findings(),
            steps=requester.steps,
            tokens=requester.tokens,
            peak_tokens=requester.peak_tokens,
            error=error,
            notes=tuple(notes),
        )

    @property
    def doubt(self) -> str:
        """Why nothing confirms the answer of the reader; empty if it is confirmed, or not the reader's."""
        answer = self.reader.found if self._is_reading and self.reader is not None else None
        return "" if answer is None else answer.doubt

    def _findings(self) -> str:
        """Return what was found so far, after the reply that is being received.

        If the agent has looked at nothing itself, that is what our search found.
        """
        found = self.conversation.findings(self.limits.reply_tokens)
        places = "" if self.reader is None or self.check.has_looked else self.reader.nearest_places()
        if self._is_reading and self.reader is not None:  # a part of a JSON object says nothing to the user
            return found or (str(self.reader.found) if self.reader.found else places)
        partial = "".join(self.requester.partial_reply).strip()
        return "\n\n".join(filter(None, [partial, found, places]))

    async def _find_answer(self) -> str | None:
        """Return an answer, or None if the model must still be asked for one, without tools."""
        if self.way == "read" and self.reader is not None:
            return await self._read_code(self.reader, "the model calls tools badly")
        if self.way == "answer" or not self.toolbox.names:
            return None
        try:
            return await self._use_tools()
        except ToolCallsUnusable as reason:
            return await self._read_code(reason.reader, str(reason))

    async def _read_code(self, reader: CodeReader, why: str) -> str:
        """Return what the reader answers, or its "not found"."""
        await self._log_step(f"{why}: answers from code that our search finds")
        self._is_reading = True
        if not self.limits.has_time:
            return "\n".join(filter(None, [TOO_SLOW, reader.nearest_places()]))
        answer = await reader.read()
        self.check.has_looked = True
        return reader.not_found() if answer is None else str(answer)

    async def _use_tools(self) -> str | None:
        """Let the model call tools until it answers. Return its answer, or None if a limit came first."""
        reserved = JSON_ANSWER_TRIES if self.check.answers_json else PLAIN_ANSWER_TRIES
        try:
            while self.requester.steps_left > reserved:
                reply = await self._next_reply()
                match reply:
                    case ToolCallsReply():
                        await self._call_tools(reply)
                    case AnswerReply():
                        objection = self._objection_to(reply) or self._objection_to_work(reply.text)
                        if objection is None:
                            return reply.text
                        await self._correct(reply.text, objection)
                    case UnreadableReply():
                        await self._correct(reply.text, reply.problem)
                    case None:
                        continue
            steps = self.limits.steps
            limit = LimitExceeded("steps", steps + 1, steps)
            raise SearchEnded(f"the limit of {counted(steps, 'step')} ended the search", limit)
        except SearchEnded as ended:
            self.check.notes.append(str(ended))
            self._reached = ended.limit
            return None

    async def _next_reply(self) -> ParsedReply | None:
        """Ask the model for its next step. Return None if the request must be repeated in another form."""
        is_native = self.way == "tools"
        # A small model that may answer at once describes the work instead of doing it.
        may_answer = self._has_written or not self.check.writes or self.requester.steps >= STEPS_TO_WRITE
        request = (
            RequestOptions(tools=self.toolbox.specs)
            if is_native
            else action_request(self.toolbox.specs, may_answer=may_answer, writes=self.check.writes)
        )
        try:
            reply = await self.requester.ask(self.conversation, request)
        except ContextOverflow:
            raise
        except ToolsUnsupported:
            if not is_native:
                raise
            await self._switch_to_actions("the server takes no tools")
            return None
        except EmptyReply:
            return UnreadableReply("", EMPTY_REPLY)
        except ModelFailed as error:
            # Some servers fail if they cannot parse a tool call of the model. The next attempt may work.
            self._server_error = error
            return UnreadableReply("", "Your reply could not be read. Call one tool, or write the answer.")
        self._server_error = None
        if is_native:
            return read_reply(reply, self.toolbox.knows, self.requester.steps)
        return read_action(reply, self.requester.steps)

    async def _call_tools(self, reply: ToolCallsReply) -> None:
        """Make the calls of a reply and add their answers to the conversation."""
        calls = reply.calls[:MAX_CALLS_PER_REPLY]
        self.toolbox.activity.tokens = self.requester.tokens
        exchange = Exchange(reply.text)
        tokens = self.limits.tool_answer_tokens(self.requester.free_tokens, len(calls))
        has_worked = False
        exhausted: BudgetExceeded | None = None
        for call in calls:
            text, is_mistake, exhausted = await self._call_tool(call, tokens)
            has_worked = has_worked or not is_mistake
            exchange.calls += (_with_valid_arguments(call),)
            exchange.answers.append(text)
            shown = clip(" ".join(f"{call.name} {call.arguments}".split()), 160)
            outcome = text if is_mistake else counted(estimate_tokens(text), "token")
            await self._log_step(f"{shown} -> {clip(outcome, 160)}")
            if exhausted is not None:
                break
        if len(reply.calls) > MAX_CALLS_PER_REPLY:
            made = counted(MAX_CALLS_PER_REPLY, "call")
            exchange.feedback = f"Only the first {made} of your {len(reply.calls)} were made."
        self.conversation.add(exchange)
        if exhausted is not None:
            raise SearchEnded(f"the budget of {exhausted.kind} was spent, which ended the search", exhausted)
        if has_worked:
            self.check.has_looked = True
            self._mistakes = 0
        else:
            await self._count_mistake()

    async def _call_tool(self, call: ToolCall, tokens: int) -> CallResult:
        """Call one tool, unless its arguments are broken or it was called the same way before."""
        try:
            arguments = parse_lenient_object(call.arguments or "{}")
        except NotJson as error:
            problem = f"error: the arguments are not JSON: {error}. Send one object."
            return CallResult(problem, is_mistake=True)
        is_known = self.toolbox.knows(call.name)
        if is_known and self.conversation.has_answer_to(_with_valid_arguments(call)):
            return CallResult(self.toolbox.refuse_repeat(call.name), is_mistake=True)
        answer = await self.toolbox.call(call.name, arguments, tokens)
        name = self.toolbox.resolve(call.name)
        if not answer.failed and name not in FILE_TOOLS:
            self.check.used_other_tools = True
        if not answer.failed and name in WRITING_TOOLS:
            self._has_written = True
            self.conversation.forget_answers()  # the same call may have another answer now
        return CallResult(answer.text, is_mistake=answer.failed, exhausted=answer.budget)

    async def _correct(self, reply_text: str, correction: str) -> None:
        """Tell the model what was wrong with its reply, and count the mistake."""
        self.conversation.add(Exchange(clip(reply_text, 400), feedback=correction))
        await self._log_step(f"told: {correction}")
        await self._count_mistake()

    async def _count_mistake(self) -> None:
        """Count a mistake. After too many in a row, end the search or go on without tool calls."""
        self._mistakes += 1
        if self._mistakes < MAX_MISTAKES:
            return
        in_a_row = f"{counted(MAX_MISTAKES, 'broken call')} in a row"
        if self.check.has_looked:
            raise SearchEnded(f"{in_a_row} ended the search")
        if self.reader is None and self.way == "tools":
            await self._switch_to_actions("the model does not manage to call tools")
            return
        if self.reader is None:
            raise self._server_error or ModelFailed(
                f"the model made {in_a_row} and found nothing",
                hint="use a model that was trained to call tools",
            )
        raise ToolCallsUnusable("the model does not manage to call tools", self.reader)

    async def _switch_to_actions(self, reason: str) -> None:
        """Ask for JSON actions from now on, because all servers support replies with a schema."""
        self.way = "actions"
        self._mistakes = 0
        await self._log_step(f"{reason}: the next action is asked for as JSON")

    def _objection_to(self, answer: AnswerReply) -> str | None:
        """Return what is wrong with an answer. An objection is raised only once, except to placeholders."""
        if not answer.text.strip() or is_placeholder(answer.text):
            return "That is a placeholder. Write the real answer."
        if self.conversation.repeats_instructions(answer.text) and self._is_first_objection("copied"):
            return "That only repeats your instructions. Answer the task itself."
        if answer.is_reasoning:
            if self._is_first_objection("reasoning"):
                return ONLY_REASONING
            self.check.notes.append("the answer was taken from the model's reasoning")
        if answer.is_cut:
            if self._is_first_objection("cut"):
                return "Your answer was cut off. Give it again, in fewer words."
            self.check.notes.append("the answer was cut off at the model's limit")
        announces = len(answer.text) < MAX_ANNOUNCEMENT_CHARS and _ANNOUNCEMENT.match(answer.text)
        could_look = self.toolbox.names and not self.check.has_looked
        if announces and could_look and self._is_first_objection("announcement"):
            return "Do not announce it: call the tool now, or give the answer."
        return None

    def _objection_to_work(self, text: str) -> str | None:
        """Return what to tell a model that has not done its work; None if the answer is accepted.

        Raises `ToolCallsUnusable` if the reader can answer instead.
        """
        if self.check.writes:
            return self._objection_to_unwritten()
        if self.check.answers_json or self.check.has_evidence(text):
            return None  # JSON is checked when it is complete
        if not self._is_first_objection("evidence"):
            return None
        if self.reader is not None:
            raise ToolCallsUnusable("the answer names nothing that the model has seen", self.reader)
        if not self.check.seen:
            return "You have not looked at anything yet. Call a tool that finds or reads code first."
        return "Your answer names nothing that you have seen. Name the place and the names in the code."

    def _objection_to_unwritten(self) -> str | None:
        if self._has_written:
            return None
        has_edits = any(name in WRITING_TOOLS and name != RUN_COMMAND for name in self.toolbox.names)
        if self._is_first_objection("unwritten"):
            missing = "changed any file" if has_edits else "run any command"
            return f"You have not {missing}. Do it now with a tool, or answer again and say why not."
        if has_edits and self.way == "tools" and self.requester.steps < STEPS_TO_WRITE:
            self.way = "actions"  # as JSON, it has to choose an action
            return "Choose the next action: read the file, then change it."
        return None

    def _is_first_objection(self, kind: str) -> bool:
        is_first = kind not in self._objections
        self._objections.add(kind)
        return is_first

    async def _json_answer(self, text: str | None) -> str:
        phase = JsonAnswer(
            requester=self.requester,
            conversation=self.conversation,
            check=self.check,
            limits=self.limits,
            log=self.log,
        )
        return await phase.request(text, text if self._is_reading else None)

    async def _request_plain_answer(self) -> str:
        """Ask for an answer in plain text, without tools. Raises if the model gives none."""
        has_used_tools = self.way in ("tools", "actions") and self.toolbox.names
        request = RequestOptions(as_text=True, last_turn=ANSWER_NOW if has_used_tools else "")
        for _ in range(min(PLAIN_ANSWER_TRIES, self.requester.steps_left)):
            try:
                reply = await self.requester.ask(self.conversation, request)
            except EmptyReply:
                continue
            parsed = read_reply(reply, self.toolbox.knows, self.requester.steps)
            objection = self._objection_to(parsed) if isinstance(parsed, AnswerReply) else ANSWER_NOW
            if isinstance(parsed, AnswerReply) and objection is None:
                return parsed.text
            shown = clip(without_thoughts(reply.text), 300)
            self.conversation.add(Exchange(shown, feedback=objection or ""))
        raise self._reached or OutputInvalid(
            "the model gave no answer when it was asked for one", hint="use a stronger model"
        )

    async def _log_step(self, text: str) -> None:
        await self.log(f"step {self.requester.steps}: {text}")


def _with_valid_arguments(call: ToolCall) -> ToolCall:
    """Return a call with valid JSON arguments for the history: some servers refuse any others."""
    try:
        parse_lenient_object(call.arguments or "{}")
    except NotJson:
        return replace(call, arguments="{}")
    return call
