"""Every key of an agent file is read, in all formats, and problems are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from retinue.core import Agent, Budget, McpServer, Permissions
from retinue.definitions import AgentDefinition
from retinue.definitions.agent_fields import FIELDS_BY_KEY
from retinue.definitions.agent_files import FileOrigin, read_definition
from retinue.definitions.definition_files import (
    CLAUDE,
    FOLDER_PER_AGENT,
    NATIVE,
    OPENCODE,
    SMALLCODE,
    AgentFormat,
)
from retinue.definitions.profiles import BUILTIN_PROFILES, DEFAULT_LOCAL_TOOLS

SEED_001 = """
name: web-search
description: "Searches the web and returns summarized results"
session: false              # false = stateless, true = persistent sessions
allowed_callers: [main]     # access control (enforced server-side)
timeout_ms: 30000           # per-agent timeout override
permissions:
  allow: ["Bash(curl:*)", "Bash(wget:*)"]
  deny: []
mcp_servers:
  - name: brave-search
    command: npx
    args: ["-y", "@anthropic/mcp-server-brave-search"]
    env:
      BRAVE_API_KEY: "${BRAVE_API_KEY}"
"""


def read(
    header: str, body: str = "Do it.", form: AgentFormat = NATIVE, name: str = "file-name"
) -> AgentDefinition:
    text = f"---\n{header.strip()}\n---\n{body}"
    return read_definition(text.encode(), FileOrigin(name, "a.md", form, "project"))


def agent(header: str, form: AgentFormat = NATIVE) -> Agent:
    found = read(header, form=form)
    assert found.agent is not None, found.problems
    return found.agent


def errors(header: str, form: AgentFormat = NATIVE) -> list[tuple[int, str]]:
    return [(each.line, str(each)) for each in read(header, form=form).problems if each.fatal]


def warnings(header: str, form: AgentFormat) -> list[str]:
    return [str(each) for each in read(header, form=form).problems if not each.fatal]


def test_claude_agent_with_all_common_keys_is_read() -> None:
    found = read(SEED_001, form=FOLDER_PER_AGENT)
    assert found.agent == Agent(
        name="web-search",
        description="Searches the web and returns summarized results",
        executor="claude",
        prompt="Do it.",
        permissions=Permissions(allow=("Bash(curl:*)", "Bash(wget:*)")),
        mcp_servers=(
            McpServer(
                name="brave-search",
                argv=("npx", "-y", "@anthropic/mcp-server-brave-search"),
                env={"BRAVE_API_KEY": "${BRAVE_API_KEY}"},
            ),
        ),
        allowed_callers=("main",),
        timeout_s=30.0,
        source="a.md",
    )
    assert found.origins["timeout_s"] == "a.md:6"
    assert found.origins["executor"] == "the default of its folder"
    assert found.origins["prompt"].startswith("a.md:")


def test_smallcode_agent_is_read() -> None:
    found = agent(
        "name: echo-reviewer\ndescription: Reviews\ntools: [read_file, grep]\nmodel: fast", SMALLCODE
    )
    assert (found.executor, found.tools, found.model) == ("local", ("read_file", "grep"), "fast")


def test_all_other_keys_are_read() -> None:
    found = agent("""
