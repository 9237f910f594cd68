"""The runs below a workflow: agents for whoever called it, and the project's own checks."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace

from retinue.core import Agent, Executor, Run, RunId
from retinue.service.runs import PERSON, RunService
from retinue.store import ConfirmedChecks

Checker = Callable[[Agent], Executor]
"""What runs a check, given as an agent that is a command: the place for a sandbox around it."""


@dataclass(frozen=True, slots=True)
class Children:
    runs: RunService
    confirmed: ConfirmedChecks
    check_timeout_s: float
    checker: Checker

    async def agent(
        self, name: str, prompt: str, parent: RunId, timeout_s: float | None, also: Callable[[Run], object]
    ) -> Run:
        caller = self.runs.store.runs.get(parent).spec.caller
        agent = self.runs.agents.runnable(name, None if caller == PERSON else caller)
        if timeout_s is not None:
            agent = replace(agent, timeout_s=min(agent.timeout_s, timeout_s))
        executor = self.runs.agents.executor(agent)
        return await self.runs.begin(agent, executor, prompt, parent=parent, caller=caller, also=also)

    async def check(self, name: str, parent: RunId, also: Callable[[Run], object]) -> Run | None:
        argv = self.confirmed.of(self.runs.cwd).get(name)
        if argv is None:
            return None
        check = Agent(
            name=f"check-{name}",
            description=f"The project's own check of its {name}.",
            executor="command",
            command=tuple(each.replace("{", "{{").replace("}", "}}") for each in argv),
            timeout_s=self.check_timeout_s,
            source="confirmed checks",
        )
        return await self.runs.begin(check, self.checker(check), shlex.join(argv), parent=parent, also=also)
