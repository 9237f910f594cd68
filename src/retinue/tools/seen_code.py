"""Remembers which code an agent was shown, so that its answer can be compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class SeenCode:
    """The lines and files that one agent has seen."""

    def __init__(self, on_read: Callable[[str], None] = lambda _: None) -> None:
        """`on_read` is called with each file of which a line is shown."""
        self._on_read = on_read
        self._lines: dict[str, dict[int, str]] = {}
        self._paths: set[str] = set()

    def __bool__(self) -> bool:
        """Whether the agent has seen any line of a file."""
        return bool(self._lines)

    def add_lines(self, path: str, lines: Iterable[tuple[int, str]], *, are_own: bool = False) -> None:
        """Remember lines of a file, each with its number. Lines that the agent wrote itself are not read."""
        if not are_own:
            self._on_read(path)
        self._lines.setdefault(path, {}).update(lines)

    def add_paths(self, paths: Iterable[str]) -> None:
        """Remember files whose names were shown."""
        self._paths.update(paths)

    @property
    def paths(self) -> frozenset[str]:
        """All files of which the agent has seen the name or a line."""
        return frozenset({*self._paths, *self._lines})

    def has_line(self, path: str, line: int) -> bool:
        return line in self._lines.get(path, {})

    def text(self) -> str:
        """Everything that the agent has seen."""
        lines = (line for numbered in self._lines.values() for line in numbered.values())
        return "\n".join([*self.paths, *lines])
