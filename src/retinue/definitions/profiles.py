"""Profiles: named sets of tools. Four are built in; the user's own folder may hold more, or other ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retinue.definitions.frontmatter import parse
from retinue.definitions.problem import MalformedDefinition, did_you_mean
from retinue.definitions.values import text, words

LOOKUPS = ("find_definition", "find_references", "get_hover", "find_workspace_symbols")


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    description: str
    tools: tuple[str, ...]
    """Names; `*` stands for anything."""
    source: str = "built in"


READ_ONLY = Profile(
    "read-only",
    "Read and search, change nothing",
    ("Read", "Grep", "Glob", *(f"mcp__cclsp__{name}" for name in LOOKUPS)),
)
READING = ("Read", "Grep", "Glob", "LS", "outline", "ask_parent")
"""Our own tools, which change nothing: what a local agent has that names none."""
RESEARCH = Profile(
    "research",
    "Read, search, and look things up on the web",
    ("Read", "Grep", "Glob", "WebFetch", "WebSearch", "mcp__cclsp__*", "mcp__context7__*"),
)
WRITER = Profile(
    "writer",
    "Change files and run commands",
    ("Read", "Write", "Edit", "Bash", "Grep", "Glob", "mcp__cclsp__*"),
)
FULL_ACCESS = Profile("full-access", "Every tool, starting agents too", ("*", "Task"))

BUILT_IN: Mapping[str, Profile] = {
    profile.name: profile for profile in (READ_ONLY, RESEARCH, WRITER, FULL_ACCESS)
}

KEYS = ("name", "description", "tools", "use_cases")


def read_profile(data: bytes, name: str, source: str) -> Profile:
    """A profile's file: `name`, `description` and `tools` in its header."""
    header = parse(data).header
    for key, entry in header.entries.items():
        if key not in KEYS:
            raise MalformedDefinition(entry.line, f"a profile has no key {key!r}", did_you_mean(key, KEYS))
    entries = header.entries
    if "tools" not in entries:
        raise MalformedDefinition(1, "a profile needs `tools`")
    return Profile(
        text(entries["name"].value) if "name" in entries else name,
        text(entries["description"].value) if "description" in entries else "",
        words(entries["tools"].value),
        source,
    )
