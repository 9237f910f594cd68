"""Research with and without a model on 30 questions: what the model adds, and what it costs.

The questions are those of `answers.jsonl` that a model explains (how, where, options, error), the held-out
half first. Their gold places were written down before any run. Each question is asked once without a model
and once with it, within the same budget of tokens. Compared are:

- gold places that the sentences of the explanation cite, within 2 lines;
- gold places that only the second search reached;
- gold places that the report without a model names and the report with one does not: the explanation takes
  room;
- false sentences. Each name, number and place of a sentence is looked up in the file, independently of the
  check in the product. A person reads the sentences too, and marks false ones: `--false ID:NUMBER`.

Better: the explanation or the second search reaches gold. Worse: gold was lost, or a sentence is false. The
results are kept in a file, so that a run that was interrupted goes on. Ends with 1 if any question is worse,
or fewer than a third are better.

    python -m benchmarks.research_model REPOS --endpoint http://127.0.0.1:8080/v1 --results FILE
        [--count 30] [--set third] [--deadline-ms 60000] [--tokens 2000] [--work DIR] [--show]
        [--false click-2:1]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.answers import GoldPlace, Question, read_questions
from benchmarks.retrieval import checkouts
from retinue.core import BudgetKind, Stop
from retinue.service import ResearchRequest, Service, make_indexes, research_codebase
from retinue.wiring import build_service, read_settings, recording

INTENTS = ("how", "where", "options", "error")
NEAR_REFERENCE, NEAR_SENTENCE = 8, 2
NEAR_NAME = 40
"""How far from its place a name of a sentence may be in the file."""
_PLACE = re.compile(r"([\w./@+-]+):(\d+)(?:-(\d+))?")
_SENTENCE = re.compile(r"(?P<text>.*) \((?P<path>[^()\s]+):(?P<line>\d+)\)\.$", re.DOTALL)
_NAMES = re.compile(r"`([^`]+)`|\b([A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*)\b|(?<![\w.])(\d+)(?!\w)")


@dataclass(slots=True)
class Comparison:
    """How one question was answered with and without the model."""

    id: str
    question: str
    sentences: list[str] = field(default_factory=list[str])
    searched: list[str] = field(default_factory=list[str])
    told: list[int] = field(default_factory=list[int])
    """Gold places that a sentence cites."""
    found: list[int] = field(default_factory=list[int])
    """Gold places that only the second search reached."""
    lost: list[int] = field(default_factory=list[int])
    """Gold places that only the report without a model names."""
    false: list[int] = field(default_factory=list[int])
    """Numbers of false sentences."""
    seconds: float = 0.0
    seconds_without: float = 0.0
    tokens: int = 0
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.lost or self.false:
            return "worse"
        return "better" if self.told or self.found else "same"


def chosen_questions(count: int, wanted: str | None = None) -> list[Question]:
    """Return the questions of the trial: the held-out half first, each half in the order of the file.

    `wanted` is the name of a set, to ask its questions alone.
    """
    asked = [
        one for one in read_questions() if one.gold and one.intent in INTENTS and wanted in (None, one.set)
    ]
    return sorted(asked, key=lambda one: one.half != "held")[:count]


def reached(gold: Sequence[GoldPlace], text: str, near: int) -> set[int]:
    """Return the numbers of the gold places that the references in a text reach."""
    cited = [(path, int(first), int(last or first)) for path, first, last in _PLACE.findall(text)]
    return {
        number
        for number, place in enumerate(gold)
        if any(
            path == place.path and first <= place.last + near and last >= place.first - near
            for path, first, last in cited
        )
    }


def false_sentences(tree: Path, sentences: Sequence[str]) -> list[int]:
    """Return the numbers of the sentences that name something that is not near their place."""
    return [number for number, sentence in enumerate(sentences) if not _holds(tree, sentence)]


def _holds(tree: Path, sentence: str) -> bool:
    parts = _SENTENCE.fullmatch(sentence)
    if parts is None or not (tree / parts["path"]).is_file():
        return False
    lines = (tree / parts["path"]).read_text(encoding="utf-8", errors="replace").splitlines()
    line = int(parts["line"])
    near = "\n".join([parts["path"], *lines[max(0, line - NEAR_NAME) : line + NEAR_NAME]])
    names = " ".join(found[0] for found in _NAMES.finditer(parts["text"]))
    words = re.findall(r"\w+", names)
    return line <= len(lines) and all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", near) for word in words)


def compare(
    question: Question, tree: Path, before: dict[str, Any], after: dict[str, Any], tokens: int
) -> Comparison:
    explained = after.get("explanation", {})
    rest = json.dumps({key: value for key, value in after.items() if key != "explanation"})
    sentences = explained.get("sentences", [])
    named_before = reached(question.gold, json.dumps(before), NEAR_REFERENCE)
    named_after = reached(question.gold, json.dumps(after), NEAR_REFERENCE)
    further = reached(question.gold, " ".join(explained.get("references", [])), NEAR_REFERENCE)
    note = next((one for one in after.get("notes", []) if "model" in one), "")
    return Comparison(
        id=question.id,
        question=question.text,
        sentences=sentences,
        searched=explained.get("searched", []),
        told=sorted(reached(question.gold, " ".join(sentences), NEAR_SENTENCE)),
        found=sorted(further - named_before - reached(question.gold, rest, NEAR_REFERENCE)),
        lost=sorted(named_before - named_after),
        false=false_sentences(tree, sentences),
        tokens=tokens,
        note=note,
    )


async def ask(service: Service, question: Question, tokens: int, deadline_ms: int) -> dict[str, Any]:
    limits = {"tokens": tokens, "deadlineMs": deadline_ms}
    return await research_codebase(service, ResearchRequest(question=question.text, constraints=limits))


async def run_question(question: Question, tree: Path, data: Path, given: argparse.Namespace) -> Comparison:
    """Ask one question without and with the model, each with a data folder below `data`."""
    flags = {"roots": (str(tree),), "runtime.patience_s": given.deadline_ms // 1000 + 30}
    plain = read_settings({**flags, "data_dir": str(data / "plain")})
    asks = {"models.endpoint": given.endpoint, "models.research": True}
    with_model = read_settings({**flags, "data_dir": str(data / "model"), **asks})
    for loaded in (plain, with_model):
        make_indexes(build_service(loaded), Stop())
    async with recording(plain, build_service(plain)) as service:
        started = time.monotonic()
        before = await ask(service, question, given.tokens, given.deadline_ms)
        without = time.monotonic() - started
    async with recording(with_model, build_service(with_model)) as service:
        started = time.monotonic()
        after = await ask(service, question, given.tokens, given.deadline_ms)
        seconds = time.monotonic() - started
        newest = max((run for run in service.runs.store.runs.list()), key=lambda run: run.id, default=None)
        asked = newest is not None and newest.spec.agent == "explanation"
        tokens = newest.usage.get(BudgetKind.TOKENS) if newest is not None and asked else 0
    made = compare(question, tree, before, after, tokens)
    made.seconds, made.seconds_without = round(seconds, 1), round(without, 1)
    return made


def read_results(path: Path) -> dict[str, Comparison]:
    if not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: Comparison(**row) for row in rows}


def write_results(path: Path, results: Iterable[Comparison]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in results), encoding="utf-8")


def mark_false(results: dict[str, Comparison], marks: Iterable[str]) -> None:
    """Mark sentences as false that a person has read: `click-2:1` is the second one of click-2."""
    for mark in marks:
        name, _, number = mark.partition(":")
        results[name].false = sorted({*results[name].false, int(number)})


def show(results: Sequence[Comparison], *, sentences: bool) -> None:
    print(f"{'question':<12} {'verdict':<7} {'s':>6} {'tokens':>6} kept told found lost false")
    for one in results:
        counts = (len(one.sentences), len(one.told), len(one.found), len(one.lost))
        shown = " ".join(f"{count:>4}" for count in (*counts, len(one.false)))
        print(f"{one.id:<12} {one.verdict:<7} {one.seconds:>6.1f} {one.tokens:>6} {shown}")
        if sentences:
            print(f"    {one.question}")
            for number, sentence in enumerate(one.sentences):
                print(f"    {number}{' FALSE' if number in one.false else ''}: {sentence}")
            if not one.sentences:
                print(f"    {one.note}")
    verdicts = [one.verdict for one in results]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in ("better", "same", "worse"))
    kept = sum(len(one.sentences) for one in results)
    asked = [one for one in results if one.tokens]
    print(f"{len(results)} questions: {counts}")
    print(f"sentences: {kept}, {sum(len(one.false) for one in results)} false")
    if asked:
        seconds = sorted(one.seconds for one in asked)
        print(
            f"seconds with the model: median {seconds[len(seconds) // 2]:.1f}, most {seconds[-1]:.1f}; "
            f"tokens: mean {sum(one.tokens for one in asked) / len(asked):.0f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("--endpoint", required=True, help="URL of the model server")
    parser.add_argument("--results", type=Path, required=True, help="file that keeps the results")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument(
        "--set",
        choices=("first", "second", "third", "fourth", "fifth", "sixth", "seventh"),
        help="the questions of one set",
    )
    parser.add_argument("--deadline-ms", type=int, default=60_000)
    parser.add_argument("--tokens", type=int, default=2_000)
    parser.add_argument("--work", type=Path, help="keep checkouts in this folder")
    parser.add_argument("--show", action="store_true", help="print the sentences")
    parser.add_argument("--false", nargs="*", default=[], metavar="ID:NUMBER", help="mark sentences as false")
    given = parser.parse_args()
    results = read_results(given.results)
    mark_false(results, given.false)
    questions = chosen_questions(given.count, given.set)
    missing = [one for one in questions if one.id not in results]
    with tempfile.TemporaryDirectory(prefix="retinue-trial-") as folder:
        work = given.work or Path(folder)
        for tree, asked in checkouts(missing, given.repos, work):
            for question in asked:
                made = asyncio.run(run_question(question, tree, Path(folder) / "data", given))
                if not made.tokens and "does not answer" in made.note:
                    print(made.note)
                    return 1
                results[question.id] = made
                write_results(given.results, results.values())
                print(f"{made.id}: {made.verdict}, {made.seconds:.0f} s", flush=True)
    write_results(given.results, results.values())
    shown = [results[one.id] for one in questions if one.id in results]
    show(shown, sentences=given.show)
    verdicts = [one.verdict for one in shown]
    return int("worse" in verdicts or 3 * verdicts.count("better") < len(questions))


if __name__ == "__main__":
    raise SystemExit(main())
