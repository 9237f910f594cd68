"""Agents in real files, with an executor that tests script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.core import Agent, Executor, Outcome, RunContext, Task
from retinue.service import Service
from retinue.wiring import build_service, read_settings


@dataclass
class Scripted:
    """Answers with the agent's name and the task, and records for which agents it was created."""

    made_for: list[Agent] = field(default_factory=list[Agent])

    def make(self, agent: Agent) -> Executor:
        self.made_for.append(agent)
        return Answers(agent.name)


@dataclass(frozen=True)
class Answers:
    name: str

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        return Outcome(f"{self.name}: {task.prompt}")


def service(*projects: Path, executors: dict[str, Callable[[Agent], Executor]] | None = None) -> Service:
    """The agent service as `wiring` builds it, with these executors besides `command`."""
    built = build_service(read_settings({"roots": tuple(map(str, projects))}))
    known = built.agents
    if executors is None:
        return built
    scripted = {**known.executors, **executors}
    known = replace(known, executors=scripted, is_installed=scripted.__contains__)
    return replace(built, agent_service=known)


def write_agent(folder: Path, path: str, header: str, body: str = "Do it.") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{header.strip()}\n---\n{body}\n")
    return file
