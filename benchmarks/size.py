"""What the code consists of, by room: lines, modules, functions, regular expressions and tables of words.

A table of words is a text or a collection at the top of a module with at least eight words. With the results
of a trial, it also prints the requests and seconds that a task took.

    python -m benchmarks.size [--source DIR] [--trial RESULTS.jsonl]
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "retinue"
MIN_TABLE_WORDS = 8
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(slots=True)
class RoomSize:
    """The counts of one room."""

    lines: int = 0
    modules: int = 0
    functions: int = 0
    expressions: int = 0
    alternatives: int = 0
    tables: int = 0
    words: int = 0

    def add(self, other: RoomSize) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def measure(file: Path) -> RoomSize:
    text = file.read_text("utf-8")
    if file.suffix != ".py":
        return RoomSize(lines=text.count("\n"), modules=0)
    tree = ast.parse(text)
    size = RoomSize(lines=text.count("\n"), modules=1)
    for node in ast.walk(tree):
        size.functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
            size.expressions += 1
            size.alternatives += 1 + sum(one.count("|") for one in _texts(node))
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            words = [word for one in _texts(statement.value) for word in _WORD.findall(one)]
            is_pattern = "re.compile" in ast.unparse(statement.value)
            if len(words) >= MIN_TABLE_WORDS and not is_pattern:
                size.tables += 1
                size.words += len(words)
    return size


def _texts(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def rooms(source: Path) -> dict[str, RoomSize]:
    found: dict[str, RoomSize] = {}
    for file in sorted((*source.rglob("*.py"), *source.rglob("*.scm"))):
        parts = file.relative_to(source).parts
        room = "(package)" if len(parts) == 1 else parts[0]
        if room in ("executors", "codebase") and len(parts) > 2:
            room = f"{room}/{parts[1]}"
        found.setdefault(room, RoomSize()).add(measure(file))
    return found


def trial_line(file: Path) -> str:
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    steps, seconds = [row["steps"] for row in rows], [row["seconds"] for row in rows]
    return (
        f"{len(rows)} tasks: requests {statistics.median(steps):.0f} (most {max(steps)}), "
        f"seconds {statistics.median(seconds):.0f} (most {max(seconds):.0f})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, default=SOURCE, help="the package to measure")
    parser.add_argument("--trial", type=Path, help="results of `benchmarks.trial_model`")
    given = parser.parse_args()
    whole = RoomSize()
    print("room                  lines  modules  functions  expressions  alternatives  tables  words")
    for name, size in [*rooms(given.source).items(), ("all", whole)]:
        if name != "all":
            whole.add(size)
        print(
            f"{name:<20} {size.lines:>6} {size.modules:>8} {size.functions:>10} {size.expressions:>12} "
            f"{size.alternatives:>13} {size.tables:>7} {size.words:>6}"
        )
    if given.trial:
        print(trial_line(given.trial))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
