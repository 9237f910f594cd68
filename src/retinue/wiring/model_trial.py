"""Tries the user's model on ten small tasks, as an agent would use it (`retinue models try`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from retinue.config import LoadedSettings
from retinue.core import (
    EXECUTORS,
    FILE_TOOLS,
    Agent,
    Outcome,
    OutputLine,
    ProcessIdentity,
    Root,
    RunContext,
    RunId,
    Task,
)
from retinue.wiring.executors import build_surroundings, executor_makers
from retinue.wiring.parts import open_models
from retinue.wiring.start import redactor

ShowPart = Callable[[dict[str, object]], None]
MAX_TASK_SECONDS = 300.0


async def try_model(
    loaded: LoadedSettings, name: str, on_skills: ShowPart, on_result: ShowPart
) -> list[dict[str, object]]:
    """Probe a model or tier, and let it do the tasks in a temporary project. Records no runs.

    Returns the results of the tasks. `on_skills` and `on_result` get each part as soon as it is known.
    """
    from retinue.setup import TRIAL_PROJECT, describe_skills, run_trial

    settings = replace(loaded.settings, index=False)
    agent = Agent(
        name="trial",
        description="tries a model",
        executor="local",
        model=name,
        tools=FILE_TOOLS,
        timeout_s=MAX_TASK_SECONDS,
        source="retinue models try",
    )
    with TemporaryDirectory(prefix="retinue-trial-") as folder:
        root = _write_project(Path(folder), TRIAL_PROJECT)
        async with open_models(loaded) as models:
            facts, skills = await models.client_for(name).facts(), await models.skills(name, MAX_TASK_SECONDS)
            speed = models.speed(facts)
            summary = describe_skills(skills, speed)
            on_skills(
                {
                    "model": facts.model,
                    "summary": summary,
                    **asdict(skills),
                    **(asdict(speed) if speed else {}),
                }
            )
            surroundings = build_surroundings(
                settings, [Root.at(root)], root, redactor(loaded.settings), models
            )
            executor = executor_makers(EXECUTORS, surroundings)["local"](agent)

            async def perform(task: str) -> Outcome:
                context = RunContext(RunId.new(), root, MAX_TASK_SECONDS, emit=_ignore, started=_ignore_start)
                return await executor.run(Task(agent.name, task), context)

            results = await run_trial(perform, lambda result: on_result(result.as_dict()))
            return [result.as_dict() for result in results]


def _write_project(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder.resolve()


async def _ignore(_: OutputLine) -> None: ...


async def _ignore_start(_: ProcessIdentity) -> None: ...
