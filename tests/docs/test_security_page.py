"""SECURITY.md: every promise names tests, and the tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ATTACKERS = ("A repository", "A model", "A web page", "A run", "Another user of the machine", "The network")


@cache
def functions_of(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_named_test_exists(path: str, name: str) -> None:
    file = ROOT / path
    assert file.is_file(), f"SECURITY.md names {path}, which does not exist"
    assert name in functions_of(file), f"{path} has no {name}"


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_every_attacker_has_promises_and_limits(attacker: str) -> None:
    section = PAGE.partition(f"\n## {attacker}\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\|", section, re.MULTILINE)) >= 5
    assert "**Not promised.**" in section


def test_every_promise_is_shown_by_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count(" | ") == 2]
    promises = [row for row in rows if not row.startswith(("| promise ", "| --- "))]
    assert len(promises) > 30
    assert [row for row in promises if "::test_" not in row] == []
