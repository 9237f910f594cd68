"""Which tools an agent gets, by their names. Knows no tool itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from retinue.core import FOREIGN_TOOLS, MCP_PREFIX, TOOL_SYNONYMS

FALLBACK = "read_file"
"""What an agent may call when nothing of its own list is left."""

Allows = Callable[[str], bool]
"""Whether a tool may be called, by its own name."""


@dataclass(frozen=True, slots=True)
class Withheld:
    name: str
    """As it was asked for."""
    why: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The effective tools of an agent, and those that it does not get (P8)."""

    names: tuple[str, ...]
    withheld: tuple[Withheld, ...] = ()

    def sentence(self) -> str:
        """For people; empty if everything that was asked for is there."""
        return "; ".join(f"no {one.name}: {one.why}" for one in self.withheld)


def own_name(asked: str) -> str:
    """Our name for a tool, whatever it was called."""
    asked = asked.strip()
    return asked if asked.startswith(MCP_PREFIX) else TOOL_SYNONYMS.get(asked.lower(), asked.lower())


def allow_all(name: str) -> bool:
    """Allows any tool."""
    return True


def select_tools(
    asked: Iterable[str] | None, existing: Collection[str], allows: Allows = allow_all
) -> Selection:
    """The tools that are asked for, exist and are allowed. None asks for all that exist.

    An agent without any could only guess, so it is given `read_file`, unless that is not allowed.
    """
    names: dict[str, None] = {}
    withheld: list[Withheld] = []
    for each in existing if asked is None else asked:
        name = own_name(each)
        if why := _obstacle(name, existing, allows):
            withheld.append(Withheld(each, why))
        else:
            names[name] = None
    if not names and FALLBACK in existing and allows(FALLBACK):
        names[FALLBACK] = None
    return Selection(tuple(names), tuple(withheld))


def add_server_tools(asked: Sequence[str] | None, offered: Sequence[str]) -> Sequence[str] | None:
    """The tools an agent asks for once its own MCP servers have said what they offer.

    Servers are the agent's own, so all they offer is asked for, unless its list names some of it.
    """
    if asked is None:
        return None
    if not any(name.startswith(MCP_PREFIX) for name in asked):
        return [*asked, *offered]
    wanted: list[str] = []
    for name in asked:
        meant = [one for one in offered if one == name or one.startswith(f"{name}__")]
        wanted += meant or [name]
    return wanted


def _obstacle(name: str, existing: Collection[str], allows: Allows) -> str | None:
    if "(" in name:
        return "permissions for a part of a tool are not known here, and the whole was not asked for"
    if name in FOREIGN_TOOLS:
        return "agents of the local executor cannot do this"
    if name not in existing:
        return "there is no such tool"
    return None if allows(name) else "it is not allowed"
