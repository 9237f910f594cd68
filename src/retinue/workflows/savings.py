"""What isolation saved: tokens that each phase saw, against one context that would have held them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retinue.workflows.step_io import ContextSeen


def savings(seen: Sequence[ContextSeen]) -> dict[str, Any]:
    """A row for each call of an agent.

    One context would keep everything from before, and would not have to be handed a summary of it.
    """
    rows: list[dict[str, Any]] = []
    together = 0
    for each in seen:
        together += max(0, each.tokens - each.handed) if rows else each.tokens
        held = max(together, each.tokens)
        rows.append(
            {
                "step": each.step.rsplit(":", 2)[0],
                "tokens": each.tokens,
                "one_context": held,
                "saved_percent": round(100 * (1 - each.tokens / held)) if held else 0,
            }
        )
    return {
        "phases": rows,
        "largest_context": max((each.tokens for each in seen), default=0),
        "one_context": together,
        "counted": "by the executors" if seen and all(each.metered for each in seen) else "estimated",
    }
