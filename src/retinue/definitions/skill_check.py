"""Checks the file of a skill, and reports each problem with its line.

`NAME/SKILL.md` must follow the agentskills format. `NAME.md` may have `triggers` in its header, or no header.
Knows nothing of folders, of approvals or of secrets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from retinue.core import counted, escape_invisible_characters
from retinue.definitions.frontmatter import FENCE, parse_markdown
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition, did_you_mean
from retinue.definitions.skill_files import MAX_DESCRIPTION_CHARS, TRIGGER_KEYS, split_skill
from retinue.definitions.value_readers import read_words
from retinue.definitions.yaml_tree import NodeEntry, ScalarNode, TableNode, read_yaml

MAX_NAME_CHARS = 64
MAX_COMPATIBILITY_CHARS = 500
MAX_BODY_LINES = 500
"""The format recommends shorter bodies: each is read as a whole by whoever uses the skill."""
MIN_TRIGGER_CHARS = 3
KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The keys of the agentskills format."""
CLAUDE_KEYS = frozenset(
    {
        *("agent", "argument-hint", "arguments", "context", "disable-model-invocation", "effort", "hooks"),
        *("model", "paths", "shell", "user-invocable", "when_to_use"),
    }
)
"""Keys that only Claude Code knows. They are ignored: none of them grants anything here."""


def check_skill(data: bytes, name: str, *, is_folder: bool) -> list[DefinitionProblem]:
    """Return all problems of a skill's file, by line. `name` is that of its folder, or of the file."""
    return sorted(_problems(data, name, is_folder), key=lambda problem: (problem.line, problem.message))


def _problems(data: bytes, name: str, is_folder: bool) -> Iterator[DefinitionProblem]:
    if not is_folder and not data.lstrip(b"\xef\xbb\xbf").startswith(FENCE.encode()):
        yield from _plain_problems(data)
        return
    try:
        document = parse_markdown(data, lenient=True)
        lines = re.split(r"\r\n|\n|\r", data.decode("utf-8-sig"))
    except MalformedDefinition as error:
        yield from error.problems
        return
    yield from document.warnings
    header = document.header
    if is_folder and not document.warnings:
        try:
            read_yaml("\n".join(lines[1 : document.body_line - 2]), 2, strict=True)
        except MalformedDefinition as error:
            yield from error.problems
            return
    elif is_folder:  # what is not quite YAML does not follow the format
        yield from (DefinitionProblem(each.line, "not valid YAML", each.hint) for each in document.warnings)
    yield from _key_problems(header, is_folder=is_folder)
    yield from _name_problems(header, name, is_folder=is_folder)
    yield from _description_problems(header)
    if (entry := header.entries.get("compatibility")) is not None:
        if not isinstance(entry.value, ScalarNode):
            yield DefinitionProblem(entry.line, "compatibility: expected text")
        elif len(entry.value.text) > MAX_COMPATIBILITY_CHARS:
            length = f"compatibility has {len(entry.value.text)} characters"
            yield DefinitionProblem(entry.line, length, f"at most {MAX_COMPATIBILITY_CHARS} are allowed")
    yield from _trigger_problems(header)
    yield from _body_problems(lines[document.body_line - 1 :], document.body_line)


def _plain_problems(data: bytes) -> Iterator[DefinitionProblem]:
    """Yield the problems of a file without a header."""
    try:
        _, body = split_skill(data)
    except MalformedDefinition as error:
        yield from error.problems
        return
    hint = "its first line describes it; `name`, `description` and `triggers` would help to find it"
    yield DefinitionProblem(1, "there is no header", hint, fatal=False)
    yield from _body_problems(body.split("\n"), 1)


