"""Chooses the lines that the locator cites: several of the best files, best first, all checked (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from retinue.answers.role_context import RoleContext
from retinue.codebase import Claim, Place, best_definitions, check_claims
from retinue.core import DeadlineExceeded, Reference, Stop

_FEW, _FILES_SHARE = 10, 0.6
"""The first references may each be in another file; of a longer list, only this share."""


def files_for(limit: int) -> int:
    """Return how many files to look at if `limit` lines may be cited."""
    return max(min(limit, _FEW), int(limit * _FILES_SHARE))


def cited_lines(
    context: RoleContext, places: Sequence[Place], limit: int, stop: Stop
) -> tuple[Reference, ...]:
    """Return at most `limit` references to the definitions of some places and to lines inside them.

    The places have been checked: the first line of each is cited as it is, and only the others are opened
    again. A place without a line is cited as a file.
    """
    firsts = {(place.entry, place.line or None) for place in places}
    claims: dict[Claim, None] = {}
    for place, one in best_definitions(places):
        if place.line or one is not place.definitions[0]:
            claims.setdefault(Claim(place.entry, one.line, (one.symbol,) if one.symbol else ()))
            claims.setdefault(Claim(place.entry, one.focus))
    further = [claim for claim in claims if (claim.entry, claim.line) not in firsts][:limit]
    held: set[Claim] = set()
    with suppress(DeadlineExceeded):  # the first lines are checked already
        held.update(check_claims(context.scope.codebase, further, stop, context.sources.charge).held)
    cited = [
        (claim.entry, claim.line) for claim in claims if claim in held or (claim.entry, claim.line) in firsts
    ]
    cited += [(place.entry, place.line or None) for place in places]
    return tuple(dict.fromkeys(context.reference(*one) for one in cited))[:limit]
