"""Which files a question names outright: by path, by dotted module name, in a stack trace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from retinue.codebase.question import Question

_SEPARATOR = re.compile(r"\.|::")


class PathTable:
    """Paths by the end of their name, so that `utils/text.py` finds `django/utils/text.py`."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._by_name: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
        self._by_module: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
        for file, path in enumerate(paths):
            segments = path.lower().split("/")
            self._by_name[segments[-1]].append((file, segments))
            module = [*segments[:-1], segments[-1].rsplit(".", 1)[0]]
            if module[-1] in ("__init__", "index", "mod"):
                module.pop()
            if module:
                self._by_module[module[-1]].append((file, module))

    def named(self, path: str) -> list[int]:
        """The files whose path shares the longest end with `path`."""
        segments = path.lower().replace("\\", "/").split("/")
        return _best((_shared_end(own, segments), file) for file, own in self._by_name.get(segments[-1], ()))

    def module(self, dotted: str) -> list[int]:
        """The files of the longest module name that `dotted` starts with or contains."""
        segments = [part.lower() for part in _SEPARATOR.split(dotted)]
        candidates: list[tuple[int, int]] = []
        for end in range(len(segments), 0, -1):
            for file, own in self._by_module.get(segments[end - 1], ()):
                shared = _shared_end(own, segments[:end])
                if shared >= min(2, len(own)):
                    candidates.append((shared * len(segments) + end, file))
        return _best(candidates)


def _shared_end(left: list[str], right: list[str]) -> int:
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _best(scored: Iterable[tuple[int, int]]) -> list[int]:
    best, files = 0, []
    for score, file in scored:
        if score > best:
            best, files = score, [file]
        elif score == best and best:
            files.append(file)
    return files


def mentioned(question: Question, table: PathTable) -> tuple[dict[int, float], dict[int, float]]:
    """How surely each file is named, in the words and in the stack trace; shared among all that fit."""
    said: dict[int, float] = defaultdict(float)
    traced: dict[int, float] = defaultdict(float)
    frames = {frame.path for frame in question.frames}
    for path in question.paths:
        _share(said, table.named(path))
    for dotted in question.dotted:
        _share(said, table.module(dotted))
    for path in dict.fromkeys(frame.path for frame in question.frames):
        _share(traced, table.named(path))
    for path in frames:
        for file in table.named(path):
            said.pop(file, None)
    return said, traced


def _share(into: dict[int, float], files: list[int]) -> None:
    for file in files:
        into[file] += 1 / len(files) ** 0.5
