"""Garbage collection is off while a server loads, and on afterwards."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

from retinue.server import disable_gc, freeze_gc
from retinue.server.process import GC_THRESHOLD


@pytest.fixture(autouse=True)
def as_before() -> Generator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.enable()


def test_loaded_objects_are_frozen_and_later_garbage_is_collected() -> None:
    disable_gc()
    assert not gc.isenabled()
    freeze_gc()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == GC_THRESHOLD
    ring: list[object] = []
    ring.append(ring)
    del ring
    assert gc.collect() > 0
