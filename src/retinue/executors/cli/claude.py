"""Runs Claude Code: builds its command line, reads its events and answers its questions.

`ClaudeCli` builds the command line, `ClaudeEvents` reads the output (`--output-format stream-json`), and
`ClaudeDialogue` writes to its stdin (`--input-format stream-json`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    ASK_PARENT,
    MCP_PREFIX,
    NO_ANSWER,
    Agent,
    AskParent,
    Executor,
    JsonObject,
    LimitExceeded,
    ModelFailed,
    PermissionRule,
    Permissions,
    Permit,
    ProgramFailed,
    RetinueError,
    RunContext,
    Throttled,
    ToolRequest,
    Verdict,
    as_int,
    as_object,
    as_object_list,
    as_text,
    clip,
)
from retinue.executors.cli.cli_factory import MakeCliExecutor, make_cli_executor, preview_cli
from retinue.executors.cli.cli_job import PROXY_VARIABLES, CliJob, CliTraits
from retinue.executors.cli.cli_launch import CliLauncher
from retinue.executors.cli.cli_output import CliReport, limit_error, log_lines, usd_to_micros
from retinue.executors.cli.cli_process import CliExecutor
from retinue.executors.cli.mcp_servers import RETINUE_SERVER, ReadyServer, secret_variables
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program, secret_file_descriptor
from retinue.tools import wait_for_answer

API_KEY = "ANTHROPIC_API_KEY"
CONFIG_FOLDER = "CLAUDE_CONFIG_DIR"
API_KEY_DESCRIPTOR = "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"
QUESTION_TOOL = "AskUserQuestion"
SPAWNING_TOOLS = ("Task", "Agent", "Workflow")
"""Claude's tools that start further agents."""
TOOL_TIMEOUT_MS = str(24 * 60 * 60 * 1000)
"""Long enough for a question to a person: Retinue, not the CLI, decides when to stop waiting."""
WORKING_STATUSES = ("connected", "pending")
"""The statuses that claude reports for an MCP server that works."""
NEVER_ASKS = "dontAsk"
"""The permission mode in which claude denies what no rule allows, without asking."""
MAX_OPEN_REQUESTS = 100
"""Requests of claude that may wait for an answer at the same time. More are an attack or a bug."""
MAX_UNREAD_BYTES = 1 << 20
"""Answers that claude may leave unread."""
MAX_OPEN_CALLS = 10_000
"""Tool calls without a result that are remembered for the receipt."""
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (-?\d{1,5})\b")
"""How claude begins the result of a command that failed."""
SYNTHETIC_MODEL = "<synthetic>"
"""The model name that claude reports for text that no model wrote."""

log = logging.getLogger(__name__)


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with Claude Code."""
    start = partial(CliExecutor, ClaudeCli())
    return make_cli_executor(_fork_host(start, surroundings) if agent.fork else start, agent, surroundings)


def _fork_host(start: MakeCliExecutor, surroundings: Surroundings) -> MakeCliExecutor:
    """Let each run continue a copy of the host's conversation."""
    from retinue.executors.cli.host_conversation import WithHostConversation  # few agents do

    def make(agent: Agent, launcher: CliLauncher) -> Executor:
        state = launcher.state_of(ClaudeCli.traits, agent).env.get(CONFIG_FOLDER)
        home = Path(surroundings.environment.get("HOME", str(Path.home())))
        folder = Path(state or surroundings.environment.get(CONFIG_FOLDER) or home / ".claude")
        return WithHostConversation(start(agent, launcher), surroundings.environment, folder)

    return make


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    return preview_cli(ClaudeCli(), agent, surroundings)


