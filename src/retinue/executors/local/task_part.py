"""Keeps what is known of one part of a task: its looks, its answer, and how certain that is.

A question with two parts ("which ..., and how ...") has two of them. Knows nothing of searching or asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retinue.executors.local.likely_code import (
    CLEAR,
    MIN_FOR_ANSWER,
    MIN_FOR_PLACE,
    SURE,
    Looks,
)
from retinue.executors.local.question_kinds import asks_for_code, asks_how, asks_where
from retinue.tools import CodeExcerpt, content_words, is_yes_or_no

MIN_SEARCHED_WORDS = 3
"""A part of a question with fewer words of its own is searched for together with the whole question."""
SURE_VALUE, SURE_PART, SURE_YES = 0.47, 0.43, 0.55
"""The chance that the model must give the lines of an answer in doubt if it sees them alone: of a value, of
an answer to one part of a question, and of a yes. Of nine answers to one part, five of six above its limit
were right, and none of three below."""


@dataclass(slots=True)
class TaskPart:
    """One part of the task, and what is known of it."""

    text: str
    """The question, as the task asks it."""
    is_whole: bool
    """Whether the task has no other part."""
    absent: Sequence[str] = ()
    """Words that the project's code does not contain, so that nobody needs to look for an answer."""
    other_words: str = ""
    """The question in the words of a programmer, which the code was searched for with."""
    answer: str = ""
    """An answer that counts."""
    cited: str = ""
    """The line that the answer cites; empty if it follows from the answer to the other part."""
    has_rivals: bool = False
    """Whether code was searched for in other words before the first answer."""
    is_searched_twice: bool = False
    """Whether the model looked again, because the first looks brought no answer."""
    looks: Looks = field(default_factory=Looks)
    """What the model has looked at for it."""
    is_from_other_code: bool = False
    """Whether the answer cites other code than the likeliest, from which it was asked."""
    is_without_the_first: bool = False
    """Whether the first part of the task had no answer when this one was found."""
    rivals: Sequence[CodeExcerpt] = ()
    """Other code that may answer it, the likeliest first."""
    likeliest: CodeExcerpt | None = None
    """The likeliest code, if there is no answer."""
    said: str = ""
    """What the model said and copied last."""
    problem: str = ""
    """Why the last answer was refused. Empty if the model said that the code does not show it."""
    is_distrusted: bool = False
    """Whether the model made up an answer, or found none in code that it took for the answer."""
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.answer or self.absent or self.is_given_up)

    @property
    def rephrased(self) -> str:
        """The question in other words, once the model looks at code with it in mind."""
        return self.other_words if self.is_searched_twice else ""

    @property
    def asks_yes_or_no(self) -> bool:
        return is_yes_or_no(self.text)

    @property
    def asks_how(self) -> bool:
        return asks_how(self.text)

    @property
    def asks_where(self) -> bool:
        return asks_where(self.text)

    @property
    def asks_for_code(self) -> bool:
        return asks_for_code(self.text)

    @property
    def asks_for_place(self) -> bool:
        """Whether the whole task asks where something is."""
        return self.asks_where and self.is_whole

    @property
    def needs_rivals(self) -> bool:
        """Whether the whole task asks for a place or an explanation.

        The model then also looks at code that is found in other words, before it answers.
        """
        return self.asks_for_code and self.is_whole

    @property
    def is_in_doubt(self) -> bool:
        """Whether no code stands out for an answer of the model. Other answers follow from one.

        After the model looked again, there were so many looks that one is high by chance.
        """
        sure = CLEAR if self.asks_how or self.asks_yes_or_no else SURE
        is_odd = self.is_searched_twice or self.is_from_other_code or self.is_without_the_first
        return bool(self.cited) and (self.looks.confidence < sure or is_odd)

    @property
    def has_subject(self) -> bool:
        """Whether this part can be searched for alone."""
        return len(content_words(self.text)) >= MIN_SEARCHED_WORDS

    @property
    def needed_confidence(self) -> float:
        """The confidence from which the model is asked for the answer."""
        return MIN_FOR_PLACE if self.asks_for_place or self.asks_yes_or_no else MIN_FOR_ANSWER

    @property
    def needed_chance(self) -> float:
        """The chance that the lines of an answer in doubt need."""
        if self.asks_yes_or_no:
            return SURE_YES
        return SURE_VALUE if self.is_whole else SURE_PART

    def question(self, known: str, text: str = "") -> str:
        """Return what the model is asked, with what is known of the other part."""
        asked = f"Question: {text or self.text}"
        return f"Known: {known}\n{asked}" if known else asked
