"""How often our own search shows a small model the code that answers its task, before any model is asked.

For each task of `trial_model.jsonl` or `trial_judging.jsonl` that has gold lines: whether one of them is
among the excerpts of the first round, how many of the gold places are, and how many tokens all excerpts have.

    python -m benchmarks.shown_code [--file FILE] [--projects FOLDER] [--show]
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
from retinue.codebase import Codebase, Locator
from retinue.core import Root, Stop, estimate_tokens
from retinue.executors.local.guided_search import find_code
from retinue.redaction import SecretRedactor
from retinue.tools import CodeExcerpt, CodeSearch


@dataclass(frozen=True, slots=True)
class ShownCode:
    """What the first round shows for one task."""

    task: TrialModelTask
    excerpts: tuple[CodeExcerpt, ...]

    @property
    def reached(self) -> float:
        """The share of the gold places of which a line is shown."""
        lines = {(one.path, number) for one in self.excerpts for number, _ in one.lines}
        found = [not lines.isdisjoint(_gold_lines(place)) for place in self.task.places]
        return sum(found) / len(found)

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(str(one)) for one in self.excerpts)


def _gold_lines(place: str) -> list[tuple[str, int]]:
    path, _, lines = place.rpartition(":")
    first, last = map(int, lines.split("-"))
    return [(path, number) for number in range(first, last + 1)]


def measure(tasks: Sequence[TrialModelTask], projects: Path, index: Path) -> list[ShownCode]:
    """Search for the code of each task."""
    searches: dict[str, CodeSearch] = {}
    shown: list[ShownCode] = []
    for task in tasks:
        if task.repo not in searches:
            codebase = Codebase([Root.at(fetch_project(task.repo, projects))])
            locator = Locator(codebase, index)
            locator.update_index(Stop())
            searches[task.repo] = CodeSearch(codebase=codebase, locator=locator, redactor=SecretRedactor())
        shown.append(ShownCode(task, asyncio.run(find_code(searches[task.repo], task.task))))
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, default=TASKS)
    parser.add_argument("--projects", type=Path, default=CACHE / "projects")
    parser.add_argument("--show", action="store_true", help="print each task with the places that are shown")
    given = parser.parse_args()
    tasks = [task for task in read_tasks(given.file) if task.places]
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as index:
        shown = measure(tasks, given.projects, Path(index))
    if given.show:
        for one in shown:
            places = " ".join(excerpt.place for excerpt in one.excerpts)
            print(f"{one.reached:.2f} {one.task.id:<16} {one.task.task}\n     {places}")
    for kind in (*KINDS, "all"):
        if rows := [one for one in shown if kind in (one.task.kind, "all")]:
            any_line = sum(one.reached > 0 for one in rows)
            places, tokens = (
                sum(getattr(one, key) for one in rows) / len(rows) for key in ("reached", "tokens")
            )
            print(f"{kind:<10} {any_line:>3} of {len(rows):>3}   places {places:.2f}   tokens {tokens:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
