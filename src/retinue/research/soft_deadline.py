"""Ending some time before the deadline, so that what was found can still be checked and told (P2)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from retinue.core import Stop, Stopped

SHARE = 0.8
"""Of the time that is left; the rest is for checking."""


@dataclass(slots=True)
class Soon:
    stop: Stop
    note: str | None = None
    """Said when the time came before the work was done."""


@contextmanager
def early(stop: Stop) -> Generator[Soon]:
    """Work in the block ends quietly when most of the time is gone; a cancel goes on."""
    left = stop.remaining()
    soon = Soon(Stop(None if left is None else left * SHARE))
    with stop.watch(soon.stop.cancel):
        try:
            yield soon
        except Stopped:
            stop.check()  # a cancel, or the deadline itself
            soon.note = "The deadline came before all of it was traced."
