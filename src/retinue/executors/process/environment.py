"""Builds the environment of a child process: allowed variables, the agent's own variables, and the run id.

The server's own environment is always passed in as `source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cache

from retinue.core import Agent, ConfigInvalid, McpServer

RUN_ID_VARIABLE = "RETINUE_RUN_ID"
"""Set for every process of a run and inherited by its children, so that all of them can be found."""

INHERITED = (
    # what any program needs to find its files and to know the user's language
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ"),
    *("LANG", "LANGUAGE", "LC_*", "TMPDIR", "TMP", "TEMP"),
    # what Windows programs need to start
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS"),
    *("USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"),
    *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES"),
    *("PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"),
)
"""Variables that every child inherits, in capitals. `*` matches anything."""

NEVER_INHERITED = (
    # a coding CLI that finds its own variables assumes that it runs inside itself
    *("CLAUDECODE", "CLAUDE_CODE_*", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT"),
    *("CODEX_*", "GEMINI_CLI*", "OPENCODE*"),
    # settings and tokens of this server
    "RETINUE_*",
)
"""Variables that no child inherits, whatever its agent allows. An agent may still set them itself."""

SECRET_NAMES = ("*_KEY", "*TOKEN*", "*SECRET*", "*PASSWORD*")
"""Names of variables whose values are secret."""

_REFERENCE = re.compile(r"\$(?:(\$)|\{([^}]*)\})")


def child_environment(
    source: Mapping[str, str],
    *,
    run_id: str,
    inherit: Sequence[str] = (),
    explicit: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a child of this run.

    `inherit` names more variables of `source` to pass on. `explicit` holds the agent's own variables. In
    their values, `${NAME}` is replaced by the variable of that name in `source`, and `$$` by a dollar.
    """
    allowed = (*INHERITED, *(name.upper() for name in inherit))
    inherited = {
        name: value
        for name, value in source.items()
        if _matches(name, allowed) and not _matches(name, NEVER_INHERITED)
    }
    own = {name: expand_variables(name, value, source) for name, value in (explicit or {}).items()}
    return {**inherited, **own, RUN_ID_VARIABLE: str(run_id)}


def expand_variables(name: str, value: str, source: Mapping[str, str]) -> str:
    """Return the value of `name` with its `${NAME}` references replaced.

    Raises `ConfigInvalid` for a reference to a variable that is not set.
    """
    if not name or "=" in name or "\0" in name + value:
        raise ConfigInvalid(
            f"{name!r} is not a valid environment variable",
            hint="its name must not be empty or contain `=`, and neither name nor value may contain NUL",
        )

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


def collect_secrets(
    source: Mapping[str, str], values: Iterable[str], inherit: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the secret values of `source` that a child gets, so that they can be redacted.

    These are the variables that `values` refer to as `${NAME}`, and those in `inherit` with a secret name.
    """
    referred = {match[2] for value in values for match in _REFERENCE.finditer(value) if match[2]}
    secret = {name for name in source if _matches(name, inherit) and _matches(name, SECRET_NAMES)}
    for name in referred | secret:
        if name in source and not _matches(name, INHERITED):
            yield source[name]


def unset_variables(agent: Agent, source: Mapping[str, str]) -> list[str]:
    """Return the variables that an agent refers to as `${NAME}` and that are not set, in order."""
    values = (*agent.env.values(), *mcp_server_values(agent.mcp_servers))
    referred = (match[2] for value in values for match in _REFERENCE.finditer(value) if match[2])
    return [name for name in dict.fromkeys(referred) if name not in source]


def mcp_server_values(servers: Iterable[McpServer]) -> Iterator[str]:
    """Yield the values of all variables and request headers of these MCP servers."""
    for server in servers:
        yield from (*server.env.values(), *server.headers.values())


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return _compile_patterns(tuple(patterns)).match(name.upper()) is not None


@cache
def _compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile all patterns into one expression, because every run checks every variable."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")
