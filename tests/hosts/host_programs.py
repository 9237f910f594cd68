"""How each host is set up for a stub of its model, started with one prompt, and what it calls our tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.clis.replies import Use

RUNS = "retinue://runs"


@dataclass(frozen=True)
class HostProgram:
    name: str
    """As in `retinue install NAME`."""
    package: str
    """Its name on npm."""
    argv: tuple[str, ...]
    """Its command line; the prompt follows."""
    tool: str
    """What the host puts before the name of our tool."""
    env: Callable[[str], dict[str, str]]
    """Variables for a model at this address."""
    settings: Callable[[str], tuple[str, str]]
    """Its own file in the home folder before `retinue install`, for a model at this address."""
    trust: Callable[[Path, Path], None] | None = None
    """Lets the host of a home folder read the files of a project, if it asks its user first."""
    trust_command: tuple[str, ...] = ()
    """What its user runs in a project instead."""
    reads: Callable[[str], Use] | None = None
    """How its model reads a resource. None if it has no tool for that."""

    def call(self, tool: str, **arguments: object) -> Use:
        """A call of one of our tools, as the host's model makes it."""
        return Use(self.tool + tool, json.loads(json.dumps(arguments)))

    def write_settings(self, home: Path, url: str) -> None:
        name, text = self.settings(url)
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _codex_settings(url: str) -> tuple[str, str]:
    text = (
        '# mine\nmodel = "stub"\nmodel_provider = "stub"\n\n[model_providers.stub]\nname = "stub"\n'
        f'base_url = "{url}/v1"\nenv_key = "STUB_KEY"\nwire_api = "responses"\n'
    )
    return ".codex/config.toml", text


def _trust_for_codex(home: Path, project: Path) -> None:
    with (home / ".codex" / "config.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[projects."{project}"]\ntrust_level = "trusted"\n')


def _trust_for_gemini(home: Path, project: Path) -> None:
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))


def _gemini_settings(folder: str, kind: str) -> tuple[str, str]:
    return f"{folder}/settings.json", json.dumps({"security": {"auth": {"selectedType": kind}}})


def _opencode_settings(url: str) -> tuple[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "x"}
    models = {"m1": {"name": "m1", "limit": {"context": 100_000, "output": 4_000}}}
    stub = {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": options, "models": models}
    settings = {"model": "stub/m1", "provider": {"stub": stub}}
    return ".config/opencode/opencode.json", json.dumps(settings)


CLAUDE = HostProgram(
    name="claude",
    package="@anthropic-ai/claude-code",
    argv=("claude", "--allowedTools=mcp__retinue,ReadMcpResourceTool", "-p"),
    tool="mcp__retinue__",
    env=lambda url: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    settings=lambda url: (".claude.json", "{}"),
    reads=lambda uri: Use("ReadMcpResourceTool", {"server": "retinue", "uri": uri}),
)
CODEX = HostProgram(
    name="codex",
    package="@openai/codex",
    argv=("codex", "exec", "--skip-git-repo-check"),
    tool="mcp__retinue__",
    env=lambda url: {"STUB_KEY": "x"},
    settings=_codex_settings,
    trust=_trust_for_codex,
    reads=lambda uri: Use("read_mcp_resource", {"server": "retinue", "uri": uri}),
)
GEMINI = HostProgram(
    name="gemini",
    package="@google/gemini-cli",
    argv=("gemini", "--skip-trust", "-m", "gemini-2.5-pro", "-p"),
    tool="mcp_retinue_",
    env=lambda url: {
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_NO_RELAUNCH": "true",
    },
    settings=lambda url: _gemini_settings(".gemini", "gemini-api-key"),
    trust=_trust_for_gemini,
    reads=lambda uri: Use("read_mcp_resource", {"uri": uri}),
)
OPENCODE = HostProgram(
    name="opencode",
    package="opencode-ai",
    argv=("opencode", "run"),
    tool="retinue_",
    env=lambda url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    settings=_opencode_settings,
    reads=lambda uri: Use("read_mcp_resource", {"server": "retinue", "uri": uri}),
)
QWEN = HostProgram(
    name="qwen",
    package="@qwen-code/qwen-code",
    argv=("qwen", "-p"),
    tool="mcp__retinue__",
    env=lambda url: {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "stub"},
    settings=lambda url: _gemini_settings(".qwen", "openai"),
    trust_command=("qwen", "mcp", "approve", "retinue"),
)
GOOSE = HostProgram(
    name="goose",
    package="@aaif/goose-binary-linux-x64",
    argv=("goose-binary-linux-x64", "run", "-t"),
    tool="retinue__",
    env=lambda url: {"OPENAI_API_KEY": "x", "OPENAI_HOST": url, "GOOSE_DISABLE_KEYRING": "1"},
    settings=lambda url: (
        ".config/goose/config.yaml",
        "# mine\nGOOSE_PROVIDER: openai\nGOOSE_MODEL: stub\nGOOSE_MODE: auto\n",
    ),
    reads=lambda uri: Use("extensionmanager__read_resource", {"uri": uri, "extension_name": "retinue"}),
)
COPILOT = HostProgram(
    name="copilot-cli",
    package="@github/copilot",
    argv=("copilot", "--allow-tool", "retinue", "-p"),
    tool="retinue-",
    env=lambda url: {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_MODEL": "stub",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP": "true",
    },
    # Without `mcpServers`, Copilot CLI reads no other file for servers either.
    settings=lambda url: (".copilot/mcp-config.json", '{"mcpServers": {}}'),
)
ALL = (CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, GOOSE, COPILOT)
PACKAGES = (Path(__file__).parents[1] / "clis" / "package.json", Path(__file__).with_name("package.json"))


def version_of(program: HostProgram) -> str:
    """The version that is installed for the tests."""
    pinned = [json.loads(file.read_text(encoding="utf-8"))["dependencies"] for file in PACKAGES]
    return next(versions[program.package] for versions in pinned if program.package in versions)
