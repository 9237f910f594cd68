"""What an answer without an index costs, against one ripgrep pass for the question's words, on some trees.

    python -m benchmarks.cold TREE... [--questions FILE.jsonl] [--rounds N]

`rg --count --ignore-case` runs before each answer, so that both meet the same load, and the median ratio of
all questions is held against the limit. CPU seconds of this process and its children are compared; the clock
is printed beside. Each question has a codebase and a locator of its own, as in a server, so an answer that
needs ripgrep also pays for finding it. The first answer of a new process is printed too, without a limit: it
loads code and compiles patterns, as every command does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import Checks, cpu
from retinue.codebase import Codebase, Locator, find_ripgrep, parse_question
from retinue.core import Root, Stop

PLACES = 10
LIMIT = 8
"""How many times the CPU of a ripgrep pass an answer may cost."""
QUESTIONS = (
    "where are errors reported to the caller?",
    "how is the configuration read?",
    "how is a value parsed from text?",
    "where is the timeout checked?",
    "which option sets the default size?",
    "how does it handle an empty input?",
)
"""Questions whose words occur in most projects."""

FIRST_ANSWER = """
import sys
from pathlib import Path
from benchmarks.cold import ask
from benchmarks.measuring import cost
print(cost(lambda: ask(Path(sys.argv[1]), sys.argv[2])))
"""


class Spent(NamedTuple):
    cpu: float
    clock: float


def spent(work: Callable[[], object]) -> Spent:
    before, began = cpu(), time.perf_counter()
    work()
    return Spent(cpu() - before, time.perf_counter() - began)


def ask(tree: Path, question: str) -> int:
    """Answer a question by a scan. Returns how many files were considered."""
    locator = Locator(Codebase([Root.at(tree)]))
    locator.locate(question, PLACES, Stop())
    return locator.files


def first_answer(tree: Path, question: str) -> float:
    """Return the CPU seconds of an answer in a process that has only just started."""
    command = [sys.executable, "-c", FIRST_ANSWER, str(tree), question]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cold(checks: Checks, tree: Path, questions: Sequence[str], rounds: int = 1) -> None:
    """Measure one tree, and hold the median of its ratios against the limit."""
    found = find_ripgrep()
    assert found is not None, "ripgrep is not installed"
    ripgrep: list[Spent] = []
    ours: list[Spent] = []
    files = ask(tree, questions[0])  # reads the files into the system's cache, and loads code
    for question in [*questions] * rounds:
        pattern = "|".join(sorted(parse_question(question).terms))
        command = [str(found.program), "--no-config", "--count", "--ignore-case", "-e", pattern, str(tree)]
        ripgrep.append(spent(lambda argv=command: subprocess.run(argv, check=False, capture_output=True)))
        ours.append(spent(lambda asked=question: ask(tree, asked)))
    pairs = list(zip(ours, ripgrep, strict=True))
    clock = statistics.median(answer.clock / search.clock for answer, search in pairs)
    first = statistics.median(first_answer(tree, question) for question in questions[:3])
    checks.say(
        f"{tree.name}, {files} files: {_milliseconds(ours)} ms, ripgrep {_milliseconds(ripgrep)} ms, "
        f"first answer of a process {1000 * first:.0f} ms; by the clock {clock:.1f} x"
    )
    checks.ratio(
        f"{tree.name}: cold answer / one ripgrep pass, p50",
        statistics.median(answer.cpu / search.cpu for answer, search in pairs),
        LIMIT,
    )


def _milliseconds(costs: Sequence[Spent]) -> str:
    return f"{1000 * statistics.median(one.cpu for one in costs):.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", type=Path, nargs="+", metavar="TREE")
    parser.add_argument("--questions", type=Path, help="one JSON object with a `question` on each line")
    parser.add_argument("--rounds", type=int, default=3, help="how often each question is asked")
    given = parser.parse_args()
    questions = QUESTIONS
    if given.questions is not None:
        lines = given.questions.read_text(encoding="utf-8").splitlines()
        questions = tuple(json.loads(line)["question"] for line in lines)
    checks = Checks()
    for tree in given.trees:
        cold(checks, tree.resolve(), questions, given.rounds)
    return checks.verdict()


if __name__ == "__main__":
    raise SystemExit(main())
