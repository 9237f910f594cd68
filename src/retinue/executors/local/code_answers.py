"""Judges what a weak model says about the code that it was shown, and gives it its places.

The model copies a line, which is looked up in the shown code, and writes an answer. Sentences that name what
was not shown are left out. An answer is refused if nothing is left, if it does not speak of what was asked
for, or if the code that it cites does not support it. A "no" is taken for "not found": small models misread
code, and a wrong answer is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from retinue.codebase import file_category
from retinue.core import Json, clip
from retinue.executors.local.evidence import (
    Support,
    asks_a_question,
    names_beyond_task,
    names_one_unit,
    support_of,
    unseen_numbers,
    with_plain_numbers,
)
from retinue.executors.local.question_kinds import (
    MIN_OWN_WORDS,
    asked_for,
    asks_for_number,
    asks_for_option,
    asks_for_text,
    asks_how,
    asks_how_many,
    asks_where,
    asks_where_done,
    is_one_question,
    is_plain_question,
    needs_number,
    subject_of,
)
from retinue.executors.local.shown_code import (
    NO_VALUE,
    NUMBER_IN_CODE,
    ShownExcerpts,
    acts,
    definition_of,
    has_name,
    has_one_number,
    has_word,
    last_name,
    line_with_names,
    number_line,
    place_at,
    place_by_number,
    place_of_line,
    plain_line,
    split_place,
    text_of,
)
from retinue.tools import CodeExcerpt, SeenCode, content_words, is_yes_or_no, word_coverage

MIN_COVERAGE = 0.5
"""The share of a question's words that the code behind an answer must contain."""
MIN_TOLD = 0.6
"""The same for documentation that is said to tell of something. It mentions many things."""
MIN_SUBJECT = 0.4
"""The same for code that is said to do what was asked for, of which a line must be copied too."""
MIN_SUBJECT_WORDS = 3
"""Fewer words say too little about such code."""
MIN_CLAIM_WORDS = 2
"""How many of a question's words the code behind a value or a "yes" must contain, if there are so many."""
MIN_TEXT_SUBJECT = 0.3
"""The share for a line with the text that was asked for."""
MIN_ANSWER_WORDS = 3
"""How many words of an answer the code behind it must contain if the model copies no line of it."""
MAX_NAMED_PLACES = 3
"""How many definitions that an answer names get their place."""
ABOUT_SOMETHING_ELSE = "the code that the answer cites is about something else"

_TEXT = re.compile(r"\"[^\"\n]{4,}\"|'[^'\n]{4,}'|`[^`\n]{4,}`")
_DENIES = re.compile(r"\b(?:not|no|never|cannot|nothing|none|without)\b|n't\b", re.IGNORECASE)
_NOT_SHOWN = re.compile(
    r"\b(?<!if the )(?<!if this )(?:code|excerpts?|snippets?|project)\b[^.]{0,12}"
    r"\b(?:do|does|is|are)(?: not|n't) (?:\w+ly )?(?:show|contain|mention|provide|include|specify|have|give"
    r"|defin|answer|reveal|address|explain|implement|support|appear|indicate|say|tell|state|describe|relat|there)"
    r"|\bnot (?:found|shown|mentioned|provided|present|available|specified|there)\b|\bthere (?:is|are) no\b"
    r"|\bno (?:such|evidence|mention|information|code|support|sign|trace)\b|\bunable to\b"
    r"|\bnothing\b[^.]{0,20}\b(?:found|shown)\b|\bcannot (?:find|determine|be found)\b",
    re.IGNORECASE,
)
"""Says that the code does not show the answer."""
_CONDITION = re.compile(r"\b(?:if|when|unless|whether)\b[^.,;]{1,80}", re.IGNORECASE)
"""A condition says what would be, not what the code lacks."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])")
_ENDS_SENTENCE = re.compile(r"[.!?][\"'`)\]]*$")
_ABOUT_THE_REPLY = re.compile(
    r"\W*(?:the |this )?(?:code (?:above )?shows the answer|most important line|one line of code"
    r"|quote\b|shown\b|answer\b)",
    re.IGNORECASE,
)
"""A sentence in which the model speaks of the form of its reply."""
_REFERS_BACK = re.compile(
    r"(?:this|that|these|then|otherwise)\b|[^.]{0,60}\b(?:it|they)\b"
    r"|the (?:function|method|class|code|option|variable|value|line)\b(?! `)",
    re.IGNORECASE,
)
"""Begins a sentence about what another one names."""
_NAMED_KIND = re.compile(
    r"`(\w+)(?:\(\))?` (?:class|struct|enum|trait|interface|type|function|method)\b"
    r"|\b(?:class|struct|enum|trait|interface|type|function|method) `(\w+)(?:\(\))?`"
)
"""A definition, which code spells as the answer does."""
_OWNER = re.compile(r" (?:of|in) the `(\w+)` (?:class|struct|object|module)\b")
_MARKED = re.compile(r"`([^`\n]*)`")
_IS_CODE = re.compile(r"[(=<>{]")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CITED = re.compile(r"(?<=\()[^\s()]+:[1-9]\d{0,6}(?=[,)])")
_REFERS_TO_ANSWER = re.compile(r"\b(?:its|it|their|they|that)\b", re.IGNORECASE)
_OPTION = re.compile(r"opt|flag|switch|setting|arg|param|conf|--\w", re.IGNORECASE)
"""What code calls an option."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a model's answer, with the text that passed the checks."""

    text: str | None
    """The answer with its places; None if there is none."""
    said: str = ""
    """What the model itself said."""
    why: str = ""
    """Why the code does not show the answer, which is an honest "not found"."""
    problem: str = ""
    """Why the answer is refused. Nobody may take it for checked."""
    line: str = ""
    """The line that the model copied, if the answer does not contain it."""
    place: str = ""
    """The line that an accepted answer cites first."""
    copied: str = ""
    """The place of the line that shows an accepted answer."""
    unrelated: str = ""
    """Why code that is said to do what was asked for may do something else; empty if its words say so."""
    names: tuple[str, ...] = ()
    """Names in a refused answer whose values would answer the question."""
    is_made_up: bool = False
    """Whether a refused answer is not about the code that was shown."""


