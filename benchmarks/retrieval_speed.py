"""What an answer costs, as ratios against other tools and against itself, all in one run.

CPU seconds of this process and its children are compared, not the clock, and rounds alternate: machines are
shared. Limits are checked; one that is missed makes the exit code 1.

    python -m benchmarks.retrieval_speed TREE QUESTIONS.jsonl [--first N] [--rounds N] [--quick]

- cold: an answer without an index against one `rg --count --ignore-case` for the question's words; see
  `benchmarks.cold`, which measures many trees.
- build: the index of all files against tantivy (one thread) over the same files, walk and reads included on
  both sides; and, printed beside, against tantivy fed with the words that we find code by: by itself it does
  not find `retry` in `RetryPolicy`.
- warm: an answer with the index, in process, and as the whole `retinue locate` command.
- change: what a question costs more after some files were edited, and what taking in many edits costs, each
  against those files' share by size of a build.
- growth: the tree's own files composed to 500, 3,000 and 30,000; cost for each file must not rise.
- memory: of a build as trees grow, and of a process over 1,000 questions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cold import PLACES, cold
from benchmarks.composed_trees import compose
from benchmarks.measuring import Checks, cost, cpu
from retinue.codebase import Codebase, Locator
from retinue.codebase.index import Index
from retinue.codebase.index.evidence import searchable_text
from retinue.codebase.index.file_records import new_vocabulary
from retinue.codebase.parse import has_searchable_text, separate_words
from retinue.core import Root, Stop

EDITED = 10
"""Few enough to be read at the question; ten times as many are taken in."""
SIZES = (500, 3_000, 30_000)
NOISE = 1.25
"""How much more a file may seem to cost in a larger tree before growth counts as faster than linear."""


def asked(locator: Locator, question: str) -> float:
    return cost(lambda: locator.locate(question, PLACES, Stop()))


def middle(costs: Sequence[float]) -> float:
    return statistics.median(costs)


def same_words() -> Callable[[bytes], str]:
    """A text as the stems and compounds that we look up, for an engine that has no notion of identifiers."""
    known = new_vocabulary()
    return lambda data: " ".join(filter(None, map(known.__getitem__, separate_words(data).split())))


def tantivy_build(codebase: Codebase, text: Callable[[bytes], str] = bytes.decode, **writing: int) -> None:
    """With its writer as it comes, unless told otherwise."""
    tantivy: Any = importlib.import_module("tantivy")
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("path", stored=True, tokenizer_name="raw")
    schema.add_text_field("body", stored=False)
    with tempfile.TemporaryDirectory() as folder, codebase.opener(Stop()) as opener:
        writer = tantivy.Index(schema.build(), path=folder).writer(**writing)
        for entry in codebase.files(Stop()).entries:
            if has_searchable_text(entry.path) and (data := searchable_text(opener, entry)):
                writer.add_document(tantivy.Document(path=entry.path, body=text(data)))
        writer.commit()
        writer.wait_merging_threads()


def build(checks: Checks, tree: Path, folder: Path, rounds: int) -> None:
    codebase = Codebase([Root.at(tree)])
    ours: list[float] = []
    rival: list[float] = []
    single: list[float] = []
    alike: list[float] = []
    for number in range(rounds):
        index = Index(folder / str(number), codebase)
        ours.append(cost(lambda index=index: index.update_files(Stop())))
        index.close()
        rival.append(cost(lambda: tantivy_build(codebase)))
        single.append(cost(lambda: tantivy_build(codebase, num_threads=1)))
        alike.append(cost(lambda: tantivy_build(codebase, same_words())))
    size = sum(file.stat().st_size for file in (folder / "0").iterdir()) / 1e6
    checks.say(f"build {min(ours):.2f} s, tantivy {min(rival):.2f} s, index {size:.0f} MB")
    checks.ratio("index build / tantivy build", min(ours) / min(rival), 3)
    checks.say(f"index build / tantivy build with one thread: {min(ours) / min(single):.1f} x")
    checks.say(f"index build / tantivy build of the same words: {min(ours) / min(alike):.1f} x")


def warm(checks: Checks, tree: Path, folder: Path, questions: Sequence[str]) -> None:
    locator = Locator(Codebase([Root.at(tree)]), folder / "0")
    locator.update_index(Stop())
    costs = sorted(asked(locator, question) for question in questions)
    checks.figure("warm answer in process, p50 ms", 1000 * middle(costs), 60)
    checks.say(f"warm answer in process, p95 ms: {1000 * costs[int(len(costs) * 0.95)]:.0f}")


def command(checks: Checks, tree: Path, questions: Sequence[str]) -> None:
    """Start-up included; its parts beside it."""
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as folder:
        environment = {**os.environ, "RETINUE_DATA_DIR": folder}

        def run(*arguments: str) -> float:
            argv = [sys.executable, *arguments]
            return cost(
                lambda: subprocess.run(argv, env=environment, cwd=folder, capture_output=True, check=True)
            )

        run("-m", "retinue", "index", "--root", str(tree))
        whole = [
            run("-m", "retinue", "locate", question, "--root", str(tree), "--json") for question in questions
        ]
        loading = [run("-c", "import retinue.service.research, retinue.wiring") for _ in questions]
        checks.say(f"`retinue locate`, warm, whole command: p50 {1000 * middle(whole):.0f} ms")
        checks.say(f"  of that, starting Python and loading the code: {1000 * middle(loading):.0f} ms")


def change(checks: Checks, tree: Path, folder: Path, question: str, rounds: int) -> None:
    """`tree` is a copy that may be written to."""
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    total = sum(path.stat().st_size for path in files)
    locator = Locator(Codebase([Root.at(tree)]), folder)
    whole = cost(lambda: locator.update_index(Stop()))
    apart = max(1, len(files) // (EDITED * 11))
    few, many = files[::apart][:EDITED], files[::apart][EDITED : EDITED * 11]
    time.sleep(0.2)  # so that what was just written is trusted
    before: list[float] = []
    after: list[float] = []
    idle: list[float] = []
    taken: list[float] = []
    for number in range(rounds):
        asked(locator, question)  # makes what is kept until the next update
        before.append(asked(locator, question))
        for path in few:
            edit(path, number)
        after.append(asked(locator, question))
        for path in (*few, *many):
            edit(path, number)
        taken.append(cost(lambda: locator.update_index(Stop())))
        time.sleep(0.2)
        locator.update_index(Stop())
        idle.append(cost(lambda: locator.update_index(Stop())))
    for name, extra, edited in (
        ("answer after an edit", min(after) - min(before), few),
        ("taking in many edits", min(taken) - min(idle), [*few, *many]),
    ):
        share = whole * sum(path.stat().st_size for path in edited) / total
        checks.ratio(f"{name} / the files' share of a build ({len(edited)} files)", extra / share, 2)


def edit(path: Path, number: int) -> None:
    with path.open("ab") as file:
        file.write(b"\n# edited %d\n" % number)


BUILD = """
import re, sys
from pathlib import Path
from retinue.codebase.codebase import Codebase
from retinue.codebase.rank.locator import Locator
from retinue.core.root import Root
from retinue.core.stop import Stop
assert Locator(Codebase([Root.at(sys.argv[1])]), Path(sys.argv[2])).update_index(Stop())
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def growth(checks: Checks, tree: Path, work: Path, questions: Sequence[str], sizes: Sequence[int]) -> None:
    each: dict[str, list[float]] = {"build": [], "warm answer": [], "cold answer": []}
    peaks: list[float] = []
    for size in sizes:
        grown = compose(tree, work / f"tree{size}", size)
        folder = work / f"index{size}"
        before = cpu()
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(grown), str(folder)], capture_output=True, text=True, check=True
        )
        each["build"].append((cpu() - before) / size)
        peaks.append(float(done.stdout))
        codebase = Codebase([Root.at(grown)])
        locator = Locator(codebase, folder)
        each["warm answer"].append(middle([asked(locator, one) for one in questions]) / size)
        each["cold answer"].append(middle([asked(Locator(codebase), one) for one in questions[:3]]) / size)
    checks.say(f"files: {', '.join(map(str, sizes))}")
    for name, costs in each.items():
        checks.say(f"{name}, us for each file: {', '.join(f'{1e6 * one:.0f}' for one in costs)}")
        checks.ratio(f"{name}: a file of the largest tree / of the middle one", costs[-1] / costs[-2], NOISE)
    checks.say(f"peak memory of a build, MB: {', '.join(f'{peak:.0f}' for peak in peaks)}")
    checks.ratio("peak memory of a build: largest tree / middle one", peaks[-1] / peaks[-2], 2)


