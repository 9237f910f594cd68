"""How well and how fast memories are recalled: `python -m benchmarks.memory [--show]`.

Quality: `memory_recall.jsonl` has 100 memories, 20 of them superseded by a correction, and 60 questions with
the memory that answers each. The same questions are put to plain FTS5 with its Porter stemmer, as a floor.

Speed: 100,000 memories of one project, recalled by questions with rare and with common words. The time is
that of a whole recall, with the note that memories were used.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from benchmarks.measuring import Checks
from retinue.codebase import Codebase
from retinue.core import Memory, MemoryId, NewMemory, Root
from retinue.learning import Memories, MemoryAuthor
from retinue.learning.memory_stores import project_key
from retinue.learning.recall import TERMS_VERSION, memory_terms
from retinue.redaction import SecretRedactor
from retinue.store import MemoryStore

DATA = Path(__file__).with_name("memory_recall.jsonl")
AUTHOR = MemoryAuthor("person")
MANY = 100_000
QUESTIONS_OF_SPEED = 200
WORDS_OF_LANGUAGE = 20_000
MIN_RIGHT = 0.9
MAX_MS = 20.0


def open_memories(folder: Path) -> Memories:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return Memories(
        data_dir=folder / "data",
        project=project,
        redactor=SecretRedactor(),
        open_codebase=lambda: Codebase([Root.at(project)]),
    )


def places_of(answers: Sequence[Sequence[str]], questions: Sequence[Mapping[str, str]]) -> list[int | None]:
    """The place of the right memory among the answers to each question; None if it is not there."""
    return [
        found.index(question["wants"]) + 1 if question["wants"] in found else None
        for found, question in zip(answers, questions, strict=True)
    ]


def share_within(found: Sequence[int | None], limit: int) -> float:
    return sum(place is not None and place <= limit for place in found) / len(found)


def read_data() -> tuple[list[dict[str, str]], list[dict[str, str]], set[str]]:
    """The memories, the questions, and the names of superseded memories."""
    lines: list[dict[str, str]] = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    entries = [line for line in lines if "memory" in line]
    superseded = {line["corrects"] for line in entries if "corrects" in line}
    return entries, [line for line in lines if "question" in line], superseded


def recalled(entries: Sequence[Mapping[str, str]], questions: Sequence[str]) -> list[list[str]]:
    """The names of the memories that are recalled for each question, the best first."""
    with tempfile.TemporaryDirectory() as folder:
        memories = open_memories(Path(folder))
        ids: dict[str, str] = {}
        for entry in entries:
            new = NewMemory(
                text=entry["text"],
                kind=entry["kind"],
                corrects=ids[entry["corrects"]] if "corrects" in entry else "",
                confirmed=True,
            )
            ids[entry["memory"]] = memories.remember(new, AUTHOR)["id"]
        names = {memory_id: name for name, memory_id in ids.items()}
        found = [
            [names[each.memory.id] for each in memories.recall(question, limit=5)] for question in questions
        ]
        memories.close()
    return found


def measure_quality(checks: Checks, show: bool) -> None:
    entries, questions, superseded = read_data()
    checks.say(f"{len(entries)} memories, {len(superseded)} superseded, {len(questions)} questions")
    asked = [question["question"] for question in questions]
    answers = recalled(entries, asked)
    found = places_of(answers, questions)
    plain = places_of(list(map(plain_search(entries), asked)), questions)
    for name, places in (("plain FTS5, Porter", plain), ("recall", found)):
        checks.say(
            f"{name}: first {share_within(places, 1):.0%}, in the first three {share_within(places, 3):.0%}"
        )
    if show:
        for question, place in zip(questions, found, strict=True):
            if place is None or place > 1:
                checks.say(f"  {place}: {question['question']} ({question['wants']})")
    checks.ratio(
        "questions without the right memory in the first three", 1 - share_within(found, 3), 1 - MIN_RIGHT
    )
    checks.figure(
        "superseded memories among the answers",
        sum(name in superseded for found in answers for name in found),
        0,
    )


def plain_search(entries: Sequence[Mapping[str, str]]) -> Callable[[str], list[str]]:
    """FTS5 as it comes: all words of the question, any of which may match."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE memories USING fts5(name UNINDEXED, text, tokenize = 'porter')")
    database.executemany(
        "INSERT INTO memories VALUES (?, ?)", [(entry["memory"], entry["text"]) for entry in entries]
    )

    def ask(question: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        rows = database.execute(
            "SELECT name FROM memories WHERE memories MATCH ? ORDER BY rank LIMIT 5", (words,)
        )
        return [row[0] for row in rows]

    return ask


def measure_speed(checks: Checks) -> None:
    random = Random(2026)
    words = [_word(random) for _ in range(WORDS_OF_LANGUAGE)]
    weights = list(accumulate(1 / (place + 3) for place in range(WORDS_OF_LANGUAGE)))

    def sentence(length: int) -> str:
        return " ".join(random.choices(words, cum_weights=weights, k=length))

    with tempfile.TemporaryDirectory() as folder:
        memories = open_memories(Path(folder))
        begun, now = time.perf_counter(), time.time()
        store = MemoryStore.open(
            Path(folder) / "data", project_key(memories.project), memory_terms, terms_version=TERMS_VERSION
        )
        store.import_all(
            [
                Memory(id=MemoryId.new(), text=sentence(18), tier="archive", created_at=now, last_used_at=now)
                for _ in range(MANY)
            ]
        )
        store.close()
        checks.say(f"{MANY} memories stored in {time.perf_counter() - begun:.0f} s")
        asked = [sentence(random.randint(2, 12)) for _ in range(QUESTIONS_OF_SPEED)]
        asked += [" ".join(words[:4]), words[0], " ".join(words[:12])]
        memories.recall(asked[0])  # opens the file
        took: list[float] = []
        spent: list[float] = []
        for question in asked:
            begun, before = time.perf_counter(), time.process_time()
            memories.recall(question)
            took.append((time.perf_counter() - begun) * 1000)
            spent.append((time.process_time() - before) * 1000)
        before = time.process_time()
        memories.remember(NewMemory(text="The last one"), AUTHOR)
        checks.say(f"one more stored, with hygiene: {(time.process_time() - before) * 1000:.1f} ms of CPU")
        memories.close()
    took.sort()
    spent.sort()
    median = f"{statistics.median(took):.1f} ms ({statistics.median(spent):.1f} of CPU)"
    worst = f"{took[-1]:.1f} ms ({spent[-1]:.1f} of CPU)"
    checks.say(f"recall, {len(took)} questions: median {median}, worst {worst}")
    # CPU time, because the machine may have other work.
    checks.figure("milliseconds of CPU for 99 % of the recalls", spent[int(len(spent) * 0.99)], MAX_MS)


def _word(random: Random) -> str:
    return "".join(
        random.choice("bcdfglmnprstvz") + random.choice("aeiou") for _ in range(random.randint(2, 4))
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the questions whose answer is not first")
    options = parser.parse_args()
    checks = Checks()
    measure_quality(checks, options.show)
    measure_speed(checks)
    return checks.verdict()


if __name__ == "__main__":
    sys.exit(main())
