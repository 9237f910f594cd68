"""Chooses the lines that the locator cites: several for the best files, best first, each checked again (P3)."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.codebase import Claim, Place, best_definitions, check_claims
from retinue.core import Reference, Stop
from retinue.research.role_context import RoleContext

MAX_FURTHER_LINES = 20
"""How many lines are cited besides the first one of each place."""


def cited_lines(context: RoleContext, places: Sequence[Place], stop: Stop) -> tuple[Reference, ...]:
    """Return the references to the definitions of some places and to the lines inside them.

    The places have been checked: the first line of each is cited as it is, and only the others are opened
    again. A place without a line is cited as a file.
    """
    firsts = {(place.entry, place.line) for place in places}
    claims: dict[Claim, None] = {}
    for place, one in best_definitions(places):
        if place.line or one is not place.definitions[0]:
            claims.setdefault(Claim(place.entry, one.line, (one.symbol,) if one.symbol else ()))
            claims.setdefault(Claim(place.entry, one.focus))
    further = [claim for claim in claims if (claim.entry, claim.line) not in firsts][:MAX_FURTHER_LINES]
    held = set(check_claims(context.scope.codebase, further, stop, context.sources.charge).held)
    cited = [
        (claim.entry, claim.line) for claim in claims if claim in held or (claim.entry, claim.line) in firsts
    ]
    cited += [(place.entry, place.line or None) for place in places]
    return tuple(dict.fromkeys(context.reference(entry, line) for entry, line in cited))