description: d
executor: codex
model: gpt-x
env: {PORT: 80, KEY: "${KEY}"}
folders: [/data, ~/notes]
settings: user
session: true
budget: {steps: 9, tokens: 4000, files: 3, bytes: 10, wall_ms: 7, cost_usd: 0.5}
max_turns: 5
max_cost_usd: "0.25"
spawns: 2
output_schema: {type: object, required: [a], properties: {a: {type: integer, minimum: 1.5}}}
container: python:3.12
sandbox: bwrap
network: false
isolation: worktree
acceptance: [pytest -q, [npm, run, "test all"]]
system_prompt: append
allowed_callers: []
""")
    assert found.env == {"PORT": "80", "KEY": "${KEY}"}
    assert found.folders == ("/data", str(Path.home() / "notes"))
    assert (found.settings, found.session) == (("user",), True)
    assert found.budget == Budget(steps=5, tokens=4000, files=3, bytes=10, wall_ms=7, cost_micros=250_000)
    assert found.spawns == 2
    assert found.output_format == "json"
    assert found.output_schema == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer", "minimum": 1.5}},
    }
    assert (found.container, found.sandbox, found.network) == ("python:3.12", "bwrap", False)
    assert (found.isolation, found.prompt_mode) == ("worktree", "append")
    assert found.acceptance == (("pytest", "-q"), ("npm", "run", "test all"))
    assert found.allowed_callers == ()
    assert found.name == "file-name"


def test_command_key_implies_the_executor_command() -> None:
    found = agent('description: d\ncommand: my-agent --say "two words" {prompt}')
    assert (found.executor, found.command) == ("command", ("my-agent", "--say", "two words", "{prompt}"))
    assert found.program == "my-agent"
    assert "two words" not in repr(found)


@pytest.mark.parametrize(
    ("header", "line", "says"),
    [
        ("name: a", 1, "no description"),
        ("description: d\nname: a b", 3, "is not a valid name"),
        ("description: d\nname: ../../x", 3, "is not a valid name"),
        ("description: d\nname: [x]", 3, "name: expected text"),
        ("description: d\npermisions: {}", 3, "no key 'permisions'; did you mean permissions?"),
        ("description: d\nexecutor: claud", 3, "did you mean claude?"),
        ("description: d\nexecutor: command", 3, "needs a `command`"),
        ("description: d\nexecutor: local\ncommand: x", 4, "takes no `command`"),
        ("description: d\nprofile: read-olny", 3, "did you mean read-only?"),
        ("description: d\ntimeout_ms: soon", 3, "timeout_ms: expected a whole number from 1"),
        ("description: d\ntimeout_ms: 0", 3, "timeout_ms: expected a whole number from 1"),
        ("description: d\nspawns: true", 3, "spawns: expected a whole number"),
        ("description: d\nsession: maybe", 3, "session: expected true or false"),
        ("description: d\nbudget:\n  tokns: 4", 4, "did you mean tokens?"),
        ("description: d\nbudget: 5", 3, "budget: expected a table"),
        ("description: d\nmax_cost_usd: free", 3, "dollars"),
        ("description: d\nmax_cost_usd: NaN", 3, "dollars"),
        ("description: d\npermissions:\n  alow: []", 4, "did you mean allow?"),
        ("description: d\ntools: {read: maybe}", 3, "tools: expected true or false"),
        ("description: d\ntools: Read, Serch", 3, "there is no tool 'Serch'; did you mean search?"),
        ("description: d\ntools:\n- Read\n- frobnicate", 5, "known tools: read_file, search"),
        ("description: d\ntools: {'*': false, outlin: true}", 3, "did you mean outline?"),
        ("description: d\ndisallowed_tools: [Raed]", 3, "did you mean read?"),
        ("description: d\nmcp_servers:\n- name: a", 4, "needs a command or a url"),
        ("description: d\nmcp_servers:\n- {name: a, url: u, command: c}", 4, "but not both"),
        ("description: d\nmcp_servers:\n- {name: a, url: u}\n- {name: a, url: u}", 5, "appears twice"),
        ("description: d\nmcp_servers:\n- {name: a, urll: u}", 4, "did you mean url?"),
        ("description: d\nsettings: [everyone]", 3, "unknown value: everyone"),
        ("description: d\nacceptance: ['a \"b']", 3, "not a command line"),
        ("description: d\ncommand: []", 3, "a program and its arguments"),
        ("description: d\nenv: {A: [1]}", 3, "A: expected text"),
        ("description: d\nisolation: moon", 3, "is not one of: none, worktree"),
        ("description: d\nmaxTurns: 3\nsteps: 4", 4, "duplicates the key in line 3"),
    ],
)
def test_invalid_value_is_reported_with_its_line_and_the_allowed_values(
    header: str, line: int, says: str
) -> None:
    found = errors(header)
    assert [said for at, said in found if at == line and says in said], found
    assert read(header).agent is None


def test_all_problems_are_reported_at_once() -> None:
    assert [line for line, _ in errors("description: d\nspawns: x\nsession: x\nbugdet: 1")] == [3, 4, 5]


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("budget:\n  tokns: 4\n  steps: no\n  wall_ms: 0", [4, 5, 6]),
        ("mcp_servers:\n- {name: a}\n- {name: b, urll: u}\n- [x]\n- {name: c, comand: x}", [4, 5, 6, 7]),
        ("mcp_servers:\n  a: {urll: u}\n  b: {}\n  c: text", [4, 5, 6]),
        ("mcpServers:\n- name: a\n  url: u\n  env:\n    A: [1]\n    B: [2]", [7, 8]),
        ("permissions:\n  alow: []\n  dney: []", [4, 5]),
        ("tools:\n  read: maybe\n  bash: perhaps", [4, 5]),
        ("permission:\n  bash:\n    rm: no\n    ls: yes\n  edit: never", [5, 6, 7]),
        ("env:\n  A: [1]\n  B: {}", [4, 5]),
        ("acceptance:\n- a 'b\n- []", [4, 5]),
        ("folders:\n- [a]\n- {}", [4, 5]),
    ],
)
def test_all_problems_within_one_key_are_reported(header: str, lines: list[int]) -> None:
    found = errors(f"description: d\n{header}")
    assert [line for line, _ in found] == lines, found


@pytest.mark.parametrize(
    ("header", "form", "says"),
    [
        ("tools: Read, Serch", SMALLCODE, ["there is no tool 'Serch'; did you mean search?"]),
        (
            "tools: Read, Bash, TodoWrite",
            NATIVE,
            ["TodoWrite: the executor local does not have this tool, so it is left out"],
        ),
        ("tools: [read_file, write_file, patch, bash, find_files, search]", SMALLCODE, []),
        ("disallowed_tools: Bash", NATIVE, []),
        (
            "tools: Read, mcp__web__get",
            NATIVE,
            ["mcp__web__get: the agent has no MCP server 'web'; add it to `mcp_servers`"],
        ),
        ("tools: mcp__wbe__get\nmcp_servers: [{name: web, url: u}]", NATIVE, ["did you mean web?"]),
        ("tools: mcp__web__get, mcp__web__*\nmcp_servers: [{name: web, url: u}]", NATIVE, []),
        ("tools: 'read_file, GREP, Glob, LS, outline, ask_parent'", NATIVE, []),
        ("tools: Raed, Bash(git:*), mcp__other__tool, LSP, Monitor", CLAUDE, ["did you mean Read?"]),
        ("tools: {write: false, wrtie: false}", OPENCODE, ["opencode may have no tool 'wrtie'"]),
        ("executor: gemini\ntools: read_many_files, replace, google_web_search, save_memory", NATIVE, []),
    ],
)
def test_unknown_tool_is_a_warning_unless_all_tools_are_known(
    header: str, form: AgentFormat, says: list[str]
) -> None:
    """Only a warning, because another program may have tools that we have never heard of."""
    assert errors(f"description: d\n{header}", form) == []
    found = warnings(f"description: d\n{header}", form)
    assert len(found) == len(says), found
    assert all(part in line for part, line in zip(says, found, strict=True)), found


def test_unknown_key_is_an_error_in_native_files_and_a_warning_in_others() -> None:
    """A misspelt restriction must not be ignored (P7), but keys that only Claude Code knows may be."""
    header = "description: d\nallowed_caller: [main]"
    assert errors(header, NATIVE)
    assert errors(header, FOLDER_PER_AGENT)
    for form in (CLAUDE, OPENCODE, SMALLCODE):
        assert not errors(header, form)
        assert warnings(header, form) == ["there is no key 'allowed_caller'; did you mean allowed_callers?"]


def test_claude_code_format_is_read() -> None:
    found = agent(
        """
