"""Finds the files that a question names: by path, by module, or in a stack trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from retinue.codebase.parse import ParsedQuestion

_OUTERMOST_FRAME_WEIGHT = 0.6
"""Weight of the outermost file of a stack trace. The file where the call fails has weight 1."""
_PACKAGE_NAMES = ("__init__", "index", "mod", "lib")


def find_named_files(
    question: ParsedQuestion, paths: tuple[str, ...]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the files that the question names by path or module, and those of its stack trace.

    If a mention fits several files, each gets an equal share.
    """
    mentioned: dict[int, float] = defaultdict(float)
    traced: dict[int, float] = defaultdict(float)
    if not (question.paths or question.dotted or question.frames):
        return mentioned, traced
    lookup = _path_lookup(paths)
    frames = [files for path in _traced_paths(question) if (files := lookup.files_with_path(path))]
    for depth, files in enumerate(frames, 1):
        _add_share(
            traced, files, _OUTERMOST_FRAME_WEIGHT + (1 - _OUTERMOST_FRAME_WEIGHT) * depth / len(frames)
        )
    for path in question.paths:
        _add_share(mentioned, [file for file in lookup.files_with_path(path) if file not in traced])
    for dotted in question.dotted:
        _add_share(mentioned, [file for file in lookup.files_of_module(dotted) if file not in traced])
    return mentioned, traced


def _traced_paths(question: ParsedQuestion) -> list[str]:
    """Return the distinct paths of the stack trace, the deepest last."""
    deepest_first = dict.fromkeys(frame.path for frame in reversed(question.frames))
    return list(reversed(deepest_first))


def _add_share(signal: dict[int, float], files: list[int], weight: float = 1.0) -> None:
    """Add an equal share of `weight` to each file."""
    for file in files:
        signal[file] += weight / len(files)


class _PathLookup:
    """Finds files by the end of their path, so that `utils/text.py` finds `django/utils/text.py`."""

    def __init__(self, paths: Iterable[tuple[int, str]]) -> None:
        self._by_name: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._by_module: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for file, path in paths:
            lower = path.lower()
            folder, _, name = lower.rpartition("/")
            self._by_name[name].append((file, lower))
            module = name.partition(".")[0]
            if module in _PACKAGE_NAMES:
                module = folder.rpartition("/")[2]
            self._by_module[module].append((file, lower))

    def files_with_path(self, path: str) -> list[int]:
        """Return the files with the name of `path` whose paths share the longest end with it."""
        wanted = path.lower().replace("\\", "/").split("/")
        found = self._by_name.get(wanted[-1], ())
        return _best_scored([(_common_end(own.split("/"), wanted), file) for file, own in found])

    def files_of_module(self, name: str) -> list[int]:
        """Return the files of the longest module name inside `name`.

        `name` is dotted, `::`-separated, or a path without suffix.
        """
        dotted = name.lower().replace("::", ".").replace("/", ".").replace("\\", ".")
        wanted = [part for part in dotted.split(".") if part]
        scored: list[tuple[int, int]] = []
        for end in range(len(wanted), 0, -1):
            for file, own in self._by_module.get(wanted[end - 1], ()):
                segments = _module_segments(own)
                shared = _common_end(segments, wanted[:end])
                if shared >= min(2, len(segments)):
                    scored.append((shared * len(wanted) + end, file))
        return _best_scored(scored)


@lru_cache(maxsize=2)
def _path_lookup(paths: tuple[str, ...]) -> _PathLookup:
    """Return the lookup for these paths. The last two are cached: building one takes a tenth of an answer."""
    return _PathLookup(enumerate(paths))


@lru_cache(maxsize=4_096)
def _module_segments(path: str) -> tuple[str, ...]:
    """Return the parts of the module name that a path stands for."""
    folder, _, name = path.rpartition("/")
    module = name.partition(".")[0]
    segments = tuple(folder.split("/")) if folder else ()
    return segments if module in _PACKAGE_NAMES and segments else (*segments, module)


def _common_end(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many items two sequences share at their end."""
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _best_scored(scored: Iterable[tuple[int, int]]) -> list[int]:
    """Return the files with the highest score above 0, each once."""
    best = 0
    files: list[int] = []
    for score, file in scored:
        if score > best:
            best, files = score, [file]
        elif score == best and best and file not in files:
            files.append(file)
    return files
