"""The text of a file becomes an agent, and each of its fields knows where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retinue.core import DEFAULT_TIMEOUT_S, Agent, Budget, ConfigInvalid, PermissionRule, Permissions, clip
from retinue.definitions import profiles as known_profiles, tool_names, tool_rules
from retinue.definitions.definition import AgentDefinition, Origin
from retinue.definitions.fields import BY_KEY, NAME, NOT_USED, canonical
from retinue.definitions.frontmatter import Document, parse
from retinue.definitions.nodes import Node
from retinue.definitions.places import SET_ASIDE
from retinue.definitions.problem import DefinitionProblem, MalformedDefinition, did_you_mean
from retinue.definitions.profiles import Profile
from retinue.definitions.servers import Servers
from retinue.definitions.values import one_of

TIERS = {"haiku": "fast", "sonnet": "default", "opus": "strong"}
"""What Claude's names mean where there is no Claude."""
DESCRIPTION_LETTERS = 1_000


def read_definition(
    data: bytes, origin: Origin, profiles: Mapping[str, Profile] = known_profiles.BUILT_IN
) -> AgentDefinition:
    """Never raises: what is wrong stands in the definition."""
    try:
        document = parse(data, lenient=not origin.format.ours)
    except MalformedDefinition as error:
        return _definition(origin, origin.name, problems=error.problems)
    values, problems = _values(document, origin)
    name = values["name"].value if "name" in values else origin.name
    if "name" not in values and not NAME.fullmatch(name):
        problems.append(
            DefinitionProblem(1, f"{name!r} cannot be a name", "give it a `name` of letters, digits, - and _")
        )
    agent, origins = _Maker(document, origin, values, profiles, problems).make(name)
    if any(problem.fatal for problem in problems):
        return _definition(origin, name, problems=tuple(sorted(problems, key=lambda each: each.line)))
    return _definition(
        origin,
        name,
        agent=agent,
        origins=origins,
        problems=tuple(problems),
        left_out=_left_out(name, values),
    )


@dataclass(frozen=True, slots=True)
class _Given:
    value: Any
    line: int
    node: Node
    """As it was written."""


def _definition(origin: Origin, name: str, **more: Any) -> AgentDefinition:
    return AgentDefinition(name=name, scope=origin.scope, source=origin.source, file=origin.file, **more)


def _values(document: Document, origin: Origin) -> tuple[dict[str, _Given], list[DefinitionProblem]]:
    """Each known key with its checked value; all that is wrong, not only the first of it."""
    values: dict[str, _Given] = {}
    problems = list(document.notes)
    for written, entry in document.header.entries.items():
        key = canonical(written)
        if key in NOT_USED:
            problems.append(DefinitionProblem(entry.line, f"{written} is not used here", fatal=False))
        elif key not in BY_KEY:
            near = did_you_mean(key, BY_KEY)
            problems.append(
                DefinitionProblem(entry.line, f"there is no key {written!r}", near, fatal=origin.format.ours)
            )
        elif key in values:
            problems.append(
                DefinitionProblem(entry.line, f"{written}: the same as a key in line {values[key].line}")
            )
        else:
            try:
                read = one_of(*origin.executors) if key == "executor" else BY_KEY[key].read
                values[key] = _Given(read(entry.value), entry.line, entry.value)
            except MalformedDefinition as error:
                for wrong in error.problems:
                    problems.append(DefinitionProblem(wrong.line, f"{written}: {wrong.message}", wrong.hint))
    if "description" not in values and not any(problem.fatal for problem in problems):
        problems.append(
            DefinitionProblem(1, "there is no description", "say in one line what the agent is good for")
        )
    return values, problems


def _left_out(name: str, values: Mapping[str, _Given]) -> str | None:
    if "disabled" in values and values["disabled"].value:
        return "it is disabled"
    if "mode" in values and values["mode"].value == "primary":
        return "it is a main agent (mode: primary)"
    return f"the name {name} is set aside" if name.lower() in SET_ASIDE else None


