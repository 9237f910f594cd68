"""Every setting there is: its type, its default, what is allowed, and one sentence about it beneath.

Knows nothing of where a value comes from. Plain dataclasses, because the command line reads them on every
start and must not wait for a validation library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from retinue.core import DEFAULT_TOOL_GROUPS, EXECUTOR_NAMES, TOOL_GROUPS


def setting(
    default: Any,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    one_of: tuple[str, ...] = (),
    user_only: bool = False,
) -> Any:
    """A field with its bounds. `user_only` ones may not stand in a project's own file: a cloned project must
    not decide what of the user's machine is read or where we write."""
    bounds = {"at_least": at_least, "at_most": at_most, "one_of": one_of, "user_only": user_only}
    if callable(default):
        return field(default_factory=default, metadata=bounds)
    return field(default=default, metadata=bounds)


def default_data_dir() -> Path:
    import platformdirs  # imported here because `retinue --help` does not need it

    return platformdirs.user_data_path("retinue", appauthor=False)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    max_files_read: int = setting(50, at_least=1)
    """Files one request may read, over all the work it starts."""

    max_bytes_read: int = setting(1_048_576, at_least=1)
    """Bytes one request may read, over all the work it starts."""

    max_file_bytes: int = setting(1_048_576, at_least=1)
    """Larger files are left out, and said to be."""

    max_response_tokens: int = setting(2_000, at_least=100)
    """Tokens one tool's answer may have; what was cut is said. A report's frame alone takes up to 400."""


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    default_deadline_ms: int = setting(30_000, at_least=1)
    """Milliseconds a request may take when it names no deadline of its own."""

    max_concurrent_tasks: int = setting(4, at_least=1)
    """Tasks that run at the same time, over all servers that share the data folder; and, beside them, roles
    of research in one server."""

    max_queued_tasks: int = setting(1_000, at_least=0)
    """Tasks that may wait for their turn; more are refused."""

    keep_runs_days: int = setting(30, at_least=0)
    """Days after which a run that has ended is removed with its log, when a server starts; 0 keeps all."""

    patience_s: int = setting(45, at_least=1, at_most=3_600)
    """Seconds a tool may wait before it answers with where the work stands; hosts give up after 60."""

    permission_wait_s: int = setting(300, at_least=1, at_most=86_400)
    """Seconds a run's question for a permission waits for its answer; then it is denied."""

    ask_person: bool = setting(False, user_only=True)
    """Whether a run's question is put to the person at the host, where the host can, instead of to its
    model. A host that takes tasks shows its model nothing of them before they end: there the person is
    always asked."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    deny: tuple[str, ...] = ()
    """Globs of files never to read, beside the built-in list of secrets."""

    allow: tuple[str, ...] = setting((), user_only=True)
    """Globs of files to read although the built-in list denies them."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    groups: tuple[str, ...] = setting(DEFAULT_TOOL_GROUPS, one_of=(*TOOL_GROUPS, "all"))
    """Groups of tools a host sees; `all` means every group."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    allowed_hosts: tuple[str, ...] = setting((), user_only=True)
    """Further Host headers to accept over HTTP, such as `build-box:8765`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    url: str
    """Base URL of an OpenAI-compatible server."""

    api_key_env: str = ""
    """Name of the variable that holds its key; over plain http only to this machine."""

    slots: int | None = setting(None, at_least=1)
    """Requests it serves at a time; by default what the server tells, or a cautious number."""

    context: int | None = setting(None, at_least=512)
    """Tokens the loaded model can hold; by default what the server tells, or 4,096."""


@dataclass(frozen=True, slots=True)
class TierSettings:
    endpoint: str = ""
    """A name from `models.endpoints`, or a URL; by default that of the tier `default`, then
    `models.endpoint`."""

    model: str = ""
    """The model's name there; by default as with the endpoint, or what an endpoint of its own has loaded."""


@dataclass(frozen=True, slots=True)
class TiersSettings:
    fast: TierSettings = field(default_factory=TierSettings)
    default: TierSettings = field(default_factory=TierSettings)
    medium: TierSettings = field(default_factory=TierSettings)
    strong: TierSettings = field(default_factory=TierSettings)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    endpoint: str = ""
    """Base URL of an OpenAI-compatible server, such as `http://127.0.0.1:1234/v1`, or a name from
    `models.endpoints`."""

    model: str = ""
    """Name of the model there; by default the one that is loaded."""

    patience_s: int = setting(300, at_least=1, at_most=3_600)
    """Seconds to wait for the first word of a reply: the server may have to load the model first."""

    research: bool = True
    """Whether the model orders and explains what research found; it never adds to it."""

    endpoints: Mapping[str, EndpointSettings] = setting(dict[str, EndpointSettings])
    tiers: TiersSettings = field(default_factory=TiersSettings)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    caller: str = setting("main")
    """The name under which a host calls, for an agent's `allowed_callers`; set it in the host's own entry."""

    executor: str | None = setting(None, one_of=EXECUTOR_NAMES)
    """What performs the agents whose files name no executor; by default `claude` for files of Claude Code,
    `opencode` for files of opencode, `local` for ours."""

    tool_for_each: bool = setting(False)
    """Whether a host sees a tool `run_subagent_NAME` for each agent besides `run_subagent`."""


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    max_runs: int = setting(200, at_least=1)
    """Agents and checks that one workflow may run, those that are tried again included."""

    check_timeout_ms: int = setting(600_000, at_least=1)
    """Milliseconds after which one of the project's checks is ended, and counts as failed."""

    sandbox: Literal["auto", "none"] = setting("auto", user_only=True)
    """Whether checks run under bubblewrap where there is one: they may change the project and caches alone,
    and read no keys of yours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    argv: tuple[str, ...]
    """Program and arguments, no shell. `{prompt}`, `{run_id}` and `{cwd}` are filled in; without `{prompt}`
    the task goes to its standard input."""

    description: str = ""
    """What it is good for, told to the host."""

    timeout_ms: int = setting(600_000, at_least=1)
    """Milliseconds from its start after which it is ended."""

    env: Mapping[str, str] = setting(dict[str, str])
    """Variables it gets beside the allowlisted ones; `${NAME}` takes the server's own value."""

    spawns: int = setting(0, at_least=0)
    """Runs it may start in its turn."""


@dataclass(frozen=True, slots=True)
class Settings:
    roots: tuple[Path, ...] = ()
    """Directories that may be read. Relative ones are relative to the file that names them."""

    allow_host_roots: bool = setting(False, user_only=True)
    """Whether the roots that the host offers may be read too."""

    data_dir: Path = setting(default_data_dir, user_only=True)
    """Folder for the token, the runs and the index; several servers may share it."""

    artifact_dir: Path | None = setting(None, user_only=True)
    """Folder for the memos that are asked for; by default `artifacts` in the data folder."""

    index: bool = True
    """Whether an index of the roots is kept in the data folder: faster, with the same answers."""

    thoughts_dir: Path | None = None
    """Folder of historical documents that research looks through too, after the code."""

    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least serious messages to write to stderr."""

    log_format: Literal["text", "json"] = "text"
    """How a log line looks."""

    limits: LimitSettings = field(default_factory=LimitSettings)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    models: ModelSettings = setting(ModelSettings, user_only=True)
    agents: AgentSettings = setting(AgentSettings, user_only=True)
    workflows: WorkflowSettings = field(default_factory=WorkflowSettings)
    commands: Mapping[str, CommandSettings] = setting(dict[str, CommandSettings], user_only=True)
