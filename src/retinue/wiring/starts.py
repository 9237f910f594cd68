"""What each agent's runs start, by the same classes that perform them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.config import DATA_DIR
from retinue.core import Agent, Redactor, Unavailable
from retinue.executors import CONTEXT_SHARE, MAX_STEPS, MAX_TOKENS
from retinue.wiring.executors import CLIS, NATIVE, cli_of, cli_setting, cli_state_folder, command_of

if TYPE_CHECKING:
    from retinue.executors import LaunchPreview
    from retinue.models import Models

IN_WORKTREE = "each run works in a git worktree of its own instead of this folder"
IN_PROCESS = "nothing is started: the server itself asks the model"
LOCAL_LIMITS = (
    f"its own limits: {MAX_STEPS} steps, and {MAX_TOKENS} tokens a request or {CONTEXT_SHARE:.0%} of what "
    "the model holds, whichever is less"
)


def starts(data_dir: Path, cwd: Path, clean: Redactor, models: Models) -> Callable[[Agent], LaunchPreview]:
    ways = {DATA_DIR: str(data_dir)}

    def of(agent: Agent) -> LaunchPreview:
        from retinue.executors import LaunchPreview, preview_cli, preview_command, preview_context

        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # as before any run: sandboxes hide it
        if agent.executor in CLIS:
            from retinue.executors import session_folder
            from retinue.store import SessionNote

            notes = session_folder(cli_state_folder(data_dir), agent.executor, agent.name)
            resume = SessionNote.of(notes, cwd).read() if agent.session else None
            task = "on stdin" if agent.executor in NATIVE else "through ACP, on stdin"
            with preview_context(cwd, ways, clean.hide, resume) as ctx:
                start = preview_cli(cli_setting(data_dir, agent), cli_of(agent), agent, ctx, task)
            worktree = (IN_WORKTREE,) if agent.isolation == "worktree" else ()
            return replace(start, notes=(*start.notes, *worktree))
        if agent.executor == "command":
            with preview_context(cwd, ways, clean.hide) as ctx:
                return preview_command(command_of(data_dir, agent), ctx)
        if agent.executor != "local":
            raise Unavailable(f"nothing starts for the executor {agent.executor}")
        server, model = models.plan.choose(agent.model or "default")
        where = f"in requests to {server.url}"
        return LaunchPreview(folder=str(cwd), model=model, task=where, notes=(IN_PROCESS, LOCAL_LIMITS))

    return of
