"""Profiles: named sets of tools. Four are built in; files of the user and of projects can add more.

A profile of a project counts for the agents of that project only. If the project is not trusted, its profiles
can only narrow: they keep nothing but tools that read, and cannot take the name of another profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from retinue.definitions.frontmatter import parse_markdown
from retinue.definitions.problems import MalformedDefinition, did_you_mean
from retinue.definitions.sub_agent_files import profile_with_header
from retinue.definitions.tool_rules import ALL_TOOLS, restrict_to
from retinue.definitions.value_readers import read_text, read_words

CODE_LOOKUP_TOOLS = ("find_definition", "find_references", "get_hover", "find_workspace_symbols")


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of tools."""

    name: str
    description: str
    tools: tuple[str, ...]
    """Names of tools. `*` matches anything."""
    source: str = "built in"
    untrusted: tuple[str, ...] = ()
    """Tools that the profile names and that count only after the project is trusted."""


READ_ONLY = Profile(
    "read-only",
    "Read and search, change nothing",
    ("Read", "Grep", "Glob", *(f"mcp__cclsp__{name}" for name in CODE_LOOKUP_TOOLS)),
)
DEFAULT_LOCAL_TOOLS = ("Read", "Grep", "Glob", "LS", "outline", "ask_parent")
"""Retinue's own reading tools, which an agent of the executor `local` gets if it lists none."""
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
FULL_ACCESS = Profile("full-access", "Every tool, including starting other agents", ("*", "Task"))

BUILTIN_PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (READ_ONLY, RESEARCH, WRITER, FULL_ACCESS)
}

PROFILE_KEYS = ("name", "description", "tools", "use_cases")


def read_profile(data: bytes, name: str, source: str) -> Profile:
    """Read a profile's file, with `name`, `description` and `tools` in its header."""
    header = parse_markdown(profile_with_header(data)).header
    for key, entry in header.entries.items():
        if key not in PROFILE_KEYS:
            raise MalformedDefinition(
                entry.line, f"a profile has no key {key!r}", did_you_mean(key, PROFILE_KEYS)
            )
    entries = header.entries
    if "tools" not in entries:
        raise MalformedDefinition(1, "a profile needs `tools`", "list the tools, such as `tools: Read, Grep`")
    return Profile(
        read_text(entries["name"].value) if "name" in entries else name,
        read_text(entries["description"].value) if "description" in entries else "",
        tuple("*" if tool.lower() in ALL_TOOLS else tool for tool in read_words(entries["tools"].value)),
        source,
    )


def narrow_to_reading(profile: Profile) -> Profile:
    """Return a profile of an untrusted project with its reading tools only."""
    kept = restrict_to(profile.tools, (*READ_ONLY.tools, *DEFAULT_LOCAL_TOOLS))
    return replace(profile, tools=kept, untrusted=tuple(tool for tool in profile.tools if tool not in kept))
