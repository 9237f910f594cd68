"""What each rule, table, signal and intent of the answers is worth: leaves one out at a time, and asks again.

A rule stays if leaving it out costs at least one point (0.01) of the files or lines on sets of questions
that it was not written for. Each variant runs in a process of its own, which replaces some functions or
tables of Retinue and then asks all questions, as `benchmarks.judged` does.

    python -m benchmarks.ablation REPOS SET... [--work DIR] [--only NAME,NAME] [--out FILE]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.judged import Verdict, judge_set, mean, read_set
from retinue.answers.question_wording import WORDINGS

SOURCE = Path(__file__).parent.parent / "src"
FULL = "full"


def _returns(value: Any) -> Callable[..., Any]:
    def replacement(*_: Any, **__: Any) -> Any:
        return value

    return replacement


def _second_argument(_: Any, second: Any) -> Any:
    return second


def _line_of_name(_text: Any, _detail: Any, definition: Any, *_: Any) -> int:
    return int(definition.line)


@dataclass(frozen=True, slots=True)
class Variant:
    """Something that can be left out."""

    name: str
    code: tuple[str, ...]
    """The code that would go: modules (`answers/flow.py`), or names in them (`answers/flow.py:tell_flow`)."""
    replaced: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What takes the place of names in modules: `answers.locator:focus_line`."""
    zeroed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of tables of weights that become 0."""

    @property
    def lines(self) -> int:
        return sum(map(_lines_of, self.code))

    def apply(self) -> None:
        """Leave it out, in this process."""
        for place, value in self.replaced.items():
            module, _, name = place.partition(":")
            getattr(importlib.import_module(f"retinue.{module}"), name)  # fails if it does not exist
            setattr(importlib.import_module(f"retinue.{module}"), name, value)
        for place, keys in self.zeroed.items():
            _table(place).update((key, 0.0) for key in keys if key in _table(place))


def _table(place: str) -> dict[str, Any]:
    module, _, name = place.partition(":")
    table: dict[str, Any] = getattr(importlib.import_module(f"retinue.{module}"), name)
    return table


def _lines_of(code: str) -> int:
    path, _, name = code.partition(":")
    text = (SOURCE / "retinue" / path).read_text("utf-8")
    if not name:
        return len(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return (node.end_lineno or node.lineno) - node.lineno + 1
    raise SystemExit(f"{path} has no {name}")


RANK = "codebase.rank.ranking"


def _signals(*names: str) -> dict[str, tuple[str, ...]]:
    return {f"{RANK}:_WEIGHTS": names, f"{RANK}:_PATH_WEIGHTS": names}


def _no_intent(intent: str) -> dict[str, Any]:
    rows = tuple(row for row in WORDINGS if row.intent != intent)
    return {"answers.question_reader:WORDINGS": rows}


VARIANTS = (
    Variant("intent: callers", ("answers/callers.py",), _no_intent("callers")),
    Variant("intent: examples", ("answers/patterns.py",), _no_intent("examples")),
    Variant("intent: changes", ("answers/changes.py",), _no_intent("changes")),
    Variant("intent: options", (), _no_intent("options")),
    Variant("intent: exists", ("answers/locator.py:_with_absent_names",), _no_intent("exists")),
    Variant(
        "intent: error",
        ("answers/error_origins.py",),
        {
            "answers.question_reader:_has_trace": _returns(False),
            "answers.question_reader:_messages": _returns(()),
            "research.pipeline:prints_message": _returns(False),
        },
    ),
    Variant("all wording", ("answers/question_wording.py",), {"answers.question_reader:WORDINGS": ()}),
    Variant(
        "messages without a sign",
        ("answers/error_origins.py:prints_message",),
        {"research.pipeline:prints_message": _returns(False)},
    ),
    Variant(
        "flow of an answer",
        ("answers/flow.py",),
        {"research.pipeline:tell_flow": importlib.import_module("retinue.answers").quote_lines},
    ),
    Variant(
        "callers in a flow",
        ("answers/flow.py:_tell_caller",),
        {"answers.flow:_tell_caller": _returns(None)},
    ),
    Variant(
        "members of a type",
        ("answers/flow.py:_tell_members",),
        {"answers.flow:_tell_members": _returns(None)},
    ),
    Variant(
        "further guesses of a flow",
        ("answers/flow.py:_tell_other",),
        {"answers.flow:_tell_other": _returns(None)},
    ),
    Variant("siblings", ("answers/patterns.py:_siblings",), {"answers.patterns:_siblings": _returns(())}),
    Variant(
        "implementers",
        ("answers/patterns.py:_implementers",),
        {"answers.patterns:_implementers": _returns(())},
    ),
    Variant(
        "definitions of named things",
        ("answers/locator.py:_named_definitions",),
        {"answers.locator:_named_definitions": _returns([])},
    ),
    Variant(
        "tests last",
        ("answers/locator.py:_tests_last",),
        {"answers.locator:_tests_last": _second_argument},
    ),
    Variant(
        "condition above an error",
        ("answers/error_origins.py:_condition_above",),
        {"answers.error_origins:_condition_above": _returns(None)},
    ),
    Variant(
        "lines inside definitions",
        ("codebase/rank/definitions.py:focus_line",),
        {"codebase.rank.locator:focus_line": _line_of_name},
    ),
    Variant(
        "related words",
        ("codebase/parse/related_words.py",),
        {"codebase.parse.question:related_terms": _returns({})},
    ),
    Variant(
        "neighbouring words in names",
        (f"{RANK.replace('.', '/')}.py:_pair_signal",),
        {f"{RANK}:_pair_signal": _returns({})},
    ),
    Variant("names of files", (), zeroed=_signals("name")),
    Variant("names of folders", (), zeroed=_signals("folder")),
    Variant(
        "files and lines that are named",
        ("codebase/rank/named_files.py",),
        zeroed=_signals("mentioned", "traced"),
    ),
    Variant("defined names", (), zeroed=_signals("symbols", "defined")),
    Variant("chunks of files", (), zeroed=_signals("chunk", "chunks")),
    Variant("words of files", (), zeroed=_signals("words")),
    Variant("categories of files", (), {f"{RANK}:_category_factor": _returns(1.0)}),
    Variant(
        "resolver of names",
        ("codebase/names/name_resolver.py", "codebase/names/module_search.py"),
        {"answers.tracing:NameResolver": _returns(None)},
    ),
)


def ask(variant: str, repos: Path, sets: Sequence[Path], work: Path) -> list[Verdict]:
    """Ask all questions in a process that leaves out a variant. An empty list means that it failed."""
    command = [sys.executable, "-m", "benchmarks.ablation", str(repos), *map(str, sets)]
    done = subprocess.run(
        [*command, "--work", str(work), "--inside", variant], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{variant}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return []
    return [Verdict(**row) for row in map(json.loads, done.stdout.splitlines())]


def row(name: str, lines: int, full: Sequence[Verdict], own: Sequence[Verdict]) -> str:
    """Return one line of the table: what leaving something out changes."""
    pairs = [(one, other) for one, other in zip(full, own, strict=True) if one.has_gold]
    before, after = [one for one, _ in pairs], [other for _, other in pairs]
    better = sum(other.lines > one.lines for one, other in pairs)
    worse = sum(other.lines < one.lines for one, other in pairs)
    files = mean(one.files for one in before) - mean(one.files for one in after)
    lines_gained = mean(one.lines for one in before) - mean(one.lines for one in after)
    cost = mean(one.cpu for one in before) - mean(one.cpu for one in after)
    return (
        f"{name:<32} {lines:>5}  {files:>+7.3f}  {lines_gained:>+7.3f}  {worse:>3} / {better:<3}  "
        f"{sum(one.is_first for one in before) - sum(one.is_first for one in after):>+4}  {cost:>+6.2f}"
    )


def compare(repos: Path, sets: Sequence[Path], work: Path, only: Sequence[str]) -> list[str]:
    full = ask(FULL, repos, sets, work)
    gold = [one for one in full if one.has_gold]
    table = [
        f"{len(gold)} questions of {', '.join(file.stem for file in sets)}",
        f"whole: files {mean(one.files for one in gold):.3f}, lines {mean(one.lines for one in gold):.3f}, "
        f"right file first {sum(one.is_first for one in gold)}, CPU s {mean(one.cpu for one in gold):.2f}",
        "",
        "left out                         lines    files    lines  helps/hurts  first   CPU s",
    ]
    print("\n".join(table), flush=True)
    for variant in VARIANTS:
        if only and variant.name not in only:
            continue
        if own := ask(variant.name, repos, sets, work):
            table.append(row(variant.name, variant.lines, full, own))
            print(table[-1], flush=True)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, help="keep checkouts and indexes in this folder")
    parser.add_argument("--only", default="", help="names of variants, separated by commas")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        for variant in VARIANTS:
            if variant.name == given.inside:
                variant.apply()
        asked = [one for file in given.sets for one in read_set(file)]
        for verdict in judge_set(asked, given.repos, given.work, "none"):
            print(json.dumps(asdict(verdict)))
        return 0
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as folder:
        only = [name for name in given.only.split(",") if name]
        table = compare(given.repos, given.sets, given.work or Path(folder), only)
    if given.out:
        given.out.write_text("\n".join(table) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
