"""How often the right files are found, and what a question costs.

Reads every `*.jsonl` of a folder of sets: one question a line with `id`, `repo`, `commit`, `question` and
`gold`, the paths that answer it. Repositories lie in another folder as `owner__name`, bare or not. Each is
checked out at the question's commit in a temporary clone whose HEAD is that commit, so nothing later is seen.

    python benchmarks/retrieval.py SETS REPOS [--only SET] [--first N]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from retinue.codebase import Codebase, Located, Locator
from retinue.core import Root, Stop

LIMIT = 20
DEPTHS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    repo: str
    commit: str
    question: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    query: Query
    first: int
    """Rank of the first right file from 1; 0 if it is not among them."""
    all_in_ten: bool
    level: str
    cpu: float
    wall: float


def queries_of(file: Path) -> list[Query]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Query(row["id"], row["repo"], row["commit"], row["question"], frozenset(row["gold"])) for row in rows
    ]


class AtCommit(Protocol):
    """A question about one commit of a repository."""

    @property
    def repo(self) -> str: ...

    @property
    def commit(self) -> str: ...


Asked = TypeVar("Asked", bound=AtCommit)


def checkouts(queries: Sequence[Asked], repos: Path, work: Path) -> Iterator[tuple[Path, list[Asked]]]:
    """A tree for each commit, with its queries: one clone of a repository, moved from commit to commit."""
    commits: dict[tuple[str, str], list[Asked]] = {}
    for query in queries:
        commits.setdefault((query.repo, query.commit), []).append(query)
    for (repo, commit), asked in sorted(commits.items()):
        source = repos / repo.replace("/", "__")
        tree = work / repo.replace("/", "__")
        try:
            if not tree.exists():
                git("clone", "--quiet", "--local", "--no-checkout", str(source), str(tree))
            check_out(tree, commit)
        except GitFailed as failure:
            print(f"skipped {len(asked)} of {repo} at {commit[:12]}: {failure}", file=sys.stderr)
            continue
        yield tree, asked


class GitFailed(Exception):
    """Says what git said."""


def git(*arguments: str) -> None:
    done = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise GitFailed(f"git {' '.join(arguments)}: {done.stderr.strip()[-300:]}")


def check_out(tree: Path, commit: str) -> None:
    """HEAD, index and files of one commit. A snapshot may lack the content of large files: those stay out."""
    inside = ("-C", str(tree))
    git(*inside, "update-ref", "--no-deref", "HEAD", commit)
    git(*inside, "read-tree", "--reset", commit)
    git(*inside, "clean", "-ffdxq")
    try:
        git(*inside, "checkout-index", "--quiet", "--all", "--force")
    except GitFailed as failure:
        print(f"{tree.name} at {commit[:12]} is not whole: {failure}", file=sys.stderr)


def cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def judged(query: Query, located: Located, spent: float, waited: float) -> Outcome:
    paths = [place.path for place in located.places]
    first = next((rank for rank, path in enumerate(paths, 1) if path in query.gold), 0)
    return Outcome(query, first, query.gold <= set(paths[:10]), located.confidence, spent, waited)


def run(queries: list[Query], repos: Path, work: Path) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for tree, asked in checkouts(queries, repos, work):
        locator = Locator(Codebase([Root.at(tree)]), work / "index")
        if len(asked) > 1:
            locator.update_index(Stop())
        for query in asked:
            before, began = cpu(), time.monotonic()
            located = locator.locate(query.question, LIMIT, Stop())
            outcomes.append(judged(query, located, cpu() - before, time.monotonic() - began))
    return outcomes


def report(name: str, outcomes: list[Outcome]) -> None:
    total = len(outcomes)
    found = {depth: sum(1 for one in outcomes if 0 < one.first <= depth) for depth in DEPTHS}
    shares = "  ".join(f"any@{depth} {100 * count / total:.1f}" for depth, count in found.items())
    print(
        f"{name}: {total} questions  {shares}  all@10 {100 * sum(o.all_in_ten for o in outcomes) / total:.1f}"
    )
    spent = sorted(one.cpu for one in outcomes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    middle = statistics.median(spent)
    waited = statistics.median(one.wall for one in outcomes)
    print(f"  CPU s each: p50 {middle:.3f}  max {spent[-1]:.3f}; wall p50 {waited:.3f}; peak {peak:.0f} MB")
    right = Counter(one.level for one in outcomes if one.first == 1)
    levels = Counter(one.level for one in outcomes)
    shown = [f"{level} {right[level]}/{levels[level]}" for level in ("high", "med", "low")]
    print(f"  confidence, first place right: {'  '.join(shown)}")


Result = TypeVar("Result")


def over_sets(
    about: str | None,
    run: Callable[[list[Query], Path, Path], list[Result]],
    show: Callable[[str, list[Result]], None],
) -> int:
    """Measure each set that the command line names, and print it; non-zero if nothing was asked."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path)
    parser.add_argument("repos", type=Path)
    parser.add_argument("--only", help="the name of one set, without .jsonl")
    parser.add_argument("--first", type=int, help="the first so many questions of each set")
    given = parser.parse_args()
    asked = 0
    for file in sorted(given.sets.glob("*.jsonl")):
        if given.only in (None, file.stem):
            with tempfile.TemporaryDirectory(prefix="retinue-bench-") as work:
                found = run(queries_of(file)[: given.first], given.repos, Path(work))
            if found:
                show(file.stem, found)
            asked += len(found)
    return 0 if asked else 1


if __name__ == "__main__":
    raise SystemExit(over_sets(__doc__, run, report))
