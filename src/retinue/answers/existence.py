"""Tells which names of a question occur nowhere in the project's own code. Judges nothing by plain words."""

from __future__ import annotations

import re

from retinue.answers.role_context import RoleContext
from retinue.codebase import Bounds, SearchPattern, file_category
from retinue.core import Stop

MAX_NAMES = 5
NAME_BOUNDS = Bounds(max_files=2_000, max_matches=2_000, max_matches_per_file=1, max_line_chars=200)


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
