"""Stores complete reports, so that callers can fetch what an answer left out and ask follow-up questions."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from retinue.core import InvalidInput, Report, ReportId, Unavailable

MAX_REPORTS = 200
"""Number of reports that are kept. The oldest are deleted first."""


class Reports:
    """The reports in the data folder, one file each."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "reports"

    def save(self, report: Report) -> None:
        """Write the report as a draft, then rename it, so that a reader never sees half a report."""
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
            self._delete_old()
        except OSError as error:
            raise Unavailable(
                f"the report cannot be saved in the data folder: {error.strerror}",
                hint="set RETINUE_DATA_DIR to a folder that you may write to",
            ) from None

    def get(self, report_id: str) -> Report:
        """Return the report with this id, or raise `InvalidInput`."""
        matching = self.newest(report_id) if ReportId.is_part(report_id) else []
        path = self._path(ReportId.parse(matching[0] if len(matching) == 1 else report_id))
        try:
            return Report.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, InvalidInput):
            raise InvalidInput(
                f"no report has the id {report_id}",
                hint=f"only the last {MAX_REPORTS} reports are kept: ask the question again",
            ) from None

    def newest(self, prefix: str = "") -> list[str]:
        """The ids of the reports that begin with `prefix`, the newest first."""
        # Ids sort by creation time.
        return sorted(
            (path.stem for path in self._folder.glob("*.json") if path.stem.startswith(prefix)), reverse=True
        )

    def _path(self, report_id: ReportId) -> Path:
        return self._folder / f"{report_id}.json"

    def _delete_old(self) -> None:
        for report_id in self.newest()[MAX_REPORTS:]:
            (self._folder / f"{report_id}.json").unlink(missing_ok=True)
