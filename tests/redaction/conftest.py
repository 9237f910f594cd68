"""Fixtures: a redactor for each regex engine, because both must behave the same."""

from __future__ import annotations

import pytest

from retinue.redaction import SecretRedactor
from retinue.redaction.regex_engine import Re2Engine, ReEngine
from retinue.redaction.secret_finder import SecretFinder

FINDERS = {engine.__name__: SecretFinder(engine()) for engine in (Re2Engine, ReEngine)}


@pytest.fixture(params=FINDERS)
def finder(request: pytest.FixtureRequest) -> SecretFinder:
    return FINDERS[request.param]


@pytest.fixture
def redactor(finder: SecretFinder) -> SecretRedactor:
    return SecretRedactor(finder=finder)


@pytest.fixture
def finders() -> dict[str, SecretFinder]:
    return FINDERS
