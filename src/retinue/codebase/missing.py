"""Names that a question mentions and no file has, with names that come near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from retinue.codebase.evidence import Evidence
from retinue.codebase.question import ParsedQuestion
from retinue.codebase.rank import Ranking

_NEAR = 3
_ALIKE = 0.75
"""How much of two names must agree, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    near: tuple[str, ...]
    """Defined names that look like it, most alike first."""


def missing_names(question: ParsedQuestion, evidence: Evidence, ranking: Ranking) -> tuple[Missing, ...]:
    """In the order of the question. Only names that look like code: any other word may be plain language."""
    absent = [name for name in question.names if _is_code(name) and not _occurs(name, evidence)]
    if not absent:
        return ()
    defined = sorted({name for detail in ranking.details.values() for name in detail.name_terms})
    return tuple(Missing(name, near_names(name, defined)) for name in absent)


def near_names(name: str, defined: Sequence[str]) -> tuple[str, ...]:
    """Those without enough letters of the name are left out first: comparing in earnest is slow."""
    foreign = bytes(set(range(256)).difference(f"{name}\n".encode()))
    shared = "\n".join(defined).encode().translate(None, foreign).split(b"\n")
    possible = [
        other
        for other, letters in zip(defined, shared, strict=False)
        if 2 * min(len(letters), len(name)) >= _ALIKE * (len(name) + len(other))
    ]
    return tuple(get_close_matches(name, possible, _NEAR, _ALIKE))


def _is_code(name: str) -> bool:
    return "_" in name.strip("_") or any(letter.isupper() for letter in name[1:])


def _occurs(name: str, evidence: Evidence) -> bool:
    whole = name.replace("_", "").lower()
    return bool(evidence.counts.get(whole)) if whole in evidence.counts else True
