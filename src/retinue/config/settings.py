"""Declares every setting: its type, its default, its bounds, and a description below it.

`docs/settings.md` is generated from the descriptions. The settings are plain dataclasses because every start
of the command line loads them, and a validation library would slow it down. Knows nothing of where a value
comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from retinue.core import DEFAULT_TOOL_GROUPS, EXECUTOR_NAMES, TOOL_GROUPS

ProjectMay = Literal["set", "narrow", "ignored", "restrict", "user_file"]
"""What a project's settings file may do with a setting: set it freely, because it concerns only the project;
narrow it, that is, set a number below the default or a part of the default list; or nothing. Settings of the
last two kinds come from the user's own file alone, not even from a variable: `restrict` means that all other
sources can only switch it off, or add to a list of what is denied, whatever the user's file says."""


def setting(
    default: Any,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    one_of: tuple[str, ...] = (),
    form: tuple[str, str] | None = None,
    project: ProjectMay | None = None,
) -> Any:
    """Declare a setting with its default and bounds, and what a project's own settings file may do with it.

    `form` is a regular expression that a text, or each of a list, has to match, and its description in words.
    A cloned project must not decide what is read on the user's machine, where Retinue writes, what it may
    spend, or what happens to the runs of other projects. The classes below inherit `project` from the field
    that contains them.
    """
    bounds = {"at_least": at_least, "at_most": at_most, "one_of": one_of, "form": form, "project": project}
    if callable(default):
        return field(default_factory=default, metadata=bounds)
    return field(default=default, metadata=bounds)


DOMAIN = (
    r"(?:\*\.)?[^\s/:@?#\[\]*]+|\[?[0-9a-fA-F:.]+\]?",
    "hosts such as `docs.python.org`, without `https://`",
)
HOST = (
    r"[^\s/:@?#\[\]*]+(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?|[0-9a-fA-F:.]+",
    "hosts such as `127.0.0.1:8080`, without `http://`",
)
WEB_ADDRESS = (r"(?:https?://\S+)?", "an address that begins with `http://` or `https://`")


