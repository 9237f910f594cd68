"""Whole reports are kept for later, and nothing else is reached through their ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import InvalidInput, Report, ReportId, RoleOutcome, RoleResult, Unavailable
from retinue.store import Reports
from retinue.store.reports import MAX_REPORTS


def report() -> Report:
    outcome = RoleOutcome(status="ok", value=RoleResult(summary="s"), started_at=1, elapsed_ms=1)
    return Report(
        id=ReportId.new(), question="q", roots_searched=("/r",), roles={"locator": outcome}, summary="s"
    )


def test_kept_report_comes_back_whole_to_another_server(tmp_path: Path) -> None:
    """P4: what an answer cut is fetchable by its handle."""
    one = report()
    Reports(tmp_path).save(one)
    assert Reports(tmp_path).get(one.id) == one


@pytest.mark.parametrize(
    "wrong", ["", "../../etc/passwd", "a" * 15 + "/..", "A" * 15, "1k09mhp54ymrz7", "x\0y"]
)
def test_only_ids_reach_the_folder(tmp_path: Path, wrong: str) -> None:
    """P6: an id from outside never becomes a path before it was checked."""
    with pytest.raises(InvalidInput, match="not a report id"):
        Reports(tmp_path).get(wrong)


def test_unknown_and_damaged_reports_are_refused_alike(tmp_path: Path) -> None:
    reports, one = Reports(tmp_path), report()
    with pytest.raises(InvalidInput, match="no report has the id"):
        reports.get(one.id)
    reports.save(one)
    for damage in ("", "{}", "[]", '{"id": 3}', "\xff"):
        (tmp_path / "reports" / f"{one.id}.json").write_text(damage, encoding="latin-1")
        with pytest.raises(InvalidInput, match="no report has the id"):
            reports.get(one.id)


def test_oldest_reports_make_room(tmp_path: Path) -> None:
    reports, first = Reports(tmp_path), report()
    for one in [first, *(replace(first, id=ReportId.new()) for _ in range(MAX_REPORTS))]:
        reports.save(one)
    assert len(list((tmp_path / "reports").iterdir())) == MAX_REPORTS
    with pytest.raises(InvalidInput):
        reports.get(first.id)


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot be saved"):
        Reports(tmp_path).save(report())
