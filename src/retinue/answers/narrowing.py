"""Applies what a follow-up says about where to look to the places that were found."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from retinue.answers.question_reader import Narrowing
from retinue.codebase import Place
from retinue.core import Report

KNOWN_FILE_FACTOR, WANTED_KIND_FACTOR = 1.3, 1.6
"""Factors for the score of a place in a file of the earlier report, and of one of a wanted kind."""
EARLIER = "in the earlier report"
"""The reason for a place whose file is in the earlier report."""


def narrow_places(
    places: Sequence[Place], narrowing: Narrowing, earlier: Report, limit: int
) -> tuple[list[Place], str | None]:
    """Return the places that a follow-up means, best first, and a note on how they were narrowed down.

    A narrowing that would leave no place is ignored.
    """
    kept = [place for place in places if place.kind not in narrowing.unwanted] or list(places)
    notes = [f"without {kind}" for kind in sorted(narrowing.unwanted)]
    if narrowing.only and (of_kind := [place for place in kept if place.kind in narrowing.wanted]):
        kept = of_kind
        notes += [f"only {kind}" for kind in sorted(narrowing.wanted)]
    for area in narrowing.areas:
        if inside := [place for place in kept if _is_inside(place, area)]:
            kept = inside
            notes.append(f"in {area}")
    values = [outcome.value for outcome in earlier.roles.values() if outcome.value is not None]
    known = {earlier.absolute_path(reference) for value in values for reference in value.references}
    scored = [_rescore(place, narrowing, known) for place in kept]
    best = sorted(scored, key=lambda place: -place.score)[:limit]
    return best, f"Narrowed down: {', '.join(notes)}." if notes else None


def _rescore(place: Place, narrowing: Narrowing, known: set[str]) -> Place:
    score = place.score * (WANTED_KIND_FACTOR if place.kind in narrowing.wanted else 1.0)
    if os.path.normpath(place.entry.root.path / place.entry.path) not in known:
        return replace(place, score=score)
    return replace(place, score=score * KNOWN_FILE_FACTOR, why=(EARLIER, *place.why))


def _is_inside(place: Place, area: str) -> bool:
    """Return whether the file or one of its folders has this name."""
    wanted = area.strip("/").casefold().split("/")
    path = PurePosixPath(place.path.casefold())
    names = [*path.parts, path.stem]
    return any(names[at : at + len(wanted)] == wanted for at in range(len(names)))
