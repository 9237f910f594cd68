"""Research on five real projects in five languages: prints each report and checks every claim in it.

The projects are package archives of fixed versions, fetched with pip and npm into a cache folder and checked
by their hashes. Exits with 1 if a claim is false.

    python -m benchmarks.smoke [--cache FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.claims import Checker, Tally, ask, claims_of, findings_of

CACHE = Path(".cache/smoke")


@dataclass(frozen=True, slots=True)
class Archive:
    """A project as its package index has it, and questions about it."""

    name: str
    version: str
    language: str
    sha256: str
    questions: tuple[str, ...]

    @property
    def is_npm(self) -> bool:
        return self.language in ("TypeScript", "JavaScript")

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.{'tgz' if self.is_npm else 'tar.gz'}"

    @property
    def fetch(self) -> list[str]:
        """The command that downloads the archive into the working folder."""
        if self.is_npm:
            return ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        options = ["download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        return [sys.executable, "-m", "pip", *options, "--dest", ".", f"{self.name}=={self.version}"]


ARCHIVES = (
    Archive(
        "requests",
        "2.32.3",
        "Python",
        "55365417734eb18255590a9ff9eb97e9e1da868d4ccd6402399eaf68af20a760",
        ("how are redirects followed?", "who calls merge_setting?", "how does prepare_auth work?"),
    ),
    Archive(
        "zod",
        "3.25.76",
        "TypeScript",
        "9e1f1a05f0dd0c1dab64ee91ceb9bf55cd44d35368c70edda80a2fdc70a88377",
        ("how is a string checked?", "how does toJSONSchema work?", "who calls finalizeIssue?"),
    ),
    Archive(
        "express",
        "5.1.0",
        "JavaScript",
        "dd6bdb4d4e54d520c78443d5c35aa4ae552be1837e8650d2ec1641df99393e1b",
        ("how does res.send set the content type?", "how is a view looked up?", "who calls compileETag?"),
    ),
    Archive(
        "ujson",
        "6.1.0",
        "C",
        "aef7ea4cd9e2e9f8a35c4538a9780d58c80d76c5da66a8dad269b4cc6d930c29",
        ("how is a number decoded?", "how does JSON_EncodeObject work?", "how are strings escaped?"),
    ),
    Archive(
        "jpype1",
        "1.7.1",
        "Java",
        "3cd88838dc3d2d546f7eaeadaaff864e590010c15f2b6a44b6f37e60796a14b2",
        (
            "how does JPypeReferenceQueue work?",
            "how is a proxy created?",
            "how does TypeManager find classes?",
        ),
    ),
)


def unpack(archive: Archive, cache: Path) -> Path:
    """Return the folder of an archive, after downloading and unpacking it if needed."""
    folder = cache / f"{archive.name}-{archive.version}"
    packed = cache / archive.file
    if not packed.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(archive.fetch, cwd=cache, check=True, stdout=subprocess.DEVNULL)
    if hashlib.sha256(packed.read_bytes()).hexdigest() != archive.sha256:
        raise SystemExit(f"{packed} is not the expected archive; remove it and try again")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            with tarfile.open(packed) as tar:
                tar.extractall(fresh, filter="data")
            (inside,) = Path(fresh).iterdir()
            inside.replace(folder)
    return folder.resolve()


def show(archive: Archive, report: dict[str, Any]) -> None:
    """Print a report."""
    print(f"\n{archive.name} {archive.version} ({archive.language}): {report['question']}")
    print(f"  {report['summary']}")
    for finding in findings_of(report):
        print(f"  - {finding.splitlines()[0]}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=CACHE)
    cache: Path = parser.parse_args(arguments).cache
    tally = Tally(Counter(), [])
    with tempfile.TemporaryDirectory() as data:
        for archive in ARCHIVES:
            root = unpack(archive, cache)
            checker = Checker(root)
            for question in archive.questions:
                report = ask([sys.executable, "-m", "retinue"], root, question, Path(data))
                show(archive, report)
                tally.reports += 1
                for claim in claims_of(report):
                    tally.add(claim, checker.check(claim), f"{archive.name}, {question!r}")
    print("", *tally.table(), sep="\n")
    print(f"{tally.total} claims of {tally.reports} reports in {len(ARCHIVES)} languages")
    if tally.false:
        print("False:", *tally.false, sep="\n  ")
    return 1 if tally.false else 0


if __name__ == "__main__":
    sys.exit(main())