def _key_problems(header: TableNode, *, is_folder: bool) -> Iterator[DefinitionProblem]:
    known = KEYS if is_folder else (*KEYS, *TRIGGER_KEYS)
    for key, entry in header.entries.items():
        if key in CLAUDE_KEYS:
            yield DefinitionProblem(entry.line, f"{key} is known to Claude Code only", "ignored", fatal=False)
        elif key not in known:
            hint = did_you_mean(key, known)
            if key in TRIGGER_KEYS:
                hint = (
                    f"the agentskills format has them in `metadata`: write `metadata:`, then `  {key}: ...`"
                )
            yield DefinitionProblem(entry.line, f"there is no key {key[:80]!r}", hint, fatal=is_folder)


def _name_problems(header: TableNode, folder: str, *, is_folder: bool) -> Iterator[DefinitionProblem]:
    entry = header.entries.get("name")
    if entry is None:
        if is_folder:
            yield DefinitionProblem(1, "there is no name", f"write `name: {folder}`")
        return
    text = _scalar_text(entry)
    if not text.strip():
        yield DefinitionProblem(entry.line, "name: expected text")
        return
    name = unicodedata.normalize("NFKC", text.strip())
    if len(name) > MAX_NAME_CHARS:
        yield DefinitionProblem(
            entry.line, f"the name has {len(name)} characters", f"at most {MAX_NAME_CHARS} are allowed"
        )
    well_formed = all(each.isalnum() or each == "-" for each in name) and name == name.lower()
    if not well_formed or name[0] == "-" or name[-1] == "-" or "--" in name:
        hint = "use lower-case letters, digits and single hyphens between them"
        yield DefinitionProblem(entry.line, f"{name[:80]!r} is not a valid name", hint)
    if is_folder and unicodedata.normalize("NFKC", folder) != name:
        yield DefinitionProblem(
            entry.line, f"the name {name[:80]!r} is not that of the folder, {folder!r}", "rename one of them"
        )


def _description_problems(header: TableNode) -> Iterator[DefinitionProblem]:
    entry = header.entries.get("description")
    if entry is None:
        yield DefinitionProblem(1, "there is no description", "say what the skill does and when to use it")
        return
    text = _scalar_text(entry)
    if not text.strip():
        yield DefinitionProblem(entry.line, "description: expected text")
    elif len(text) > MAX_DESCRIPTION_CHARS:
        length = f"the description has {len(text)} characters"
        yield DefinitionProblem(entry.line, length, f"at most {MAX_DESCRIPTION_CHARS} are allowed")


def _trigger_problems(header: TableNode) -> Iterator[DefinitionProblem]:
    """Yield triggers that would never match, or would match almost every task."""
    more = header.entries.get("metadata")
    for table in (header, more.value if more is not None else None):
        for key, entry in table.entries.items() if isinstance(table, TableNode) else ():
            if key not in TRIGGER_KEYS:
                continue
            try:
                words = read_words(entry.value)
            except MalformedDefinition as error:
                yield DefinitionProblem(error.problem.line, f"{key}: {error.problem.message}", fatal=False)
                continue
            for word in words:
                if sum(map(str.isalnum, word)) < MIN_TRIGGER_CHARS:
                    hint = "use a word or phrase that only fitting tasks contain"
                    yield DefinitionProblem(
                        entry.line, f"the trigger {word[:80]!r} is too short", hint, fatal=False
                    )


def _body_problems(lines: list[str], first_line: int) -> Iterator[DefinitionProblem]:
    if not any(map(str.strip, lines)):
        yield DefinitionProblem(first_line, "there are no instructions below the header", fatal=False)
    if len(lines) > MAX_BODY_LINES:
        found = f"the instructions have {counted(len(lines), 'line')}"
        hint = f"keep them below {MAX_BODY_LINES}: move details to files beside SKILL.md, and name these"
        yield DefinitionProblem(first_line, found, hint, fatal=False)
    for number, line in enumerate(lines, first_line):
        if escape_invisible_characters(line) != line:
            hint = "remove it: a reader does not see what a model reads"
            yield DefinitionProblem(number, "an invisible character", hint, fatal=False)
            return


def _scalar_text(entry: NodeEntry) -> str:
    return entry.value.text if isinstance(entry.value, ScalarNode) else ""
