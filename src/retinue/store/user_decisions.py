"""Permanent decisions of the user: trusted projects, approved skills, confirmed checks, permissions.

Each kind is a small file in the data folder that people can read, edit and delete. The files are not in the
projects, because the decisions are about what a project contains. Knows nothing of who asks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from retinue.core import ConfigInvalid, Unavailable, toml_string
from retinue.store.data_folder import make_private_folder
from retinue.store.files import hold_lock, replace_file

TRUST_FILE = "trusted-projects.json"
SKILLS_FILE = "approved-skills.json"
CHECKS_FILE = "confirmed-checks.json"
PERMISSIONS_FILE = "permissions.toml"


class _JsonFile:
    """A JSON file in the data folder. Every failure becomes `Unavailable`, with the file's name."""

    def __init__(self, data_dir: Path, name: str) -> None:
        self._path = data_dir / name
        self._parsed: tuple[str, Any] = ("null", None)
        """The last text, and what it means."""

    def read(self) -> Any:
        """The parsed content, which must not be changed; None if there is no file."""
        try:
            text = self._path.read_text(encoding="utf-8")
            if text != self._parsed[0]:
                self._parsed = (text, json.loads(text))
            return self._parsed[1]
        except FileNotFoundError:
            return None
        except ValueError:
            raise self.unusable("not JSON") from None
        except OSError as error:
            raise self.unusable(error.strerror) from None

    @contextmanager
    def changing(self) -> Generator[None]:
        """Hold the file's lock while the block reads and replaces it."""
        try:
            make_private_folder(self._path.parent)
            with hold_lock(self._path):
                yield
        except OSError as error:
            raise self.unusable(error.strerror) from None

    def replace(self, content: Any) -> None:
        replace_file(self._path, json.dumps(content, indent=2) + "\n")

    def unusable(self, reason: str | None) -> Unavailable:
        return Unavailable(
            f"{self._path.name} in the data folder cannot be used: {reason}",
            hint="correct or remove it; `retinue config` shows the data folder",
        )


class TrustedProjects:
    """The projects whose agents may do more than read, by path."""

    def __init__(self, data_dir: Path) -> None:
        self._file = _JsonFile(data_dir, TRUST_FILE)

    def __contains__(self, project: Path) -> bool:
        """Whether this very folder is trusted. A trusted folder above it does not count.

        If the file cannot be read, nothing is trusted.
        """
        with suppress(Unavailable):
            return str(project.resolve()) in self.paths()
        return False

    def paths(self) -> list[str]:
        """The absolute paths of the trusted projects, with links resolved."""
        found = self._file.read()
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._file.unusable("not a list of paths")
        return [path for path in cast("list[object]", found) if isinstance(path, str)]

    def add(self, project: Path) -> None:
        with self._file.changing():
            self._file.replace(sorted({*self.paths(), str(project.resolve())}))

    def remove(self, project: Path) -> None:
        with self._file.changing():
            self._file.replace(sorted({*self.paths()} - {str(project.resolve())}))


class Approval(NamedTuple):
    """A person's approval: the content of a skill, and the state of its file at that time."""

    digest: str
    stamp: tuple[int, ...] = ()


class ApprovedSkills:
    """The skills of projects that a person has approved, by the path of their file."""

    def __init__(self, data_dir: Path) -> None:
        self._file = _JsonFile(data_dir, SKILLS_FILE)

    def all(self) -> Mapping[str, Approval]:
        """All approvals by path. If the file cannot be used, nothing is approved."""
        with suppress(Unavailable):
            found = {path: _read_approval(each) for path, each in self._read().items()}
            return {path: each for path, each in found.items() if each is not None}
        return {}

    def find(self, path: str) -> Approval | None:
        """The approval of one skill. If the file cannot be used, nothing is approved."""
        with suppress(Unavailable):
            return _read_approval(self._read().get(path))
        return None

    def approve(self, approvals: Mapping[str, Approval]) -> None:
        """Approve these contents, in place of what was approved before."""
        with self._file.changing():
            new = {path: {"sha256": each.digest, "stamp": each.stamp} for path, each in approvals.items()}
            self._file.replace({**self._read(), **new})

    def withdraw(self, paths: Collection[str]) -> None:
        with self._file.changing():
            self._file.replace({path: each for path, each in self._read().items() if path not in paths})

    def _read(self) -> dict[str, Any]:
        found = self._file.read()
        if found is not None and not isinstance(found, dict):
            raise self._file.unusable("not a table")
        return cast("dict[str, Any]", found or {})


