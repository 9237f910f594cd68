"""Results have exactly the keys that hosts rely on."""

from __future__ import annotations

import pytest

from retinue.core import (
    InvalidInput,
    Reference,
    Report,
    ReportId,
    ReportProgress,
    RoleError,
    RoleOutcome,
    RoleResult,
)

RESULT = RoleResult(summary="s", references=(Reference("a.py", 3),), key_findings=("f",), confidence="high")
OK = RoleOutcome(status="ok", value=RESULT, started_at=5, elapsed_ms=7)
LATE = RoleOutcome(status="timeout", error=RoleError("deadline_exceeded", "late"), started_at=5, elapsed_ms=7)
REPORT = Report(
    id=ReportId.new(),
    question="q",
    roots_searched=("/r",),
    roles={"locator": OK, "analyzer": LATE},
    summary="s",
)


def test_normalized_result_has_exactly_its_keys() -> None:
    """Phase 3, schema validation: the normalized subagent result."""
    assert RESULT.as_dict() == {
        "summary": "s",
        "references": ["a.py:3"],
        "key_findings": ["f"],
        "confidence": "high",
        "notes": None,
    }


def test_role_outcome_has_a_value_or_an_error_depending_on_its_status() -> None:
    """Phase 3, schema validation: the runtime wrapper."""
    assert OK.as_dict() == {
        "status": "ok",
        "value": RESULT.as_dict(),
        "timing": {"startedAt": 5, "elapsedMs": 7},
    }
    assert LATE.as_dict() == {
        "status": "timeout",
        "error": {"name": "deadline_exceeded", "message": "late"},
        "timing": {"startedAt": 5, "elapsedMs": 7},
    }


@pytest.mark.parametrize(
    "parts",
    [
        {"status": "ok"},
        {"status": "ok", "value": RESULT, "error": RoleError("e", "m")},
        {"status": "error"},
        {"status": "canceled", "value": RESULT, "error": RoleError("e", "m")},
    ],
)
def test_contradictory_role_outcome_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        RoleOutcome(started_at=0, elapsed_ms=0, **parts)  # pyright: ignore[reportArgumentType]


def test_report_has_the_agreed_keys_and_optional_ones_only_with_a_value() -> None:
    """Phase 3, schema validation: `research_codebase` grows by role keys."""
    shown = REPORT.as_dict()
    assert list(shown) == ["question", "rootsSearched", "summary", "locator", "analyzer", "id"]
    assert shown["rootsSearched"] == ["/r"]
    assert shown["locator"] == OK.as_dict()


def test_report_survives_a_round_trip_through_json() -> None:
    full = Report(
        id=REPORT.id,
        question="q",
        roots_searched=("/r", "/s"),
        roles=REPORT.roles,
        summary="s",
        notes=("n",),
        root_of={"a.py:3": 1},
        progress=ReportProgress(spawned=2, elapsed_ms=1, files_read=3, bytes_read=4, keywords=("k",)),
        artifact="/memo.md",
    )
    assert Report.from_dict(full.as_dict()) == full
    assert Report.from_dict(REPORT.as_dict()) == REPORT


@pytest.mark.parametrize("roles", [{}, {"locator": OK, "poet": OK}])
def test_report_without_roles_or_with_unknown_roles_is_refused(roles: dict[str, RoleOutcome]) -> None:
    with pytest.raises(InvalidInput):
        Report(id=REPORT.id, question="q", roots_searched=(), roles=roles, summary="")


def test_single_role_is_shown_without_the_rest_of_the_report() -> None:
    shown = Report(
        id=REPORT.id, question="q", roots_searched=("/r",), roles={"locator": OK}, summary="", notes=("cut",)
    ).role_as_dict("locator")
    assert shown["references"] == ["a.py:3"]
    assert shown["status"] == "ok"
    assert shown["notes"] == "cut"
    late = Report(id=REPORT.id, question="q", roots_searched=("/r",), roles={"analyzer": LATE}, summary="")
    assert "references" not in late.role_as_dict("analyzer")
