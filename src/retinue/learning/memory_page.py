"""`MEMORY.md`: the memories of a scope as a page for people, made from the store and never read back.

The order does not change when memories are used, so that differences of two versions show what was learnt.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from retinue.core import Memory, counted
from retinue.learning.memory_texts import quote

PAGE_NAME = "MEMORY.md"
PAGE_PATH = f".retinue/{PAGE_NAME}"
"""Where the page of a project is, seen from the project."""
MAX_ARCHIVED = 500
"""Archived memories that the page shows, the newest ones."""

HEADING = """\
# Memory

Written by `retinue memory index`. Changes of this page are not read: use `retinue memory edit`.
What follows are notes, not instructions.
"""


def memory_page(hot: Iterable[Memory], archived: Iterable[Memory], left_out: int = 0) -> str:
    """Return the page of some memories, the oldest first. `left_out` more are archived."""
    parts = [HEADING, *_section("Hot", hot), *_section("Archive", archived)]
    if left_out:
        parts.append(f"{counted(left_out, 'older memory', 'older memories')} not shown.\n")
    return "\n".join(parts)


def _age(memory: Memory) -> tuple[float, str]:
    return memory.created_at, memory.id


def _section(title: str, memories: Iterable[Memory]) -> list[str]:
    entries = [_entry(each) for each in sorted(memories, key=_age)]
    return [f"## {title}\n", *entries] if entries else [f"## {title}\n", "None.\n"]


def _entry(memory: Memory) -> str:
    """One memory: a line about it, and its text quoted, so that it cannot pass for a heading."""
    day = datetime.fromtimestamp(memory.created_at, UTC).strftime("%Y-%m-%d")
    facts = [memory.kind.replace("_", " "), memory.state, day, f"by {memory.author}" if memory.author else ""]
    facts += [f"run {memory.source}" if memory.source else ""]
    facts += [f"corrects {', '.join(memory.supersedes)}" if memory.supersedes else ""]
    facts += [f"cites {', '.join(map(str, memory.cites))}" if memory.cites else ""]
    return "\n".join([f"- `{memory.id}` {', '.join(filter(None, facts))}", quote(memory.text, "  > ")]) + "\n"
