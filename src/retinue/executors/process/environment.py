"""The environment of a child process: an allowlist, what its agent sets, and the mark of its run.

Knows nothing of where the server's own environment is read: it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cache

from retinue.core import ConfigInvalid, McpServer

MARK = "RETINUE_RUN_ID"
"""Set for every process of a run and inherited by all it starts, so that any of them can be recognised."""

INHERITED = (
    # what any program needs to find its files and speak the user's language
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ"),
    *("LANG", "LANGUAGE", "LC_*", "TMPDIR", "TMP", "TEMP"),
    # and what Windows programs do not start without
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS"),
    *("USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"),
    *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES"),
    *("PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"),
)
"""Names, in capitals, of the variables that a child inherits; `*` stands for anything."""

NEVER_INHERITED = (
    # a coding CLI that finds its own variables believes that it runs inside itself
    *("CLAUDECODE", "CLAUDE_CODE_*", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT"),
    *("CODEX_*", "GEMINI_CLI*", "OPENCODE*"),
    # settings and tokens of this server are not the child's
    "RETINUE_*",
)
"""Dropped whatever an agent allows. An agent may still set them itself."""

KEYS = ("*_KEY", "*TOKEN*", "*SECRET*", "*PASSWORD*")
"""Names of variables that hold what nobody is to see."""

_REFERENCE = re.compile(r"\$(?:(\$)|\{([^}]*)\})")


def child_environment(
    source: Mapping[str, str],
    *,
    run_id: str,
    inherit: Sequence[str] = (),
    explicit: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """What a child gets to see of `source`, with its agent's own variables on top.

    `inherit` names more variables to pass on. In the values of `explicit`, `${NAME}` is replaced by the
    variable of that name in `source`, and `$$` by a dollar.
    """
    passed = dict(_passed(source, (*INHERITED, *(name.upper() for name in inherit))))
    own = {name: expanded(name, value, source) for name, value in (explicit or {}).items()}
    return {**passed, **own, MARK: str(run_id)}


def secrets_of(
    source: Mapping[str, str], templates: Iterable[str], inherit: Sequence[str] = ()
) -> Iterator[str]:
    """The values of our own environment that these templates or this list of names hand to a child."""
    referred = {match[2] for template in templates for match in _REFERENCE.finditer(template) if match[2]}
    keys = {name for name in source if _matches(name, inherit) and _matches(name, KEYS)}
    for name in referred | keys:
        if name in source and not _matches(name, INHERITED):
            yield source[name]


def templates_of(servers: Iterable[McpServer]) -> Iterator[str]:
    """What MCP servers are given, in their variables and in the headers of requests to them."""
    for server in servers:
        yield from (*server.env.values(), *server.headers.values())


def _passed(source: Mapping[str, str], allowed: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name, value in source.items():
        if _matches(name, allowed) and not _matches(name, NEVER_INHERITED):
            yield name, value


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return _any_of(tuple(patterns)).match(name.upper()) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all of them: every run looks at every variable."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def expanded(name: str, value: str, source: Mapping[str, str]) -> str:
    """The value of `name` with its references replaced; one to a variable that is not set is an error."""
    if not name or "=" in name or "\0" in name + value:
        raise ConfigInvalid(f"not an environment variable: {name!r}", hint="a name has no `=` and no NUL")

    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        if match[2] not in source:
            raise ConfigInvalid(
                f"{name} needs the environment variable {match[2]}, which is not set",
                hint=f"set {match[2]} where the server is started, or write `$$` for a dollar",
            )
        return source[match[2]]

    return _REFERENCE.sub(replacement, value)
