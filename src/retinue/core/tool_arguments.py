"""The arguments of the tools of coding CLIs: which ones a tool acts on, and which do not matter to rules.

One table covers Claude Code, Codex, Gemini, opencode and programs that speak ACP, because their tools differ
only in the names of arguments. Knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

SubjectKind = Literal["command", "file", "folder", "address", "name"]
"""What a tool acts on. A `folder` is one whose contents are listed or searched."""


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """The arguments of one tool."""

    kind: SubjectKind
    subjects: tuple[str, ...]
    """The arguments that the tool acts on, by the names that the CLIs give them."""
    others: frozenset[str] = frozenset()
    """The arguments that change nothing about what the tool acts on."""


def _tool(kind: SubjectKind, subjects: str, others: str = "") -> ToolArguments:
    return ToolArguments(kind, tuple(subjects.split()), frozenset(others.split()))


_EDIT = (
    "old_string new_string replace_all oldString newString replaceAll content instruction edits "
    "expected_replacements allow_multiple modified_by_user ai_proposed_content"
)
TOOL_ARGUMENTS: Mapping[str, ToolArguments] = {
    "Bash": _tool(
        "command", "command cmd", "description timeout run_in_background is_background directories patterns"
    ),
    "Edit": _tool("file", "file_path filePath", _EDIT),
    "Write": _tool("file", "file_path filePath", _EDIT),
    "MultiEdit": _tool("file", "file_path filePath", _EDIT),
    "NotebookEdit": _tool("file", "notebook_path", "new_source cell_id cell_type cell_number edit_mode"),
    "Read": _tool("file", "file_path filePath absolute_path", "offset limit pages start_line end_line"),
    "NotebookRead": _tool("file", "notebook_path", "cell_id"),
    "LS": _tool(
        "folder", "path dir_path", "ignore respect_git_ignore respect_gemini_ignore file_filtering_options"
    ),
    "Glob": _tool(
        "folder", "path dir_path pattern", "case_sensitive respect_git_ignore respect_gemini_ignore"
    ),
    "Grep": _tool(
        "folder",
        "path dir_path",
        "pattern glob include include_pattern exclude_pattern type output_mode -A -B -C -n -i -o head_limit "
        "multiline offset context after before case_sensitive fixed_strings no_ignore names_only "
        "max_matches_per_file total_max_matches",
    ),
    "WebFetch": _tool("address", "url", "prompt format timeout"),
    "WebSearch": _tool("name", "query", "allowed_domains blocked_domains numResults type livecrawl"),
    "Task": _tool("name", "subagent_type agent_name", "description prompt model run_in_background"),
    "Agent": _tool("name", "subagent_type agent_name", "description prompt model run_in_background"),
    "Skill": _tool("name", "skill", "args"),
}
"""The tools whose arguments rules understand, by the names that rules use."""

EDITING_TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
READING_TOOLS = frozenset({"Read", "NotebookRead", "LS", "Glob", "Grep"})
FOLDER_ARGUMENTS = ("workdir", "directory", "dir_path", "cwd")
"""Arguments of a command that say in which folder it runs."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """The arguments that a call acts on: commands, paths and addresses."""

    targets: tuple[str, ...]
    """The values that the tool acts on."""
    suspects: tuple[str, ...]
    """The texts in arguments that are not in the table: the tool may act on them, too."""
    named: str | None
    """The argument that the first target comes from."""


def find_subjects(tool: str, arguments: Mapping[str, object], folder: str) -> Subjects | None:
    """Return what a call acts on; None if the tool is not in the table."""
    shape = TOOL_ARGUMENTS.get(tool)
    if shape is None:
        return None
    targets: dict[str, str] = {}
    suspects: list[str] = []
    for name, value in arguments.items():
        if value is None or value == "":
            continue
        if name in shape.others:
            suspects += _unknown_members(value, shape.others)
        elif name in shape.subjects and isinstance(value, str):
            targets[name] = value
        elif not (shape.kind == "command" and _is_folder(name, value, folder)):
            suspects += _texts(value) if name in shape.subjects else [name, *_texts(value)]
    if tool == "Glob":
        targets = _glob_folders(targets)
    if not targets and shape.kind == "folder":
        return Subjects((".",), tuple(suspects), None)
    if not targets and tool == "WebFetch":
        suspects += ["url", *_texts(arguments.get("prompt"))]  # Gemini finds the addresses in the prompt
    first = next((name for name in shape.subjects if name in targets), None)
    ordered = dict.fromkeys([targets[first], *targets.values()] if first else ())
    return Subjects(tuple(ordered), tuple(suspects), first)


def _unknown_members(value: object, known: frozenset[str]) -> Iterator[str]:
    """Yield the members of an argument that are not in the table, and their texts."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += cast("list[object]", each)
        elif isinstance(each, Mapping):
            for name, member in cast("Mapping[str, object]", each).items():
                if name in known:
                    waiting.append(member)
                else:
                    yield from (name, *_texts(member))


def _is_folder(name: str, value: object, folder: str) -> bool:
    """Whether an argument names the run's own folder."""
    if name not in FOLDER_ARGUMENTS or not isinstance(value, str) or not folder:
        return False
    try:
        return Path(folder, value).resolve() == Path(folder).resolve()
    except (OSError, ValueError, RuntimeError):
        return False


def _glob_folders(targets: Mapping[str, str]) -> dict[str, str]:
    """Return the folder that a glob looks in."""
    folder = targets.get("path") or targets.get("dir_path") or "."
    found = {name: value for name, value in targets.items() if name != "pattern"} or {"path": "."}
    if pattern := targets.get("pattern"):
        fixed: list[str] = []
        for part in pattern.split("/")[:-1]:
            if set(part) & set("*?[{"):
                break
            fixed.append(part)
        if fixed or ".." in pattern:
            found["pattern"] = str(Path(folder, "/".join(fixed) or ("/" if fixed else "")))
            if ".." in pattern.split("/")[len(fixed) :]:
                found["pattern"] = "/"
    return found


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, and its words if it has several."""
    waiting, count = [value], 0
    while waiting and count < 1_000:
        each = waiting.pop()
        count += 1
        if isinstance(each, str):
            yield each
            yield from each.split()[:200] if len(each.split(maxsplit=1)) > 1 else ()
        elif isinstance(each, Mapping):
            waiting += [
                *cast("Mapping[object, object]", each).keys(),
                *cast("Mapping[object, object]", each).values(),
            ]
        elif isinstance(each, list | tuple):
            waiting += cast("list[object]", each)
