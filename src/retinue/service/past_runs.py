"""Reads what past runs of a project did, for the evolver: friction, and tasks that can be tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retinue.core import (
    ENDED_STATUSES,
    Agent,
    BudgetKind,
    Message,
    PermissionAnswer,
    RetinueError,
    Run,
    RunId,
    RunStatus,
    as_int,
    as_object,
    as_object_list,
    as_text,
    as_text_list,
)
from retinue.learning import JudgedRun, PastGrant, PastQuestion, PastRetries, PastRun, TokensLost
from retinue.service.agents import AgentService
from retinue.service.changed_agents import with_changes
from retinue.service.runs import CALL_EVENT
from retinue.store import StepCheckpoint, Store

MAX_RUNS = 2_000
"""The newest runs that are looked at."""
FAILED_WORK = frozenset(
    {
        *("acceptance_failed", "output_invalid", "unverified", "program_failed", "empty_reply"),
        *("limit_exceeded", "budget_exceeded", "context_overflow"),
    }
)
"""The codes of errors that mean that the work failed. Others, such as a server that cannot be reached, say
nothing about the work."""
CHECK_PREFIX = "check-"
"""The names of the agents that run a project's checks begin like this."""


@dataclass(frozen=True, slots=True)
class ReplayableRun:
    """A past run whose work commands, or a schema, can judge again."""

    run: Run
    agent: Agent
    """The agent as it was called."""
    start: str | None
    """Where the work began: the branch of the run, without its last commit; None for today's state."""


def ended_runs(store: Store, project: Path) -> list[Run]:
    """The newest runs in the project that have ended, the oldest first. Trials of drafts are left out."""
    runs = store.runs.list(statuses=ENDED_STATUSES, limit=MAX_RUNS)
    trials = {run.id for run in runs if run.spec.is_trial}
    return [
        run
        for run in reversed(runs)
        if run.request not in trials and Path(run.spec.cwd or "/").is_relative_to(project)
    ]


def work_failed(run: Run) -> bool:
    """Whether the work of a run failed, rather than something around it."""
    return run.status is RunStatus.TIMEOUT or as_object(run.error).get("code") in FAILED_WORK


def _has_verdict(run: Run) -> bool:
    """Whether acceptance commands or a schema have judged the run's work."""
    error = as_object(run.error)
    has_failed = error.get("code") == "output_invalid" and "problem" in as_object(error.get("data"))
    return has_failed or bool(as_object(run.result).keys() & {"acceptance", "value"})


def judged_runs(store: Store, project: Path) -> Iterator[JudgedRun]:
    """Yield the runs whose work acceptance commands or a schema have judged, or would have."""
    runs = ended_runs(store, project)
    judged = {run.id: run.spec.agent for run in runs if _has_verdict(run)}
    agents = set(judged.values())
    for run in runs:
        if run.id in judged or (run.spec.agent in agents and work_failed(run)):
            used = as_text_list(as_object(run.result).get("skills"))
            yield JudgedRun(run.spec.agent, used, run.status is RunStatus.SUCCESS)


def read_past_runs(store: Store, project: Path) -> Iterator[PastRun]:
    """Yield what friction is looked for in."""
    checked: dict[RunId | None, int] = {}  # tokens of the last work below each workflow
    for run in ended_runs(store, project):
        tokens = as_int(_receipt(run).get("tokens"))
        is_check = run.spec.agent.startswith(CHECK_PREFIX)
        if not is_check:
            checked[run.spec.parent] = tokens
        messages = store.messages.of_run(run.id)
        yield PastRun(
            id=run.id,
            agent=run.spec.agent,
            task=run.spec.task,
            asked_by_person_or_host=run.spec.parent is None,
            tokens=checked.get(run.spec.parent, 0) if is_check else tokens,
            error={} if is_check else as_object(run.error),
            retries=_retries(run),
            questions=_questions(store, run, [each for each in messages if each.permission is None]),
            granted=tuple(_granted(messages)),
            failed_checks=_failed_checks(run, is_check),
        )


def _receipt(run: Run) -> Mapping[str, Any]:
    return as_object(as_object(run.result).get("receipt"))


