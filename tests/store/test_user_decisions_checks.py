"""Confirmed checks stay until a person confirms others, and a broken file confirms nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Unavailable
from retinue.store import ConfirmedChecks
from retinue.store.user_decisions import CHECKS_FILE


def test_checks_are_stored_by_project(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    ConfirmedChecks(tmp_path).confirm(one, {"tests": ("pytest", "-q")})
    ConfirmedChecks(tmp_path).confirm(other, {"lint": ("ruff",)})
    kept = ConfirmedChecks(tmp_path)
    assert (kept.commands_for(one), kept.commands_for(other)) == (
        {"tests": ("pytest", "-q")},
        {"lint": ("ruff",)},
    )
    kept.confirm(one, {})
    assert kept.commands_for(one) == {}
    assert (tmp_path / CHECKS_FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_broken_file_is_reported_and_confirms_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / CHECKS_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(Unavailable, match=CHECKS_FILE):
        ConfirmedChecks(tmp_path).commands_for(tmp_path)
