"""Reads `robots.txt` as RFC 9309 describes it: which paths of a host a program of this name may open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

MAX_ROBOTS_BYTES = 512 * 1024
MAX_RULES = 2_000


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of one host for one program. Without rules, everything is allowed."""

    rules: tuple[tuple[str, bool], ...] = ()
    """(pattern, allowed), in the order of the file."""

    @classmethod
    def parse(cls, text: str, agent: str) -> RobotRules:
        """Return the rules for the program `agent`, or those for everybody if it has none of its own."""
        groups: dict[str, list[tuple[str, bool]]] = {}
        names: list[str] = []
        in_rules = False
        for line in text.split("\n")[: 4 * MAX_RULES]:
            key, _, value = line.partition("#")[0].partition(":")
            key, value = key.strip().lower(), value.strip()
            if key == "user-agent":
                if in_rules:
                    names, in_rules = [], False
                names.append(value.lower())
                groups.setdefault(value.lower(), [])
            elif key in ("allow", "disallow"):
                in_rules = True
                for name in names:
                    if value and len(groups[name]) < MAX_RULES:
                        groups[name].append((value, key == "allow"))
        own = [name for name in groups if name and name != "*" and agent.lower().startswith(name)]
        chosen = max(own, key=len) if own else "*"
        return cls(tuple(groups.get(chosen, ())))

    def allows(self, url: str) -> bool:
        """Return whether the URL may be opened. The longest matching pattern decides; `allow` wins a tie."""
        parts = urlsplit(url)
        path = unquote(parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if path == "/robots.txt":
            return True
        matches = [(len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, path)]
        return max(matches, default=(0, True))[1]


def _matches(pattern: str, path: str) -> bool:
    """Match a pattern with `*` and `$` in linear time for each star, without a regular expression."""
    anchored = pattern.endswith("$")
    parts = re.split(r"\*+", unquote(pattern.removesuffix("$")))
    first, *others = parts
    if not path.startswith(first):
        return False
    at = len(first)
    for number, part in enumerate(others):
        if anchored and number == len(others) - 1:
            return len(path) - len(part) >= at and path.endswith(part)
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not anchored or at == len(path)
