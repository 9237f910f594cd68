"""Reads an agent's Markdown file into an `AgentDefinition`, with the origin of each field and all problems.

Knows nothing of where files are or which of several definitions wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from retinue.core import (
    DEFAULT_TIMEOUT_S,
    EXECUTORS,
    MCP_PREFIX,
    USE_SKILL,
    Agent,
    Budget,
    ConfigInvalid,
    ExecutorKind,
    ExecutorTable,
    McpServer,
    PermissionRule,
    Permissions,
    clip,
    find_executor,
)
from retinue.definitions import profiles as known_profiles, tool_rules
from retinue.definitions.agent_fields import (
    FIELDS_BY_KEY,
    IGNORED_KEYS,
    NAME_PATTERN,
    AgentServers,
    canonical_key,
)
from retinue.definitions.definition_files import RESERVED_NAMES, TEMPLATE, AgentFormat, DefinitionScope
from retinue.definitions.frontmatter import MarkdownDocument, parse_markdown
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition, did_you_mean
from retinue.definitions.profiles import Profile
from retinue.definitions.sub_agent_files import template_with_header
from retinue.definitions.value_readers import choice
from retinue.definitions.yaml_tree import Node

MCP_AGENT_PROMPT = (
    "You answer with the tools of the MCP server {name}. Call them for everything that they can tell, and "
    "say what they returned. If they fail or do not have it, say so."
)
"""The prompt of an agent that is one MCP server, if its file has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """The result of reading one agent file or one settings table: an agent, or the problems in it."""

    name: str
    scope: DefinitionScope
    source: str
    """The path to show to people and hosts."""
    file: str = ""
    """The full path, shown only to the user."""
    agent: Agent | None = None
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each field that is set, the file and line, or another source, that set it."""
    problems: tuple[DefinitionProblem, ...] = ()
    trusted: bool = True
    """False for a file of a project that the user does not trust."""
    excluded_because: str | None = None
    """Why a valid definition is not offered as a subagent, or None if it is offered."""
    shadows: tuple[str, ...] = ()
    """Sources of other definitions with the same name that this one overrides."""
    replaces_builtin: bool = False
    """Whether one of them is built in."""

    @property
    def error(self) -> DefinitionProblem | None:
        """The first fatal problem."""
        return next((problem for problem in self.problems if problem.fatal), None)


class PickedExecutor(NamedTuple):
    """The executor that an agent runs on, and why."""

    name: str
    reason: str


PickExecutor = Callable[[bool], PickedExecutor]
"""Picks an executor that the user has. True asks for one for an agent that changes files or runs commands."""


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Where a file comes from and the defaults that follow from it."""

    name: str
    """The agent's name if the file does not set one."""
    source: str
    format: AgentFormat
    scope: DefinitionScope
    file: str = ""
    executor: str | None = None
    """The executor that the user prefers for files that do not name one."""
    pick_executor: PickExecutor | None = None
    """Picks the executor of a file that names none and belongs to no program; None for the folder's."""
    executors: ExecutorTable = field(default_factory=lambda: EXECUTORS)
    """The executors that a file may name."""


CLAUDE_MODEL_TIERS = {"haiku": "fast", "sonnet": "default", "opus": "strong"}
"""Tiers that replace Claude's model names for the executor `local`."""
MAX_DESCRIPTION_CHARS = 1_000


def read_definition(
    data: bytes, origin: FileOrigin, profiles: Mapping[str, Profile] = known_profiles.BUILTIN_PROFILES
) -> AgentDefinition:
    """Read an agent file. Never raises: the returned definition lists the problems."""
    try:
        if origin.format is TEMPLATE:
            data = template_with_header(data)
        document = parse_markdown(data, lenient=not origin.format.native)
    except MalformedDefinition as error:
        return _make_definition(origin, origin.name, problems=error.problems)
    values, problems = _read_fields(document, origin)
    name = values["name"].value if "name" in values else origin.name
    if "name" not in values and not NAME_PATTERN.fullmatch(name):
        problems.append(
            DefinitionProblem(1, f"{name!r} is not a valid name", "set `name` to letters, digits, - and _")
        )
    agent, origins = _AgentBuilder(document, origin, values, profiles, problems).build(name)
    if any(problem.fatal for problem in problems):
        return _make_definition(origin, name, problems=tuple(sorted(problems, key=lambda each: each.line)))
    return _make_definition(
        origin,
        name,
        agent=agent,
        origins=origins,
        problems=tuple(problems),
        excluded_because=_exclusion_reason(name, values),
    )


@dataclass(frozen=True, slots=True)
class _FieldValue:
    """The checked value of a key, with its line and its YAML node."""

    value: Any
    line: int
    node: Node