def memory(checks: Checks, tree: Path, folder: Path, questions: Sequence[str], many: int) -> None:
    locator = Locator(Codebase([Root.at(tree)]), folder / "0")
    process = psutil.Process()
    early = 0
    for number in range(many):
        locator.locate(questions[number % len(questions)], PLACES, Stop())
        if number == many // 10:
            early = process.memory_info().rss
    late = process.memory_info().rss
    checks.say(f"memory after {many // 10} and {many} questions: {early / 1e6:.0f}, {late / 1e6:.0f} MB")
    checks.ratio(f"memory after {many} questions / after {many // 10}", late / early, 1.05)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the largest tree and of the questions"
    )
    given = parser.parse_args()
    lines = given.questions.read_text(encoding="utf-8").splitlines()[: given.first]
    questions = [json.loads(line)["question"] for line in lines]
    tree = given.tree.resolve()
    sizes, many = (SIZES[:2], 100) if given.quick else (SIZES, 1_000)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as name:
        work = Path(name)
        parts: list[Callable[[], None]] = [
            lambda: cold(checks, tree, questions),
            lambda: build(checks, tree, work / "index", given.rounds),
            lambda: warm(checks, tree, work / "index", questions),
            lambda: command(checks, tree, questions[:5]),
            lambda: change(
                checks, compose(tree, work / "edited", 3_000), work / "edits", questions[0], given.rounds
            ),
            lambda: growth(checks, tree, work, questions[:10], sizes),
            lambda: memory(checks, tree, work / "index", questions, many),
        ]
        for part in parts:
            part()
    return checks.verdict()


if __name__ == "__main__":
    raise SystemExit(main())
