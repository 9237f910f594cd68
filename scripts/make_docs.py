"""Generates the pages that follow from the code: settings, commands, errors, tools, modules, hostile models,
and the example in the README.

python -m scripts.make_docs          write them into docs/
python -m scripts.make_docs --check  fail if one of them is stale
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import click
import starlette
from click.testing import CliRunner
from mcp import Client

from retinue.cli.main import COMMANDS, EXIT_CODES, main
from retinue.config import LoadedSettings, Settings, settings as settings_module
from retinue.config.load import variable_name
from retinue.config.setting_rows import build_settings, named_table_type, setting_rows
from retinue.config.settings import NetworkSettings
from retinue.core import RunId, errors
from retinue.server import build_server
from retinue.server.mcp_server import RetinueServer
from retinue.server.surface import build_child_server
from retinue.server.tool_call_arguments import SAME_ARGUMENTS
from retinue.service import Service
from retinue.wiring import build_service
from scripts import hostile_models

DOCS = Path(__file__).parent.parent / "docs"
PACKAGE = DOCS.parent / "src" / "retinue"


def explanations() -> dict[str, str]:
    """The description below each field, by class and field."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(settings_module)).body:
        if isinstance(node, ast.ClassDef):
            for field, text in zip(node.body, node.body[1:], strict=False):
                match field, text:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str() as sentence)),
                    ):
                        found[f"{node.name}.{name}"] = " ".join(sentence.split())
                    case _:
                        pass
    return found


def default_of(key: str) -> str:
    if setting_rows()[key].bounds["required"]:
        return "required"
    if key == "data_dir":
        return "default: the platform's data folder"
    sample = build_settings(
        {required: "" for required, row in setting_rows().items() if row.bounds["required"]}
    )
    value: Any = sample
    for part in key.split("."):
        value = value["*"] if part == "*" else getattr(value, part)
    return f"default `{value!r}`"


def owner_of(key: str) -> str:
    """The class that a setting is a field of."""
    kind: Any = Settings
    for part in key.split(".")[:-1]:
        hint = get_type_hints(kind)[part] if part != "*" else kind
        kind = named_table_type(hint) or hint
    return kind.__name__


def settings_page() -> str:
    sentences = explanations()
    lines = [
        "# Settings",
        "",
        "Settings come from the project's `retinue.toml`, then from your own, then from environment",
        "variables, then from flags; the later one wins. `retinue config` shows each effective value and its",
        "origin. In a project's file, settings marked *user only* are ignored, and some others may only be",
        "narrowed: set to a smaller number or a part of the default list. A warning names what is ignored.",
        "Settings marked *your own file* are taken from your own settings file alone.",
        "`retinue config set` changes one. In a variable, the items of a list are separated by commas:",
        "`RETINUE_TOOLS__GROUPS=core,research`. Keys may be in camelCase (`maxFilesRead`). A settings file",
        "may have up to 262,144 bytes.",
    ]
    for key, row in setting_rows().items():
        sentence = sentences[f"{owner_of(key)}.{key.rpartition('.')[2]}"]
        lines += ["", f"## `{key.replace('*', 'NAME')}`", "", sentence, ""]
        marks = {"ignored": "; *user only*", "narrow": "; *projects may only narrow it*", "set": ""}
        marks |= {
            "user_file": "; *your own file only*",
            "restrict": "; *your own file; others may only restrict it*",
        }
        lines.append(f"- takes {row.allowed}; {default_of(key)}{marks[row.project]}")
        if "*" not in key and row.project != "user_file":
            lines.append(f"- environment: `{variable_name(key)}`")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    lines = [
        "# Commands",
        "",
        "The output of `retinue COMMAND --help`. Run ids may be shortened to four letters or",
    ]
    lines += [
        "more from their beginning or end, as long as they mean one run.",
        "",
        "```text",
        EXIT_CODES,
        "```",
    ]

    def describe(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
        context = click.Context(command, info_name=path.split()[-1], parent=parent, max_content_width=100)
        yield from ["", f"## `{path}`", "", "```text", command.get_help(context), "```"]
        if isinstance(command, click.Group) and command is not main:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from describe(below, f"{path} {name}", context)

    top = click.Context(main, info_name="retinue", **main.context_settings)
    for name in COMMANDS:
        command = main.get_command(top, name)
        assert command is not None
        lines += describe(command, f"retinue {name}", top)
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        "If a tool fails, its answer has `isError`, and its text is the JSON",
        '`{"error": {code, message, hint?, data?}}`.',
        "Commands with `--json` print the same JSON. `structuredContent` contains it too, unless the tool",
        "has an output schema of its own: clients validate errors against that schema. The codes are stable.",
        "",
        "```text",
        str(errors.__doc__).split("\n\n")[1],
        "```",
    ]
    return "\n".join(lines) + "\n"


