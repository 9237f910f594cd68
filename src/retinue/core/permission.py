"""What an agent may do unasked: rules in the words of the coding CLIs, held against one call of a tool.

Knows nothing of who is asked when no rule decides.
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
"""Any of these can make more than one command of one, or send its output elsewhere; within quotes too."""
_COMMAND_ENDS = re.compile(r"[;&|\n()`{}]|\$\(")
_COMMAND_TOOLS = frozenset({"Bash"})
_FILE_TOOLS = frozenset({"Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep"})

_NAMES = {name.lower(): name for name in (*_COMMAND_TOOLS, *_FILE_TOOLS, "WebFetch", "WebSearch", "Task")}
"""Some write them small."""
_SUBJECTS = ("command", "file_path", "filePath", "notebook_path", "path", "url", "pattern", "query")
_WIDENING = (":*", " *")
"""How a rule ends that means everything which begins like it."""

By = Literal["policy", "remembered", "answer", "silence"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that a run wants to make."""

    tool: str
    """In the words of the rules: `Bash`, `Edit`, `mcp__server__tool`."""
    subject: str = ""
    """What it is done to: a command, a path, an address; empty where there is no such thing."""
    details: str = field(default="", compare=False)
    """The other arguments as JSON: whoever is asked should see them, and no rule does."""

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, object]) -> ToolRequest:
        """A call with its arguments, of which some say what is done to what."""
        named = next((name for name in _SUBJECTS if arguments.get(name)), None)
        if named is None or tool.startswith("mcp__"):
            return cls(tool, details=argument_details(arguments))
        return cls(tool, str(arguments[named]), argument_details(arguments, named))

    def __str__(self) -> str:
        return f"{self.tool}({self.subject})" if self.subject else self.tool


def argument_details(arguments: Mapping[str, object], besides: str | None = None) -> str:
    """The arguments as JSON, but for the one that is said elsewhere; empty if there is no other."""
    rest = {name: value for name, value in arguments.items() if name != besides}
    return json.dumps(rest, ensure_ascii=False, default=str) if rest else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    reason: str
    """Told to the agent that asked."""
    by: By = "policy"

    def claude_answer(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the answer to a permission prompt of Claude Code, for a call with these arguments."""
        if self.allowed:
            return {"behavior": "allow", "updatedInput": dict(arguments)}
        return {"behavior": "deny", "message": self.reason}


Permit = Callable[[ToolRequest], Awaitable[Verdict]]


async def deny_all(asked: ToolRequest) -> Verdict:
    """Where nobody can be asked, what no rule allows is denied (P7)."""
    return Verdict(False, f"no rule allows {asked.tool}, and nobody can be asked")


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """`Bash`, `Bash(git status)`, `Bash(curl:*)`, `Edit(src/**)`, `WebFetch(domain:a.org)`, `mcp__a__b`."""

    tool: str
    subject: str | None

    @classmethod
    def parse(cls, text: str) -> PermissionRule:
        found = _RULE.fullmatch(text.strip())
        if found is None:
            raise ConfigInvalid(
                f"not a permission rule: {text!r}",
                hint="write a tool, and in brackets what it may be used on: Bash(curl:*)",
            )
        return cls(_NAMES.get(found[1].lower(), found[1]), found[2] or None)

    def __str__(self) -> str:
        return self.tool if self.subject is None else f"{self.tool}({self.subject})"

    @classmethod
    def exactly(cls, asked: ToolRequest) -> str | None:
        """The rule that allows this call and no other; None where it would be read as a wider one."""
        is_wider = asked.subject.endswith(_WIDENING) or asked.subject.startswith("domain:")
        if is_wider or (asked.tool in _FILE_TOOLS and any(letter in asked.subject for letter in "*?[")):
            return None
        return str(asked)

    def allows(self, asked: ToolRequest) -> bool:
        """A command that could be more than one is only allowed word for word."""
        return self._names(asked.tool) and (
            self.subject is None or self._covers(asked, self._is_command_allowed)
        )

    def denies(self, asked: ToolRequest) -> bool:
        """Of a command line, any part that the rule names is enough."""
        return self._names(asked.tool) and (
            self.subject is None or self._covers(asked, self._is_any_part_named)
        )

    def _names(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool) or (
            self.tool.startswith("mcp__") and tool.startswith(f"{self.tool}__")
        )

    def _covers(self, asked: ToolRequest, covers_command: Callable[[str], bool]) -> bool:
        wanted = self.subject or ""
        if asked.tool in _COMMAND_TOOLS:
            return asked.subject == wanted or covers_command(asked.subject)
        if wanted.startswith("domain:"):
            host = urlsplit(asked.subject).hostname or ""
            domain = wanted.removeprefix("domain:").lower()
            return host == domain or host.endswith(f".{domain}")
        if asked.tool in _FILE_TOOLS:
            return ".." not in asked.subject.split("/") and fnmatchcase(asked.subject, wanted)
        return asked.subject == wanted

    def _is_command_allowed(self, command: str) -> bool:
        return not _SHELL_SYNTAX.search(command) and self._begins(command)

    def _is_any_part_named(self, command: str) -> bool:
        return any(self._begins(part.strip()) for part in _COMMAND_ENDS.split(command))

    def _begins(self, command: str) -> bool:
        wanted = self.subject or ""
        for ending in _WIDENING:
            if wanted.endswith(ending):
                beginning = wanted.removesuffix(ending)
                return command == beginning or command.startswith(f"{beginning} ")
        return command == wanted


def decide_by_rules(asked: ToolRequest, allow: Sequence[str], deny: Sequence[str]) -> Verdict | None:
    """What the rules say; None where they say nothing. A denial wins."""
    for text in deny:
        if PermissionRule.parse(text).denies(asked):
            return Verdict(False, f"the agent's rule {text} denies it")
    for text in allow:
        if PermissionRule.parse(text).allows(asked):
            return Verdict(True, f"the agent's rule {text} allows it")
    return None


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """What a person, or the parent of a run, said to a permission that was asked for."""

    consent: Literal["once", "always", "no"]
    reason: str = ""
    """The words of a denial, for the agent."""

    @classmethod
    def parse(cls, text: str) -> PermissionAnswer:
        """Read an answer in words. Only a plain yes allows; anything else is a denial with its reason."""
        words = text.strip().lower().split(maxsplit=1)
        first = words[0].strip(".,:;!") if words else ""
        if first == "always":
            return cls("always")
        if first in _YES:
            return cls("once")
        return cls("no", text.strip())


_YES = frozenset({"allow", "allowed", "yes", "y", "ok", "once"})
