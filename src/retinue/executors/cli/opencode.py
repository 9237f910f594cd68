"""Opencode: what to start for a job.

It is configured to ask before it changes or runs anything, so that the agent's rules decide, and to ignore
the settings of the project.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from retinue.core import Agent, Executor, PermissionRule
from retinue.executors.cli.acp_process import ACP_TASK, AcpExecutor
from retinue.executors.cli.acp_program import AcpProgram, denied_tools, with_output_schema
from retinue.executors.cli.cli_factory import make_cli_executor, preview_cli
from retinue.executors.cli.cli_launch import PROXY_VARIABLES, CliJob, CliTraits, denies_some_reading
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
    )

    def program(self, job: CliJob) -> Program:
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps(self._config(job))}
        if "project" not in job.agent.settings:
            env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
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

    def _permissions(self, job: CliJob) -> dict[str, str]:
        """Opencode does without asking what no permission covers. Reading is limited by the workspace."""
        agent = job.agent
        if agent.tools is None:
            rules = {"*": "ask", **dict.fromkeys(READING_TOOLS, "allow")}
        else:
            listed = [PermissionRule.parse(tool).tool.lower() for tool in agent.tools]
            rules = {"*": "deny", **{f"{server.name}_*": "ask" for server in job.servers}}
            rules |= {tool: "allow" if tool in READING_TOOLS else "ask" for tool in listed}
        if self.reads_by_rules(job):
            rules |= {tool: "ask" for tool in FILE_TOOLS if rules.get(tool) == "allow"}
        rules["external_directory"] = "ask"
        if not agent.spawns:
            rules["task"] = "deny"
        return rules | {tool.lower(): "deny" for tool in denied_tools(job)}
