"""Tells which names of a question the project lacks, and which similar names it defines.

Judges nothing by plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from retinue.answers.role_context import RoleContext
from retinue.answers.tracing import DEFINITION_KEYWORD
from retinue.codebase import Bounds, SearchPattern, file_category
from retinue.core import Stop

MAX_NAMES = 5
NAME_BOUNDS = Bounds(max_files=2_000, max_matches=2_000, max_matches_per_file=1, max_line_chars=200)
MAX_SIMILAR_NAMES = 3
MIN_SIMILARITY = 0.75
"""The smallest similarity of two names, from 0 to 1."""
MIN_NAME_CHARS = 4
"""Shorter names resemble too many others."""
MAX_WANTED_NAMES, MAX_PIECES = 3, 24
SIMILAR_NAMES_BOUNDS = Bounds(max_files=500, max_matches=2_000, max_matches_per_file=50, max_line_chars=300)


def tell_absent_names(context: RoleContext, stop: Stop) -> tuple[bool, str]:
    """Return whether the project has none of the question's names, and a sentence about the absent ones."""
    names = context.question.proper_names[:MAX_NAMES]
    absent = [name for name in names if not _occurs(context, name, stop)]
    if not absent:
        return False, ""
    listed = " and ".join(f"`{name}`" for name in absent)
    sentence = f"{listed} {'occurs' if len(absent) == 1 else 'occur'} nowhere in the project's own code."
    return (True, f"No: {sentence}") if len(absent) == len(names) else (False, sentence)


def _occurs(context: RoleContext, name: str, stop: Stop) -> bool:
    """Return whether the project's own code has a name, in any spelling: `HTTP/3`, `http3`, `HTTP_3`.

    A search that a limit ended proves nothing, so the name counts as there.
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[+#]+", name)
    pattern = SearchPattern(r"[ /_.-]?".join(map(re.escape, parts)), ignore_case=True)
    found = context.scope.codebase.grep(pattern, stop, bounds=NAME_BOUNDS)
    stop.check()
    own = any(file_category(match.entry.path) in ("own", "package") for match in found.matches)
    return own or bool({"files", "matches", "time"} & set(found.omitted.limits))


def find_similar_names(context: RoleContext, wanted: Iterable[str], stop: Stop) -> tuple[str, ...]:
    """Return defined names that resemble the wanted ones, most similar first.

    Searches for definitions that share three letters in a row with a wanted name, then compares them.
    """
    words = [flat for word in wanted if len(flat := _flatten(word)) >= MIN_NAME_CHARS][:MAX_WANTED_NAMES]
    pieces = sorted({word[at : at + 3] for word in words for at in range(len(word) - 2)})[:MAX_PIECES]
    if not pieces:
        return ()
    name = rf"\w*(?:{'|'.join('_?'.join(piece) for piece in pieces)})\w*"
    pattern = rf"\b{DEFINITION_KEYWORD}\s+(?:\([^)]*\)\s*)?{name}|^\s*{name}\s*(?::[^=]*)?="
    found = context.scope.codebase.grep(
        SearchPattern(pattern, ignore_case=True), stop, bounds=SIMILAR_NAMES_BOUNDS
    ).matches
    names = {name for match in found for name in re.findall(r"[^\W\d]\w*", match.text)}
    scores = {name: max(_similarity(_flatten(name), word) for word in words) for name in names}
    similar = sorted(
        (name for name in scores if scores[name] >= MIN_SIMILARITY), key=lambda name: (-scores[name], name)
    )
    once = {_flatten(name): name for name in reversed(similar)}  # keep one of `Store` and `store`
    return tuple(name for name in similar if name in once.values())[:MAX_SIMILAR_NAMES]


def _flatten(name: str) -> str:
    """Return a name in lower case without underscores and punctuation."""
    return re.sub(r"[\W_]", "", name).casefold()


def _similarity(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > max(len(one), len(other)) * (1 - MIN_SIMILARITY):
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
