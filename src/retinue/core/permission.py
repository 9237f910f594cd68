"""Tool calls that need a permission, rules in the syntax of the coding CLIs, and answers of people.

`rule_matching.py` decides calls by rules. Knows nothing of who is asked when no rule matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from retinue.core.errors import ConfigInvalid
from retinue.core.tool_arguments import TOOL_ARGUMENTS, find_subjects

_RULE = re.compile(r"([A-Za-z_*][\w.*-]*)(?:\((.*)\))?", re.DOTALL)
_NAMES = {name.lower(): name for name in TOOL_ARGUMENTS} | {"webfetch": "WebFetch", "list": "LS"}
"""Rules and requests may write the names in lower case."""

DecidedBy = Literal["policy", "remembered", "answer", "silence"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a run wants to make."""

    tool: str
    """The name of the tool as rules write it: `Bash`, `Edit`, `mcp__server__tool`."""
    subject: str = ""
    """What the tool is used on: a command, a path or a URL; empty if the tool has no such argument."""
    details: str = field(default="", compare=False)
    """The other arguments as JSON. They are shown to the person who decides."""
    folder: str = field(default="", compare=False)
    """The folder that paths are relative to. Without it, no rule for paths can allow a call."""
    also: tuple[str, ...] = field(default=(), compare=False)
    """What the tool is used on besides the subject: a second path, for example."""
    suspects: tuple[str, ...] = field(default=(), compare=False)
    """The texts in arguments that Retinue does not know. Rules that deny match them, too. A call that has any
    is allowed by no rule."""

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, object], folder: str = "") -> ToolRequest:
        """Build the request for a tool call. What the tool acts on is taken from its own arguments."""
        name = _NAMES.get(tool.lower(), tool)
        found = find_subjects(name, arguments, folder)
        if found is None:
            return cls(name, details=argument_details(arguments), folder=folder)
        subject, *also = found.targets or ("",)
        suspects = found.suspects or (() if subject else ("",))
        details = argument_details(arguments, found.named)
        return cls(name, subject, details, folder, tuple(also), suspects)

    @property
    def targets(self) -> tuple[str, ...]:
        """Everything that the tool acts on."""
        return (self.subject, *self.also)

    def __str__(self) -> str:
        return f"{self.tool}({self.subject})" if self.subject else self.tool


def argument_details(arguments: Mapping[str, object], besides: str | None = None) -> str:
    """The arguments as JSON, without the one named `besides`; empty if none is left."""
    rest = {name: value for name, value in arguments.items() if name != besides}
    return json.dumps(rest, ensure_ascii=False, default=str) if rest else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on a tool call."""

    allowed: bool
    reason: str
    """Shown to the agent that made the call."""
    by: DecidedBy = "policy"
    """`remembered`: an earlier answer `always`. `silence`: nobody answered in time."""

    def claude_answer(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the answer to a permission prompt of Claude Code, for a call with these arguments."""
        if self.allowed:
            return {"behavior": "allow", "updatedInput": dict(arguments)}
        return {"behavior": "deny", "message": self.reason}


Permit = Callable[[ToolRequest], Awaitable[Verdict]]
"""Decides whether a tool call is allowed."""


async def deny_all(asked: ToolRequest) -> Verdict:
    """Deny every call that no rule allows, because there is nobody to ask (P7)."""
    return Verdict(False, f"no rule allows {asked.tool}, and nobody can be asked")


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """A rule such as `Bash`, `Bash(git status)`, `Bash(curl:*)`, `Edit(src/**)`, `WebFetch(domain:a.org)`."""

    tool: str
    subject: str | None

    @classmethod
    def parse(cls, text: str) -> PermissionRule:
        """Read a rule. Raises `ConfigInvalid` if it is malformed."""
        found = _RULE.fullmatch(text.strip())
        if found is None:
            raise ConfigInvalid(
                f"not a permission rule: {text!r}",
                hint="write a tool name, optionally followed by what it may be used on: Bash(curl:*)",
            )
        return cls(_NAMES.get(found[1].lower(), found[1]), found[2] or None)

    def __str__(self) -> str:
        return self.tool if self.subject is None else f"{self.tool}({self.subject})"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer of a person, or of the parent run, to a permission question."""

    consent: Literal["once", "always", "no"]
    reason: str = ""
    """Why the call is denied, for the agent."""

    @classmethod
    def parse(cls, text: str) -> PermissionAnswer:
        """Read an answer given as text. Only a clear yes allows; any other text denies and is the reason."""
        words = text.strip().lower().split(maxsplit=1)
        first = words[0].strip(".,:;!") if words else ""
        if first == "always":
            return cls("always")
        if first in _YES:
            return cls("once")
        return cls("no", text.strip())


_YES = frozenset({"allow", "allowed", "yes", "y", "ok", "once"})
