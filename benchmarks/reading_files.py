"""What reading the user's files costs: walking, searching, and opening safely against opening plainly.

    python benchmarks/reading_files.py [FILES]

Makes a tree of source-like files in a temporary folder. Times are CPU seconds of this process and of the
programs it starts, the best of several rounds, so that a busy machine distorts them little.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from retinue.codebase import Codebase, SearchPattern, find_ripgrep
from retinue.core import Root, Stop

ROUNDS = 5
WORDS = ("request", "handler", "session", "token", "retry", "cache", "buffer", "parse", "walk", "index")
PATTERNS = {"rare": "_walk.*# 77$", "regex": r"def \w+_token\(value\):  # 1\d*7$", "none": "zzz"}


def plant(folder: Path, files: int) -> Root:
    """Files of about 4 KB, twenty to a folder, three folders deep."""
    chance = random.Random(7)
    for number in range(files):
        place = folder / f"pkg{number // 2_000}" / f"mod{number // 200}" / f"part{number // 20}"
        place.mkdir(parents=True, exist_ok=True)
        lines = (f"def {chance.choice(WORDS)}_{chance.choice(WORDS)}(value):  # {number}" for _ in range(110))
        (place / f"file{number}.py").write_text("\n".join(lines) + "\n")
    (folder / ".gitignore").write_text("*.log\nbuild/\n*.pyc\n/dist\n!keep.log\ndocs/**/out\n")
    return Root.at(folder)


def cpu() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def best(work: Callable[[], object]) -> float:
    """CPU milliseconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        before = cpu()
        work()
        times.append(cpu() - before)
    return min(times) * 1_000


def main(files: int) -> None:
    ripgrep = find_ripgrep()
    if ripgrep is None:
        sys.exit("ripgrep is not installed, and there is nothing to compare with")
    with tempfile.TemporaryDirectory() as folder:
        root = plant(Path(folder), files)
        with_ripgrep, without = Codebase([root]), Codebase([root], ripgrep=lambda: None)
        entries = with_ripgrep.files(Stop()).entries
        count = len(entries)

        def read_plainly() -> None:
            for entry in entries:
                with open(f"{root}/{entry.path}", "rb") as file:  # noqa: PTH123 - the plainest there is
                    file.read()

        def read_safely() -> None:
            with with_ripgrep.opener(Stop()) as opener:
                for entry in entries:
                    fd, status = opener.open(entry)
                    os.read(fd, status.st_size)
                    os.close(fd)

        print(f"{count} files; CPU, best of {ROUNDS}")
        command = [ripgrep.program, "--files", "--hidden", "--null", "--no-require-git", str(root)]
        print(f"walk                   {best(lambda: with_ripgrep.files(Stop())):7.0f} ms")
        print(f"walk, rg --files       {best(lambda: subprocess.run(command, capture_output=True)):7.0f} ms")
        for name, text in PATTERNS.items():
            pattern = SearchPattern(text)
            print(f"search {name:5}, ripgrep  {best(lambda p=pattern: with_ripgrep.grep(p, Stop())):7.0f} ms")
            print(f"search {name:5}, pure     {best(lambda p=pattern: without.grep(p, Stop())):7.0f} ms")
        plain, safe = best(read_plainly), best(read_safely)
        print(f"open and read, plain   {plain * 1_000 / count:7.1f} µs a file")
        print(f"open and read, safe    {safe * 1_000 / count:7.1f} µs a file, {safe / plain:.2f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
