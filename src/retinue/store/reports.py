"""Whole reports, kept so that what an answer cut can be fetched and a follow-up can refine it."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from retinue.core import InvalidInput, Report, ReportId, Unavailable

KEPT = 200
"""Reports in the folder; the oldest go first."""


class Reports:
    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "reports"

    def keep(self, report: Report) -> None:
        """Written whole under another name first: a reader never sees half a report."""
        path = self._path(report.id)
        draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(report.as_dict(), file, ensure_ascii=False)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            self._forget_old()
        except OSError as error:
            raise Unavailable(
                f"the report cannot be kept in the data folder: {error.strerror}",
                hint="set RETINUE_DATA_DIR to a folder that you may write to",
            ) from None

    def get(self, report_id: str) -> Report:
        """The report of that id, or InvalidInput."""
        path = self._path(ReportId.parse(report_id))
        try:
            return Report.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, InvalidInput):
            raise InvalidInput(
                f"no report has the id {report_id}",
                hint=f"the last {KEPT} reports are kept: ask the question again",
            ) from None

    def _path(self, report_id: ReportId) -> Path:
        return self._folder / f"{report_id}.json"

    def _forget_old(self) -> None:
        # Ids sort by the time they were made.
        for path in sorted(self._folder.glob("*.json"))[:-KEPT]:
            path.unlink(missing_ok=True)