name: code-reviewer
description: Reviews
tools: Read, Grep, Bash(git diff:*, git log:*), mcp__github__*
disallowedTools: Grep
model: inherit
permissionMode: plan
maxTurns: 7
color: red
mcpServers:
  - local:
      type: stdio
      command: npx
      args: [-y, x]
""",
        CLAUDE,
    )
    assert found.executor == "claude"
    assert found.tools == ("Read", "Bash(git diff:*, git log:*)", "mcp__github__*")
    assert found.model is None
    assert found.permissions == Permissions(mode="plan")
    assert found.budget.steps == 7
    assert found.mcp_servers == (McpServer(name="local", argv=("npx", "-y", "x")),)


def test_features_only_claude_code_has_are_kept_as_needs() -> None:
    """P7: a hook that forbids something must not be ignored, nor a server that is defined elsewhere."""
    found = agent("description: d\nhooks: {PreToolUse: []}\nmcpServers: [github]", CLAUDE)
    assert found.needs == ("the MCP server 'github' that another program defines", "hooks")


def test_denied_tools_are_kept_if_all_tools_are_granted() -> None:
    found = agent("description: d\ndisallowedTools: Write, Bash(rm:*)", CLAUDE)
    assert found.tools is None
    assert found.denied_tools == ("Write", "Bash(rm:*)")
    assert found.permissions.deny == ("Bash(rm:*)",)


@pytest.mark.parametrize(("given", "tier"), [("haiku", "fast"), ("sonnet", "default"), ("opus", "strong")])
def test_claude_model_names_become_tiers_for_local_agents(given: str, tier: str) -> None:
    assert agent(f"description: d\nmodel: {given}\nexecutor: local", CLAUDE).model == tier
    assert agent(f"description: d\nmodel: {given}", CLAUDE).model == given


def test_opencode_format_is_read() -> None:
    found = agent(
        """
