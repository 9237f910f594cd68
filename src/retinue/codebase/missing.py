"""Names that a question mentions and no file has, with names that come near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from retinue.codebase.evidence import Evidence
from retinue.codebase.question import Question
from retinue.codebase.rank import Ranking

_NEAR = 3
_ALIKE = 0.75
"""How much of two names must agree, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    near: tuple[str, ...]
    """Defined names that look like it, most alike first."""


def missing_names(question: Question, evidence: Evidence, ranking: Ranking) -> tuple[Missing, ...]:
    """In the order of the question. Only names that look like code: any other word may be plain language."""
    absent = [name for name in question.names if _is_code(name) and not _occurs(name, evidence)]
    if not absent:
        return ()
    defined = sorted({name for detail in ranking.details.values() for name in detail.name_terms})
    return tuple(
        Missing(name, tuple(get_close_matches(name, _possible(name, defined), _NEAR, _ALIKE)))
        for name in absent
    )


def _possible(name: str, defined: Sequence[str]) -> list[str]:
    """Those with enough letters of the name to be alike: comparing in earnest goes letter by letter."""
    foreign = bytes(set(range(256)).difference(f"{name}\n".encode()))
    shared = "\n".join(defined).encode().translate(None, foreign).split(b"\n")
    return [
        other
        for other, common in zip(defined, shared, strict=False)
        if 2 * min(len(common), len(name)) >= _ALIKE * (len(name) + len(other))
    ]


def _is_code(name: str) -> bool:
    return "_" in name.strip("_") or any(letter.isupper() for letter in name[1:])


def _occurs(name: str, evidence: Evidence) -> bool:
    whole = name.replace("_", "").lower()
    return bool(evidence.counts.get(whole)) if whole in evidence.counts else True
