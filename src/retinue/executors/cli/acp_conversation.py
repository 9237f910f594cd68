"""One conversation with an agent over ACP: what it says becomes a report, what it asks is decided.

Knows nothing of processes.
"""

from __future__ import annotations

from collections.abc import Callable

from retinue.core import (
    Emit,
    InvalidInput,
    LimitExceeded,
    ModelFailed,
    OutputLine,
    Permit,
    ProgramFailed,
    RetinueError,
    ToolRequest,
    as_int as number,
    as_object as table,
    as_object_list as rows,
    as_text as text,
    clip,
)
from retinue.executors.cli.acp_connection import Params
from retinue.executors.cli.cli_report import CliReport, shown

CANCELED: Params = {"outcome": {"outcome": "cancelled"}}


class AcpConversation:
    def __init__(
        self,
        name: str,
        permit: Permit,
        asked: Callable[[Params], ToolRequest],
        emit: Emit,
        *,
        max_steps: int | None,
    ) -> None:
        self.report = CliReport()
        self.replaying = False
        """Whether it tells what was said in an earlier run."""
        self._name = name
        self._permit = permit
        self._asked = asked
        self._emit = emit
        self._max_steps = max_steps
        self._calls: dict[str, dict[str, object]] = {}
        """Its calls of tools, by id, with all that was said of them."""
        self._text: list[str] = []
        """What it has said since its last call: in the end, its answer."""
        self._earlier = ""

    async def on_request(self, method: str, params: Params) -> Params:
        if method != "session/request_permission":
            raise InvalidInput(
                f"{method} is not offered"
            )  # and not promised: it has no files or terminals here
        return await self._decide(params)

    async def on_notification(self, method: str, params: Params) -> None:
        if method != "session/update" or self.replaying:
            return
        update = table(params.get("update"))
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._text.append(text(table(update.get("content")).get("text")))
            case "tool_call" | "tool_call_update":
                await self._tool(update)
            case "usage_update":
                self._cost(table(update.get("cost")))
            case _:
                return

    async def finish(self, answered: Params) -> None:
        """Its answer to the prompt has come, and with it why it stopped."""
        await self._say()
        report = self.report
        report.ended = True
        report.answer = self._earlier
        report.steps = len(self._calls) + 1
        report.tokens = number(table(answered.get("usage")).get("totalTokens")) or _quota(answered, report)
        report.error = self._stopped(str(answered.get("stopReason")))

    async def _decide(self, params: Params) -> Params:
        """The options that an agent offers are its own words; we take them for this once, or refuse."""
        call = table(params.get("toolCall"))
        await self._tool(call)
        asked = self._asked(self._calls[text(call.get("toolCallId"))])
        verdict = await self._permit(asked)
        if not verdict.allowed:
            self.report.denials.append(clip(str(asked), 200))
            await self._emit(OutputLine("stdout", f"denied: {clip(f'{asked}: {verdict.reason}', 300)}"))
        wanted = "allow_once" if verdict.allowed else "reject_once"
        for option in rows(params.get("options")):
            if option.get("kind") == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return CANCELED

    async def _tool(self, update: Params) -> None:
        number = text(update.get("toolCallId"))
        if number not in self._calls:
            await self._say()
            self._calls[number] = {}
            if self._max_steps is not None and len(self._calls) >= self._max_steps:
                raise LimitExceeded("steps", len(self._calls) + 1, self._max_steps)
        known = self._calls[number]
        title = text(update.get("title"))
        if title and title != known.get("title"):
            await self._show("uses", title)
        news = {name: value for name, value in update.items() if value}
        if news.get("kind") == "other" and "kind" in known:
            del news["kind"]  # a question may call other what was a command before
        known |= news
        if update.get("status") in ("completed", "failed"):
            for block in rows(update.get("content")):
                await self._show("tool", text(table(block.get("content")).get("text")))

    async def _say(self) -> None:
        if said := "".join(self._text).strip():
            self._earlier = said
            await self._show(self._name, said)
        self._text.clear()

    async def _show(self, label: str, said: str) -> None:
        for line in shown(label, said):
            await self._emit(OutputLine("stdout", line))

    def _cost(self, cost: Params) -> None:
        if cost.get("currency") == "USD":
            self.report.cost_micros = round(float(cost.get("amount") or 0) * 1_000_000)

    def _stopped(self, reason: str) -> RetinueError | None:
        match reason:
            case "end_turn" if self.report.denials and not self.report.answer:
                return ProgramFailed(f"{self._name} gave up when it was denied {self.report.denials[-1]}")
            case "end_turn":
                return None
            case "max_turn_requests":
                limit = self._max_steps or self.report.steps
                return LimitExceeded("steps", max(self.report.steps, limit + 1), limit)
            case "max_tokens" | "refusal":
                return ModelFailed(f"the model stopped {self._name} before it had an answer: {reason}")
            case _:
                return ProgramFailed(f"{self._name} stopped before it had an answer: {reason}")


def _quota(answered: Params, report: CliReport) -> int:
    """Where gemini tells what it used, and which model did it."""
    quota = table(table(answered.get("_meta")).get("quota"))
    for used in rows(quota.get("model_usage")):
        report.model = text(used.get("model")) or report.model
    counted = table(quota.get("token_count"))
    return number(counted.get("input_tokens")) + number(counted.get("output_tokens"))