class ClaudeCli:
    """Claude Code, configured by flags."""

    traits = CliTraits(
        name="claude",
        inherit=(API_KEY, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", *PROXY_VARIABLES),
        env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        state_variables={CONFIG_FOLDER: "."},
        login_files={".claude/.credentials.json": ".credentials.json"},
        models_by_tier={"fast": "haiku", "medium": "sonnet", "strong": "opus"},
        always_gets_retinue_server=False,
        has_question_tool=True,
        has_permission_modes=True,
        denies_reading=True,
        reports_cost=True,
        web_tools=("WebFetch", "WebSearch"),
    )

    def program(self, job: CliJob) -> Program:
        """Return what to start.

        Secrets go through open files where possible, because claude's commands inherit its environment.
        """
        arguments = (*_basic_flags(job), *_prompt_flags(job), *_permission_flags(job), *_limit_flags(job))
        env = {"MCP_TOOL_TIMEOUT": TOOL_TIMEOUT_MS} if job.has_retinue_server else dict[str, str]()
        if job.sandboxed:
            env["IS_SANDBOX"] = "1"  # else claude refuses to skip permission prompts as root
        servers = _mcp_config(job)
        mcp_flags = ("--strict-mcp-config", "--mcp-config")
        if not job.can_read_secret_files:
            return job.program(*arguments, *mcp_flags, servers, env={**env, **secret_variables(job.servers)})
        secret_files = [servers.encode()]
        if key := job.env.get(API_KEY):
            secret_files.append(key.encode())
            env[API_KEY_DESCRIPTOR] = str(secret_file_descriptor(1))
        return job.program(
            *arguments,
            *mcp_flags,
            f"/proc/self/fd/{secret_file_descriptor(0)}",
            env=env,
            without=frozenset({API_KEY}),
            secret_files=tuple(secret_files),
        )

    def events(self, job: CliJob) -> ClaudeEvents:
        budget = job.agent.budget
        return ClaudeEvents(
            max_steps=budget.steps,
            max_cost_micros=budget.cost_micros,
            max_tokens=budget.tokens,
            earlier_cost_micros=job.resume.cost_micros if job.resume else 0,
            folder=str(job.cwd),
        )

    def dialogue(self, ctx: RunContext) -> ClaudeDialogue:
        return ClaudeDialogue(ctx.permit, ctx.ask, str(ctx.cwd))


def _basic_flags(job: CliJob) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
    yield from ("--permission-prompt-tool", "stdio")
    yield from ("--setting-sources", ",".join(job.agent.settings))
    if job.model:
        yield from ("--model", job.model)
    for folder in job.agent.folders:
        yield from ("--add-dir", folder)
    if job.resume:
        yield from ("--resume", job.resume.session_id, "--system-prompt-snapshot", "off")
        if job.resume.is_fork:
            yield "--fork-session"
    if job.resume and not job.resume.is_fork:
        return
    if not (job.agent.session or job.agent.answers_json):  # invalid JSON is corrected in the same session
        yield "--no-session-persistence"


def _prompt_flags(job: CliJob) -> Iterator[str]:
    if job.agent.prompt:
        kind = "--system-prompt-file" if job.agent.prompt_mode == "replace" else "--append-system-prompt-file"
        yield from (kind, job.write_file("system-prompt.md", job.agent.prompt))
    if schema := job.output_schema:
        yield from ("--json-schema", schema)


def _permission_flags(job: CliJob) -> Iterator[str]:
    agent = job.agent
    if agent.tools is not None:
        tools = [_claude_name(tool) for tool in agent.tools if not tool.startswith("mcp__")]
        yield from ("--tools", ",".join(tools))
    allowed = list(_rules_that_claude_applies(agent.permissions))
    if job.has_retinue_server:
        allowed += [f"mcp__{RETINUE_SERVER}"]
    if allowed:
        yield from ("--allowedTools", ",".join(allowed))
    denied = [
        str(PermissionRule.parse(_claude_name(rule)))
        for rule in (*agent.permissions.deny, *agent.denied_tools)
    ]
    if not agent.spawns:
        denied += SPAWNING_TOOLS
    if denied:
        yield from ("--disallowedTools", ",".join(denied))
    if agent.permissions.mode:
        yield from ("--permission-mode", agent.permissions.mode)


def _rules_that_claude_applies(permissions: Permissions) -> Iterator[str]:
    """Yield the rules that claude may apply itself. For other calls it asks, and Retinue judges what they do.

    A mode that never asks needs all of them. Claude always gets the rules that deny, in addition to Retinue.
    """
    allowing = [PermissionRule.parse(rule) for rule in permissions.allow]
    has_exceptions = any(PermissionRule.parse(rule).subject is not None for rule in permissions.deny)
    for rule in allowing:
        is_simple = rule.subject is None and (rule.tool.startswith(MCP_PREFIX) or not has_exceptions)
        if is_simple or permissions.mode == NEVER_ASKS:
            yield str(rule)


def _limit_flags(job: CliJob) -> Iterator[str]:
    budget = job.agent.budget
    if budget.steps is not None:
        yield from ("--max-turns", str(budget.steps))
    if budget.cost_micros is not None:
        yield from ("--max-budget-usd", f"{budget.cost_micros / 1_000_000:f}")


def _claude_name(tool: str) -> str:
    return QUESTION_TOOL if tool == ASK_PARENT else tool


def _mcp_config(job: CliJob) -> str:
    entry = _server_entry if job.can_read_secret_files else _server_entry_with_references
    return json.dumps({"mcpServers": {server.name: entry(server) for server in job.servers}})


def _server_entry(server: ReadyServer) -> dict[str, Any]:
    if server.url is not None:
        return {"type": "http", "url": server.url, "headers": dict(server.headers)}
    return {"command": server.argv[0], "args": list(server.argv[1:]), "env": dict(server.env)}


def _server_entry_with_references(server: ReadyServer) -> dict[str, Any]:
    """Return the entry with `${NAME}` for each secret; claude fills it in from its own environment."""
    headers = {name: f"${{{server.header_variable(name)}}}" for name in server.headers}
    env = {name: f"${{{name}}}" if name in server.secret else value for name, value in server.env.items()}
    return _server_entry(replace(server, headers=headers, env=env))


class ClaudeEvents:
    """Reads claude's events into a report."""

    def __init__(
        self,
        *,
        max_steps: int | None = None,
        max_cost_micros: int | None = None,
        max_tokens: int | None = None,
        earlier_cost_micros: int = 0,
        folder: str = "",
    ) -> None:
        """`earlier_cost_micros` is the session's cost before this run; claude reports the total.

        `folder` is claude's working directory, which paths are relative to.
        """
        self.report = CliReport()
        self._folder = folder
        self._open_calls: dict[str, ToolRequest] = {}
        """Tool calls by id that have no result yet."""
        self._max_steps = max_steps
        self._max_cost_micros = max_cost_micros
        self._max_tokens = max_tokens
        self._earlier_cost_micros = earlier_cost_micros
        self._tokens_by_message: dict[str, int] = {}
        """Tokens of this turn. A message comes in several events, and later ones report more."""
        self._tokens_of_turn = 0
        self._limit_is_spent = False
        self._limit_resets_at: int | None = None
        self._answer_is_synthetic = False
        """Whether claude itself, and no model, wrote the last message: it tells of a limit that way."""
        self._tokens_of_earlier_turns = 0
        """Claude begins another turn when a background command ends."""

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Add an event to the report and yield the lines that show it in the log."""
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                yield from self._take_start(event)
            case "system" if event.get("subtype") == "api_retry":
                yield from self._take_retry(event)
            case "assistant":
                message = as_object(event.get("message"))
                model = as_text(message.get("model"))
                self._answer_is_synthetic = model == SYNTHETIC_MODEL
                if model and model != SYNTHETIC_MODEL:
                    self.report.model = model
                yield from _message_lines(message, "claude")
                self._take_calls(message)
                self._count_tokens(message)
            case "user":
                message = as_object(event.get("message"))
                yield from _message_lines(message, "tool")
                self._take_results(message, as_object_list(event.get("tool_result_meta")))
            case "rate_limit_event":
                self._take_rate_limit(as_object(event.get("rate_limit_info")))
            case "result":
                yield from self._take_result(event)
            case _:
                return

    def _take_start(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        report.ended = False
        report.session_id = as_text(event.get("session_id")) or None
        report.model = as_text(event.get("model")) or None
        for server in as_object_list(event.get("mcp_servers")):
            if server.get("status") not in WORKING_STATUSES:
                report.note(f"the MCP server {server.get('name')} did not start: {server.get('status')}")
        yield f"claude: started, model {report.model}"

    def _take_retry(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Note a failed request to the API. Claude retries for minutes, which explains a late run."""
        status = event.get("error_status") or "nothing"
        error = clip(as_text(event.get("error")), 100)
        note = f"the model's API answered {status} ({error}) and was asked again"
        self.report.note(note)
        seconds = as_int(event.get("retry_delay_ms")) / 1000
        attempt = f"{as_int(event.get('attempt'))} of {as_int(event.get('max_retries'))}"
        yield f"claude: {note} in {seconds:.1f} s, {attempt}"

    def _take_calls(self, message: Mapping[str, Any]) -> None:
        for block in as_object_list(message.get("content")):
            if block.get("type") == "tool_use" and len(self._open_calls) < MAX_OPEN_CALLS:
                request = ToolRequest.of(
                    as_text(block.get("name")), as_object(block.get("input")), self._folder
                )
                self._open_calls[as_text(block.get("id"))] = request

    def _take_results(self, message: Mapping[str, Any], meta: list[JsonObject]) -> None:
        """Record the calls that have a result, but not those that were refused and never made."""
        refused = {as_text(each.get("id")) for each in meta if each.get("non_execution_kind")}
        for block in as_object_list(message.get("content")):
            call_id = as_text(block.get("tool_use_id"))
            request = self._open_calls.pop(call_id, None)
            if request is None or call_id in refused:
                continue
            failed = bool(block.get("is_error"))
            exit_code = None if failed else 0
            if failed and (found := _EXIT_CODE.match(_result_text(block))):
                exit_code = int(found[1])
            self.report.activity.request(request, failed=failed, exit_code=exit_code)

    def _take_rate_limit(self, info: Mapping[str, Any]) -> None:
        """Note that the usage limit is spent, and when it ends. Claude also reports limits that are not."""
        self._limit_is_spent = info.get("status") == "rejected"
        self._limit_resets_at = as_int(info.get("resetsAt")) or None

    def _count_tokens(self, message: Mapping[str, Any]) -> None:
        name = as_text(message.get("id"))
        counts = self._tokens_by_message
        before = counts.get(name, 0)
        counts[name] = max(before, _total_tokens(as_object(message.get("usage"))))
        self._tokens_of_turn += counts[name] - before
        self.report.tokens = used = self._tokens_of_earlier_turns + self._tokens_of_turn
        self.report.activity.tokens = used
        if self._max_tokens is not None and used > self._max_tokens:
            raise LimitExceeded("tokens", used, self._max_tokens)

    def _take_result(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Complete the report from claude's last event."""
        report = self.report
        report.ended = True
        report.answer = as_text(event.get("result"))
        report.session_id = as_text(event.get("session_id")) or report.session_id
        report.steps += as_int(event.get("num_turns"))
        self._tokens_of_earlier_turns += _total_tokens(as_object(event.get("usage")))
        self._tokens_by_message.clear()
        self._tokens_of_turn = 0
        report.tokens = self._tokens_of_earlier_turns
        total = usd_to_micros(event.get("total_cost_usd"))
        report.cost_micros = max(0, total - self._earlier_cost_micros)
        report.structured = event.get("structured_output")
        report.denials = [
            clip(
                str(ToolRequest.of(as_text(denial.get("tool_name")), as_object(denial.get("tool_input")))),
                200,
            )
            for denial in as_object_list(event.get("permission_denials"))
        ]
        report.error = self._result_error(event)
        yield f"claude: ended, {event.get('subtype')}"

    def _result_error(self, event: Mapping[str, Any]) -> RetinueError | None:
        """Return the error that claude's last event reports, or None."""
        subtype = event.get("subtype")
        status = event.get("api_error_status")
        if event.get("is_error") or status is not None or self._answer_is_synthetic:
            errors = event.get("errors")
            told = cast("list[object]", errors) if isinstance(errors, list) else []
            said = " ".join((self.report.answer, *map(str, told)))
            reset_at = self._limit_resets_at if self._limit_is_spent else None
            if spent := limit_error("claude", said, reset_at, known=self._limit_is_spent):
                return spent
        if subtype == "error_max_turns":
            limit = self._max_steps or self.report.steps
            return LimitExceeded("steps", max(self.report.steps, limit + 1), limit)
        if subtype == "error_max_budget_usd":
            spent = self.report.cost_micros or 0
            return LimitExceeded("cost_micros", spent, self._max_cost_micros or spent)
        if status is not None:
            message = clip(self.report.answer, 300)
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                return Throttled(f"the model's API answered {status}: {message}")
            return ModelFailed(f"the model's API answered {status}: {message}", status=status)
        if event.get("is_error") or subtype != "success":
            errors = event.get("errors")
            listed = cast("list[object]", errors) if isinstance(errors, list) else [as_text(errors)]
            reasons = "; ".join(map(str, listed))
            message = reasons or self.report.answer or str(subtype)
            return ProgramFailed(f"claude failed: {clip(message, 300)}")
        return None


def _message_lines(message: Mapping[str, Any], speaker: str) -> Iterator[str]:
    """Yield the lines that show a message in the log."""
    content = message.get("content")
    yield from log_lines(speaker, as_text(content))
    for block in as_object_list(content):
        match block.get("type"):
            case "text":
                yield from log_lines(speaker, as_text(block.get("text")))
            case "tool_use":
                yield from log_lines("uses", f"{block.get('name')} {json.dumps(block.get('input'))}")
            case "tool_result":
                yield from log_lines("tool", _result_text(block))
            case _:
                continue


def _result_text(block: Mapping[str, Any]) -> str:
    """Return the text of a tool's result, which is a text, or blocks of which some are texts."""
    result = block.get("content")
    blocks = "\n".join(as_text(part.get("text")) for part in as_object_list(result))
    return as_text(result) or blocks


def _total_tokens(usage: Mapping[str, Any]) -> int:
    """Return the tokens of a usage report, including cached ones."""
    counts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(max(0, as_int(usage.get(name))) for name in counts)


class ClaudeDialogue:
    """Sends claude its prompt and answers its requests while it works.

    Claude asks before a tool call that no rule covers, and has its own tool for questions. It needs no MCP
    server for either, so Retinue does not slow down its start.
    """

    def __init__(self, permit: Permit, ask: AskParent | None, folder: str) -> None:
        """`folder` is claude's working directory, which paths are relative to."""
        self._permit = permit
        self._folder = folder
        self._ask = ask
        self._stdin: asyncio.StreamWriter | None = None
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._has_background_tasks = False
        """While commands run in the background, claude may begin another turn after its result."""

    def begin(self, stdin: asyncio.StreamWriter, prompt: str) -> None:
        """Send the prompt."""
        self._stdin = stdin
        content = prompt.encode("utf-8", "replace").decode()  # lone surrogates are not valid JSON
        self._send({"type": "user", "message": {"role": "user", "content": content}})

    def hear(self, event: Mapping[str, Any]) -> None:
        """Handle one event. Each request is answered in its own task, because that may involve a person."""
        request_id = as_text(event.get("request_id"))
        match event.get("type"):
            case "control_request":
                self._limit_requests()
                task = asyncio.ensure_future(self._answer(request_id, as_object(event.get("request"))))
                self._answering[request_id] = task
                task.add_done_callback(lambda _: self._answering.pop(request_id, None))
            case "control_cancel_request" if request_id in self._answering:
                self._answering[request_id].cancel()
            case "system" if event.get("subtype") == "background_tasks_changed":
                self._has_background_tasks = bool(event.get("tasks"))
            case "result" if self._stdin is not None and not self._has_background_tasks:
                self._stdin.close()  # else claude waits for the next prompt
            case _:
                return

    def _limit_requests(self) -> None:
        """Raise `LimitExceeded` if too many requests are open, or if claude does not read the answers."""
        unread = 0 if self._stdin is None else self._stdin.transport.get_write_buffer_size()
        for kind, used, limit in (
            ("open_requests", len(self._answering) + 1, MAX_OPEN_REQUESTS),
            ("unread_bytes", unread, MAX_UNREAD_BYTES),
        ):
            if used > limit:
                raise LimitExceeded(kind, used, limit)

    async def end(self) -> None:
        """Stop answering the requests that are still open."""
        unanswered = list(self._answering.values())
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)

    async def _answer(self, request_id: str, request: JsonObject) -> None:
        """Answer a request, if necessary with an error: without an answer, claude would wait forever."""
        answer: dict[str, Any]
        try:
            answer = {"subtype": "success", "response": await self._decide(request)}
        except Exception as error:  # the request may be malformed, or the run may have ended
            log.warning("a request from claude could not be answered", exc_info=error)
            answer = {"subtype": "error", "error": str(error)}
        self._send({"type": "control_response", "response": {**answer, "request_id": request_id}})

    async def _decide(self, request: JsonObject) -> dict[str, Any]:
        """Return the response to a request: a verdict on a tool call, or the parent's answers."""
        if request.get("subtype") != "can_use_tool":
            raise ValueError(f"{request.get('subtype')} is not supported")
        tool, arguments = as_text(request.get("tool_name")), as_object(request.get("input"))
        if tool == QUESTION_TOOL:
            return await self._ask_parent(arguments)
        verdict = await self._permit(ToolRequest.of(tool, arguments, self._folder))
        return verdict.claude_answer(arguments)

    async def _ask_parent(self, arguments: JsonObject) -> dict[str, Any]:
        """Ask the run's parent all questions of one call at once."""
        questions = as_object_list(arguments.get("questions"))
        if self._ask is None or not questions:
            return Verdict(False, NO_ANSWER).claude_answer(arguments)
        ask = self._ask
        texts = await asyncio.gather(*(wait_for_answer(ask, _question_text(each)) for each in questions))
        answers = dict(zip([as_text(each.get("question")) for each in questions], texts, strict=True))
        return Verdict(True, "answered").claude_answer({**arguments, "answers": answers})

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(json.dumps(message).encode() + b"\n")


def _question_text(question: JsonObject) -> str:
    """Return a question together with the options that it offers."""
    lines = [as_text(question.get("question"))]
    if options := as_object_list(question.get("options")):
        lines.append("Options (choose one or more):" if question.get("multiSelect") else "Options:")
        lines += [f"- {as_text(each.get('label'))}: {as_text(each.get('description'))}" for each in options]
    return "\n".join(lines)
