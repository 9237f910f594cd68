"""Where a coding CLI keeps its state when one of our agents uses it: in a folder of that agent's own.

So its runs read no settings, memories or sessions of the user's. Of the user's, only the login is linked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.executors.cli.cli_traits import CliTraits
from retinue.store import SESSION_SUFFIX

_PLAIN = re.compile(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CliState:
    env: Mapping[str, str]
    """Tells the CLI where its state is."""
    folders: tuple[Path, ...]
    """What it must be able to change: its state, and the login that it renews from time to time."""


def prepare(profile: CliTraits, agent: str, folder: Path, home: Path) -> CliState:
    """Make what is missing."""
    own = folder / profile.name / _file_name(agent)
    env: dict[str, str] = {}
    for variable, place in profile.home.items():
        path = own / place
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        env[variable] = str(path)
    return CliState(env, (own, *_linked(profile, own, home)))


def of_the_user(profile: CliTraits, home: Path) -> CliState:
    """For agents that use the user's own settings: nothing is moved."""
    folders = {home / Path(path).parts[0] for path in profile.login}
    return CliState({}, tuple(sorted(folders)))


def _linked(profile: CliTraits, own: Path, home: Path) -> list[Path]:
    linked: list[Path] = []
    for path, place in profile.login.items():
        login, link = home / path, own / place
        if login.is_file() and not link.exists():
            link.unlink(missing_ok=True)
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.symlink_to(login)
        if login.is_file():
            linked.append(login)
    return linked


def session_folder(folder: Path, cli: str, agent: str) -> Path:
    """Beside the CLI's own state: what to resume."""
    return folder / cli / f"{_file_name(agent)}{SESSION_SUFFIX}"


def _file_name(agent: str) -> str:
    """An agent's name may hold anything; a folder's may not."""
    return agent if _PLAIN.fullmatch(agent) else hashlib.sha256(agent.encode()).hexdigest()[:16]
