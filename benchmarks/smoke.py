"""Research on seven real projects in seven languages: prints each report and checks every claim in it.

The projects are package archives of fixed versions, fetched with pip and npm into a cache folder and checked
by their hashes before anything in them is used. Exits with 1 if a claim is false, and with 2 if an archive
cannot be had.

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
from typing import Any, Literal

from benchmarks.claims import Checker, Tally, ask, claims_of, findings_of

CACHE = Path(".cache/smoke")
FETCH_SECONDS = 600
"""pip prepares a package's build before it hands the archive over, which may take minutes."""
_HINT = "run this where pip and npm can download packages, or copy the archives into the cache folder"


@dataclass(frozen=True, slots=True)
class Archive:
    """A project as its package index has it, and questions about it."""

    index: Literal["pip", "npm"]
    name: str
    version: str
    language: str
    sha256: str
    questions: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"

    @property
    def file(self) -> str:
        return f"{self.folder}.{'tgz' if self.index == 'npm' else 'tar.gz'}"

    def fetch(self, folder: Path) -> None:
        """Download the archive into a folder. pip checks the hash, because it runs the build script."""
        if self.index == "npm":
            command = ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        else:
            wanted = folder / "requirements.txt"
            wanted.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n", encoding="utf-8")
            options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes", "--dest", "."]
            command = [sys.executable, "-m", "pip", "download", *options, "--requirement", wanted.name]
        try:
            done = subprocess.run(
                command, cwd=folder, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
            )
        except FileNotFoundError:
            raise ArchiveMissing(self, f"{self.index} is not installed", _HINT) from None
        except subprocess.TimeoutExpired:
            raise ArchiveMissing(self, f"{self.index} took over {FETCH_SECONDS} seconds", _HINT) from None
        if done.returncode or not (folder / self.file).is_file():
            raise ArchiveMissing(self, f"{self.index} failed:\n{done.stderr.strip()[-1_000:]}", _HINT)


class ArchiveMissing(Exception):
    """An archive that cannot be had, or is not the expected one."""

    def __init__(self, archive: Archive, reason: str, hint: str) -> None:
        super().__init__(f"{archive.name} {archive.version}: {reason}\n{hint}")


ARCHIVES = (
    Archive(
        "pip",
        "requests",
        "2.32.3",
        "Python",
        "55365417734eb18255590a9ff9eb97e9e1da868d4ccd6402399eaf68af20a760",
        ("how are redirects followed?", "who calls merge_setting?", "how does prepare_auth work?"),
    ),
    Archive(
        "npm",
        "zod",
        "3.25.76",
        "TypeScript",
        "9e1f1a05f0dd0c1dab64ee91ceb9bf55cd44d35368c70edda80a2fdc70a88377",
        ("how is a string checked?", "how does toJSONSchema work?", "who calls finalizeIssue?"),
    ),
    Archive(
        "npm",
        "express",
        "5.1.0",
        "JavaScript",
        "dd6bdb4d4e54d520c78443d5c35aa4ae552be1837e8650d2ec1641df99393e1b",
        ("how does res.send set the content type?", "how is a view looked up?", "who calls compileETag?"),
    ),
    Archive(
        "pip",
        "ujson",
        "6.1.0",
        "C",
        "aef7ea4cd9e2e9f8a35c4538a9780d58c80d76c5da66a8dad269b4cc6d930c29",
        ("how is a number decoded?", "how does JSON_EncodeObject work?", "how are strings escaped?"),
    ),
    Archive(
        "pip",
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
    Archive(
        "pip",
        "cryptography",
        "41.0.7",
        "Rust",
        "13f93ce9bea8016c253b34afc6bd6a75993e5c40672ed5405a9c832f0d4a00bc",
        (
            "how are certificate extensions parsed in Rust?",
            "who calls encode_general_names?",
            "how does load_pem_x509_certificate work?",
        ),
    ),
    Archive(
        "npm",
        "@agoric/cosmos",
        "0.34.1",
        "Go",
        "0e7cd76bb50a3334340b9a296a08d454d9b83f5a048e2fe8993b90cde51211c6",
        (
            "how is a snapshot taken?",
            "who calls NewSwingsetSnapshotter?",
            "how are rewards distributed in vbank?",
        ),
    ),
)


def unpack(archive: Archive, cache: Path) -> Path:
    """Return the folder of an archive, after downloading and unpacking it if needed."""
    cache.mkdir(parents=True, exist_ok=True)
    packed = cache / archive.file
    with tempfile.TemporaryDirectory(dir=cache) as name:
        fresh = Path(name)
        if not packed.is_file():
            archive.fetch(fresh)
            (fresh / archive.file).replace(packed)
        if hashlib.sha256(packed.read_bytes()).hexdigest() != archive.sha256:
            raise ArchiveMissing(archive, f"{packed} is not the expected file", "remove it and try again")
        folder = cache / archive.folder
        if not folder.is_dir():
            with tarfile.open(packed) as tar:
                tar.extractall(fresh / "unpacked", filter="data")
            (inside,) = (fresh / "unpacked").iterdir()
            inside.replace(folder)
    return folder.resolve()


def show(archive: Archive, report: dict[str, Any]) -> None:
    """Print a report."""
    print(f"\n{archive.name} {archive.version} ({archive.language}): {report['question']}")
    print(f"  {report['summary']}")
    for finding in findings_of(report):
        first, *others = finding.splitlines()
        print(f"  - {first}", *(f"    {line}" for line in others), sep="\n")


def examine(archive: Archive, root: Path, data: Path, tally: Tally) -> None:
    """Ask the questions about an archive. Prints each report with the verdict on its claims."""
    checker = Checker(root)
    for question in archive.questions:
        report = ask([sys.executable, "-m", "retinue"], root, question, data)
        show(archive, report)
        tally.reports += 1
        verdicts: Counter[str] = Counter()
        for claim in claims_of(report):
            verdict = checker.check(claim)
            verdicts[verdict.kind] += 1
            tally.add(claim, verdict, f"{archive.name}, {question!r}")
        shown = ", ".join(f"{verdicts[kind]} {kind}" for kind in ("true", "false", "unverifiable"))
        print(f"  claims: {shown}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=CACHE)
    return run(ARCHIVES, parser.parse_args(arguments).cache)


def run(archives: Sequence[Archive], cache: Path) -> int:
    """Ask all questions and print all reports. Return the exit code."""
    tally = Tally(Counter(), [])
    with tempfile.TemporaryDirectory() as data:
        for archive in archives:
            try:
                root = unpack(archive, cache)
            except ArchiveMissing as error:
                print(error, file=sys.stderr)
                return 2
            examine(archive, root, Path(data), tally)
    languages = {archive.language for archive in archives}
    return conclude(tally, len(languages))


def conclude(tally: Tally, languages: int) -> int:
    """Print the sum of all verdicts. Return 1 if a claim is false, else 0."""
    print("", *tally.table(), sep="\n")
    print(f"{tally.total} claims of {tally.reports} reports in {languages} languages")
    if tally.false:
        print("False:", *tally.false, sep="\n  ")
    return 1 if tally.false else 0


if __name__ == "__main__":
    sys.exit(main())
