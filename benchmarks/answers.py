"""How much of an answer a report holds: gold files and lines, within budgets of tokens.

`answers.jsonl` has one question a line: `repo`, `commit`, `language`, `intent`, `question`, two `hints` that
a caller guessed before seeing the code, and `gold`: the places (`path:first-last`) that answer it, written
down from reading the code before the ranker ran. `need` says how many of the places are enough; by default
all. Questions about things that do not exist have no gold: they count for the intents alone.
There are seven sets, by different repositories: the questions of all but the first have a `set`.

A place is found if a reference in the report covers it or lies within 8 lines of it. Half of the questions,
chosen by the hash of their id, are for development; weights may be tuned on those alone.

    python -m benchmarks.answers REPOS [--hints] [--set SET] [--half dev|held] [--show] [--work DIR]

Repositories lie in REPOS as `owner__name`, bare or not. With `--work`, checkouts and indexes are kept there.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import cpu
from benchmarks.retrieval import checkouts
from retinue.core import Stop, estimate_tokens
from retinue.service import ResearchRequest, Service, make_indexes, research_codebase
from retinue.wiring import build_service, read_settings

BUDGETS = (800, 1_400, 2_000)
NEAR = 8
"""How many lines a reference may be away from a gold place."""
FILE = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class GoldPlace:
    path: str
    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> GoldPlace:
        path, _, lines = text.rpartition(":")
        first, _, last = lines.partition("-")
        return cls(path, int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    repo: str
    commit: str
    language: str
    intent: str
    text: str
    hints: tuple[str, ...]
    gold: tuple[GoldPlace, ...]
    need: int
    set: str

    @property
    def half(self) -> str:
        return ("dev", "held")[hashlib.sha256(self.id.encode()).digest()[0] % 2]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the report of one question holds under one budget."""

    question: Question
    budget: int
    files: float
    """The share of gold files that the report names."""
    lines: float
    """The share of gold places that the report's references reach."""
    tokens: int
    intent: str
    cpu: float
    report: dict[str, Any]


def read_questions() -> list[Question]:
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [
        Question(
            row["id"],
            row["repo"],
            row["commit"],
            row["language"],
            row["intent"],
            row["question"],
            tuple(row["hints"]),
            tuple(map(GoldPlace.parse, row["gold"])),
            row.get("need", len(row["gold"])),
            row.get("set", "first"),
        )
        for row in rows
    ]


def judged(question: Question, budget: int, report: dict[str, Any], spent: float) -> Answer:
    text = json.dumps(report, ensure_ascii=False, indent=2)
    cited: dict[str, list[tuple[int, int]]] = {}
    for path, first, last in re.findall(r"([\w./@+-]+):(\d+)(?:-(\d+))?", text):
        cited.setdefault(path, []).append((int(first), int(last or first)))
    paths = {place.path for place in question.gold}
    named = sum(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", text) is not None for path in paths)
    reached = sum(_is_reached(place, cited.get(place.path, ())) for place in question.gold)
    enough = min(len(paths), question.need)
    return Answer(
        question,
        budget,
        min(1.0, named / enough) if enough else 0.0,
        min(1.0, reached / question.need) if question.need else 0.0,
        estimate_tokens(text),
        report.get("intent", ""),
        spent,
        report,
    )


def _is_reached(place: GoldPlace, cited: Iterable[tuple[int, int]]) -> bool:
    return any(first <= place.last + NEAR and last >= place.first - NEAR for first, last in cited)


def ask(service: Service, question: Question, budget: int, *, hints: bool) -> Answer:
    more: dict[str, Any] = {"also": question.hints} if hints else {}
    request = ResearchRequest(question=question.text, constraints={"tokens": budget}, **more)
    before = cpu()
    report = asyncio.run(research_codebase(service, request))
    return judged(question, budget, report, cpu() - before)


def run(
    questions: Sequence[Question], repos: Path, work: Path, *, hints: bool, budgets: Sequence[int] = BUDGETS
) -> list[Answer]:
    answers: list[Answer] = []
    for tree, asked in checkouts(questions, repos, work):
        service = build_service(read_settings({"roots": (str(tree),), "data_dir": str(work / "data")}))
        make_indexes(service, Stop())
        answers += [ask(service, one, budget, hints=hints) for one in asked for budget in budgets]
    return answers


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(found) if (found := list(values)) else 0.0


def show_shares(title: str, answers: Sequence[Answer]) -> None:
    """Print file and line recall under each budget."""
    shares = [
        (budget, [one for one in answers if one.budget == budget and one.question.gold])
        for budget in sorted({one.budget for one in answers})
    ]
    shown = "   ".join(
        f"{budget}: {mean(one.files for one in found):.2f} / {mean(one.lines for one in found):.2f}"
        for budget, found in shares
    )
    print(f"{title:<22} {len(shares[0][1]):>3} questions   {shown}")


def show_groups(answers: Sequence[Answer], key: Callable[[Question], str]) -> None:
    for group in sorted({key(one.question) for one in answers}):
        show_shares(f"  {group}", [one for one in answers if key(one.question) == group])


def show(answers: Sequence[Answer]) -> None:
    print("file / line recall under each budget of tokens")
    show_shares("all", answers)
    show_groups(answers, lambda one: one.half)
    show_groups(answers, lambda one: one.language)
    show_groups(answers, lambda one: one.intent)
    recognised = mean(one.intent == one.question.intent for one in answers)
    print(f"intents recognised: {recognised:.2f}")
    print(f"tokens, p50: {statistics.median(one.tokens for one in answers):.0f}", end="; ")
    print(f"CPU s each, p50: {statistics.median(one.cpu for one in answers):.3f}")


def show_each(answers: Sequence[Answer]) -> None:
    for one in answers:
        if one.budget == BUDGETS[1]:
            print(f"{one.lines:.2f} {one.files:.2f} {one.question.id:<12} {one.question.text}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("--hints", action="store_true", help="pass the two hints of each question")
    parser.add_argument(
        "--set",
        choices=("first", "second", "third", "fourth", "fifth", "sixth", "seventh"),
        help="the questions of one set of repositories",
    )
    parser.add_argument("--half", choices=("dev", "held"), help="one half of the questions")
    parser.add_argument("--show", action="store_true", help="print each question with its recall")
    parser.add_argument("--work", type=Path, help="keep checkouts and indexes in this folder")
    given = parser.parse_args()
    questions = [
        one for one in read_questions() if given.half in (None, one.half) and given.set in (None, one.set)
    ]
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as folder:
        answers = run(questions, given.repos, given.work or Path(folder), hints=given.hints)
    if not answers:
        return 1
    if given.show:
        show_each(answers)
    show(answers)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
