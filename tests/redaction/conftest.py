"""A redactor on each engine: whatever holds for one must hold for the other."""

from __future__ import annotations

import pytest

from retinue.redaction import SecretRedactor
from retinue.redaction.engine import Re2Engine, ReEngine
from retinue.redaction.finder import Finder

FINDERS = {engine.__name__: Finder(engine()) for engine in (Re2Engine, ReEngine)}


@pytest.fixture(params=FINDERS)
def finder(request: pytest.FixtureRequest) -> Finder:
    return FINDERS[request.param]


@pytest.fixture
def redactor(finder: Finder) -> SecretRedactor:
    return SecretRedactor(finder=finder)


@pytest.fixture
def finders() -> dict[str, Finder]:
    return FINDERS
