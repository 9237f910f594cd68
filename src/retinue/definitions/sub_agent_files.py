"""Reads the files of `.claude/sub-agents`: templates of agents, profiles, and the protocol of handoffs.

These files are Markdown for people: a template has sections such as `## Role` and `## Profile`, and a profile
has its keys in a fenced block. They are turned into files with a header, which the other modules read. A file
that already has a header stays as it is. Knows nothing of where files are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from retinue.core import clip
from retinue.definitions.definition_files import SUB_AGENTS_FOLDER, read_definition_file
from retinue.definitions.frontmatter import FENCE
from retinue.definitions.problems import MalformedDefinition

PROTOCOL_FILE = f"{SUB_AGENTS_FOLDER}/protocols/handoff.md"
MAX_PROTOCOL_CHARS = 1_200
"""Length of a protocol that every phase of a workflow is told."""
WRITING_WORDS = frozenset({"write", "edit", "bash", "writer", "full-access", "task", "*"})
"""Tools and profiles of templates that work in a worktree, because they change something."""
_HEADING = re.compile(r"^##[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_YAML_BLOCK = re.compile(r"^```ya?ml[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROFILE = re.compile(r"([\w-]+)((?:\s*\+\s*[\w-]+)*)\s*(?:\(([^)]*)\))?", re.DOTALL)
_SERVER_TOOL = re.compile(r"mcp\W*__|mcp\*\*")


def template_with_header(data: bytes) -> bytes:
    """Return a template as an agent's file. Its sections become keys; the whole text is the prompt."""
    text = data.decode("utf-8-sig", "replace")
    if text.lstrip().startswith(FENCE):
        return data
    sections = _sections(text)
    role = sections.get("role", "").split("\n\n")[0]
    if not role:
        raise MalformedDefinition(1, "the template has no section `## Role`", "describe what the agent does")
    header = [f"description: {json.dumps(' '.join(role.split()), ensure_ascii=False)}"]
    header += _profile_lines(sections.get("profile", ""))
    return "\n".join([FENCE, *header, FENCE, text.lstrip()]).encode()


def _profile_lines(written: str) -> Iterator[str]:
    """Yield the keys for the profile line of a template, such as `read-only + Bash (Read, Bash)`."""
    found = _PROFILE.match(written.strip())
    if found is None:
        return
    name, more, listed = found[1], found[2], found[3]
    tools = [tool.strip() for tool in (listed or "").split(",") if tool.strip()]
    # The names of MCP tools come out of Markdown without their underscores, and need a server anyway.
    tools = [tool for tool in tools if not _SERVER_TOOL.match(tool)]
    if not more:
        yield f"profile: {name}"
    if tools:
        yield f"tools: {json.dumps(tools)}"
    if WRITING_WORDS & {name.lower(), *(tool.lower() for tool in tools)}:
        yield "isolation: worktree"


def profile_with_header(data: bytes) -> bytes:
    """Return a profile whose keys are in a fenced block as a file with a header."""
    text = data.decode("utf-8-sig", "replace")
    block = _YAML_BLOCK.search(text)
    if text.lstrip().startswith(FENCE) or block is None:
        return data
    return f"{FENCE}\n{block[1]}{FENCE}\n{text}".encode()


def read_protocol(project: Path) -> str:
    """Return what a project's own protocol of handoffs says, in one paragraph; empty if it has none."""
    file = project / PROTOCOL_FILE
    if not file.is_file():
        return ""
    try:
        text = read_definition_file(file, project).decode("utf-8-sig", "replace")
    except MalformedDefinition:
        return ""
    return clip(" ".join(text.split()), MAX_PROTOCOL_CHARS)


def _sections(text: str) -> Mapping[str, str]:
    """Return the text below each heading of the second level, by its name in lower case."""
    found = list(_HEADING.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {each[1].lower(): text[each.end() : end].strip() for each, end in zip(found, ends, strict=False)}
