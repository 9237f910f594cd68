"""Recall and false positives on generated secrets, ordinary strings and real code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from benchmarks.redaction import mistaken, survivors
from benchmarks.redaction_generated import generated
from benchmarks.redaction_ordinary import ordinary
from benchmarks.redaction_secrets import Planted, planted
from retinue.redaction import SecretRedactor
from retinue.redaction.secret_finder import SecretFinder


@cache
def from_rules() -> list[Planted]:
    return list(generated(seed=3, per_rule=2))


PACKAGE = Path(__file__).parents[2] / "src" / "retinue"
MARKER = re.compile(r"\[redacted:([^\]]*)\]")


def test_planted_secrets_are_hidden(redactor: SecretRedactor) -> None:
    """P6: recall of at least 0.97 on at least 60 secrets of at least 40 kinds."""
    secrets = list(planted())
    assert len(secrets) >= 60
    assert len({secret.kind for secret in secrets}) >= 40
    assert 1 - len(survivors(redactor, secrets)) / len(secrets) >= 0.97


def test_secrets_generated_from_gitleaks_rules_are_hidden(redactor: SecretRedactor) -> None:
    """P6: everything that gitleaks would report is hidden, although our rules differ."""
    secrets = from_rules()
    assert len({secret.kind for secret in secrets}) > 200
    assert 1 - len(survivors(redactor, secrets)) / len(secrets) >= 0.97


def test_ordinary_strings_are_kept(redactor: SecretRedactor) -> None:
    """P6: at most 2 % of at least 300 ordinary strings are changed."""
    strings = list(ordinary())
    assert len(strings) >= 300
    assert len(mistaken(redactor, strings)) / len(strings) <= 0.02


def test_marker_contains_only_a_known_kind(finder: SecretFinder) -> None:
    """P6: kinds do not depend on the text, so a marker cannot contain a part of the secret."""
    redactor = SecretRedactor(finder=finder)
    kinds = {kind for secret in planted(seed=5) for kind in MARKER.findall(redactor.redact(secret.text))}
    assert kinds
    assert kinds <= finder.kinds


def test_both_engines_find_the_same(finders: dict[str, SecretFinder]) -> None:
    """P6: without RE2, exactly the same text is hidden."""
    texts = [each.text for each in (*planted(seed=2), *ordinary(seed=2), *from_rules())]
    texts += [file.read_text(encoding="utf-8") for file in (PACKAGE / "redaction").glob("*.py")]
    by_engine = [
        [SecretRedactor(finder=finder).redact(text) for text in texts] for finder in finders.values()
    ]
    assert by_engine[0] == by_engine[1]


def test_our_own_source_is_kept() -> None:
    """P6: code that is full of words such as password and token is kept, including the rules themselves."""
    redactor = SecretRedactor()
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert redactor.redact(text) == text, file.name