def tools_page() -> str:
    loaded = LoadedSettings(Settings(network=NetworkSettings(web=True)), {})
    service = build_service(loaded)

    @asynccontextmanager
    async def not_up(given: Service) -> AsyncGenerator[Service]:
        yield given

    async def listed(server: RetinueServer) -> list[Any]:
        async with Client(server) as client:
            return list((await client.list_tools()).tools)

    lines = ["# Tools", "", 'The tools that a host gets if all groups are on (`tools.groups = ["all"]`).']
    lines += ["`web_research`, and `web` of `research_codebase`, are there only if `network.web` is on."]
    lines += [
        "",
        "An answer comes as `structuredContent`, and as the same JSON in the text, for hosts of every era.",
    ]
    lines += ["The hosts that `make test-hosts` starts show their model one of them; Cline CLI shows both."]
    lines += ["", "Every tool accepts all names that our tools have for the same argument:"]
    same = [", ".join(f"`{name}`" for name in names) for names in SAME_ARGUMENTS]
    lines += [f"{'; '.join(same)}."]
    lines += tool_sections(anyio.run(listed, build_server(service, ("all",), not_up)))
    lines += ["", "# Tools of a run's own processes", "", "The tools of `retinue child`, for one run."]
    child = build_child_server(
        service, RunId.new(), not_up, spawns=0, has_memory=True, has_skills=True, remembers=True
    )
    lines += tool_sections(anyio.run(listed, child))
    return "\n".join(lines) + "\n"


def tool_sections(tools: list[Any]) -> Iterator[str]:
    for tool in tools:
        yield from ["", f"## `{tool.name}`", "", tool.description, ""]
        required = tool.input_schema.get("required", [])
        for name, schema in tool.input_schema["properties"].items():
            kind = schema.get("type") or " or ".join(
                option.get("type", "") for option in schema.get("anyOf", [])
            )
            about = f": {schema['description']}" if "description" in schema else ""
            yield f"- `{name}` ({kind}{', required' if name in required else ''}){about}"


def first_paragraph(module: Path) -> str:
    """What the docstring of a module says first."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def modules_page() -> str:
    lines = [
        "# Modules",
        "",
        "What the docstring of every module says first. [ARCHITECTURE.md](../ARCHITECTURE.md) explains how",
        "the packages work together; `make docs` updates this page.",
    ]
    for door in [PACKAGE / "__init__.py", *sorted(PACKAGE.glob("*/__init__.py"))]:
        folder = door.parent
        modules = sorted(folder.glob("*.py") if folder == PACKAGE else folder.rglob("*.py"))
        lines += ["", f"## `{folder.name}`", first_paragraph(door), ""]
        lines += [
            f"- `{module.relative_to(folder).as_posix()}`: {first_paragraph(module)}"
            for module in modules
            if module.name != "__init__.py"
        ]
    return "\n".join(lines) + "\n"


EXAMPLE = re.compile(r"(?<=<!-- example -->\n).*?(?=<!-- end of example -->)", re.DOTALL)
QUESTION = "where are range requests for files answered?"


def readme_page() -> str:
    """The README with what the command of its example prints."""
    arguments = ["locate", QUESTION, "--root", "starlette", "--limit", "3"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(Path(starlette.__file__).parent.parent):
        variables = {"HOME": folder, "RETINUE_DATA_DIR": folder}
        variables["RETINUE_RUNTIME__DEFAULT_DEADLINE_MS"] = "600000"  # a busy machine prints the same
        printed = CliRunner(env=variables).invoke(main, arguments, catch_exceptions=False)
    command = " ".join(f'"{word}"' if " " in word else word for word in arguments)
    example = f"```console\n$ retinue {command}\n{printed.stdout}```\n"
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    return EXAMPLE.sub(lambda _: example, readme)


PAGES = {
    "../README.md": readme_page,
    "settings.md": settings_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "tools.md": tools_page,
    "modules.md": modules_page,
    "hostile-models.md": hostile_models.page,
}


def run(check: bool) -> int:
    stale: list[str] = []
    for name, make in PAGES.items():
        page = DOCS / name
        text = make()
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                page.write_text(text, encoding="utf-8")
    if check and stale:
        print("stale: " + ", ".join(stale) + "; run `make docs`", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(run("--check" in sys.argv[1:]))
