"""A role's result with a model's word on it: in its order, explained by it, and said to be.

What the search is sure of stays first. Where there is no word, or none that can be used, the result stays as
it was and says why (P8). Knows nothing of how a model is reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from retinue.codebase import Place
from retinue.core import RetinueError, RoleResult, clip, join_notes
from retinue.research.advice import Advice
from retinue.research.locator import told
from retinue.research.role_context import Inquiry

Consult = Callable[[str, str, Sequence[str], float], Awaitable[Advice]]
"""Asks a model about a role's finds: the role, the question, the finds, and how many seconds it has. Raises
`RetinueError` where nothing can be had of it."""

ADVISED = ("locator", "analyzer", "patterns")
SHARE = 0.5
"""Of the time that is left: the roles that follow need the rest."""
WORTH_ASKING = 2
"""Finds: there is nothing to order in one."""


async def advised_places(
    consult: Consult, inquiry: Inquiry, result: RoleResult, places: Sequence[Place], seconds: float
) -> tuple[RoleResult, tuple[Place, ...]]:
    """The locator's result and its places, in the model's order."""
    finds = [
        f"{reference} ({place.kind}): {'; '.join(place.why)}"
        for reference, place in zip(result.references, places, strict=True)
    ]
    advice = await _word(consult, "locator", inquiry, finds, seconds)
    if not isinstance(advice, Advice):
        return _unadvised(result, advice), tuple(places)
    order = advice.order(len(places))
    if result.confidence == "high":
        order = [0, *(position for position in order if position)]
    ordered = [places[position] for position in order]
    notes = join_notes(result.notes, _by(advice, "Ordered and explained"))
    retold = told(inquiry, ordered, result.confidence, notes)
    return replace(retold, summary=_explained(advice, retold.summary)), tuple(ordered)


async def advised(
    consult: Consult, role: str, inquiry: Inquiry, result: RoleResult, seconds: float
) -> RoleResult:
    """The result of a later role, explained; examples also in the model's order."""
    advice = await _word(consult, role, inquiry, result.key_findings, seconds)
    if not isinstance(advice, Advice):
        return _unadvised(result, advice)
    order = advice.order(len(result.key_findings)) if role == "patterns" else range(len(result.key_findings))
    return replace(
        result,
        summary=_explained(advice, result.summary),
        key_findings=(*advice.explanation[1:], *(result.key_findings[position] for position in order)),
        notes=join_notes(result.notes, _by(advice, "Explained")),
    )


async def _word(
    consult: Consult, role: str, inquiry: Inquiry, finds: Sequence[str], seconds: float
) -> Advice | RetinueError | None:
    """What the model says, or why it says nothing; None if it need not be asked."""
    if len(finds) < WORTH_ASKING:
        return None
    try:
        return await consult(role, inquiry.asked.text, finds, seconds * SHARE)
    except RetinueError as error:
        return error


def _unadvised(result: RoleResult, why: RetinueError | None) -> RoleResult:
    if why is None:
        return result
    return replace(result, notes=join_notes(result.notes, f"Without the model: {clip(why.message, 160)}."))


def _explained(advice: Advice, summary: str) -> str:
    return join_notes(*advice.explanation[:1], summary) or ""


def _by(advice: Advice, done: str) -> str:
    left_out = f"; {advice.left_out} of its sentences left out" if advice.left_out else ""
    return f"{done} by {advice.model}{left_out}."