def _read_approval(written: Any) -> Approval | None:
    """Read one entry of the file; None if it is damaged, so that the skill needs a new approval."""
    try:
        return Approval(str(written["sha256"]), tuple(map(int, written.get("stamp", ()))))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


class ConfirmedChecks:
    """The commands that a person has confirmed as a project's checks."""

    def __init__(self, data_dir: Path) -> None:
        self._file = _JsonFile(data_dir, CHECKS_FILE)

    def commands_for(self, project: Path) -> Mapping[str, tuple[str, ...]]:
        """The confirmed commands by name; empty if nobody has confirmed any."""
        given: Any = self._all().get(str(project.resolve()), {})
        return {
            name: tuple(map(str, cast("list[Any]", argv)))
            for name, argv in cast("dict[str, Any]", given).items()
            if isinstance(argv, list) and argv
        }

    def confirm(self, project: Path, checks: Mapping[str, tuple[str, ...]]) -> None:
        """Replace the project's confirmed commands by these."""
        with self._file.changing():
            confirmed = {name: list(argv) for name, argv in checks.items()}
            self._file.replace({**self._all(), str(project.resolve()): confirmed})

    def _all(self) -> dict[str, Any]:
        found = self._file.read()
        if found is not None and not isinstance(found, dict):
            raise self._file.unusable("not a table")
        return cast("dict[str, Any]", found or {})


PERMISSIONS_HEADING = """\
# What you allowed agents for good, by answering "always". Retinue reads it at every question: change or
# delete lines as you like. A rule can be made wider, such as "Bash(curl:*)".

[agents]
"""


class RememberedPermissions:
    """The permission rules that people have granted to an agent permanently, by answering "always".

    [agents]
    "web-search" = ["Bash(curl -s https://example.org)"]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def rules_for(self, agent: str) -> tuple[str, ...]:
        """The rules of one agent, read from the file at every call."""
        return tuple(self._read().get(agent, ()))

    def all_rules(self) -> Mapping[str, Sequence[str]]:
        """The rules of every agent that has any, by agent."""
        return {agent: rules for agent, rules in self._read().items() if rules}

    def add(self, agent: str, rule: str) -> None:
        """Add a rule. The lock keeps changes that other processes make at the same time."""
        with hold_lock(self.path):
            rules = self._read()
            if rule not in rules.setdefault(agent, []):
                rules[agent].append(rule)
                self._write(rules)

    def remove(self, agent: str, rule: str | None = None) -> Sequence[str]:
        """Remove one rule of an agent, or all of them, and return those that were removed."""
        with hold_lock(self.path):
            rules = self._read()
            gone = [each for each in rules.get(agent, []) if rule is None or each == rule]
            if gone:
                rules[agent] = [each for each in rules[agent] if each not in gone]
                self._write({name: kept for name, kept in rules.items() if kept})
            return gone

    def _read(self) -> dict[str, list[str]]:
        import tomllib  # for start-up time: every start loads this module, and few read this file

        try:
            parsed = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._invalid(str(error)) from None
        agents: object = parsed.get("agents", {})
        if not isinstance(agents, dict):
            raise self._invalid("[agents] is not a table")
        for agent, rules in cast("dict[str, Any]", agents).items():
            if not isinstance(rules, list) or not all(
                isinstance(rule, str) for rule in cast("list[Any]", rules)
            ):
                raise self._invalid(f"{agent} is not a list of rules")
        return cast("dict[str, list[str]]", agents)

    def _write(self, rules: dict[str, list[str]]) -> None:
        lines = [
            f"{toml_string(agent)} = [{', '.join(map(toml_string, rules[agent]))}]\n"
            for agent in sorted(rules)
        ]
        replace_file(self.path, PERMISSIONS_HEADING + "".join(lines))

    def _invalid(self, reason: str) -> ConfigInvalid:
        """A file that cannot be understood allows nothing."""
        return ConfigInvalid(
            f"{self.path.name} cannot be read: {reason}",
            hint="correct the file in the data folder, or delete it",
        )