def _average(run: Run, steps: int) -> TokensLost:
    """Estimate the tokens of some steps of a run by the average over all of its own."""
    all_steps, tokens = run.usage.get(BudgetKind.STEPS), run.usage.get(BudgetKind.TOKENS)
    return TokensLost(round(steps * tokens / all_steps), estimated=True) if all_steps else TokensLost()


def _retries(run: Run) -> dict[str, PastRetries]:
    """The retries of each tool, with the tokens that the receipt has for them, or an estimate."""
    receipt = _receipt(run)
    tokens = as_object(receipt.get("retry_tokens"))
    times = {tool: as_int(count) for tool, count in as_object(receipt.get("retries")).items()}
    return {
        tool: PastRetries(count, TokensLost(as_int(tokens[tool])) if tool in tokens else _average(run, count))
        for tool, count in times.items()
    }


def _questions(store: Store, run: Run, messages: Sequence[Message]) -> list[PastQuestion]:
    """What a run asked. A question costs the step that asks it; in a workflow, the work that is repeated."""
    points = [point for point in store.checkpoints.of_run(run.id) if point.child] if messages else []
    before: dict[str, StepCheckpoint] = {}
    for message in messages:
        path = message.question.partition(": ")[0]  # with which the keys of the step's runs begin, too
        for point in points:
            if point.began_at <= message.asked_at and point.step.startswith(f"{path}:agent:"):
                before[message.id] = point
    shares = Counter(point.step for point in before.values())
    found: list[PastQuestion] = []
    for message in messages:
        if (point := before.get(message.id)) is None:
            lost = _average(run, 1)
        else:
            lost = TokensLost(as_int(as_object(point.output).get("tokens")) // shares[point.step])
        found.append(PastQuestion(message.question, _waited(message), lost))
    return found


def _waited(message: Message) -> float:
    return max(0.0, (message.replied_at or message.closed_at or 0.0) - message.asked_at)


def _granted(messages: Iterable[Message]) -> Iterator[PastGrant]:
    """The permissions that somebody gave a run when it asked."""
    for message in messages:
        wanted = message.permission
        if wanted is None or PermissionAnswer.parse(message.answer or "").consent == "no":
            continue
        tool, subject, rule = wanted.asked.tool, wanted.asked.subject, wanted.rule
        is_rule = rule is not None and rule.partition("(")[0] == tool  # that of project checks is none
        yield PastGrant(f"{tool}: {subject}", _waited(message), rule if is_rule else None)


def _failed_checks(run: Run, is_check: bool) -> list[tuple[str, str]]:
    """The commands that failed after the run's work; for a check of the project, the check itself."""
    if is_check and run.status is RunStatus.ERROR:
        return [(run.spec.task, _last_lines(run.summary or ""))]
    checks = as_object_list(as_object(run.result).get("acceptance"))
    return [
        (as_text(check.get("command")), _last_lines(as_text(check.get("tail"))))
        for check in checks
        if check.get("exit_code") != 0
    ]


def _last_lines(text: str) -> str:
    return " ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])


def replayable_runs(
    store: Store, agents: AgentService, folder: Path, is_meant: Callable[[Agent], bool]
) -> list[ReplayableRun]:
    """Return the past runs of some agents in a folder that can be judged again.

    The newest come first, each task once.
    """
    found: dict[str, ReplayableRun] = {}
    for run in reversed(ended_runs(store, folder)):
        if run.spec.cwd != str(folder):
            continue
        if run.spec.task in found or run.status is RunStatus.CANCELED:
            continue
        call = store.events.last_of_kind(run.id, CALL_EVENT)
        try:
            agent = agents.runnable(run.spec.agent, None)
        except RetinueError:  # it is gone, or may not run any more
            continue
        if not is_meant(agent):
            continue
        agent = with_changes(agent, {} if call is None else call.data)
        is_judged = bool(agent.acceptance) or agent.output_schema is not None
        # Others would work in the user's own files, or start runs that do.
        if is_judged and agents.supports(agent, "isolation") and not agent.spawns:
            branch = as_text(as_object(run.result).get("branch"))
            alone = replace(agent.without_memory(), isolation="worktree", session=False, keep_changes=False)
            found[run.spec.task] = ReplayableRun(run, alone, f"{branch}^" if branch else None)
    return list(found.values())
