"""What was asked: the question checked and cleaned, what it is after, and what sort of answer it wants."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from retinue.codebase import ParsedQuestion, parse_question, stem
from retinue.core import InvalidInput
from retinue.research.followup import Narrowing, subject

LONGEST = 100_000
"""Characters: a bug report with its log fits, a pasted file does not."""
MOST_TERMS = 40
"""Of a long report, the weightiest say what it is about."""

_EXAMPLES = re.compile(
    r"\b(?:examples?|patterns?|similar|elsewhere|precedents?|samples?|conventions?|idioms?"
    r"|how (?:do|are) (?:we|others?|other \w+)|existing (?:implementations?|uses?|usages?))\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"_|\d|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What only a name in code has."""
_GENERIC_WORDS = """
implement implementation define definition declare handle locate live call called function method class module
package logic part support contain place exist example pattern similar usage show
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
"""Words that ask about something without saying about what."""


@dataclass(frozen=True, slots=True)
class ResearchQuestion:
    text: str
    """As it was asked, without control characters."""
    parsed: ParsedQuestion
    """Taken apart; with the question it follows up, if there is one."""

    @property
    def wants_examples(self) -> bool:
        return _EXAMPLES.search(self.text) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names that can only be those of code: if none of them exists, nothing answers the question."""
        text = self.parsed.text
        return tuple(
            name
            for name in self.parsed.names
            if _IDENTIFIER.search(name) or f"`{name}`" in text or f"{name}(" in text
        )[:MOST_TERMS]

    @property
    def terms(self) -> dict[str, float]:
        """The weightiest stems, in the order of the question."""
        weights = self.parsed.terms
        heaviest = set(sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS])
        return {term: weight for term, weight in weights.items() if term in heaviest}

    @property
    def aims(self) -> tuple[str, ...]:
        """What an answer must contain at least one of."""
        terms = tuple(term for term in self.terms if term not in _GENERIC)
        return self.names or terms or tuple(self.terms)

    @property
    def keywords(self) -> tuple[str, ...]:
        """What is searched for, the weightiest first."""
        names, spoken = self.parsed.names, self.parsed.spoken
        in_order = (*sorted(names, key=lambda name: (-names[name], name)), *self.aims)
        return tuple(dict.fromkeys(spoken.get(word, word) for word in in_order))[:8]


def check_question(question: str, *, follows: str = "") -> ResearchQuestion:
    """Raises InvalidInput for a question that cannot be one. `follows` is the question it refines."""
    if len(question) > LONGEST:
        raise InvalidInput(
            f"the question has {len(question)} characters, over the limit of {LONGEST}",
            hint="ask in a few sentences, and name files instead of pasting them",
        )
    text = "".join(char for char in question if char in "\n\t" or not _is_control(char)).strip()
    if not any(char.isalnum() for char in text):
        raise InvalidInput("the question is empty", hint="ask where or how something is done")
    if not follows:
        return ResearchQuestion(text, parse_question(text))
    new, wanted = subject(text), frozenset[str](Narrowing.of(text).wanted)
    if not parse_question(new).terms:
        return ResearchQuestion(text, replace(parse_question(follows), wanted=wanted))
    # The earlier question's words count half, as those of a report's body do; yet it is none.
    return ResearchQuestion(
        text, replace(parse_question(f"{new}\n{follows}"), is_report="\n" in new, wanted=wanted)
    )


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs")