description: Reviews
mode: subagent
model: anthropic/claude-sonnet-4-5
temperature: 0.1
steps: 4
tools:
  write: false
  edit: false
permission:
  webfetch: deny
  bash:
    "git *": allow
    "rm *": deny
    "*": ask
""",
        OPENCODE,
    )
    assert found.executor == "opencode"
    assert found.tools is None
    assert found.denied_tools == ("write", "edit", "webfetch")
    assert found.permissions == Permissions(allow=("bash(git *)",), deny=("bash(rm *)",))
    assert found.budget.steps == 4
    only = agent('description: d\ntools: {"*": false, read: true}', OPENCODE)
    assert only.tools == ("read",)
    assert agent("description: d\npermission: deny\ntools: Read", OPENCODE).tools == ()


@pytest.mark.parametrize("line", ["disable: true", "disabled: true", "mode: primary", "name: main"])
def test_agent_that_is_not_a_subagent_is_excluded_without_error(line: str) -> None:
    found = read(f"description: d\n{line}", form=OPENCODE)
    assert found.excluded_because
    assert found.error is None


def test_tools_cannot_exceed_the_profile() -> None:
    assert agent("description: d\nprofile: writer\nexecutor: codex").tools == BUILTIN_PROFILES["writer"].tools
    narrowed = read(
        "executor: claude\ndescription: d\nprofile: read-only\n"
        "tools: [Read, Bash, read_file, mcp__cclsp__get_hover]"
    )
    assert narrowed.agent is not None
    assert narrowed.agent.tools == ("Read", "read_file", "mcp__cclsp__get_hover")
    assert [str(each) for each in narrowed.problems] == [
        "Bash is not in the profile read-only, so it is left out"
    ]


def test_profile_of_a_local_agent_omits_tools_of_missing_servers() -> None:
    assert agent("description: d\nprofile: read-only").tools == ("Read", "Grep", "Glob")
    header = "description: d\nprofile: writer\nmcp_servers: [{name: cclsp, command: cclsp}]"
    assert "mcp__cclsp" in (agent(header).tools or ())


@pytest.mark.parametrize("line", ["profile: full-access", "profile: full-access\ntools: ['*']"])
def test_full_access_grants_everything_except_denied_tools(line: str) -> None:
    found = agent(f"description: d\n{line}\ndisallowedTools: Bash")
    assert (found.tools, found.denied_tools) == (None, ("Bash",))


def test_local_agent_without_tools_may_only_read() -> None:
    found = read("description: d")
    assert found.agent is not None
    assert found.agent.tools == DEFAULT_LOCAL_TOOLS
    assert found.origins["tools"] == "default of the executor local"
    assert agent("description: d\ndisallowed_tools: [Grep]").tools == tuple(
        tool for tool in DEFAULT_LOCAL_TOOLS if tool != "Grep"
    )


def test_preferred_executor_applies_to_files_without_one() -> None:
    text = b"---\ndescription: d\n---\n"
    chosen = FileOrigin("a", "a.md", CLAUDE, "project", executor="local")
    found = read_definition(text, chosen)
    assert found.agent is not None
    assert found.agent.executor == "local"
    assert found.origins["executor"] == "agents.executor"
    named = read_definition(b"---\ndescription: d\nexecutor: codex\n---\n", chosen)
    assert named.agent is not None
    assert named.agent.executor == "codex"


KEYS = st.sampled_from([*FIELDS_BY_KEY, "color", "nonsense", "mcpServers", "on"])
VALUES = st.one_of(
    st.sampled_from(
        ["1", "-1", "true", "~", "[]", "{}", "[[1]]", "[{a: b}]", "{a: [b]}", "{'*': false}", "1e999999999"]
    ),
    st.sampled_from(["!!int x", "!!bool x", "&a b", "'", "|\n  text", "command", "local", "allow", "[1, ~]"]),
    st.text(max_size=20),
)
HEADERS = st.lists(st.tuples(KEYS, VALUES), max_size=6).map(
    lambda pairs: "\n".join(f"{key}: {value}" for key, value in pairs).encode("utf-8", "replace")
)


@given(HEADERS | st.binary(max_size=60), st.sampled_from([NATIVE, FOLDER_PER_AGENT, CLAUDE, OPENCODE]))
def test_any_file_becomes_an_agent_or_an_error(header: bytes, form: AgentFormat) -> None:
    origin = FileOrigin("file-name", "a.md", form, "project", executor="command")
    found = read_definition(b"---\ndescription: d\n" + header + b"\n---\nbody", origin)
    assert (found.agent is None) == (found.error is not None)


def test_description_is_one_line_of_limited_length() -> None:
    """P4: the description is part of every host's instructions."""
    found = agent("description: |\n  one\n  two\n" + "  x" * 2000)
    assert "\n" not in found.description
    assert len(found.description) <= 1000


def test_mcp_server_as_an_agent_gets_its_tools_and_nothing_else() -> None:
    local = read("description: d\nmcp: npx -y server\nenv: {KEY: '${KEY}'}", body="", name="a").agent
    assert local is not None
    assert local.mcp_servers == (McpServer(name="a", argv=("npx", "-y", "server"), env={"KEY": "${KEY}"}),)
    assert (local.tools, local.env, local.permissions.allow) == (("mcp__a",), {}, ())
    assert "MCP server a" in local.prompt
    cli = read("description: d\nexecutor: claude\nmcp: https://example.org/mcp", name="a").agent
    assert cli is not None
    assert cli.mcp_servers == (McpServer(name="a", url="https://example.org/mcp"),)
    assert (cli.tools, cli.permissions.allow, cli.prompt) == (("mcp__a",), ("mcp__a",), "Do it.")


def test_mcp_server_at_a_url_takes_no_variables() -> None:
    header = "description: d\nmcp: https://example.org/mcp\nenv: {KEY: x}"
    assert errors(header) == [(4, "a URL takes no `env`; use `mcp_servers` with `headers`")]
