"""How many definitions the outline misses that the syntax trees know, by language.

A definition is missed if no chunk of the outline has its name or begins on its line.

    python -m benchmarks.outlines FOLDER [FOLDER ...] [--show]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from retinue.codebase import Symbol, outline_text, parse_code

MAX_BYTES = 400_000


def files_in(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.stat().st_size <= MAX_BYTES:
                yield file


def missed_by_outline(path: str, data: bytes, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Return the symbols of which the outline has neither the name nor the line."""
    chunks = outline_text(path, data).chunks
    names = {chunk.name.rpartition(".")[2].rpartition("::")[2] for chunk in chunks}
    lines = {chunk.line for chunk in chunks}
    return [one for one in symbols if one.name not in names and one.line not in lines]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true", help="print each definition that is missed")
    given = parser.parse_args()
    known: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for file in files_in(given.folders):
        data = file.read_bytes()
        code = parse_code(str(file), data)
        if code is None:
            continue
        symbols = [one.symbol for one in code.definitions]
        unseen = missed_by_outline(str(file), data, symbols)
        known[file.suffix] += len(symbols)
        missed[file.suffix] += len(unseen)
        if given.show:
            print(*(f"{file}:{one.line} {one.name}" for one in unseen), sep="\n", end="\n" if unseen else "")
    print("suffix   definitions  missed")
    for suffix, count in known.most_common():
        print(f"{suffix:<8} {count:>11} {missed[suffix]:>7}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
