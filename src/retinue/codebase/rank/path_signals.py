"""Which files a question names outright: by path, by dotted module name, in a stack trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from retinue.codebase.index import FileDetail
from retinue.codebase.parse import ParsedQuestion

_OUTERMOST_FRAME_WEIGHT = 0.6
"""What a file of a stack trace counts where the calls begin; where they fail it counts in full."""
_PACKAGE_NAMES = ("__init__", "index", "mod", "lib")


class PathLookup:
    """Paths by the end of their name, so that `utils/text.py` finds `django/utils/text.py`."""

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

    def named(self, path: str) -> list[int]:
        """The files whose path shares the longest end with `path`."""
        wanted = path.lower().replace("\\", "/").split("/")
        found = self._by_name.get(wanted[-1], ())
        return _best_scored([(_shared_end(own.split("/"), wanted), file) for file, own in found])

    def module(self, name: str) -> list[int]:
        """The files of the longest module name in `name`: dotted, `::`-separated or a path without suffix."""
        dotted = name.lower().replace("::", ".").replace("/", ".").replace("\\", ".")
        wanted = [part for part in dotted.split(".") if part]
        scored: list[tuple[int, int]] = []
        for end in range(len(wanted), 0, -1):
            for file, own in self._by_module.get(wanted[end - 1], ()):
                segments = _module_segments(own)
                shared = _shared_end(segments, wanted[:end])
                if shared >= min(2, len(segments)):
                    scored.append((shared * len(wanted) + end, file))
        return _best_scored(scored)


@lru_cache(maxsize=4_096)
def _module_segments(path: str) -> tuple[str, ...]:
    folder, _, name = path.rpartition("/")
    module = name.partition(".")[0]
    segments = tuple(folder.split("/")) if folder else ()
    return segments if module in _PACKAGE_NAMES and segments else (*segments, module)


def _shared_end(left: Sequence[str], right: Sequence[str]) -> int:
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _best_scored(scored: Iterable[tuple[int, int]]) -> list[int]:
    best = 0
    files: list[int] = []
    for score, file in scored:
        if score > best:
            best, files = score, [file]
        elif score == best and best and file not in files:
            files.append(file)
    return files


@lru_cache(maxsize=2)
def _path_lookup(paths: tuple[str, ...]) -> PathLookup:
    """Of the two codebases asked about last: it takes as long to make as a tenth of an answer."""
    return PathLookup(enumerate(paths))


def mentioned_files(
    question: ParsedQuestion, paths: tuple[str, ...]
) -> tuple[dict[int, float], dict[int, float]]:
    """How surely each file is named, in the words and in the stack trace; shared among all that fit."""
    said: dict[int, float] = defaultdict(float)
    traced: dict[int, float] = defaultdict(float)
    if not (question.paths or question.dotted or question.frames):
        return said, traced
    table = _path_lookup(paths)
    called = [files for path in _deepest_last(question) if (files := table.named(path))]
    for depth, files in enumerate(called, 1):
        _add_share(
            traced, files, _OUTERMOST_FRAME_WEIGHT + (1 - _OUTERMOST_FRAME_WEIGHT) * depth / len(called)
        )
    for path in question.paths:
        _add_share(said, [file for file in table.named(path) if file not in traced])
    for dotted in question.dotted:
        _add_share(said, [file for file in table.module(dotted) if file not in traced])
    return said, traced


def _deepest_last(question: ParsedQuestion) -> list[str]:
    """The files of the stack trace, each where it stands deepest."""
    upwards = dict.fromkeys(frame.path for frame in reversed(question.frames))
    return list(reversed(upwards))


def _add_share(into: dict[int, float], files: list[int], whole: float = 1.0) -> None:
    for file in files:
        into[file] += whole / len(files)


# MERGED neighbours: What stands near the strongest files: those that import them, are imported by them, or lie beside them.

_STRONGEST_FILES = 20
_FOLDER_FILES = 10


def neighbour_signals(
    scores: Mapping[int, float], details: Mapping[int, FileDetail], paths: Sequence[str]
) -> dict[str, dict[int, float]]:
    """From a first judgement of the shortlist, three signals about the same files."""
    order = sorted(scores, key=lambda file: (-scores[file], paths[file]))
    strong = set(order[:_STRONGEST_FILES])
    table = PathLookup((file, paths[file]) for file in order)
    resolved: dict[str, list[int]] = {}
    imports: dict[int, float] = defaultdict(float)
    imported: dict[int, float] = defaultdict(float)
    for file in order:
        wanted = details[file].imports
        for name in wanted:
            if name not in resolved:
                resolved[name] = table.module(name) or table.named(name)
        needed = {target for name in wanted for target in resolved[name]} - {file}
        share = 1 / (1 + len(wanted)) ** 0.5
        for target in sorted(needed):
            if target in strong:
                imports[file] += scores[target] * share
            if file in strong:
                imported[target] += scores[file] * share
    return {"imports": imports, "imported": imported, "beside": _same_folder_signal(order, scores, paths)}


def _same_folder_signal(
    order: Sequence[int], scores: Mapping[int, float], paths: Sequence[str]
) -> dict[int, float]:
    folders: dict[str, float] = defaultdict(float)
    for file in order[:_FOLDER_FILES]:
        folders[paths[file].rpartition("/")[0]] += scores[file]
    strongest = set(order[:_FOLDER_FILES])
    return {
        file: value
        for file in order
        if (
            value := folders.get(paths[file].rpartition("/")[0], 0.0)
            - (scores[file] if file in strongest else 0)
        )
    }
