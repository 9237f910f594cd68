"""A question becomes a report: the locator first, then the others beside each other on what it found.

One budget and one deadline for all of it. A role that fails leaves a report that says so. Starts no threads
and knows nothing of runs: roles are performed by whoever is passed in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import anyio

from retinue.codebase.locate import Place
from retinue.core.report import Progress, Report, ReportId, RoleOutcome, RoleResult
from retinue.core.stop import Stop
from retinue.research.analyzer import analyze
from retinue.research.constraints import Constraints
from retinue.research.inquiry import Inquiry
from retinue.research.ledger import Ledger
from retinue.research.locator import find
from retinue.research.patterns import find_patterns
from retinue.research.perform import Perform, Work
from retinue.research.question import Asked
from retinue.research.scope import Scope
from retinue.research.sources import Sources
from retinue.research.synthesis import answer, merge

FOUND = 20
"""Places that the locator hands on, unless the caller asks for another number."""


@dataclass(slots=True)
class Pipeline:
    """One request's roles, and what they share."""

    asked: Asked
    scope: Scope
    constraints: Constraints
    perform: Perform
    redact: Callable[[str], str]
    thoughts: Scope | None = None
    """Historical documents, if there are some."""
    ledger: Ledger = field(init=False)
    outcomes: dict[str, RoleOutcome] = field(init=False, default_factory=dict[str, RoleOutcome])
    _started: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.constraints.max_files_read, self.constraints.max_bytes_read)
