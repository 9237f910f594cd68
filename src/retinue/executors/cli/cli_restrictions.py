"""Restricts a coding CLI: secret files, its own tools for the web, and rules it cannot enforce.

Refuses agents whose rules or limits a CLI cannot enforce, and says in notes what a run has to do without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.core import (
    READING_TOOLS,
    WEB_TOOLS,
    Agent,
    ConfigInvalid,
    PermissionRule,
    Permit,
    ToolRequest,
    Verdict,
)
from retinue.executors.cli.cli_job import CliJob, CliTraits
from retinue.executors.executor_module import WebAccess
from retinue.tools import canonical_name

if TYPE_CHECKING:  # slow to load
    from retinue.codebase import SecretFiles


UNKNOWN_WEB_TOOLS_NOTE = (
    "the web is off or limited to some hosts: if the program has tools for it, Retinue denies only the calls "
    "that it asks about"
)
_SPECIAL_IN_RULES = re.compile(r"[^\w/.@+ -]")


def check_enforceable(agent: Agent, traits: CliTraits) -> None:
    """Refuse an agent with a limit or a rule that this CLI cannot enforce (P7)."""
    permissions = agent.permissions
    if permissions.mode and not traits.has_permission_modes:
        raise ConfigInvalid(f"{agent.source}: {traits.name} has no permission modes", hint="remove the mode")
    for rule in () if traits.asks_permission else (*permissions.allow, *permissions.deny):
        # Such a CLI can only be limited to certain tools of MCP servers.
        if rule in permissions.deny or not PermissionRule.parse(rule).tool.startswith("mcp__"):
            raise ConfigInvalid(
                f"{agent.source}: {traits.name} never asks, so the rule {rule} cannot be enforced",
                hint="its sandbox decides what it may do; rules can only allow MCP tools",
            )
    for rule in permissions.deny if traits.reads_unasked else ():
        if denies_some_reading(rule):
            raise ConfigInvalid(
                f"{agent.source}: {traits.name} reads files unasked, so the rule {rule} cannot be enforced",
                hint="deny the whole tool, or run the agent on claude or opencode",
            )
    if agent.budget.cost_micros is not None and not traits.reports_cost:
        raise ConfigInvalid(
            f"{agent.source}: {traits.name} does not report its cost, so a cost limit cannot be enforced",
            hint="limit its steps or its time instead",
        )


def denies_some_reading(rule: str) -> bool:
    """Return whether a rule denies reading some files, such as `Read(secrets/**)`."""
    parsed = PermissionRule.parse(rule)
    return parsed.subject is not None and parsed.tool in READING_TOOLS


def secret_notes(job: CliJob, traits: CliTraits, secrets: SecretFiles | None) -> Iterator[str]:
    """Yield what the user should know about secret files in the folders of the run."""
    if secrets is None or not secrets.paths:
        return
    some = ", ".join(path.name for path in secrets.paths[:3])
    if not (job.sandboxed or traits.denies_reading or traits.hides_files(job)):
        yield f"{traits.name} can read secret files here, because it has no sandbox: {some}"
    elif traits.cost_of_hiding and not job.sandboxed:
        yield f"secret files here ({some}) are denied to {traits.name}; {traits.cost_of_hiding}"
    if not secrets.complete:
        yield "not all files of the folder were checked for secrets: there are too many"


def _reads_web(tool: str, traits: CliTraits) -> bool:
    """Return whether a tool, as an agent's file names it, is one of the CLI's own for the web."""
    name = PermissionRule.parse(tool).tool
    return name in traits.web_tools or canonical_name(name) in WEB_TOOLS


def without_web(agent: Agent, traits: CliTraits, web: WebAccess) -> Agent:
    """Return the agent without the CLI's own tools for the web, unless they may use it."""
    if not web.closed_to_clis:
        return agent
    tools = agent.tools
    if tools is not None:
        tools = tuple(tool for tool in tools if not _reads_web(tool, traits))
    return replace(agent, tools=tools, denied_tools=(*agent.denied_tools, *traits.web_tools))


def web_notes(agent: Agent, traits: CliTraits, web: WebAccess) -> Iterator[str]:
    """Yield which tools for the web the agent would have if the web were on (P8)."""
    if not web.closed_to_clis:
        return
    rules = map(PermissionRule.parse, (*agent.denied_tools, *agent.permissions.deny))
    denied = {canonical_name(rule.tool) for rule in rules if rule.subject is None}
    listed = traits.web_tools if agent.tools is None else agent.tools
    withheld = [tool for tool in listed if _reads_web(tool, traits) and canonical_name(tool) not in denied]
    if withheld:
        yield f"no {', '.join(withheld)}: {web.closed_to_clis}"
    if not traits.web_tools:
        yield UNKNOWN_WEB_TOOLS_NOTE


def deny_web(permit: Permit, reason: str) -> Permit:
    """Return a `Permit` that denies tools for the web, and asks `permit` for the rest."""

    async def decide(request: ToolRequest) -> Verdict:
        if canonical_name(request.tool) in WEB_TOOLS:
            return Verdict(False, reason)
        return await permit(request)

    return decide


def ignore_pattern(path: Path) -> str:
    """Return the line of an ignore file that hides a file or a folder by its name, wherever it is."""
    return re.sub(r"([\\*?\[\]!# ])", r"\\\1", path.name)


def reading_rule(path: Path) -> str:
    """Return a rule that denies reading a file or everything in a folder, with `?` for special characters."""
    plain = _SPECIAL_IN_RULES.sub("?", path.as_posix())
    return f"Read(/{plain}/**)" if path.is_dir() else f"Read(/{plain})"


def deny_secrets(permit: Permit, rules: tuple[str, ...]) -> Permit:
    """Return a `Permit` that denies what may read these files, and asks `permit` for the rest."""

    async def decide(request: ToolRequest) -> Verdict:
        from retinue.core import decide_by_rules  # here, so that servers start sooner

        verdict = decide_by_rules(request, (), rules)
        if verdict is not None:
            return Verdict(False, f"it may read a secret file, which the policy denies ({request.subject})")
        return await permit(request)

    return decide
