"""Complete reports are stored, and their ids give access to nothing else."""

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


def test_saved_report_is_complete_for_another_server(tmp_path: Path) -> None:
    """P4: what an answer omits can be fetched by its id."""
    one = report()
    Reports(tmp_path).save(one)
    assert Reports(tmp_path).get(one.id) == one


@pytest.mark.parametrize(
    "wrong", ["", "../../etc/passwd", "a" * 15 + "/..", "A" * 15, "1k09mhp54ymrz7", "x\0y"]
)
def test_only_valid_ids_become_paths(tmp_path: Path, wrong: str) -> None:
    """P6: an id from outside is validated before it becomes a path."""
    with pytest.raises(InvalidInput, match="not a report id"):
        Reports(tmp_path).get(wrong)


def test_unknown_and_damaged_reports_are_refused_the_same_way(tmp_path: Path) -> None:
    reports, one = Reports(tmp_path), report()
    with pytest.raises(InvalidInput, match="no report has the id"):
        reports.get(one.id)
    reports.save(one)
    for damage in ("", "{}", "[]", '{"id": 3}', "\xff"):
        (tmp_path / "reports" / f"{one.id}.json").write_text(damage, encoding="latin-1")
        with pytest.raises(InvalidInput, match="no report has the id"):
            reports.get(one.id)


def test_oldest_reports_are_deleted_first(tmp_path: Path) -> None:
    reports, first = Reports(tmp_path), report()
    for one in [first, *(replace(first, id=ReportId.new()) for _ in range(MAX_REPORTS))]:
        reports.save(one)
    assert len(list((tmp_path / "reports").iterdir())) == MAX_REPORTS
    with pytest.raises(InvalidInput):
        reports.get(first.id)


def test_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot be saved"):
        Reports(tmp_path).save(report())