def _make_definition(origin: FileOrigin, name: str, **more: Any) -> AgentDefinition:
    """Make a definition of a file. `more` contains the remaining fields of `AgentDefinition`."""
    return AgentDefinition(name=name, scope=origin.scope, source=origin.source, file=origin.file, **more)


def _read_fields(
    document: MarkdownDocument, origin: FileOrigin
) -> tuple[dict[str, _FieldValue], list[DefinitionProblem]]:
    """Read all known keys. Returns their values and all problems, not only the first."""
    values: dict[str, _FieldValue] = {}
    problems = list(document.warnings)
    for written, entry in document.header.entries.items():
        key = canonical_key(written)
        if key in IGNORED_KEYS:
            problems.append(
                DefinitionProblem(entry.line, f"{written} is not supported and is ignored", fatal=False)
            )
        elif key not in FIELDS_BY_KEY:
            near = did_you_mean(key, FIELDS_BY_KEY)
            problems.append(
                DefinitionProblem(
                    entry.line, f"there is no key {written!r}", near, fatal=origin.format.native
                )
            )
        elif key in values:
            problems.append(
                DefinitionProblem(entry.line, f"{written}: duplicates the key in line {values[key].line}")
            )
        else:
            try:
                read = choice(*origin.executors) if key == "executor" else FIELDS_BY_KEY[key].read
                values[key] = _FieldValue(read(entry.value), entry.line, entry.value)
            except MalformedDefinition as error:
                for wrong in error.problems:
                    problems.append(DefinitionProblem(wrong.line, f"{written}: {wrong.message}", wrong.hint))
    if "description" not in values and not any(problem.fatal for problem in problems):
        problems.append(
            DefinitionProblem(1, "there is no description", "describe in one line what the agent is good for")
        )
    return values, problems


def _exclusion_reason(name: str, values: Mapping[str, _FieldValue]) -> str | None:
    """Return why a valid agent is not offered as a subagent, or None."""
    if "disabled" in values and values["disabled"].value:
        return "it is disabled"
    if "mode" in values and values["mode"].value == "primary":
        return "it is a main agent (mode: primary)"
    return f"the name {name} is reserved" if name.lower() in RESERVED_NAMES else None


