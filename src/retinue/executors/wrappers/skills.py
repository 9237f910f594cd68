"""`WithSkills`: a run's agent sees the skills that exist, and gets those that its task calls for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from retinue.core import (
    Agent,
    Canceled,
    Executor,
    OpenSkills,
    Outcome,
    OutputLine,
    RetinueError,
    RunContext,
    SkillNotes,
    Stop,
    Task,
    run_in_thread,
)

OPEN_TIMEOUT_S = 10.0
"""Limit for reading the skills. A run goes on without them."""


@dataclass(frozen=True, slots=True)
class WithSkills:
    """Performs tasks with the skills of the user and of the project at hand."""

    executor: Executor
    agent: Agent
    open_skills: OpenSkills

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        def read(_: Stop) -> SkillNotes | None:
            return self.open_skills(ctx.run_id, self.agent, task.prompt)

        try:
            skills = await run_in_thread(read, OPEN_TIMEOUT_S)
        except Canceled:
            raise
        except (RetinueError, OSError) as error:  # files may vanish while they are read
            outcome = await self.executor.run(task, ctx)
            return replace(outcome, notes=(*outcome.notes, f"skills were not used: {error}"))
        if skills is None:
            return await self.executor.run(task, ctx)
        for note in skills.notes:
            await ctx.emit(OutputLine("event", note))
        outcome = await self.executor.run(task, replace(ctx, skills=skills))
        names = [*dict.fromkeys([*skills.given, *skills.used])]
        facts = {**outcome.facts, "skills": names} if names else outcome.facts
        fitting = [*(name for name, _ in skills.bodies), *skills.omitted]
        unseen = [
            f"the skill {name} fits and is too long to come with the task"
            for name in fitting
            if name not in names
        ]
        return replace(outcome, facts=facts, notes=(*outcome.notes, *skills.notes, *unseen))


def prompt_with_skills(prompt: str, skills: SkillNotes | None) -> str:
    """Return a task as a coding CLI gets it: followed by what its agent is told about skills."""
    told = "" if skills is None else skills.text()
    return f"{prompt}\n\n{told}" if told else prompt
