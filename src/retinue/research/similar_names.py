"""Names that exist and look like one that does not: what somebody who mistyped may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from retinue.codebase import Bounds, SearchPattern
from retinue.core import Stop
from retinue.research.role_context import Inquiry
from retinue.research.tracing import DEFINES

NEAR = 3
ALIKE = 0.75
"""How much of two names must agree, from 0 to 1."""
SHORTEST = 4
"""Letters: anything looks like a shorter name."""
MOST_WORDS, MOST_PIECES = 3, 24
LOOK = Bounds(max_files=500, max_matches=2_000, max_matches_per_file=50, max_line_chars=300)


def near_names(inquiry: Inquiry, wanted: Iterable[str], stop: Stop) -> tuple[str, ...]:
    """Defined names, most alike first. Whatever survives a slip of the pen has a few letters in a row."""
    words = [flat for word in wanted if len(flat := _flat(word)) >= SHORTEST][:MOST_WORDS]
    pieces = sorted({word[at : at + 3] for word in words for at in range(len(word) - 2)})[:MOST_PIECES]
    if not pieces:
        return ()
    name = rf"\w*(?:{'|'.join('_?'.join(piece) for piece in pieces)})\w*"
    pattern = rf"\b{DEFINES}\s+(?:\([^)]*\)\s*)?{name}|^\s*{name}\s*(?::[^=]*)?="
    found = inquiry.scope.codebase.grep(SearchPattern(pattern, ignore_case=True), stop, bounds=LOOK).matches
    names = {name for match in found for name in re.findall(r"[^\W\d]\w*", match.text)}
    scores = {name: max(_likeness(_flat(name), word) for word in words) for name in names}
    near = sorted((name for name in scores if scores[name] >= ALIKE), key=lambda name: (-scores[name], name))
    once = {_flat(name): name for name in reversed(near)}  # of `Store` and `store` the first
    return tuple(name for name in near if name in once.values())[:NEAR]


def _flat(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _likeness(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > max(len(one), len(other)) * (1 - ALIKE):
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
