"""What an answer costs on one tree, beside ripgrep and (where it is installed) tantivy in the same run.

CPU seconds of this process and its children, so that a busy machine disturbs little.

    python benchmarks/retrieval_speed.py TREE QUESTIONS.jsonl [--first N]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retinue.codebase.codebase import Codebase
from retinue.codebase.locate import Locator
from retinue.codebase.question import parse
from retinue.codebase.ripgrep import find_ripgrep
from retinue.codebase.scan import text_of
from retinue.codebase.sources import worth_reading
from retinue.core.root import Root
from retinue.core.stop import Stop


def cost(work: Callable[[], object]) -> float:
    def cpu() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    before = cpu()
    work()
    return cpu() - before


def ripgrep_pass(tree: Path, question: str) -> None:
    program = find_ripgrep()
    assert program is not None, "ripgrep is not installed"
    pattern = "|".join(sorted(parse(question).needles))
    command = [str(program.program), "--no-config", "--count", "--ignore-case", "-e", pattern, str(tree)]
    subprocess.run(command, check=False, capture_output=True)


def tantivy_build(codebase: Codebase) -> None:
    tantivy: Any = importlib.import_module("tantivy")
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("path", stored=True, tokenizer_name="raw")
    schema.add_text_field("body", stored=False)
    with tempfile.TemporaryDirectory() as folder, codebase.opener(Stop()) as opener:
        writer = tantivy.Index(schema.build(), path=folder).writer(num_threads=1)
        for entry in codebase.files(Stop()).entries:
            if worth_reading(entry.path) and (data := text_of(opener, entry)):
                writer.add_document(tantivy.Document(path=entry.path, body=data.decode()))
        writer.commit()
        writer.wait_merging_threads()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--first", type=int, default=20)
    given = parser.parse_args()
    lines = given.questions.read_text(encoding="utf-8").splitlines()[: given.first]
    questions = [json.loads(line)["question"] for line in lines]
    codebase = Codebase([Root.at(given.tree)])
    with tempfile.TemporaryDirectory(prefix="retinue-bench-") as folder:
        locator = Locator(codebase, Path(folder))
        narrow = [cost(lambda asked=asked: ripgrep_pass(given.tree, asked)) for asked in questions]
        cold = [cost(lambda asked=asked: locator.locate(asked, 10, Stop())) for asked in questions]
        ratios = [one / other for one, other in zip(cold, narrow, strict=True)]
        print(f"files: {sum(worth_reading(one.path) for one in codebase.files(Stop()).entries)}")
        print(f"ripgrep pass: p50 {statistics.median(narrow):.3f} s")
        print(f"cold: p50 {statistics.median(cold):.3f} s, {statistics.median(ratios):.1f} x ripgrep")
        build = cost(lambda: locator.prepare(Stop()))
        print(f"index build: {build:.2f} s")
        if importlib.util.find_spec("tantivy"):
            rival = cost(lambda: tantivy_build(codebase))
            print(f"tantivy build: {rival:.2f} s; ours is {build / rival:.1f} x")
        warm = [cost(lambda asked=asked: locator.locate(asked, 10, Stop())) for asked in questions]
        print(f"warm: p50 {1000 * statistics.median(warm):.0f} ms, max {1000 * max(warm):.0f} ms")
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