class _AgentBuilder:
    """Builds an agent from the values of its file and records where each field comes from."""

    def __init__(
        self,
        document: MarkdownDocument,
        origin: FileOrigin,
        values: Mapping[str, _FieldValue],
        profiles: Mapping[str, Profile],
        problems: list[DefinitionProblem],
    ) -> None:
        self._document = document
        self._origin = origin
        self._values = values
        self._profiles = profiles
        self._problems = problems
        self._origins: dict[str, str] = {}

    def build(self, name: str) -> tuple[Agent, Mapping[str, str]]:
        """Return the agent and the origins of its fields. Adds problems to the list passed to `__init__`."""
        executor = self._choose_executor()
        granted, denied = self._resolve_tools(executor)
        servers: AgentServers = self._get("mcp_servers", AgentServers())
        permissions = self._merge_permissions()
        prompt = self._document.body
        if "mcp" in self._values:
            own = self._own_server(name)
            servers = replace(servers, defined=(*servers.defined, own))
            if not {"tools", "profile"} & self._values.keys():
                granted, self._origins["tools"] = (f"{MCP_PREFIX}{name}",), self._source_line("mcp")
            if not executor.offers_own_tools:  # a coding CLI would ask before each call
                permissions = replace(permissions, allow=(*permissions.allow, f"{MCP_PREFIX}{name}"))
            prompt = prompt or MCP_AGENT_PROMPT.format(name=name)
        self._check_tools(executor, servers)
        schema = self._get("output_schema", None)
        agent = Agent(
            name=name,
            description=clip(" ".join(self._get("description", "").split()), MAX_DESCRIPTION_CHARS),
            executor=executor.name,
            prompt=prompt,
            prompt_mode=self._get("system_prompt", "replace", "prompt_mode"),
            command=self._get("command", ()),
            model=self._choose_model(executor),
            tools=granted,
            untrusted_tools=self._untrusted_tools(),
            denied_tools=denied,
            permissions=permissions,
            skills=self._listed_skills(),
            mcp_servers=servers.defined,
            env={} if "mcp" in self._values else self._get("env", {}),
            folders=self._get("folders", ()),
            settings=self._checked_settings(),
            session=self._get("session", False),
            fork=self._get("fork", False),
            memory=self._get("memory", False),
            allowed_callers=self._get("allowed_callers", None),
            timeout_s=self._get("timeout_ms", DEFAULT_TIMEOUT_S * 1000, "timeout_s") / 1000,
            budget=self._combine_budget(),
            spawns=self._get("spawns", 0),
            output_format=self._get("output_format", "text" if schema is None else "json"),
            output_schema=schema,
            container=self._get("container", None),
            sandbox=self._get("sandbox", None),
            network=self._get("network", None),
            isolation=self._get("isolation", "none"),
            worktree_setup=self._get("worktree_setup", ()),
            worktree_copy=self._get("worktree_copy", ()),
            fallback=self._get("fallback", "never"),
            acceptance=self._get("acceptance", ()),
            needs=self._unmet_needs(servers),
            source=self._origin.source,
        )
        self._origins["name"] = self._source_line("name") if "name" in self._values else "the file's name"
        for key in ("worktree_setup", "worktree_copy"):
            if key in self._values and agent.isolation != "worktree":
                self._add_problem(
                    self._values[key].line, f"{key} needs a worktree", "add `isolation: worktree`"
                )
        if self._document.body:
            self._origins["prompt"] = f"{self._origin.source}:{self._document.body_line}"
        return agent, self._origins

    def _listed_skills(self) -> tuple[str, ...] | None:
        """Return the skills that the file lists; none at all if it denies the tool that reads them."""
        denied = self._values["disallowed_tools"].value if "disallowed_tools" in self._values else ()
        return () if USE_SKILL in denied else self._get("skills", None)

    def _own_server(self, name: str) -> McpServer:
        """Return the MCP server of the key `mcp`. It has the agent's name and gets the agent's variables."""
        argv: tuple[str, ...] = self._get("mcp", (), "mcp_servers")
        env: Mapping[str, str] = self._values["env"].value if "env" in self._values else {}
        if len(argv) == 1 and argv[0].startswith(("http://", "https://")):
            if env:
                line = self._values["env"].line
                self._add_problem(line, "a URL takes no `env`", "use `mcp_servers` with `headers`")
            return McpServer(name=name, url=argv[0])
        return McpServer(name=name, argv=argv, env=env)

    def _get(self, key: str, default: Any, field: str | None = None) -> Any:
        """Return the value of a key and record its line as the origin of `field` (by default, the key)."""
        if key not in self._values:
            return default
        self._origins[field or key] = self._source_line(key)
        return self._values[key].value

    def _add_problem(self, line: int, message: str, hint: str | None = None) -> None:
        """Record an error and continue, so that all errors are reported at once."""
        self._problems.append(DefinitionProblem(line, message, hint))

    def _source_line(self, key: str) -> str:
        """Return the source and line of a key."""
        return f"{self._origin.source}:{self._values[key].line}"

    def _choose_executor(self) -> ExecutorKind:
        """Choose the executor: the file's, else the user's preference, else the folder's default."""
        executor = self._get("executor", None)
        if executor is None and "command" in self._values:
            executor, self._origins["executor"] = "command", self._source_line("command")
        elif executor is None and self._origin.pick_executor is not None:
            executor, self._origins["executor"] = self._origin.pick_executor(self._may_write())
        elif executor is None and self._origin.executor:
            executor, self._origins["executor"] = self._origin.executor, "agents.executor"
        elif executor is None:
            executor = self._origin.format.executor
            self._origins["executor"] = "the default of its folder"
        kind = find_executor(executor, self._origin.executors)
        if kind.requires_command and "command" not in self._values:
            line = self._values["executor"].line if "executor" in self._values else 1
            self._add_problem(line, f"the executor `{executor}` needs a `command`")
        if not kind.takes_command and "command" in self._values:
            line = self._values["command"].line
            self._add_problem(
                line,
                f"the executor {executor} takes no `command`",
                "remove `command`, or choose an executor that takes one",
            )
        return kind

    def _may_write(self) -> bool:
        """Return whether the file's tools or its profile change files, run commands or start agents."""
        named: tuple[str, ...] | None = (
            self._values["tools"].value.granted if "tools" in self._values else None
        )
        if named is None and "profile" in self._values:
            profile = self._profiles.get(self._values["profile"].value)
            named = None if profile is None else profile.tools
        return named is not None and any(
            tool_rules.canonical_tool(tool) in ("*", "write", "edit", "bash", "task") for tool in named
        )

    def _choose_model(self, executor: ExecutorKind) -> str | None:
        """Return the model. Claude's model names become tiers where the settings name the models."""
        model = self._get("model", None)
        if model == "inherit":
            return None
        return CLAUDE_MODEL_TIERS.get(model, model) if executor.uses_models else model

    def _resolve_tools(self, executor: ExecutorKind) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """Return the granted tools, or None for all tools, and the denied tools.

        Denials are already subtracted from a list of granted tools. They are returned only with None.
        """
        rules: tool_rules.ToolRules = self._get("tools", tool_rules.ToolRules())
        denied = (*rules.denied, *self._get("disallowed_tools", (), "denied_tools"))
        if "permission" in self._values:
            denied += self._values["permission"].value.denied_tools
        granted, profile = rules.granted, self._find_profile()
        if profile is not None and granted is not None:
            kept = tool_rules.restrict_to(granted, profile.tools)
            for tool in granted:
                if tool not in kept:
                    line = self._values["tools"].line
                    text = f"{tool} is not in the profile {profile.name}, so it is left out"
                    if tool in profile.untrusted:
                        text = f"{tool} is left out until you trust the project: `retinue agents trust DIR`"
                    self._problems.append(DefinitionProblem(line, text, fatal=False))
            granted = kept
        elif profile is not None:
            granted = profile.tools
            self._origins["tools"] = f"profile {profile.name} ({profile.source})"
            if executor.offers_own_tools:
                granted = tool_rules.drop_missing_servers(
                    granted, self._get("mcp_servers", AgentServers()).names
                )
        elif granted is None and executor.offers_own_tools:
            granted = known_profiles.DEFAULT_LOCAL_TOOLS
            self._origins["tools"] = f"default of the executor {executor.name}"
        if granted is None or "*" in granted:
            return None, denied
        left = tool_rules.remove_denied(granted, denied)
        # Among our own tools, the server's name alone stands for all tools of an MCP server.
        return tuple(tool.removesuffix("__*") for tool in left) if executor.offers_own_tools else left, ()

    def _untrusted_tools(self) -> tuple[str, ...]:
        """Return the tools that the file asks for and that its profile grants only after trust."""
        if "profile" not in self._values or self._values["profile"].value not in self._profiles:
            return ()
        wanted = self._profiles[self._values["profile"].value].untrusted
        rules: tool_rules.ToolRules = self._get("tools", tool_rules.ToolRules())
        return wanted if rules.granted is None else tuple(tool for tool in wanted if tool in rules.granted)

    def _check_tools(self, executor: ExecutorKind, servers: AgentServers) -> None:
        """Record problems with the names in `tools` and `disallowed_tools`."""
        native = self._origin.format.native
        for key in ("tools", "disallowed_tools"):
            if key in self._values:
                node, grants = self._values[key].node, key == "tools"
                self._problems += tool_rules.check_tool_names(
                    node, executor, servers.names, grants=grants, native=native
                )

    def _find_profile(self) -> Profile | None:
        """Return the profile that the file names, if any. Records a problem for an unknown name."""
        if "profile" not in self._values:
            return None
        entry = self._values["profile"]
        if entry.value not in self._profiles:
            near = did_you_mean(entry.value, self._profiles) or "known profiles: " + ", ".join(self._profiles)
            self._add_problem(entry.line, f"there is no profile {entry.value!r}", near)
        return self._profiles.get(entry.value)

    def _merge_permissions(self) -> Permissions:
        """Combine `permissions`, opencode's `permission`, rules in `disallowed_tools`, and the mode."""
        rules = self._get("permissions", {})
        opencode: tool_rules.OpencodePermission = self._get(
            "permission", tool_rules.OpencodePermission(), "permissions"
        )
        denied = tuple(rule for rule in self._get("disallowed_tools", (), "denied_tools") if "(" in rule)
        for rule in (*rules.get("allow", ()), *rules.get("deny", ())):
            try:
                PermissionRule.parse(rule)
            except ConfigInvalid as error:
                self._add_problem(
                    self._values["permissions"].line, f"permissions: {error.message}", error.hint
                )
        return Permissions(
            allow=(*rules.get("allow", ()), *opencode.allow),
            deny=(*rules.get("deny", ()), *opencode.deny, *denied),
            mode=self._get("permission_mode", None, "permissions"),
        )

    def _checked_settings(self) -> tuple[str, ...]:
        """Return the value of `settings`. Records a problem for an unknown value."""
        values = self._get("settings", ())
        if wrong := set(values) - {"user", "project"}:
            line = self._values["settings"].line
            self._add_problem(
                line, f"settings: unknown value: {', '.join(sorted(wrong))}", "use user or project"
            )
        return values

    def _combine_budget(self) -> Budget:
        """Combine `budget` with `max_turns` and `max_cost_usd`; the lower limit applies."""
        limits = dict(self._get("budget", {}))
        if "cost_usd" in limits:
            limits["cost_micros"] = limits.pop("cost_usd")
        for key, kind in (("max_turns", "steps"), ("max_cost_usd", "cost_micros")):
            if key in self._values:
                amount = self._get(key, None, "budget")
                limits[kind] = min(amount, limits.get(kind, amount))
        return Budget(**limits)

    def _unmet_needs(self, servers: AgentServers) -> tuple[str, ...]:
        """Describe what the agent needs that no executor can provide."""
        needs = [f"the MCP server {name!r} that another program defines" for name in servers.referred]
        if "hooks" in self._values:
            self._origins["needs"] = self._source_line("hooks")
            needs.append("hooks")
        return tuple(needs)
