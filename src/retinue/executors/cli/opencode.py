"""Opencode: what to start for a job.

It is configured to ask before it changes or runs anything, so that the agent's rules decide, and to ignore
the settings of the project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from retinue.codebase import GitRepository
from retinue.core import Agent, Executor, PermissionRule
from retinue.executors.cli.acp_process import ACP_TASK, AcpExecutor
from retinue.executors.cli.acp_program import AcpProgram, denied_tools, with_output_schema
from retinue.executors.cli.cli_factory import make_cli_executor, preview_cli
from retinue.executors.cli.cli_job import PROXY_VARIABLES, CliJob, CliTraits
from retinue.executors.cli.cli_restrictions import denies_some_reading, ignore_pattern
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program

READING_TOOLS = ("read", "glob", "grep", "list", "todowrite", "todoread", "lsp")
"""Opencode's tools that change nothing."""
FILE_TOOLS = ("read", "glob", "grep", "list")
"""Those among them that read the files of the workspace."""


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with opencode."""
    return make_cli_executor(partial(AcpExecutor, OpencodeCli()), agent, surroundings)


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    return preview_cli(OpencodeCli(), agent, surroundings, ACP_TASK)


class OpencodeCli(AcpProgram):
    """Opencode, configured by environment variables."""

    traits = CliTraits(
        name="opencode",
        inherit=PROXY_VARIABLES,  # no keys: it has its own login, and its commands see all its variables
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
        },
        state_variables={
            "XDG_DATA_HOME": "data",
            "XDG_CONFIG_HOME": "config",
            "XDG_STATE_HOME": "state",
            "XDG_CACHE_HOME": "cache",
        },
        login_files={".local/share/opencode/auth.json": "data/opencode/auth.json"},
        hides_files=lambda job: _searches_heed_our_file(job),
        web_tools=("webfetch", "websearch", "codesearch"),
    )

    def program(self, job: CliJob) -> Program:
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps(self._config(job))}
        _hide_from_searches(job)
        if "project" not in job.agent.settings:
            env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
            env["OPENCODE_DISABLE_EXTERNAL_SKILLS"] = "1"
        return job.program("acp", "--pure", env=env)

    def preamble(self, job: CliJob) -> str:
        prompt = job.agent.prompt if job.agent.prompt_mode == "append" else ""
        return with_output_schema(job, prompt)

    def reads_by_rules(self, job: CliJob) -> bool:
        return any(map(denies_some_reading, job.agent.permissions.deny))

    def _config(self, job: CliJob) -> dict[str, Any]:
        agent = job.agent
        given: dict[str, Any] = json.loads(job.env.get("OPENCODE_CONFIG_CONTENT", "{}"))
        ours: dict[str, Any] = {"mode": "primary", "permission": self._permissions(job)}
        if agent.prompt and agent.prompt_mode == "replace":
            ours["prompt"] = agent.prompt
        if agent.budget.steps is not None:
            ours["steps"] = agent.budget.steps
        config = {
            **given,
            "autoupdate": False,
            "share": "disabled",
            "agent": {"retinue": ours},
            "default_agent": "retinue",
        }
        return config | ({"model": job.model} if job.model else {})

    def _permissions(self, job: CliJob) -> dict[str, Any]:
        """Opencode does without asking what no permission covers. Reading is limited by the workspace."""
        agent = job.agent
        if agent.tools is None:
            rules: dict[str, Any] = {"*": "ask", **dict.fromkeys(READING_TOOLS, "allow")}
        else:
            listed = [PermissionRule.parse(tool).tool.lower() for tool in agent.tools]
            rules = {"*": "deny", **{f"{server.name}_*": "ask" for server in job.servers}}
            rules |= {tool: "allow" if tool in READING_TOOLS else "ask" for tool in listed}
        if self.reads_by_rules(job):
            rules |= {tool: "ask" for tool in FILE_TOOLS if rules.get(tool) == "allow"}
        if job.secrets and rules.get("read", "deny") != "deny":
            paths = {form for path in job.secrets for form in _forms(job.cwd, path)}
            rules["read"] = {"*": rules["read"], **dict.fromkeys(sorted(paths), "deny")}
        rules["external_directory"] = "ask"
        if not agent.spawns:
            rules["task"] = "deny"
        return rules | {tool.lower(): "deny" for tool in denied_tools(job)}


def _forms(cwd: Path, path: Path) -> Iterator[str]:
    """Yield the patterns for a file, or for everything in a folder, in all forms that opencode may use."""
    end = "/*" if path.is_dir() else ""
    yield f"{path}{end}"
    yield f"{path.resolve()}{end}"
    yield f"{os.path.relpath(path, cwd)}{end}"


def _searches_heed_our_file(job: CliJob) -> bool:
    """Return whether ripgrep reads the ignore file in the agent's state folder.

    It does so only in a repository, and only if the user's settings of git name no other file.
    """
    if "user" in job.agent.settings or "XDG_CONFIG_HOME" not in job.env:
        return False
    try:
        settings = (Path(job.env["HOME"]) / ".gitconfig").read_text(encoding="utf-8", errors="replace")
    except (OSError, KeyError):
        settings = ""
    return "excludesfile" not in settings.lower() and GitRepository.containing(job.cwd) is not None


def _hide_from_searches(job: CliJob) -> None:
    """Write the ignore file that the searches of opencode heed, in the agent's own state folder.

    Opencode searches with ripgrep, which reads git's ignore file of the user in `XDG_CONFIG_HOME`.
    """
    if not _searches_heed_our_file(job):
        return
    file = Path(job.env["XDG_CONFIG_HOME"]) / "git" / "ignore"
    if file.parent.is_symlink():
        file.parent.unlink()  # an earlier run planted it, so that we would write elsewhere
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"ignore.{job.folder.name}")
    draft.write_text("".join(f"{ignore_pattern(path)}\n" for path in job.secrets), encoding="utf-8")
    draft.replace(file)  # atomic: another run of the agent may be reading the file
