"""A codebase of which only some folders are looked through. What may be read is decided as for the whole."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.codebase.bounds import Bounds, OnRead, free_of_charge
from retinue.codebase.codebase import Codebase, Files
from retinue.codebase.pattern import Pattern
from retinue.codebase.policy import Policy
from retinue.codebase.search import Found
from retinue.codebase.walk import MAX_FILES
from retinue.core.root import Root
from retinue.core.stop import Stop


class Narrowed(Codebase):
    """The roots stay what they are, so rules that speak of a path from its root keep their meaning."""

    def __init__(self, roots: Sequence[Root], policy: Policy, below: Sequence[str]) -> None:
        """`below` holds absolute paths of folders."""
        super().__init__(roots, policy)
        self._below = tuple(below)

    def files(
        self, stop: Stop, *, below: Sequence[str] = (), sized: bool = False, max_files: int = MAX_FILES
    ) -> Files:
        return super().files(stop, below=below or self._below, sized=sized, max_files=max_files)

    def grep(
        self,
        pattern: Pattern,
        stop: Stop,
        *,
        below: Sequence[str] = (),
        globs: Sequence[str] = (),
        context: int = 0,
        bounds: Bounds | None = None,
        on_read: OnRead = free_of_charge,
    ) -> Found:
        return super().grep(
            pattern,
            stop,
            below=below or self._below,
            globs=globs,
            context=context,
            bounds=bounds,
            on_read=on_read,
        )
