"""What the commits of a root say: which changed files whose messages speak of the question.

Reads the ancestors of HEAD with git, if the root itself is a repository, and only so many of them. Runs no
hook, no pager, no external diff, no signature check, and fetches nothing. Without git there is no history,
and no error.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.evidence import Change, Past
from retinue.codebase.freshness import stamp_at
from retinue.codebase.terms import Asked, words
from retinue.core.stop import Stop

COMMITS = 5_000
"""How far back messages are read. Older ones were no better than none on the development sets."""
NEAREST = 40
"""Commits whose files vote."""
MOST_FILES = 30
"""A commit that changed more is a sweep: it says nothing of any one file."""
_MESSAGE_BYTES = 2_000
_SECONDS = 10.0

_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "core.quotePath=false"),
)


class Message(NamedTuple):
    commit: str
    words: list[bytes]
    """Distinct, in the order of the message."""


class Speaking(NamedTuple):
    """A commit whose message has some of the asked terms."""

    commit: str
    terms: frozenset[str]
    words: int
    """Distinct words of the message."""


class History:
    def __init__(self, root: Path, stop: Stop) -> None:
        self._root = root
        self._stop = stop
        self._git = shutil.which("git") if (root / ".git").exists() else None

    def state(self) -> str:
        """Changes whenever HEAD comes to name another commit. Costs no process in an ordinary repository."""
        folder = self._root / ".git"
        if self._git is None:
            return ""
        if not folder.is_dir():
            return self._ask("rev-parse", "--verify", "--quiet", "HEAD").decode("ascii", "replace").strip()
        try:
            head = (folder / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""
        moved = (folder / "logs" / "HEAD", folder / "packed-refs", folder / head.removeprefix("ref: "))
        return repr((head, [stamp_at(path) for path in moved]))

    def messages(self) -> list[Message]:
        """The newest first."""
        said = self._ask(
            *("log", f"--max-count={COMMITS}", "--no-merges", "--no-show-signature", "--encoding=UTF-8"),
            *("--no-color", "--format=%H%x00%s%n%b%x01", "HEAD", "--"),
        )
        found: list[Message] = []
        for record in said.split(b"\x01\n"):
            commit, _, message = record.strip().partition(b"\0")
            if message:
                distinct = list(dict.fromkeys(words(message[:_MESSAGE_BYTES]).split()))
                found.append(Message(commit.decode("ascii", "replace"), distinct))
        return found

    def files(self, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The files that each commit changed."""
        if not commits:
            return {}
        said = self._ask(
            *("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--root"),
            given="".join(f"{commit}\n" for commit in commits).encode(),
        )
        found: dict[str, list[str]] = {}
        wanted = set(commits)
        current: list[str] = []
        for field in said.split(b"\0"):
            text = field.decode(errors="replace").strip("\n")
            if text in wanted:
                current = found.setdefault(text, [])
            elif text:
                current.append(text)
        return {commit: tuple(paths) for commit, paths in found.items()}

    def _ask(self, *arguments: str, given: bytes = b"") -> bytes:
        if self._git is None:
            return b""
        try:
            process = subprocess.Popen(
                [self._git, "--no-pager", "--no-replace-objects", *_HARMLESS, *arguments],
                cwd=self._root,
                env=_environment(self._root),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return b""
        with process, self._stop.watch(process.kill):
            try:
                said, _ = process.communicate(given, timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                said = b""
            finally:
                process.kill()
        return said if process.returncode == 0 else b""


def _environment(root: Path) -> dict[str, str]:
    """Nothing of the caller's, and no repository but the root's own."""
    passed = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH", "HOME") if name in os.environ}
    return passed | {
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def speaking(messages: Sequence[Message], terms: Collection[str]) -> list[Speaking]:
    asked = Asked(terms)
    found: list[Speaking] = []
    for commit, distinct in messages:
        shared = [term for word in distinct for term in asked[word]]
        if shared:
            found.append(Speaking(commit, frozenset(shared), len(distinct)))
    return found


def nearest(
    spoken: Sequence[Speaking], commits: int, weights: Mapping[str, float]
) -> tuple[list[Speaking], dict[str, int]]:
    """The commits that speak most of what is asked, and how many have each term. Newer first in `spoken`."""
    frequency = Counter(term for one in spoken for term in one.terms)
    rare = {term: weights[term] * math.log(1 + commits / (1 + frequency[term])) for term in frequency}
    scored = [(-sum(sorted(rare[term] for term in one.terms)), place) for place, one in enumerate(spoken)]
    return [spoken[place] for _, place in sorted(scored)[:NEAREST]], dict(frequency)


def past_of(
    near: Sequence[Speaking], commits: int, frequency: dict[str, int], files: Mapping[str, Sequence[str]]
) -> Past:
    changes = [
        Change(one.terms, one.words, tuple(files[one.commit]))
        for one in near
        if 0 < len(files.get(one.commit, ())) <= MOST_FILES
    ]
    return Past(commits, frequency, changes)


def past(history: History, weights: Mapping[str, float]) -> Past:
    """The history as evidence for one question, read afresh."""
    messages = history.messages()
    near, frequency = nearest(speaking(messages, weights), len(messages), weights)
    return past_of(near, len(messages), frequency, history.files([one.commit for one in near]))
