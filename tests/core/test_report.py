"""The shapes of results are a contract: no key more, no key less."""

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


def test_wrapper_has_a_value_or_an_error_by_its_status() -> None:
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
def test_a_wrapper_that_contradicts_itself_cannot_be_made(parts: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        RoleOutcome(started_at=0, elapsed_ms=0, **parts)  # pyright: ignore[reportArgumentType]


def test_report_has_the_contract_keys_and_its_own_only_when_they_say_something() -> None:
    """Phase 3, schema validation: `research_codebase` grows by role keys."""
    shown = REPORT.as_dict()
    assert list(shown) == ["question", "rootsSearched", "summary", "locator", "analyzer", "id"]
    assert shown["rootsSearched"] == ["/r"]
    assert shown["locator"] == OK.as_dict()


def test_report_comes_back_from_its_json_as_it_was() -> None:
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
def test_report_without_roles_or_with_unknown_ones_cannot_be_made(roles: dict[str, RoleOutcome]) -> None:
    with pytest.raises(InvalidInput):
        Report(id=REPORT.id, question="q", roots_searched=(), roles=roles, summary="")


def test_one_role_alone_is_shown_without_its_wrapper() -> None:
    shown = Report(
        id=REPORT.id, question="q", roots_searched=("/r",), roles={"locator": OK}, summary="", notes=("cut",)
    ).role_as_dict("locator")
    assert shown["references"] == ["a.py:3"]
    assert shown["status"] == "ok"
    assert shown["notes"] == "cut"
    late = Report(id=REPORT.id, question="q", roots_searched=("/r",), roles={"analyzer": LATE}, summary="")
    assert "references" not in late.role_as_dict("analyzer")
