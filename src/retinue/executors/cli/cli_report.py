"""What a coding CLI said of one run, gathered from its events, and the outcome that follows from it.

An exit code of 0 proves nothing: a run has succeeded when the CLI said so in its last event. Knows no CLI.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from retinue.core import BudgetExceeded, BudgetKind, Json, ProgramFailed, RetinueError, Spending, clip

LONGEST_LOG_TEXT = 2_000
"""Characters of one event that the log shows; tools may have returned whole files."""


@dataclass(slots=True)
class CliReport:
    answer: str = ""
    ended: bool = False
    """Whether the CLI said that it had ended, well or not."""
    error: RetinueError | None = None
    model: str | None = None
    """The one that answered, by the CLI's word."""
    session_id: str | None = None
    steps: int = 0
    tokens: int = 0
    cost_micros: int | None = None
    """Of the whole session, where it is resumed; None where the CLI does not tell."""
    denials: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    structured: Json = None
    """The answer as the CLI checked it against a schema."""

    def facts(self) -> dict[str, Json]:
        """What is known, and nothing else."""
        known: dict[str, Json] = {
            "model": self.model,
            "session_id": self.session_id,
            "denials": self.denials,
        }
        return {name: value for name, value in known.items() if value not in (None, [])}

    def usage(self) -> dict[str, int]:
        amounts = {"steps": self.steps, "tokens": self.tokens, "cost_micros": self.cost_micros or 0}
        return {name: amount for name, amount in amounts.items() if amount}

    async def charge(self, spending: Spending, error: RetinueError | None) -> RetinueError | None:
        """What is only known afterwards is spent all the same; too much of it fails a run that had not."""
        for name, amount in self.usage().items():
            try:
                async with spending.reserving(BudgetKind(name), 0) as spent:
                    spent.settle(amount)
            except BudgetExceeded as exceeded:
                error = error or exceeded
        return error

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class CliEvents(Protocol):
    """Reads one CLI's events, one JSON object for each line of its output."""

    report: CliReport

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Note what it says; the lines of the log that show it to people."""
        ...


def unfinished(name: str, exit_code: int | None, last_words: str) -> RetinueError:
    """The error of a CLI that ended without saying how."""
    said = last_words.strip().splitlines()
    why = f": {clip(said[-1], 300)}" if said else ""
    return ProgramFailed(
        f"{name} ended without a result, with exit code {exit_code}{why}", exit_code=exit_code
    )


def shown(label: str, text: str) -> Iterator[str]:
    """A text of the conversation, as lines of the log."""
    for line in clip(text, LONGEST_LOG_TEXT).splitlines():
        yield f"{label}: {line}"
