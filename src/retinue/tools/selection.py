"""Decides which tools an agent gets, by their names. Knows nothing of what the tools do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from retinue.core import FOREIGN_TOOLS, MCP_PREFIX, TOOL_SYNONYMS

FALLBACK_TOOL = "read_file"
"""The tool that an agent gets if it would otherwise have none."""

Allows = Callable[[str], bool]
"""Returns whether a tool may be called. Takes Retinue's name of the tool."""


@dataclass(frozen=True, slots=True)
class WithheldTool:
    """A tool that an agent requests but does not get."""

    name: str
    """The name in the agent's file."""
    reason: str


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools that an agent gets, and those that it requests but does not get (P8)."""

    names: tuple[str, ...]
    withheld: tuple[WithheldTool, ...] = ()

    def describe_withheld(self) -> str:
        """Return a sentence with the withheld tools by reason; empty if none was withheld."""
        by_reason: dict[str, list[str]] = {}
        for tool in self.withheld:
            by_reason.setdefault(tool.reason, []).append(tool.name)
        return "; ".join(f"no {', '.join(names)}: {reason}" for reason, names in by_reason.items())


def allow_all(name: str) -> bool:
    """Allow any tool."""
    return True


def select_tools(
    requested: Iterable[str] | None,
    existing: Collection[str],
    allows: Allows = allow_all,
    refused: Mapping[str, str] | None = None,
) -> ToolSelection:
    """Select the requested tools that exist and are allowed. If `requested` is None, that is all tools.

    `refused` has tools that this run cannot have, with the reasons.

    An agent that gets none of the tools it requests could only guess, so it gets `read_file`, unless that is
    not allowed. An agent that requests no tools gets none.
    """
    names: dict[str, None] = {}
    withheld: list[WithheldTool] = []
    wanted = list(existing if requested is None else requested)
    for name in wanted:
        canonical = canonical_name(name)
        reason = (refused or {}).get(canonical) or _reason_to_withhold(canonical, existing, allows)
        if reason:
            withheld.append(WithheldTool(name, reason))
        else:
            names[canonical] = None
    if wanted and not names and FALLBACK_TOOL in existing and allows(FALLBACK_TOOL):
        names[FALLBACK_TOOL] = None
    return ToolSelection(tuple(names), tuple(withheld))


def add_server_tools(requested: Sequence[str] | None, offered: Sequence[str]) -> Sequence[str] | None:
    """Add the tools of an agent's own MCP servers to the tools that it requests.

    Adds all offered tools, unless the agent's list already names MCP tools. Then it uses only those, and the
    name of a server stands for all its tools.
    """
    if requested is None:
        return None
    if not any(name.startswith(MCP_PREFIX) for name in requested):
        return [*requested, *offered]
    wanted: list[str] = []
    for name in requested:
        matches = [tool for tool in offered if tool == name or tool.startswith(f"{name}__")]
        wanted += matches or [name]
    return wanted


def canonical_name(name: str) -> str:
    """Return Retinue's name of a tool that an agent or a model may call by another name."""
    name = name.strip()
    return name if name.startswith(MCP_PREFIX) else TOOL_SYNONYMS.get(name.lower(), name.lower())


def _reason_to_withhold(name: str, existing: Collection[str], allows: Allows) -> str | None:
    if "(" in name:
        return "the local executor cannot limit a tool to some of its uses"
    if name in FOREIGN_TOOLS:
        return "the local executor does not have it"
    if name not in existing:
        return "there is no such tool"
    return None if allows(name) else "it is not allowed"
