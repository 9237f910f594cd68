"""One finding of the doctor. Knows nothing of how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    name: str
    status: CheckStatus
    """`problem`: something will not work. `warning`: it works, but see `fix`. `ok`: nothing to do."""
    finding: str
    fix: str = ""
    """What to do, or what becomes possible by doing it; empty when there is nothing."""

    def as_dict(self) -> dict[str, str]:
        shown = {"name": self.name, "status": self.status, "finding": self.finding}
        return {**shown, "fix": self.fix} if self.fix else shown
