"""How much of an answer a research report holds: gold files and lines, on sets of judged questions.

A set is a file of JSON lines: `id`, `repo`, `commit`, `question`, `gold_files`, `gold_lines` (`path:line`)
and maybe `hints` and `half`. Its gold was written from the code before any run. A file is found if the
report cites a line of it, a line if the report cites one within 8 lines of it.

    python -m benchmarks.judged REPOS SET... [--hints also|append] [--work DIR] [--show]

Repositories lie in REPOS as `owner__name`, bare or not. With `--work`, checkouts and indexes are kept there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from benchmarks.measuring import cpu
from benchmarks.retrieval import checkouts
from retinue.core import Stop, as_object, estimate_tokens
from retinue.service import ResearchRequest, make_indexes, research_codebase
from retinue.wiring import build_service, read_settings

NEAR = 8
"""How many lines a reference may be away from a gold line."""
Hints = Literal["none", "also", "append"]


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    id: str
    repo: str
    commit: str
    question: str
    gold_files: tuple[str, ...] = ()
    gold_lines: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    half: str = ""
    """`everyday` or `technical` words."""
    set: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the report of one question holds."""

    id: str
    set: str
    half: str
    has_gold: bool
    files: float
    lines: float
    is_first: bool
    """Whether the first place is in a right file."""
    tokens: int
    cpu: float
    intent: str = ""
    summary: str = field(default="", compare=False)


def read_set(file: Path) -> list[JudgedQuestion]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    return [
        JudgedQuestion(
            row["id"],
            row["repo"],
            row["commit"],
            row["question"],
            tuple(row["gold_files"]),
            tuple(row["gold_lines"]),
            tuple(row.get("hints", ())),
            row.get("half", ""),
            file.stem,
        )
        for row in rows
    ]


def judge(question: JudgedQuestion, report: dict[str, Any], spent: float) -> Verdict:
    text = json.dumps(report, ensure_ascii=False)
    cited: dict[str, set[int]] = {}
    for path, line in re.findall(r"([\w@./+-]+\.\w+):(\d+)", text):
        cited.setdefault(path, set()).add(int(line))
    value = as_object(as_object(report.get("locator")).get("value"))
    places = list(map(str, cast("list[str]", value.get("references") or [])))
    first = re.sub(r":\d+(-\d+)?$", "", places[0]) if places else ""
    named = cited.keys() | {re.sub(r":\d+(-\d+)?$", "", place) for place in places}
    gold = [(path, int(line)) for path, _, line in (one.rpartition(":") for one in question.gold_lines)]
    reached = [any(abs(line - at) <= NEAR for at in cited.get(path, ())) for path, line in gold]
    return Verdict(
        question.id,
        question.set,
        question.half,
        bool(question.gold_files),
        mean(path in named for path in question.gold_files),
        mean(reached),
        first in question.gold_files,
        estimate_tokens(text),
        spent,
        str(report.get("intent", "")),
        str(report.get("summary", "")),
    )


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(found) if (found := list(values)) else 0.0


def judge_set(questions: Sequence[JudgedQuestion], repos: Path, work: Path, hints: Hints) -> list[Verdict]:
    """Ask every question through the real service, and judge the reports."""
    verdicts: list[Verdict] = []
    for tree, asked in checkouts(questions, repos, work):
        service = build_service(read_settings({"roots": (str(tree),), "data_dir": str(work / "data")}))
        make_indexes(service, Stop())
        for one in asked:
            text = " ".join((one.question, *one.hints)) if hints == "append" else one.question
            request = ResearchRequest(question=text, also=one.hints if hints == "also" else ())
            before = cpu()
            report: dict[str, Any] = asyncio.run(research_codebase(service, request))
            verdicts.append(judge(one, report, cpu() - before))
    return verdicts


def row(name: str, verdicts: Sequence[Verdict]) -> str:
    """Return one line of a table: recall of files and lines, and how often the right file is first."""
    own = [one for one in verdicts if one.has_gold]
    return (
        f"{name:<28} {len(own):>4}   files {mean(one.files for one in own):.3f}   "
        f"lines {mean(one.lines for one in own):.3f}   first {sum(one.is_first for one in own):>3}   "
        f"tokens {statistics.median([one.tokens for one in own] or [0]):.0f}   "
        f"CPU s {mean(one.cpu for one in own):.2f}"
    )


def table(verdicts: Sequence[Verdict]) -> list[str]:
    lines = [row("all", verdicts)]
    for name in dict.fromkeys(one.set for one in verdicts):
        own = [one for one in verdicts if one.set == name]
        lines.append(row(name, own))
        halves = sorted({one.half for one in own} - {""})
        lines += [row(f"  {half}", [one for one in own if one.half == half]) for half in halves]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--hints", choices=("none", "also", "append"), default="none")
    parser.add_argument("--work", type=Path, help="keep checkouts and indexes in this folder")
    parser.add_argument("--show", action="store_true", help="print each question's recall")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as folder:
        work = given.work or Path(folder)
        asked = [one for file in given.sets for one in read_set(file)]
        verdicts = judge_set(asked, given.repos, work, given.hints)
    if given.show:
        for one in verdicts:
            print(
                f"{one.id:<6} files {one.files:.2f} lines {one.lines:.2f} {one.intent:<9} {one.summary[:90]}"
            )
    print("\n".join(table(verdicts)))
    return 0 if verdicts else 1


if __name__ == "__main__":
    raise SystemExit(main())
