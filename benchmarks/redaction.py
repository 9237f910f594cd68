"""How well and how fast secrets are hidden: `python -m benchmarks.redaction [--json | --repositories DIR]`.

Speed is measured on the standard library's own source code, and given as such and as a ratio to a floor of
the same run: one pass over the same text that only looks for the rules' keywords.

With `--repositories`, prints every line of these folders that redaction changes. Compare the lists before
and after a change of the rules: a line that is new is a secret that was missed, or a false positive.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, takewhile
from pathlib import Path

from benchmarks.redaction_generated import generated
from benchmarks.redaction_ordinary import Ordinary, ordinary
from benchmarks.redaction_secrets import Planted, planted
from retinue.redaction import SecretRedactor
from retinue.redaction.regex_engine import best_engine
from retinue.redaction.secret_finder import default_finder

CODE_BYTES = 8_000_000
REPEATS = 3
MAX_FILE_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    engine: str
    secrets: int
    kinds: int
    recall: float
    generated: int
    generated_recall: float
    ordinary: int
    false_positives: float
    code_megabytes: float
    megabytes_per_second: float
    floor_megabytes_per_second: float
    share_of_floor: float
    hits_per_megabyte_of_code: float


def survivors(redactor: SecretRedactor, secrets: Iterable[Planted]) -> list[Planted]:
    """The secrets that redaction lets through."""
    return [each for each in secrets if each.secret in redactor.redact(each.text)]


def mistaken(redactor: SecretRedactor, strings: Iterable[Ordinary]) -> list[Ordinary]:
    """The ordinary strings that redaction changes."""
    return [each for each in strings if redactor.redact(each.text) != each.text]


def real_code() -> list[str]:
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-z]*/*.py"))
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    sizes = accumulate(map(len, texts))
    return [text for text, _ in takewhile(lambda pair: pair[1] < CODE_BYTES, zip(texts, sizes, strict=True))]


def best_speed(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Megabytes a second of processor time, in the best of several passes."""
    size = sum(map(len, texts)) / 1e6
    passes: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        for text in texts:
            work(text)
        passes.append(size / (time.process_time() - began))
    return max(passes)


def measure() -> Figures:
    redactor, finder, engine = SecretRedactor(), default_finder(), best_engine()
    secrets, made, strings, code = list(planted()), list(generated()), list(ordinary()), real_code()
    look_for_keywords = engine.keyword_finder(finder.keywords)
    floor = best_speed(lambda text: list(look_for_keywords(text.encode("utf-8", "replace").lower())), code)
    speed = best_speed(redactor.redact, code)
    hits = sum(1 for text in code for _ in finder.find(text.encode("utf-8", "replace")))
    size = sum(map(len, code)) / 1e6
    return Figures(
        engine=type(engine).__name__,
        secrets=len(secrets),
        kinds=len({each.kind for each in secrets}),
        recall=1 - len(survivors(redactor, secrets)) / len(secrets),
        generated=len(made),
        generated_recall=1 - len(survivors(redactor, made)) / len(made),
        ordinary=len(strings),
        false_positives=len(mistaken(redactor, strings)) / len(strings),
        code_megabytes=size,
        megabytes_per_second=speed,
        floor_megabytes_per_second=floor,
        share_of_floor=speed / floor,
        hits_per_megabyte_of_code=hits / size,
    )


def changed_lines(redactor: SecretRedactor, folder: Path) -> Iterator[str]:
    """Yield the lines of all text files of a folder that redaction changes, as `path:line: text`."""
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.is_symlink() or file.stat().st_size > MAX_FILE_BYTES:
            continue
        lines = file.read_bytes().decode("utf-8", "replace").split("\n")
        if "\0" in lines[0]:
            continue
        for number, (line, shown) in enumerate(zip(lines, redactor.redact_lines(lines), strict=True), 1):
            if line != shown:
                yield f"{file.relative_to(folder)}:{number}: {shown.strip()[:200]}"


LEAST = {"recall": 1.0, "megabytes_per_second": 5.0}
MOST = {"false_positives": 0.01}


def missed(figures: dict[str, object]) -> list[str]:
    """The figures on the wrong side of their limit."""
    low = [f"{name} below {limit}" for name, limit in LEAST.items() if float(str(figures[name])) < limit]
    return low + [
        f"{name} above {limit}" for name, limit in MOST.items() if float(str(figures[name])) > limit
    ]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="print the figures as JSON")
    options.add_argument(
        "--repositories", nargs="+", type=Path, metavar="DIR", help="print the lines that change"
    )
    given = options.parse_args()
    if given.repositories:
        for folder in given.repositories:
            lines = list(changed_lines(SecretRedactor(), folder))
            print(*lines, f"{folder.name}: {len(lines)} lines changed", sep="\n")
        return 0
    figures = asdict(measure())
    if given.json:
        print(json.dumps(figures, indent=2))
        return int(bool(missed(figures)))
    for name, value in figures.items():
        print(
            f"{name.replace('_', ' '):28} {value if isinstance(value, str | int) else format(value, '.4g')}"
        )

    for limit in missed(figures):
        print(f"missed: {limit}")
    return int(bool(missed(figures)))


if __name__ == "__main__":
    raise SystemExit(main())
