"""The loop of one agent on a local model: ask the model, call tools, check the answer, stop.

Read `Loop.run` first. It has two phases. The first one finds an answer: `_search` lets the model call tools
until it answers or a limit is reached. A model that calls tools badly, or answers without evidence, continues
on rails: in `guided_search.py` our own search finds the code and the model only answers from it. The second
phase turns what was found into a checked answer and offers no tools; the last steps are reserved for it, so
that nothing found is lost at a limit. Each mistake of the model is explained to it in one line, and three
mistakes in a row end the search.

An answer about code must name something that the agent has seen (`answer_check.py`). If the last one does
not, the run ends with the error `Unverified`, and the answer is kept as its output.

The loop knows nothing of servers: `model_requests.py` sends the requests and enforces the limits of each, and
`replies.py` interprets what comes back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
    Unverified,
    clip,
    compact_json,
    counted,
    estimate_tokens,
    parse_lenient_object,
)
from retinue.executors.local.answer_check import NOT_FOUND, AnswerCheck, InvalidAnswer
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.guided_search import GuidedSearch
from retinue.executors.local.instructions import ANSWER_NOW, FORM_RULES
from retinue.executors.local.model_requests import LoopLimits, ModelRequester, RequestOptions, WriteLog
from retinue.executors.local.replies import (
    EMPTY_REPLY,
    ONLY_REASONING,
    AnswerReply,
    ParsedReply,
    ToolCallsReply,
    UnreadableReply,
    action_request,
    fill_in,
    read_action,
    read_reply,
    without_thoughts,
)
from retinue.executors.wrappers import is_placeholder
from retinue.tools import CodeExcerpt, Toolbox

MAX_CALLS_PER_REPLY = 8
STEPS_TO_WRITE = 6
"""Steps after which a writer that chooses actions as JSON may answer without having changed anything."""
MAX_MISTAKES = 3
"""Mistakes in a row that end the search."""
JSON_ANSWER_TRIES = 3
"""Requests for an answer in JSON."""
PLAIN_ANSWER_TRIES = 2
"""Requests for an answer in plain text, once no more tools are offered."""
MAX_INVALID_ANSWER_CHARS = 800
"""How much of an invalid answer the model is shown again."""
MAX_ANNOUNCEMENT_CHARS = 400
_ANNOUNCEMENT = re.compile(
    r"\s*(?:(?:ok|okay|sure)\W+)?(?:I(?:'ll| will| need to| am going to)|let me|first, I)\b", re.I
)


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


class ModelNeedsRails(Exception):
    """The model cannot call tools, or answers without evidence. The message says which."""

    def __init__(self, why: str, guided: GuidedSearch) -> None:
        super().__init__(why)
        self.guided = guided


@dataclass(slots=True, kw_only=True)
class Loop:
    """Performs one task with an agent on a local model."""

    requester: ModelRequester
    conversation: Conversation
    toolbox: Toolbox
    limits: LoopLimits
    check: AnswerCheck
    log: WriteLog
    guided: GuidedSearch | None = None
    """Answers from code that our own search finds; None if there is nothing to search."""
    excerpts: Sequence[CodeExcerpt] = ()
    """The code that our search found for the task, if the conversation begins with it."""
    starts_guided: bool = False
    """Whether to start on rails, because the model is known to call tools badly."""
    native_tools: bool = True
    """Whether requests offer tools. Otherwise the model writes its next action as JSON."""

    _mistakes: int = field(default=0, init=False)
    """Mistakes in a row."""
    _is_guided: bool = field(default=False, init=False)
    """Whether the model answers from code that our search finds."""
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
            text = await self._find_answer() if self.toolbox.names else None
            if self.check.answers_json:
                output = await self._json_answer(text)
            else:
                output = await self._plain_answer(text)
        except RetinueError as error:
            return self.result(error)
        if not self.check.answers_json and not self.check.has_evidence(output):
            return replace(self.result(self.check.unverified()), output=output)
        if not self.check.answers_json and self._is_guided and self.guided is not None:
            output = "\n\n".join(filter(None, [output, self.guided.quoted_code()]))
        return replace(self.result(), output=output)

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

    def _findings(self) -> str:
        """Return what was found so far, after the reply that is being received.

        If the agent has looked at nothing itself, that is what our search found.
        """
        found = self.conversation.findings(self.limits.reply_tokens)
        if self._is_guided and self.guided is not None:  # a part of a JSON object says nothing to the user
            return self.guided.findings() or found
        partial = "".join(self.requester.partial_reply).strip()
        places = "" if self.guided is None or self.check.has_looked else self.guided.places()
        return "\n\n".join(filter(None, [partial, found, places]))

    # The first phase: search with tools.

    async def _find_answer(self) -> str | None:
        """Return an answer that has evidence, or None if a limit came first."""
        try:
            if self.guided is not None and self.starts_guided:
                raise ModelNeedsRails("the model calls tools badly", self.guided)
            return await self._search()
        except ModelNeedsRails as reason:
            await self._log_step(f"{reason}: answers from code that our search finds")
            self._is_guided = True
            answer = await reason.guided.answer()
            if answer is not None:
                self.check.has_looked = True
                return answer
            self.guided, self._is_guided = None, False
            await self._switch_to_actions(str(reason))
            return await self._search()

    async def _search(self) -> str | None:
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
        specs = self.toolbox.specs
        may_answer = self.check.has_looked or not self.check.looks_at_code or bool(self.excerpts)
        if (
            self.check.writes and not self._has_written
        ):  # a small model describes its work instead of doing it
            may_answer = self.requester.steps >= STEPS_TO_WRITE
        if self.native_tools:
            request = RequestOptions(tools=specs)
        else:
            request = action_request(specs, may_answer=may_answer, writes=self.check.writes)
        try:
            reply = await self.requester.ask(self.conversation, request)
        except ContextOverflow:
            raise
        except ToolsUnsupported:
            if not self.native_tools:
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
        if self.native_tools:
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
        """Count a mistake. After too many in a row, end the search, switch to actions, or fail."""
        self._mistakes += 1
        if self._mistakes < MAX_MISTAKES:
            return
        in_a_row = f"{counted(MAX_MISTAKES, 'broken call')} in a row"
        if self.check.has_looked:
            raise SearchEnded(f"{in_a_row} ended the search")
        if self.guided is not None:
            raise ModelNeedsRails("the model does not manage to call tools", self.guided)
        if self.native_tools:
            await self._switch_to_actions("the model does not manage to call tools")
            return
        raise self._server_error or ModelFailed(
            f"the model made {in_a_row} and found nothing", hint="use a model that was trained to call tools"
        )

    async def _switch_to_actions(self, reason: str) -> None:
        """Ask for JSON actions from now on, because all servers support replies with a schema."""
        self.native_tools = False
        self._mistakes = 0
        await self._log_step(f"{reason}: the next action is asked for as JSON")

    def _objection_to(self, answer: AnswerReply) -> str | None:
        """Return what is wrong with an answer. An objection is raised only once, except to placeholders."""
        if not answer.text.strip() or is_placeholder(answer.text):
            return "That is a placeholder. Write the real answer."
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
        """Return what to tell a model that has not done its work; None if the answer is accepted."""
        if not self.check.writes:
            return self._objection_to_evidence(text)
        if self._has_written:
            return None
        has_edits = any(name in WRITING_TOOLS and name != RUN_COMMAND for name in self.toolbox.names)
        if self._is_first_objection("unwritten"):
            missing = "changed any file" if has_edits else "run any command"
            return f"You have not {missing}. Do it now with a tool, or answer again and say why not."
        if has_edits and self.native_tools and self.requester.steps < STEPS_TO_WRITE:
            self.native_tools = False  # as JSON, it has to choose an action
            return "Choose the next action: read the file, then change it."
        return None

    def _objection_to_evidence(self, text: str) -> str | None:
        """Return what to tell the model about an answer without evidence; None if it has evidence.

        Raises `ModelNeedsRails` if our own search has found code for the task.
        """
        if (
            self.check.answers_json
            or self.check.has_evidence(text)
            or not self._is_first_objection("evidence")
        ):
            return None  # JSON is checked when it is complete
        if self.guided is not None:
            raise ModelNeedsRails("the answer names nothing that the model has seen", self.guided)
        if not self.check.seen:
            return "You have not looked at anything yet. Call a tool that finds or reads code first."
        return "Your answer names nothing that you have seen. Name the place and the names in the code."

    def _is_first_objection(self, kind: str) -> bool:
        is_first = kind not in self._objections
        self._objections.add(kind)
        return is_first

    # The second phase: answer without tools.

    async def _plain_answer(self, text: str | None) -> str:
        """Return the answer with wrong references marked (P3). Ask for an answer if there is none yet."""
        if text is None:
            text = await self._request_plain_answer()
        self.conversation.add(Exchange(text))  # it is a finding if the run ends during its check
        return await self.check.checked_text(text)

    async def _request_plain_answer(self) -> str:
        """Ask for an answer in plain text, without tools. Raises if the model gives none."""
        request = RequestOptions(as_text=True, last_turn=ANSWER_NOW if self.toolbox.names else "")
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

    async def _json_answer(self, text: str | None) -> str:
        """Return an answer in JSON that fits the schema (P3), in a limited number of tries."""
        found = self.check.found = text if self._is_guided else None
        if text is not None:
            self.conversation.add(Exchange(text))
            with suppress(InvalidAnswer):
                return await self.check.checked_json(text)
        if found is not None and not self.limits.has_time:
            return await self._form_without_model(found)
        if found is not None:  # without the code, a weak model copies what was found
            self.conversation = Conversation(FORM_RULES, f"{self.check.task}\n\nWhat was found: {found}")
        schema = None if self.check.schema is None else self.check.schema.schema
        instruction = "Give your answer now: one JSON value, and nothing else."
        if schema is not None:
            shown = compact_json(schema)
            instruction = f"Give your answer now: JSON that fits this schema, and nothing else. {shown}"
        enforced = schema  # the server should enforce it; dropped if the server cannot
        problem = ""
        for _ in range(min(JSON_ANSWER_TRIES, self.requester.steps_left)):
            request = RequestOptions(schema=enforced, as_text=True, last_turn=instruction, temperature=0.0)
            try:
                reply = await self.requester.ask(self.conversation, request)
            except ContextOverflow:
                raise
            except EmptyReply:
                problem = "it was empty"
                continue
            except ModelFailed as error:
                if enforced is None:
                    raise
                enforced = None  # a server that cannot enforce this schema may still pass on the instruction
                problem = error.message
                continue
            answer = without_thoughts(reply.text)
            exchange = Exchange(clip(answer, MAX_INVALID_ANSWER_CHARS))
            self.conversation.add(exchange)
            try:
                return await self.check.checked_json(answer)
            except InvalidAnswer as invalid:
                if found is not None and schema is not None:
                    with suppress(InvalidAnswer):
                        return await self.check.checked_json(fill_in(answer, schema, found))
                problem = "it was cut off: make it shorter" if reply.finish == "length" else str(invalid)
                if self.check.nothing_found and problem.startswith(NOT_FOUND):
                    break  # the form asks for a place, and there is none
            await self._log_step(f"not a valid answer: {problem}")
            exchange.feedback = f"That is not a valid answer: {problem}. Answer again, with JSON only."
        if unverified := self.check.unverified(problem):
            raise unverified
        what = "was JSON" if schema is None else "fitted the output schema"
        raise OutputInvalid(
            f"no answer {what} in {counted(JSON_ANSWER_TRIES, 'try', 'tries')}: {problem}",
            hint="use a stronger model" + ("" if schema is None else ", or a simpler schema"),
            tries=JSON_ANSWER_TRIES,
            problem=problem,
        )

    async def _form_without_model(self, found: str) -> str:
        """Return a form whose first text is what was found. Raises `Unverified` if it needs more than that.

        The model has no time for it.
        """
        with suppress(InvalidAnswer):
            if self.check.schema is not None:
                return await self.check.checked_json(fill_in("{}", self.check.schema.schema, found))
        raise Unverified(
            "the form was not filled in: the model is too slow for the time of this run",
            hint="give the agent more time, or use a faster model",
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
