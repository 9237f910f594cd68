"""The doctor finds what is wrong, says how to fix it, is quick and never raises (P6, P8, P10)."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from retinue.core import ConfigInvalid
from retinue.models import ModelPlan
from retinue.setup import (
    DoctorSubject,
    Machine,
    run_doctor,
)


def test_doctor_is_quick_and_reports_in_a_fixed_order(equipped: Machine, tmp_path: Path) -> None:
    started = time.monotonic()
    checks = run_doctor(DoctorSubject(equipped, tmp_path / "data", lambda: None, roots=(equipped.project,)))
    assert time.monotonic() - started < 20
    names = [check.name for check in checks]
    assert names == [
        *("python", "configuration", "caller", "roots", "parsers", "ripgrep", "git", "data folder"),
        *("database", "model endpoint", "web", "CLIs", "sandbox", "hosts"),
    ]
    shown = json.dumps([check.as_dict() for check in checks])
    assert "hunter2" not in shown
    assert not (tmp_path / "data").exists()


def test_every_warning_and_problem_has_a_fix(equipped: Machine, tmp_path: Path) -> None:
    subject = DoctorSubject(
        equipped,
        tmp_path / "data",
        lambda: None,
        roots=("/nowhere", "/", equipped.home),
        models=ModelPlan(endpoint="nonsense"),
        config_problems=(ConfigInvalid("no such setting: colour"),),
    )
    bad = [check for check in run_doctor(subject) if check.status != "ok"]
    assert {"configuration", "roots", "ripgrep", "model endpoint", "sandbox"} <= {check.name for check in bad}
    assert [check for check in bad if not check.fix] == []


def test_check_that_fails_or_hangs_becomes_a_warning(equipped: Machine, tmp_path: Path) -> None:
    def broken() -> str | None:
        raise OSError("/secret/place")

    release = threading.Event()

    def hanging() -> str | None:
        release.wait(30)
        return None

    failed = run_doctor(DoctorSubject(equipped, tmp_path, broken))
    late = run_doctor(DoctorSubject(equipped, tmp_path, hanging), seconds=1.5)
    release.set()
    found = [next(check for check in checks if check.name == "ripgrep") for checks in (failed, late)]
    assert [check.status for check in found] == ["warning", "warning"]
    assert "OSError" in found[0].finding and "/secret" not in found[0].finding
    assert "in time" in found[1].finding
