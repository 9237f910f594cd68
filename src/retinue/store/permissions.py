"""What people have allowed an agent for good: a small TOML file that they can read, change and delete.

    [agents]
    "web-search" = ["Bash(curl -s https://example.org)"]

Knows nothing of who asks, or of what a rule means.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from retinue.core import ConfigInvalid, Unavailable
from retinue.store.file_lock import FileLock

HEADING = """\
# What you allowed agents for good, by answering "always". Retinue reads it at every question: change or
# delete lines as you like. A rule can be made wider, such as "Bash(curl:*)".

[agents]
"""
LOCK_SECONDS = 5.0


PERMISSIONS_FILE = "permissions.toml"


class RememberedPermissions:
    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, agent: str) -> tuple[str, ...]:
        """The rules of one agent, as the file has them now."""
        return tuple(self._read().get(agent, ()))

    def everyone(self) -> Mapping[str, Sequence[str]]:
        """The rules of all agents that have any."""
        return {agent: rules for agent, rules in self._read().items() if rules}

    def add(self, agent: str, rule: str) -> None:
        """Remember a rule, beside whatever other processes and people write."""
        with self._held():
            rules = self._read()
            if rule not in rules.setdefault(agent, []):
                rules[agent].append(rule)
                self._write(rules)

    def remove(self, agent: str, rule: str | None = None) -> Sequence[str]:
        """Remember one of an agent's rules no longer, or none of them; those that went."""
        with self._held():
            rules = self._read()
            gone = [each for each in rules.get(agent, []) if rule is None or each == rule]
            if gone:
                rules[agent] = [each for each in rules[agent] if each not in gone]
                self._write({name: kept for name, kept in rules.items() if kept})
            return gone

    @contextmanager
    def _held(self) -> Generator[None]:
        lock = FileLock(self.path.with_suffix(".lock"))
        try:
            if not lock.acquire(LOCK_SECONDS):
                raise Unavailable(f"{self.path.name} is locked by another process", hint="try again")
            yield
        finally:
            lock.close()

    def _read(self) -> dict[str, list[str]]:
        try:
            parsed = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._wrong(str(error)) from None
        agents: object = parsed.get("agents", {})
        if not isinstance(agents, dict):
            raise self._wrong("[agents] is not a table")
        for agent, rules in cast("dict[str, Any]", agents).items():
            if not isinstance(rules, list) or not all(
                isinstance(rule, str) for rule in cast("list[Any]", rules)
            ):
                raise self._wrong(f"{agent} is not a list of rules")
        return cast("dict[str, list[str]]", agents)

    def _write(self, rules: dict[str, list[str]]) -> None:
        lines = [f"{_text(agent)} = [{', '.join(map(_text, rules[agent]))}]\n" for agent in sorted(rules)]
        draft = self.path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        draft.write_text(HEADING + "".join(lines), encoding="utf-8")
        draft.replace(self.path)

    def _wrong(self, reason: str) -> ConfigInvalid:
        """Nothing is allowed by a file that cannot be understood."""
        return ConfigInvalid(
            f"{self.path.name} cannot be read: {reason}",
            hint="correct the file in the data folder, or delete it",
        )


def _text(text: str) -> str:
    """A TOML string: JSON's, with the one control character that JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