class _Maker:
    def __init__(
        self,
        document: Document,
        origin: Origin,
        values: Mapping[str, _Given],
        profiles: Mapping[str, Profile],
        problems: list[DefinitionProblem],
    ) -> None:
        self._document = document
        self._origin = origin
        self._values = values
        self._profiles = profiles
        self._problems = problems
        self._origins: dict[str, str] = {}

    def make(self, name: str) -> tuple[Agent, Mapping[str, str]]:
        executor = self._executor()
        granted, denied = self._tools(executor)
        servers: Servers = self._get("mcp_servers", Servers())
        self._doubt_tools(executor, servers)
        schema = self._get("output_schema", None)
        agent = Agent(
            name=name,
            description=clip(" ".join(self._get("description", "").split()), DESCRIPTION_LETTERS),
            executor=executor,
            prompt=self._document.body,
            prompt_mode=self._get("system_prompt", "replace", "prompt_mode"),
            command=self._get("command", ()),
            model=self._model(executor),
            tools=granted,
            denied_tools=denied,
            permissions=self._permissions(),
            mcp_servers=servers.defined,
            env=self._get("env", {}),
            folders=self._get("folders", ()),
            settings=self._settings(),
            session=self._get("session", False),
            allowed_callers=self._get("allowed_callers", None),
            timeout_s=self._get("timeout_ms", DEFAULT_TIMEOUT_S * 1000, "timeout_s") / 1000,
            budget=self._budget(),
            spawns=self._get("spawns", 0),
            output_format=self._get("output_format", "text" if schema is None else "json"),
            output_schema=schema,
            container=self._get("container", None),
            sandbox=self._get("sandbox", None),
            network=self._get("network", None),
            isolation=self._get("isolation", "none"),
            acceptance=self._get("acceptance", ()),
            needs=self._needs(servers),
            source=self._origin.source,
        )
        self._origins["name"] = self._line("name") if "name" in self._values else "the file's name"
        if agent.prompt:
            self._origins["prompt"] = f"{self._origin.source}:{self._document.body_line}"
        return agent, self._origins

    def _get(self, key: str, default: Any, field: str | None = None) -> Any:
        if key not in self._values:
            return default
        self._origins[field or key] = self._line(key)
        return self._values[key].value

    def _wrong(self, line: int, message: str, hint: str | None = None) -> None:
        """Noted, and gone on from: there may be more of it."""
        self._problems.append(DefinitionProblem(line, message, hint))

    def _line(self, key: str) -> str:
        return f"{self._origin.source}:{self._values[key].line}"

    def _executor(self) -> str:
        executor = self._get("executor", None)
        if executor is None and "command" in self._values:
            executor, self._origins["executor"] = "command", self._line("command")
        elif executor is None and self._origin.executor:
            executor, self._origins["executor"] = self._origin.executor, "agents.executor"
        elif executor is None:
            executor = self._origin.format.executor
            self._origins["executor"] = "the folder it lies in"
        kind = self._origin.executors.get(executor)
        if kind and kind.requires_command and "command" not in self._values:
            line = self._values["executor"].line if "executor" in self._values else 1
            self._wrong(line, f"the executor `{executor}` needs a `command`")
        if not (kind and kind.takes_command) and "command" in self._values:
            line = self._values["command"].line
            self._wrong(line, f"the executor {executor} takes no `command`", "leave one of them out")
        return executor

    def _model(self, executor: str) -> str | None:
        model = self._get("model", None)
        if model == "inherit":
            return None
        return TIERS.get(model, model) if executor == "local" else model

    def _tools(self, executor: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """What is granted, after the profile and the denials; denials that are left where all is granted."""
        rules: tool_rules.ToolRules = self._get("tools", tool_rules.ToolRules())
        denied = (*rules.denied, *self._get("disallowed_tools", (), "denied_tools"))
        if "permission" in self._values:
            denied += self._values["permission"].value.denied_tools
        granted, profile = rules.granted, self._profile()
        if profile is not None and granted is not None:
            kept = tool_rules.within(granted, profile.tools)
            for tool in granted:
                if tool not in kept:
                    line = self._values["tools"].line
                    text = f"{tool} is not in the profile {profile.name}: left out"
                    self._problems.append(DefinitionProblem(line, text, fatal=False))
            granted = kept
        elif profile is not None:
            granted = profile.tools
            self._origins["tools"] = f"profile {profile.name} ({profile.source})"
            if executor == "local":
                granted = tool_rules.of_servers(granted, self._get("mcp_servers", Servers()).names)
        elif granted is None and executor == "local":
            granted, self._origins["tools"] = known_profiles.READING, "default of the executor local"
        if granted is None or "*" in granted:
            return None, denied
        left = tool_rules.without(granted, denied)
        # Where our own loop reads the list, a server's name alone stands for all its tools.
        return tuple(tool.removesuffix("__*") for tool in left) if executor == "local" else left, ()

    def _doubt_tools(self, executor: str, servers: Servers) -> None:
        ours = self._origin.format.ours
        for key in ("tools", "disallowed_tools"):
            if key in self._values:
                node, grants = self._values[key].node, key == "tools"
                self._problems += tool_names.doubtful(node, executor, servers.names, grants=grants, ours=ours)

    def _profile(self) -> Profile | None:
        if "profile" not in self._values:
            return None
        given = self._values["profile"]
        if given.value not in self._profiles:
            near = did_you_mean(given.value, self._profiles) or "there are: " + ", ".join(self._profiles)
            self._wrong(given.line, f"there is no profile {given.value!r}", near)
        return self._profiles.get(given.value)

    def _permissions(self) -> Permissions:
        rules = self._get("permissions", {})
        opencode: tool_rules.Permission = self._get("permission", tool_rules.Permission(), "permissions")
        denied = tuple(rule for rule in self._get("disallowed_tools", (), "denied_tools") if "(" in rule)
        for rule in (*rules.get("allow", ()), *rules.get("deny", ())):
            try:
                PermissionRule.parse(rule)
            except ConfigInvalid as error:
                self._wrong(self._values["permissions"].line, f"permissions: {error.message}", error.hint)
        return Permissions(
            allow=(*rules.get("allow", ()), *opencode.allow),
            deny=(*rules.get("deny", ()), *opencode.deny, *denied),
            mode=self._get("permission_mode", None, "permissions"),
        )

    def _settings(self) -> tuple[str, ...]:
        given = self._get("settings", ())
        if wrong := set(given) - {"user", "project"}:
            line = self._values["settings"].line
            self._wrong(line, f"settings: no such settings: {', '.join(sorted(wrong))}")
        return given

    def _budget(self) -> Budget:
        given = dict(self._get("budget", {}))
        if "cost_usd" in given:
            given["cost_micros"] = given.pop("cost_usd")
        for key, kind in (("max_turns", "steps"), ("max_cost_usd", "cost_micros")):
            if key in self._values:
                amount = self._get(key, None, "budget")
                given[kind] = min(amount, given.get(kind, amount))
        return Budget(**given)

    def _needs(self, servers: Servers) -> tuple[str, ...]:
        needs = [f"the MCP server {name!r} that another program defines" for name in servers.referred]
        if "hooks" in self._values:
            self._origins["needs"] = self._line("hooks")
            needs.append("hooks")
        return tuple(needs)