@dataclass(frozen=True, slots=True)
class CodeAnswers:
    """Judges answers to one task from the code that was shown for it."""

    task: str
    shown: Sequence[CodeExcerpt]
    seen: SeenCode
    values: Sequence[CodeExcerpt] = ()
    """The line that gives a name of the answer its value."""
    words: Sequence[str] = ()
    """Words that the code may use for what is asked for. The last search was made with them."""
    likeliest: Sequence[CodeExcerpt] = ()
    """The likeliest code, or two pieces that are about as likely; by default the first of what was shown."""

    @property
    def _best(self) -> CodeExcerpt:
        return self.likeliest[0] if self.likeliest else self.shown[0]

    @property
    def _code(self) -> ShownExcerpts:
        return ShownExcerpts(self.shown)

    def judge(self, part: str, reply: Mapping[str, Json], known: str = "") -> Judged:
        """Judge the answer to one part of the task. `known` is the answer to the other part."""
        said, quote = str(reply.get("answer") or "").strip(), str(reply.get("quote") or "")
        said = with_plain_numbers(said, self.seen.text())
        if not isinstance(reply.get("shown"), bool):
            return Judged(None, said, problem="the model gave no readable answer", is_made_up=True)
        if not reply["shown"] or self._says_not_shown(said):
            return Judged(None, said, "the model does not find the answer in this code")
        if text := self._text_at(place_of_line(quote, self.shown), part, said):
            return text
        answer, invented = self._held_sentences(said, part)
        copied = self._line_behind(answer, said, quote, part)
        if not answer and copied is not None and asks_where(part):  # the line itself says where
            answer = f"`{self._code.line_at(copied).strip()}`"
        if not answer and invented:
            may_be_elsewhere = asks_for_number(part) and _NUMBER.fullmatch(invented)
            defined = number_line(self.values) if may_be_elsewhere else None
            if defined is None:
                problem = f"the answer has something that this code does not contain: {clip(invented, 60)}"
                names = _names_in(f"{said} {quote}") if may_be_elsewhere else ()
                return Judged(None, said, problem=problem, names=names, is_made_up=True)
            answer = f"`{defined[1]}`"  # what the code says in place of what the model made up
        # Who repeats a question says nothing; who repeats what another agent found may be right.
        support = support_of(answer, self.task if asks_a_question(self.task) else "", self.seen)
        if copied is None:
            is_made_up = bool(invented) or not support.holds
            return Judged(None, said, problem="the answer copies no line of this code", is_made_up=is_made_up)
        place = copied
        if problem := self._problem_of(answer, quote, place, part, support):
            return Judged(None, said, problem=problem, is_made_up=not support.holds)
        if known and self._repeats(answer, support, known):
            return Judged(None, said, problem="the answer repeats what is known")
        if is_yes_or_no(part) and self._denies(answer):  # a few excerpts cannot show that there is nothing
            return Judged(None, said, "the model denies it, which this code alone cannot show")
        least = max(MIN_TOLD if _is_docs(place) else 0.0, _least_share(part))
        if is_yes_or_no(part) and self._confirmed(part, place, f"{answer} {quote}") < least:
            return Judged(None, said, "the model calls this the answer, but it is about something else")
        if needs_number(part) and not (_has_number(support) or self._gives_one_unit(answer, part)):
            names = _names_in(f"{answer} {quote}")
            defined = self._line_with_value(names, copied)
            if defined is None:
                problem = "the answer gives no number that this code contains"
                return Judged(None, said, problem=problem, names=names)
            place, line = defined
            answer = f"{answer.rstrip('.')}: `{line}`"
        if asks_how(part) and not support.holds:  # the reader can check it by the line
            answer = f"{answer.rstrip('.')}: `{self._code.line_at(place).strip()}`"
        named = self._named_at(answer, part, copied)
        place = next(iter(named), place)
        if not self._asks_for_code(part):
            place = self._place_with_value(answer, part, known, place)
        if not asks_where(part):
            answer = self._told_by(place, answer, known) or answer
        if problem := self._weakness(answer, part, known, [place, *named], copied):
            return Judged(None, said, problem=problem)
        unrelated = self._unrelated(part, place, named, copied)
        judged = self._with_places(answer, part, place, named)
        line = self._line_beside(judged.text or "", copied)
        return replace(judged, said=said, line=line, copied=copied, unrelated=unrelated)

    def _line_with_value(self, names: Sequence[str], copied: str) -> tuple[str, str] | None:
        """Return the place and the text of the line with the number that an answer only has by name.

        That line gives the number to one of the names, or it is the copied line if that has no other number.
        """
        line = self._code.line_at(copied).strip()
        return (
            definition_of(names, self.shown, NUMBER_IN_CODE)
            or number_line(self.values)
            or ((copied, line) if has_one_number(line) else None)
        )

    def _line_beside(self, told: str, copied: str) -> str:
        """Return the copied line with its place, as far as an answer does not have them."""
        line, at = self._code.line_at(copied).strip(), "" if copied in told else f"{copied}: "
        return "" if line in told else f"{at}`{line}`"

    def _gives_one_unit(self, answer: str, part: str) -> bool:
        """Return whether an answer gives a time such as "every second", if a time was asked for."""
        return not asks_how_many(part) and names_one_unit(answer, self.seen.text())

    def lacks_line(self, reply: Mapping[str, Json]) -> bool:
        """Return whether an answer cites no line of the shown code."""
        said = str(reply.get("answer") or "")
        return reply.get("shown") is True and not self._says_not_shown(said) and not self.chosen_line(reply)

    def chosen_line(self, reply: Mapping[str, Json]) -> tuple[str, str] | None:
        """Return the place and the text of the shown line that a reply cites."""
        place = self._cited_line(str(reply.get("answer") or ""), str(reply.get("quote") or ""))
        return None if place is None else (place, self._code.line_at(place))

    def _says_not_shown(self, said: str) -> bool:
        """Return whether an answer says that the code does not show it, in words that are not the task's."""
        asked = self.task.casefold()
        stated = _CONDITION.sub(" ", said)
        return any(found[0].casefold() not in asked for found in _NOT_SHOWN.finditer(stated))

    def _denies(self, answer: str) -> bool:
        """Return whether an answer denies something, in words that are not the task's."""
        asked = self.task.casefold()
        return any(found[0].casefold() not in asked for found in _DENIES.finditer(answer))

    def _asks_for_code(self, part: str) -> bool:
        """Return whether a part of the task asks where something is done, or the task how."""
        return asks_how(self.task) or asks_where(part)

    def _cited_line(self, answer: str, quote: str) -> str | None:
        """Return the place of the line that the model copied, as its quote or in its answer, or numbered."""
        places = (place_of_line(text, self.shown) for text in (quote, *_marked_code(answer)))
        return next(filter(None, places), None) or place_by_number(answer, self.shown)

    def _line_behind(self, answer: str, said: str, quote: str, part: str) -> str | None:
        """Return the place of the line that shows an answer: the copied one, or one with its names or words.

        A value that the answer gives by its name must be named on the copied line. If no line is copied, one
        with the number of the answer counts.
        """
        cited = self._cited_line(answer or said, quote)
        found = () if self._asks_for_code(part) else names_beyond_task(answer, self.task)
        names = [name.removesuffix("()") for name in found]
        if cited and (not names or has_word(names[0], self._code.line_at(cited))):
            return cited
        if names and (named := line_with_names(names[:1], self.shown)):
            return named
        numbers = _numbers_beyond(answer, part, self.task, "") if needs_number(part) and not cited else []
        if numbers and (line := self._code.line_with_number(numbers[0], part, self.shown)):
            return line
        return (
            line_with_names(names, self.shown)
            or cited
            or self._line_with_words(answer)
            or (self._definition_named_in(answer) if asks_where(part) else None)
        )

    def _definition_named_in(self, answer: str) -> str | None:
        """Return the place of the likeliest code if an answer names its definition."""
        best = self._best
        return best.definition if best.symbol and has_word(last_name(best), answer) else None

    def _line_with_words(self, answer: str) -> str | None:
        """Return the place of the line with most words of an answer, of which the code has at least half.

        What the task says does not count.
        """
        words = [word for word in content_words(answer) if not word_coverage(word, self.task)]
        for excerpt in self.shown if len(words) >= MIN_ANSWER_WORDS else ():
            text = str(excerpt)
            there = [word for word in words if word_coverage(word, text)]
            if len(there) >= max(MIN_ANSWER_WORDS, len(words) / 2):
                line = max(excerpt.lines, key=lambda one: sum(word_coverage(word, one[1]) for word in there))
                return place_at(excerpt, line[0])
        return None

    def _repeats(self, answer: str, support: Support, known: str) -> bool:
        """Return whether an answer has no name and no word beyond the task and what is known."""
        told = f"{self.task}\n{known}"
        has_names = any(name.casefold() not in known.casefold() for name in support.seen)
        return not has_names and all(word_coverage(word, told) for word in content_words(answer))

    def _confirmed(self, part: str, place: str, said: str) -> float:
        """Return the share of a question's words in the cited code or in what was said: the smaller one."""
        return min(word_coverage(self.task, self._code.text_around(place)), word_coverage(part, said))

    def _text_at(self, place: str | None, part: str, said: str) -> Judged | None:
        """Return the copied line as the answer if the question asks for a text that only this line has."""
        asks = asks_for_text(part) and is_one_question(part)
        line = self._code.line_at(place) if place and asks else ""
        texts = [found[0][1:-1] for found in _TEXT.finditer(line)]
        if not texts or place is None or any(text in said for text in texts):
            return None
        about = "\n".join([line, *self._code.comment_above(place)])
        if word_coverage(self.task, about) < MIN_TEXT_SUBJECT:
            return Judged(None, said, problem="the text that the model copies is about something else")
        return Judged(f"`{line.strip()}` ({place}{self._within(place, line)}).", place=place)

    def _held_sentences(self, said: str, part: str) -> tuple[str, str]:
        """Return the sentences that name only what was shown, and the first thing that another one makes up.

        Leaves out the last sentence if it was cut, and any that begins or ends inside a piece of code.
        """
        *whole, last = _SENTENCE_END.split(said)
        kept: list[str] = []
        invented, is_kept = "", True
        for told in whole if whole and not _ENDS_SENTENCE.search(last) else [*whole, last]:
            sentence = _OWNER.sub(self._shown_owner, told)
            is_torn = sentence.count("`") % 2 == 1
            if is_torn or _ABOUT_THE_REPLY.match(sentence) or (_REFERS_BACK.match(sentence) and not is_kept):
                is_kept = False
                continue
            name = self._invented_in(sentence, part)
            is_kept = name is None
            invented = invented or name or ""
            if is_kept:
                kept.append(sentence)
        return " ".join(kept), invented

    def _told_by(self, place: str, answer: str, known: str) -> str:
        """Return the sentences of an answer whose names the place's file contains, some of them nearby."""
        near, whole = self._code.text_around(place).casefold(), self._code.text_of_file(place)
        kept: list[str] = []
        is_kept = True
        for sentence in _SENTENCE_END.split(answer):
            names = names_beyond_task(sentence, f"{self.task}\n{known}")
            refers_to_other = _REFERS_BACK.match(sentence) and not is_kept
            is_near = not names or any(has_name(name, near) for name in names)
            is_kept = is_near and not refers_to_other and all(has_name(name, whole) for name in names)
            if is_kept:
                kept.append(sentence)
        return " ".join(kept)

    def _shown_owner(self, owner: re.Match[str]) -> str:
        """Return the class that a method is said to belong to, or nothing if the code does not show it."""
        return owner[0] if has_word(owner[1], f"{self.task}\n{self.seen.text()}") else ""

    def _invented_in(self, sentence: str, part: str) -> str | None:
        """Return a name, a number or a piece of code in a sentence that was not shown."""
        shown = f"{self.task}\n{self.seen.text()}"
        folded, plain = shown.casefold(), plain_line(shown)
        found = [name for name in names_beyond_task(sentence, self.task) if not has_name(name, folded)]
        found += [
            match[1] or match[2]
            for match in _NAMED_KIND.finditer(sentence)
            if not has_word(match[1] or match[2], self.seen.text())
        ]
        found += [code for code in _marked_code(sentence) if plain_line(code).rstrip(";,") not in plain]
        found += _numbers_beyond(sentence, part, self.task, self.seen.text())
        return next(iter(found), None)

    def _problem_of(self, answer: str, quote: str, place: str, part: str, support: Support) -> str:
        """Return why an answer is refused, or an empty string."""
        if not answer or (not support.holds and support.unseen):
            return "the answer names nothing that this code contains"
        shares = word_coverage(self.task, answer) > 0
        if part != self.task and not shares and not word_coverage(self.task, quote):
            return "the answer has nothing to do with the task"
        if not support.holds and not shares:
            return "the answer has nothing to do with the task"
        if not self._speaks_of(part, answer, quote, place):
            return "the answer does not speak of what was asked for"
        if needs_number(part) and not self._is_near(place):
            return "the number belongs to something else"
        return ""

    def _weakness(self, answer: str, part: str, known: str, places: Sequence[str], copied: str) -> str:
        """Return why the code at the places of an answer does not support it, or an empty string.

        An explanation must name nothing from elsewhere. Of other answers, most names must be there.
        """
        explains = asks_how(self.task)
        cited = [excerpt for place in places for excerpt in self._code.around(place)]
        near = "\n".join(map(self._code.text_around, places)).casefold()
        whole = "\n".join(map(self._code.text_of_file, places))
        names = names_beyond_task(answer, f"{self.task}\n{known}")
        elsewhere = [name for name in names if not has_name(name, whole)]
        if names and not any(has_name(name, near) for name in names):
            elsewhere = list(names)
        if len(elsewhere) > (0 if explains else len(names) // 2):
            return f"the answer names {elsewhere[0]}, which the code that it cites does not contain"
        if numbers := _numbers_beyond(answer, part, f"{self.task}\n{known}", text_of(cited)):
            return f"the code that the answer cites does not contain its number {numbers[0]}"
        if self._asks_for_code(part) and not self._belongs_to(copied, cited):
            return "the line that the model copies is not of the code that it names"
        return ""

    def _unrelated(self, part: str, place: str, named: Sequence[str], copied: str) -> str:
        """Return why the code at the places of an answer may be about something else; empty if it is not.

        The code must be about the question, so that a number, a name or a line of other code does not count.
        An explanation must be about the likeliest code, or about code with as many words of the question.
        """
        places = [place, *named]
        asks_for_action = asks_where_done(part) or (asks_how(part) and not _is_docs(place))
        if asks_for_action and not self._does_something(place):
            return f"the model chooses {place}, which only declares something"
        if asks_how(self.task) and not any(self._explains_best(part, place) for place in places):
            return "the answer explains other code than the likeliest"
        cited = places if self._asks_for_code(part) else [*places, copied]
        if not any(self._is_about(part, place) for place in cited):
            return ABOUT_SOMETHING_ELSE
        return ""

    def _place_with_value(self, answer: str, part: str, known: str, place: str) -> str:
        """Return the place of the line that an answer has its value from, or the given place.

        That line gives the value to a name of the answer. Otherwise it has the most words of the question.
        """
        told = f"{self.task}\n{known}"
        around = text_of(self._code.around(place))
        wanted = _numbers_beyond(answer, part, told, around)
        names = names_beyond_task(answer, told)
        wanted += [name for name in names if not has_name(name, around.casefold())]
        if not wanted:
            numbers = _numbers_beyond(answer, part, told, "")
            if not numbers or has_word(numbers[0], self._code.line_at(place)):
                return place
            return self._code.line_with_number(numbers[0], part, self._code.around(place)) or place
        for excerpt in self.values:
            if has_word(wanted[0], excerpt.first_line[1]):
                return excerpt.place
        most, words = MIN_CLAIM_WORDS - 1, content_words(part)
        for excerpt in self.shown:
            for number, text in excerpt.lines:
                at = place_at(excerpt, number)
                if has_word(wanted[0], NO_VALUE.sub(" ", text)):
                    about = self._code.about(at)
                    count = sum(word_coverage(word, about) > 0 for word in words)
                    if count > most:
                        place, most = at, count
        return place

    def _belongs_to(self, place: str, cited: Sequence[CodeExcerpt]) -> bool:
        """Return whether a line is in one of some definitions, or in code that names it, as a caller does."""
        around, text = self._code.around(place), self._code.text_around(place)
        return any(
            any(excerpt is one for one in around) or (excerpt.symbol and has_word(last_name(excerpt), text))
            for excerpt in cited
        )

    def _with_places(self, answer: str, part: str, place: str, named: Sequence[str]) -> Judged:
        if place in answer:
            return Judged(answer, place=place)
        also = self._other_places(place, named, part) if asks_where(part) else ""
        return Judged(f"{answer.rstrip('.')} ({place}{self._within(place, answer)}).{also}", place=place)

    def _within(self, place: str, answer: str) -> str:
        """Return a clause on the definition that a place is in, if the answer does not name it."""
        around = [excerpt for excerpt in self._code.around(place) if excerpt.symbol_at(split_place(place)[1])]
        if not around or around[0].definition == place:
            return ""
        at = f" at {around[0].definition}" if around[0].definition not in answer else ""
        return f", in {around[0].symbol}{at}"

    def _defined_at(self, text: str, part: str) -> list[str]:
        """Return the places of the shown definitions that a text names, in its order.

        Leaves out declarations if the question asks for code that does something.
        """
        must_act = asks_where_done(part)
        named = [
            (text.find(name), excerpt.definition)
            for excerpt in self.shown
            if (name := last_name(excerpt))
            and has_word(name, text)
            and (not name.islower() or "_" in name or f"`{name}`" in text)
            and (not must_act or acts(excerpt, excerpt.line))
        ]
        return [place for _, place in sorted(named)][:MAX_NAMED_PLACES]

    def _named_at(self, answer: str, part: str, copied: str) -> list[str]:
        """Return the places of the definitions that an answer names as the place that was asked for.

        If the copied line is of the likeliest code, other names in the answer may be those of other code.
        """
        named = self._defined_at(answer, part) if asks_where(part) else []
        if not self._is_best(copied):
            return named
        return [one for one in named if self._belongs_to(copied, self._code.around(one))]

    def _does_something(self, place: str) -> bool:
        """Return whether the shown code around a place does something, and not only declares it."""
        return any(acts(excerpt, split_place(place)[1]) for excerpt in self._code.around(place))

    def _other_places(self, place: str, named: Sequence[str], part: str) -> str:
        """Return sentences on the other definitions that the answer or its line names, and the best place."""
        line = self._code.line_at(place)
        places = list(dict.fromkeys([place, *named, *self._defined_at(line, part)]))[:MAX_NAMED_PLACES]
        symbols = {excerpt.definition: excerpt.symbol for excerpt in self.shown if excerpt.symbol}
        more = "".join(f" `{symbols[one]}` is at {one}." for one in places[1:] if one in symbols)
        best = self._best
        if any(map(self._is_best, places)):
            return more
        symbol = f" ({best.symbol})" if best.symbol else ""
        return f"{more} The likeliest place is {best.place}{symbol}."

    def _speaks_of(self, part: str, answer: str, quote: str, place: str) -> bool:
        """Return whether an answer, or the line that it copies, has the word for what was asked for."""
        if not is_one_question(part):
            return True
        said = "\n".join([answer, quote, *self._code.comment_above(place)])
        if asks_for_option(part) and not _OPTION.search(f"{said}\n{self._code.about(place)}"):
            return False
        return all(word_coverage(asked, said, abbreviated=True) for asked in asked_for(part))

    def _is_near(self, place: str) -> bool:
        """Return whether the lines around a place, or its definition, have a word of the task."""
        return word_coverage(self.task, self._code.names_and_lines_near(place)) > 0

    def _is_about(self, part: str, place: str) -> bool:
        """Return whether the definition at a place, or the lines around it, have the words of a question.

        One word is enough if there is also one that the code may use for what is asked for.
        """
        if is_yes_or_no(part) or not (self._asks_for_code(part) or is_plain_question(self.task)):
            return True
        subject = self._subject(part)
        least = _least_share(subject)
        if self._asks_for_code(part):
            least = 0.0 if len(content_words(subject)) < MIN_SUBJECT_WORDS else MIN_SUBJECT
        share = self._subject_share(part, place)
        return share >= least or (share > 0 and self._has_search_word(place))

    def _has_search_word(self, place: str) -> bool:
        about = self._code.about(place)
        return any(content_words(word) and word_coverage(word, about) for word in self.words)

    def _is_best(self, place: str) -> bool:
        """Return whether a place is in the likeliest code."""
        return self._is_in(place, [self._best])

    def _is_in(self, place: str, code: Sequence[CodeExcerpt]) -> bool:
        """Return whether a place is in one of some definitions."""
        places = {excerpt.place for excerpt in code}
        return any(excerpt.place in places for excerpt in self._code.around(place))

    def _explains_best(self, part: str, place: str) -> bool:
        """Return whether a place is in the likeliest code, or in code with as much of the question."""
        if self._is_in(place, self.likeliest or self.shown[:1]):
            return True
        least = max(MIN_COVERAGE, self._subject_share(part, self._best.place))
        return self._subject_share(part, place) >= least

    def _subject(self, part: str) -> str:
        """Return the part of the task, or the whole task if the part has too few words of its own."""
        return subject_of(part if len(content_words(subject_of(part))) >= MIN_OWN_WORDS else self.task)

    def _subject_share(self, part: str, place: str) -> float:
        """Return the share of a question's words in the definition at a place, or in the lines around it."""
        return word_coverage(self._subject(part), self._code.about(place), abbreviated=True)

    def follows_from(self, known: str, part: str) -> str | None:
        """Return the answer to a part of the question that the answer to the other part gives, if any.

        That is a number in it, or what the code says of a name in it: "which error, and what is its message?"
        """
        if needs_number(part) and _has_number(support_of(known, self.task, self.seen)):
            return known
        refers = _REFERS_TO_ANSWER.search(part) is not None or len(content_words(part)) < MIN_OWN_WORDS
        if not refers or not is_one_question(part):
            return None
        wants_text = asks_for_text(part)
        holds = _TEXT.pattern if wants_text else NUMBER_IN_CODE if asks_for_number(part) else ""
        names = [name for name in names_beyond_task(known, self.task) if "/" not in name]
        defined = definition_of(names, self.shown, holds) if holds else None
        if defined is None and wants_text:  # the line itself, such as the one that raises an error
            cited = (place[0] for place in _CITED.finditer(known))
            lines = ((place, self._code.line_at(place).strip()) for place in cited)
            defined = next(((place, line) for place, line in lines if _TEXT.search(line)), None)
        return None if defined is None else f"`{defined[1]}` ({defined[0]})."


def _numbers_beyond(answer: str, part: str, task: str, code: str) -> list[str]:
    """Return the numbers of an answer that neither the task nor the code contains as values."""
    return [
        number
        for number in unseen_numbers(answer, task, NO_VALUE.sub(" ", code))
        if float(number) > 2 or asks_for_number(part)  # "two steps" is a way of speaking
    ]


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_NAME.findall(text)))


def _is_docs(place: str) -> bool:
    return file_category(place.rpartition(":")[0]) == "docs"


def _has_number(support: Support) -> bool:
    """Return whether an answer has a number that was seen."""
    return any(name[:1].isdigit() for name in support.seen)


def _least_share(question: str) -> float:
    """Return the share of a question's words that the code behind a value or a "yes" must contain."""
    return max(MIN_COVERAGE, MIN_CLAIM_WORDS / max(MIN_CLAIM_WORDS, len(content_words(question))))


def _marked_code(text: str) -> list[str]:
    """Return the pieces of code, not the single names, that a text puts between backticks."""
    return [marked for marked in _MARKED.findall(text) if _IS_CODE.search(marked)]
