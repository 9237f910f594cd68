"""How often our own search shows a small model the code that answers its task, before any model is asked.

For each task of `trial_model.jsonl` or `trial_judging.jsonl` that has gold lines: whether one of them is
among the first three excerpts, how many of the gold places are, and how many tokens all excerpts have. With
`--show`, also which tasks the reader does not get, and for which the search says that there is nothing.

    python -m benchmarks.shown_code [--file FILE] [--projects FOLDER] [--show] [--here]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trial_model import CACHE, KINDS, TASKS, TrialModelTask, fetch_project, read_tasks
from retinue.answers import FIRST_PLACES, CodeExcerpt, CodeFinder, fit_excerpts
from retinue.codebase import Codebase, Locator
from retinue.core import UNMETERED, Root, Stop, estimate_tokens
from retinue.redaction import SecretRedactor

CODE_TOKENS = 1_500


@dataclass(frozen=True, slots=True)
class FirstCode:
    """What a model is shown first for one task."""

    task: TrialModelTask
    excerpts: list[CodeExcerpt]
    is_about_code: bool
    """Whether the reader gets the task."""
    absence: str
    """Why the project does not have what is asked for, by the search alone."""

    @property
    def reached(self) -> float:
        """The share of the gold places of which a line is shown."""
        lines = {(one.path, number) for one in self.excerpts for number, _ in one.numbered}
        found = [not lines.isdisjoint(_gold_lines(place)) for place in self.task.places]
        return sum(found) / max(1, len(found))

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(str(one)) for one in self.excerpts)


def _gold_lines(place: str) -> list[tuple[str, int]]:
    path, _, lines = place.rpartition(":")
    first, last = map(int, lines.split("-"))
    return [(path, number) for number in range(first, last + 1)]


def measure(tasks: Sequence[TrialModelTask], projects: Path, index: Path) -> list[FirstCode]:
    """Search for the code of each task."""
    opened: dict[str, tuple[Codebase, Locator]] = {}
    shown: list[FirstCode] = []
    for task in tasks:
        if task.repo not in opened:
            codebase = Codebase([Root.at(fetch_project(task.repo, projects))])
            locator = Locator(codebase, index)
            locator.update_index(Stop())
            opened[task.repo] = codebase, locator
        shown.append(asyncio.run(_first_code(task, *opened[task.repo])))
    return shown


async def _first_code(task: TrialModelTask, codebase: Codebase, locator: Locator) -> FirstCode:
    finder = CodeFinder.of_agent(task.task, codebase, locator, SecretRedactor().redact, UNMETERED)
    is_about_code = await finder.is_asked_about_code()
    code = finder.shown[:FIRST_PLACES] or await finder.show(FIRST_PLACES)
    return FirstCode(task, fit_excerpts(code, CODE_TOKENS), is_about_code, finder.absence)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, default=TASKS)
    parser.add_argument("--projects", type=Path, default=CACHE / "projects")
    parser.add_argument("--show", action="store_true", help="print each task with the places that are shown")
    parser.add_argument("--here", action="store_true", help="only tasks whose project is there already")
    given = parser.parse_args()
    known = {folder.name for folder in given.projects.iterdir()} if given.here else None
    tasks = [task for task in read_tasks(given.file) if known is None or task.repo in known]
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as index:
        shown = measure(tasks, given.projects, Path(index))
    if given.show:
        for one in shown:
            places = " ".join(excerpt.place for excerpt in one.excerpts)
            told = "" if one.is_about_code else " NOT ABOUT CODE"
            told += f" ABSENT: {one.absence}" if one.absence else ""
            print(f"{one.reached:.2f}{told} {one.task.id:<16} {one.task.task}\n     {places}")
    for kind in (*KINDS, "all"):
        if rows := [one for one in shown if kind in (one.task.kind, "all") and one.task.places]:
            any_line = sum(one.reached > 0 for one in rows)
            places, tokens = (
                sum(getattr(one, key) for one in rows) / len(rows) for key in ("reached", "tokens")
            )
            print(f"{kind:<10} {any_line:>3} of {len(rows):>3}   places {places:.2f}   tokens {tokens:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