def default_data_dir() -> Path:
    """Return the platform's folder for user data."""
    import platformdirs  # imported here because `retinue --help` does not need it

    return platformdirs.user_data_path("retinue", appauthor=False)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits for one request: how much it may read and how long its answer may be."""

    max_files_read: int = setting(50, at_least=1)
    """Maximum number of files that one request may read, including all runs it starts."""

    max_bytes_read: int = setting(1_048_576, at_least=1)
    """Maximum number of bytes that one request may read, including all runs it starts."""

    max_file_bytes: int = setting(1_048_576, at_least=1)
    """Maximum size of a file in bytes. Larger files are skipped, and the answer counts them."""

    max_response_tokens: int = setting(2_000, at_least=100)
    """Maximum number of tokens in a tool's answer. A longer answer is cut and says what is missing. The fixed
    parts of a report take up to 400 tokens."""


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """How runs are queued, awaited and kept."""

    default_deadline_ms: int = setting(30_000, at_least=1)
    """Milliseconds that a request may take if it does not set a deadline."""

    max_concurrent_tasks: int = setting(4, at_least=1)
    """Maximum number of tasks that run at the same time in all servers that share the data folder. Each
    server may run the same number of research roles in addition."""

    max_queued_tasks: int = setting(1_000, at_least=0)
    """Maximum number of tasks in the queue. Further tasks are refused."""

    quota_wait_s: int = setting(21_600, at_least=0)
    """Seconds that a run may wait for the usage limit of its account, such as that of a coding CLI. A run
    that would have to wait longer is refused or ends, and its error says when the limit ends."""

    keep_runs_days: int = setting(30, at_least=0, project="ignored")
    """Days to keep a finished run with its log and snapshot. A server removes older ones when it starts, a
    command that starts runs at most once a day; 0 keeps all."""

    patience_s: int = setting(45, at_least=1, at_most=3_600)
    """Seconds that a tool call may wait for a result. After that it returns the current status, because most
    hosts give up after 60 seconds."""

    permission_wait_s: int = setting(300, at_least=1, at_most=86_400)
    """Seconds that a run waits for an answer to a permission request. After that the request is denied."""

    ask_person: bool = setting(False, project="ignored")
    """Whether to show a run's questions to the person at the host instead of to the host's model, if the host
    supports it. A host that uses MCP tasks shows its model nothing until a task ends, so in such a host the
    person is always asked."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which files inside the roots may be read."""

    deny: tuple[str, ...] = setting((), project="set")
    """Globs of files that are never read, in addition to the built-in list of secret files."""

    allow: tuple[str, ...] = setting((), project="ignored")
    """Globs of files that may be read although the built-in list denies them."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Which tools a host sees."""

    groups: tuple[str, ...] = setting(DEFAULT_TOOL_GROUPS, one_of=(*TOOL_GROUPS, "all"), project="narrow")
    """Groups of tools that a host sees. `all` means every group."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP server."""

    allowed_hosts: tuple[str, ...] = setting((), project="ignored")
    """Additional `Host` headers to accept over HTTP, such as `build-box:8765`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """One model server: `models.endpoints.NAME`."""

    url: str
    """Base URL of an OpenAI-compatible server."""

    api_key_env: str = ""
    """Name of the environment variable that holds the API key. Over plain HTTP, the key is sent only to this
    machine."""

    slots: int | None = setting(None, at_least=1)
    """Number of requests that the server processes at the same time. Defaults to the number that the server
    reports, or to a low number if it reports none."""

    context: int | None = setting(None, at_least=512)
    """Context size of the loaded model in tokens. Defaults to the size that the server reports, or to
    4,096."""


@dataclass(frozen=True, slots=True)
class TierSettings:
    """The model of one tier."""

    endpoint: str = ""
    """A name from `models.endpoints`, or a URL. Defaults to the endpoint of the tier `default`, then to
    `models.endpoint`."""

    model: str = ""
    """Name of the model. If the tier has its own endpoint, defaults to the model that is loaded there;
    otherwise to the model of the tier `default`, then to `models.model`."""


@dataclass(frozen=True, slots=True)
class TiersSettings:
    """The models of all tiers."""

    fast: TierSettings = field(default_factory=TierSettings)
    default: TierSettings = field(default_factory=TierSettings)
    medium: TierSettings = field(default_factory=TierSettings)
    strong: TierSettings = field(default_factory=TierSettings)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Language models and the servers that they run on."""

    endpoint: str = ""
    """Base URL of an OpenAI-compatible server, such as `http://127.0.0.1:1234/v1`, or a name from
    `models.endpoints`."""

    model: str = ""
    """Name of the model on that server. Defaults to the model that is loaded."""

    context: int | None = setting(None, at_least=512)
    """Context size in tokens of the model on that server, for servers that do not report it. Defaults to the
    size that the server reports, or to 4,096. Agents use up to 30 % of it for a request."""

    patience_s: int = setting(300, at_least=1, at_most=3_600)
    """Seconds to wait for the first token of a reply. The server may have to load the model first."""

    research: bool = False
    """Whether a model explains what research finds. It never changes what the search found. Off by default,
    because a model of 1.5 billion parameters takes about 20 seconds for a question on two cores."""

    endpoints: Mapping[str, EndpointSettings] = setting(dict[str, EndpointSettings])
    tiers: TiersSettings = field(default_factory=TiersSettings)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How agents are called and run."""

    caller: str = setting("main")
    """Name of the calling host, which an agent's `allowed_callers` can list. Set it in the host's own
    configuration of Retinue."""

    executor: str | None = setting(None, one_of=EXECUTOR_NAMES)
    """Executor for agents whose files do not name one. Defaults to `claude` for Claude Code's files,
    `opencode` for opencode's files and `local` for Retinue's own."""

    tool_for_each: bool = setting(False)
    """Whether a host sees a tool `run_subagent_NAME` for each agent in addition to `run_subagent`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProviderSettings:
    """A search provider that answers in JSON: `network.providers.NAME`."""

    url: str
    """Address of the API. `{query}` is replaced by the query; without it, `query_field` has the query."""

    method: Literal["GET", "POST"] = "GET"
    """How the query is sent: in the address, or as JSON."""

    query_field: str = "q"
    """Name of the parameter with the query."""

    key_env: str = ""
    """Name of the environment variable that holds the key."""

    key_header: str = "Authorization: Bearer {key}"
    """Header with which the key is sent, if there is one."""

    results: str = "results"
    """Where the list of results is, as names with dots between them."""

    title_field: str = "title"
    """Field of a result that has its title."""

    address_field: str = "url"
    """Field of a result that has its address."""

    text_field: str = "content"
    """Field of a result that has a piece of its text."""

    date_field: str = ""
    """Field of a result that has its date."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The web: whether pages may be read, which ones, and who searches."""

    web: bool = setting(False, project="restrict")
    """Whether Retinue may read pages of the web. Off, no tool for it is listed and nothing is sent. Only your
    own settings file can switch it on; a project's file or a variable can only switch it off."""

    allow_hosts: tuple[str, ...] = setting((), form=DOMAIN, project="user_file")
    """Domains that may be opened, with everything below them. Empty means every public host."""

    deny_hosts: tuple[str, ...] = setting((), form=DOMAIN, project="restrict")
    """Domains that are never opened. A project's file or a variable can add to your list."""

    allow_private: tuple[str, ...] = setting((), form=HOST, project="user_file")
    """Hosts in your own network that may be opened, such as `127.0.0.1:8080` or `searx.lan`. All others there
    are refused."""

    search: str = setting("", project="user_file")
    """Who searches the web: `searxng`, `brave`, `tavily`, `kagi`, `exa`, or a name from `network.providers`.
    Empty: only addresses that you name and the packages of your project are read."""

    search_url: str = setting("", form=WEB_ADDRESS, project="user_file")
    """Address of your SearXNG, such as `http://127.0.0.1:8080/search`, or another one for the provider."""

    max_pages: int = setting(6, at_least=1, at_most=20, project="user_file")
    """Maximum number of pages that one question opens."""

    cache_hours: int = setting(24, at_least=0, at_most=720, project="user_file")
    """Hours for which pages are kept. `retinue web --clear-cache` removes them; 0 keeps none."""

    pypi: str = setting("", form=WEB_ADDRESS, project="user_file")
    """Address of another package index for Python with the JSON API of PyPI. Defaults to the public one."""

    npm: str = setting("", form=WEB_ADDRESS, project="user_file")
    """Address of another npm registry. Defaults to the public one."""

    providers: Mapping[str, SearchProviderSettings] = setting(
        dict[str, SearchProviderSettings], project="user_file"
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The memory of projects and of the user."""

    all_agents: bool = setting(False, project="ignored")
    """Whether every trusted agent has the memory, not only those whose file says `memory: true`."""

    prompt_characters: int = setting(2_000, at_least=0, at_most=20_000)
    """Maximum number of characters of memories that a task comes with; 0 for none. One memory gets at most a
    third of them."""


@dataclass(frozen=True, slots=True)
class SkillSettings:
    """Which skills agents see."""

    for_agents: bool = setting(True)
    """Whether agents see an index of all skills and get those whose triggers are in their task. Skills that
    an agent's file lists are always used."""


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """Limits of workflows and their checks."""

    max_runs: int = setting(200, at_least=1)
    """Maximum number of agents and checks that one workflow may run, including retries."""

    check_timeout_ms: int = setting(600_000, at_least=1)
    """Milliseconds after which a project check is stopped and counts as failed."""

    sandbox: Literal["auto", "none"] = setting("auto", project="ignored")
    """Whether checks run under bubblewrap if it is installed. Under bubblewrap, they can change only the
    project and caches, and cannot read your keys."""


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The command and the webhook to call when a run ends, asks something, or waits for its account."""

    command: tuple[str, ...] = setting(())
    """Program and arguments to start for each notice, without a shell. `{text}` is replaced by one line of
    text. The whole notice is on standard input, as JSON."""

    webhook: str = ""
    """Address to which each notice is posted as JSON. `${NAME}` is replaced by the environment variable of
    that name."""

    after_s: int = setting(10, at_least=0)
    """Minimum number of seconds that a run must have taken for a notice about its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """A program that runs as an agent: `commands.NAME`."""

    argv: tuple[str, ...]
    """The program and its arguments; no shell is used. `{prompt}`, `{run_id}` and `{cwd}` are replaced. If
    `{prompt}` is missing, the program reads the task from standard input."""

    description: str = ""
    """What the command is good for. Hosts see this text."""

    timeout_ms: int = setting(600_000, at_least=1)
    """Milliseconds after which the program is stopped."""

    env: Mapping[str, str] = setting(dict[str, str])
    """Environment variables for the program in addition to the allowlisted ones. `${NAME}` is replaced by the
    server's own value."""

    spawns: int = setting(0, at_least=0)
    """Maximum number of runs that the program may start."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. The nested classes are the tables of `retinue.toml`."""

    roots: tuple[Path, ...] = setting((), project="set")
    """Directories that may be read. A relative path is relative to the settings file that contains it. A
    project's file may name only directories inside the project."""

    allow_host_roots: bool = setting(False, project="ignored")
    """Whether the roots that the host offers may be read as well."""

    data_dir: Path = setting(default_data_dir, project="ignored")
    """Folder for the token, the runs and the index. Several servers may share it."""

    artifact_dir: Path | None = setting(None, project="ignored")
    """Folder for reports and handoffs that are written to disk on request. Defaults to `artifacts` in the
    data folder."""

    index: bool = setting(True, project="set")
    """Whether to keep an index of the roots in the data folder. An index makes answers faster but does not
    change them."""

    thoughts_dir: Path | None = setting(None, project="set")
    """Folder of historical documents that research searches after the code."""

    log_level: Literal["debug", "info", "warning", "error"] = setting("warning", project="set")
    """Lowest level of messages that are written to stderr."""

    log_format: Literal["text", "json"] = setting("text", project="set")
    """Format of log lines."""

    limits: LimitSettings = setting(LimitSettings, project="narrow")
    runtime: RuntimeSettings = setting(RuntimeSettings, project="narrow")
    policy: PolicySettings = field(default_factory=PolicySettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    models: ModelSettings = setting(ModelSettings, project="ignored")
    agents: AgentSettings = setting(AgentSettings, project="ignored")
    skills: SkillSettings = setting(SkillSettings, project="ignored")
    memory: MemorySettings = setting(MemorySettings, project="narrow")
    workflows: WorkflowSettings = setting(WorkflowSettings, project="narrow")
    notify: NotifySettings = setting(NotifySettings, project="ignored")
    network: NetworkSettings = field(default_factory=NetworkSettings)
    commands: Mapping[str, CommandSettings] = setting(dict[str, CommandSettings], project="ignored")
