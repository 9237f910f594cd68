"""Permission rules in the syntax of the coding CLIs, and matching a tool call against them.

Knows nothing of who is asked when no rule matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from retinue.core.errors import ConfigInvalid

_RULE = re.compile(r"([A-Za-z_*][\w.*-]*)(?:\((.*)\))?", re.DOTALL)
_SHELL_SYNTAX = re.compile(r"[;&|\n<>()`$]")
"""Characters that can chain commands or redirect output. Quoted ones count too."""
_COMMAND_ENDS = re.compile(r"[;&|\n()`{}]|\$\(")
_COMMAND_TOOLS = frozenset({"Bash"})
_FILE_TOOLS = frozenset({"Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep"})

_NAMES = {name.lower(): name for name in (*_COMMAND_TOOLS, *_FILE_TOOLS, "WebFetch", "WebSearch", "Task")}
"""Rules may write the names in lower case."""
_SUBJECT_ARGUMENTS = ("command", "file_path", "filePath", "notebook_path", "path", "url", "pattern", "query")
"""Arguments that say what a tool is used on; the first one present is the subject of the call."""
_WIDENING = (":*", " *")
"""Endings that make a rule match every command with the same beginning."""

DecidedBy = Literal["policy", "remembered", "answer", "silence"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a run wants to make."""

    tool: str
    """The name of the tool as rules write it: `Bash`, `Edit`, `mcp__server__tool`."""
    subject: str = ""
    """What the tool is used on: a command, a path or a URL; empty if the tool has no such argument."""
    details: str = field(default="", compare=False)
    """The other arguments as JSON. They are shown to the person who decides; rules ignore them."""

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, object]) -> ToolRequest:
        """Build the request for a tool call, with the subject taken from the arguments."""
        named = next((name for name in _SUBJECT_ARGUMENTS if arguments.get(name)), None)
        if named is None or tool.startswith("mcp__"):
            return cls(tool, details=argument_details(arguments))
        return cls(tool, str(arguments[named]), argument_details(arguments, named))

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

    @classmethod
    def exactly(cls, asked: ToolRequest) -> str | None:
        """The rule that allows exactly this call; None if the rule would match other calls too."""
        is_wider = asked.subject.endswith(_WIDENING) or asked.subject.startswith("domain:")
        if is_wider or (asked.tool in _FILE_TOOLS and any(letter in asked.subject for letter in "*?[")):
            return None
        return str(asked)

    def allows(self, asked: ToolRequest) -> bool:
        """Whether the rule allows the call.

        A command with shell syntax is allowed only if the rule repeats it literally.
        """
        return self._matches_tool(asked.tool) and (
            self.subject is None or self._matches_subject(asked, self._is_command_allowed)
        )

    def denies(self, asked: ToolRequest) -> bool:
        """Whether the rule denies the call.

        A command line is denied if the rule matches any of the commands in it.
        """
        return self._matches_tool(asked.tool) and (
            self.subject is None or self._matches_subject(asked, self._matches_any_part)
        )

    def _matches_tool(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool) or (
            self.tool.startswith("mcp__") and tool.startswith(f"{self.tool}__")
        )

    def _matches_subject(self, asked: ToolRequest, matches_command: Callable[[str], bool]) -> bool:
        wanted = self.subject or ""
        if asked.tool in _COMMAND_TOOLS:
            return asked.subject == wanted or matches_command(asked.subject)
        if wanted.startswith("domain:"):
            host = urlsplit(asked.subject).hostname or ""
            domain = wanted.removeprefix("domain:").lower()
            return host == domain or host.endswith(f".{domain}")
        if asked.tool in _FILE_TOOLS:
            return ".." not in asked.subject.split("/") and fnmatchcase(asked.subject, wanted)
        return asked.subject == wanted

    def _is_command_allowed(self, command: str) -> bool:
        return not _SHELL_SYNTAX.search(command) and self._matches_command(command)

    def _matches_any_part(self, command: str) -> bool:
        return any(self._matches_command(part.strip()) for part in _COMMAND_ENDS.split(command))

    def _matches_command(self, command: str) -> bool:
        """Whether one command equals the rule, or begins like it if the rule ends with a wildcard."""
        wanted = self.subject or ""
        for ending in _WIDENING:
            if wanted.endswith(ending):
                beginning = wanted.removesuffix(ending)
                return command == beginning or command.startswith(f"{beginning} ")
        return command == wanted


def decide_by_rules(asked: ToolRequest, allow: Sequence[str], deny: Sequence[str]) -> Verdict | None:
    """Decide a call by the rules of an agent. `deny` wins. Returns None if no rule matches."""
    for text in deny:
        if PermissionRule.parse(text).denies(asked):
            return Verdict(False, f"the agent's rule {text} denies it")
    for text in allow:
        if PermissionRule.parse(text).allows(asked):
            return Verdict(True, f"the agent's rule {text} allows it")
    return None


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
