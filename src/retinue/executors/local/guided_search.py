"""Answers a question about code with a model that cannot choose tools well: our search finds the code.

The model looks at the code of the best places, and at a passage of the documentation if one fits, one by one
(`likely_code.py`). If a place or an explanation is asked for, it also looks at what a search in other words
finds: it puts the question in the words of a programmer and proposes names. If nothing is likely to answer,
it looks further down in the definitions, and then again with the question in these words. With this second
look comes more code: for a place or an explanation the next that the first search finds, for values and parts
of a question what the search in other words finds. From the code that is likeliest, the model answers in its
own words, and then copies the line that shows the answer. That line is looked up in the code that was shown,
so the place of an answer is always real. If no answer counts, nothing was found, and the nearest places are
listed. Only a place that stands out is named without the model's words.

A question with two parts ("which ..., and how ...") is answered part by part, each from its own search. The
names in the first answer help to find the code for the second. A question for something whose words occur
nowhere in the project is answered without the model: it was not found. If an answer is refused and a word of
the question occurs nowhere, it was not found either. A number that the code has only by name is looked up.

Each answer is judged in `code_answers.py` before it counts. Code that stands out is taken for the answer.
Other code must have the words of the question, or be from the first search and hold a value. A value, a yes
or a part of an answer then also needs a second look at its lines; a place or an explanation is hedged and
names its rivals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from retinue.codebase import file_category
from retinue.core import (
    Json,
    LimitExceeded,
    ModelFailed,
    Unverified,
    clip,
    estimate_tokens,
)
from retinue.executors.local.code_answers import ABOUT_SOMETHING_ELSE, CodeAnswers, Judged
from retinue.executors.local.code_reader import CodeReader
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.evidence import agrees, shares_name, support_of
from retinue.executors.local.likely_code import (
    CLEAR,
    MIN_LOOKS,
    MIN_TO_QUOTE,
    SURE,
    Looks,
)
from retinue.executors.local.model_requests import (
    LoopLimits,
    ModelRequester,
    WriteLog,
)
from retinue.executors.local.question_kinds import (
    asks_how,
    is_plain_question,
    needs_code,
    question_parts,
    refers_back,
    subject_of,
)
from retinue.executors.local.shown_code import (
    NEAREST,
    QUOTED_LINES,
    fit_excerpts,
    fit_quotes,
    has_place,
    is_gapless,
    lines_around,
    may_also_be,
    named_place,
    nearest_places,
    place_of_line,
    quoted_lines,
)
from retinue.executors.local.task_part import TaskPart
from retinue.tools import CodeExcerpt, CodeSearch, is_yes_or_no

EXCERPT_SIZES = (18, 14, 12, 12, 12, 12)
"""How many lines are shown of each definition in a round, best first. With six definitions the right code is
among them for 92 of 116 known tasks, with four for 80."""
EXPLAINED_SIZES = (30, 14, 12, 12, 12, 12)
"""For questions how something works: more of the best definition."""
WIDENED_LINES = 40
"""How much is shown of a definition that the model answers from alone."""
SHOWN_TOGETHER = 4
"""How many excerpts are shown together, to a model that chooses its tools or that looks at none alone. From
more and shorter ones it answers worse."""
CODE_SHARE, CODE_SHARE_BESIDE_TOOLS = 0.4, 0.2
"""The share of a request's tokens that the code may take: of a model that only answers, and of one with
tools."""
BACKGROUND_SHARE, BOTH_SHARES = 0.2, 0.5
"""The share that skills and memories may take, and the one that they and the code may take together."""
NOTHING_FOUND = "Not found"
"""The beginning of an honest answer that what was asked for is not there."""
NOT_ANSWERED = "Not answered, because the model failed"
LOOKED_AT_AGAIN = 4
"""How many excerpts of the first search are looked at again with another question."""
MAX_QUOTED_TOKENS, MAX_QUOTED_CHARS = 600, 160
"""Limits of all quoted code, and of one line of it."""
MAX_BLOCKS = 4
"""How many blocks of long definitions the model looks at if no code is likely."""
LOOKS_FOR_RIVALS = MIN_LOOKS + 2
"""Looks that must be left for a search in other words: asking for the words takes as much as two."""
NOT_CERTAIN = "This is not certain."
NOTHING_STANDS_OUT = "no code stands out as the answer, so other places may be meant"
UNCONFIRMED = "shown this code alone, the model does not take it for the answer"
SAYS_OTHERWISE = "shown the same code in another order, the model answers otherwise"
DENIALS = (UNCONFIRMED, SAYS_OTHERWISE)
USE_NAMES = "ask about one thing and name it as the code does, or use a stronger model"
NOT_ASKED = "The model was not asked about the code"
"""The beginning of an answer that only lists what the search found."""
TOO_SLOW = f"{NOT_ASKED}: it is too slow for the time of this run."
TOO_SMALL = NOT_ASKED + ": none of it fits into a request of {tokens} tokens."
NO_CODE_FOUND = "The search found no code for this task."
QUOTED_HEADING = "From the code:"


async def find_code(
    search: CodeSearch, question: str, skip: Collection[str] = (), words: str = ""
) -> tuple[CodeExcerpt, ...]:
    """Search for the code that a question is about, by its words or by others. Empty if nothing is found."""
    sizes = EXPLAINED_SIZES if asks_how(question) else EXCERPT_SIZES
    found = await search.find(question, sizes, skip, words)
    if needs_code(question):
        code = tuple(one for one in found if file_category(one.path) != "docs")
        return code if code or skip else found
    return found


@dataclass(slots=True, kw_only=True)
class GuidedSearch:
    """Answers one task from code that our own search finds."""

    reader: CodeReader
    search: CodeSearch
    task: str
    limits: LoopLimits
    log: WriteLog
    found: Sequence[CodeExcerpt]
    """What the search has found for the task."""
    code_share: float
    """The share of a request's tokens that the code may take."""
    shown: list[CodeExcerpt] = field(default_factory=list[CodeExcerpt], init=False)
    """Everything that the model was shown, in order."""
    doubt: str = field(default="", init=False)
    """Why the answer is not certain; empty if it is."""
    _parts: Sequence[TaskPart] = field(default=(), init=False)
    _chosen: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The lines that refused answers cite, by their places."""
    _answered: str = field(default="", init=False)
    """The answer, once it is complete."""
    _words: Sequence[str] = field(default=(), init=False)
    """The words that the last search was made with."""

    @property
    def _requester(self) -> ModelRequester:
        return self.reader.requester

    async def first_excerpts(self) -> Sequence[CodeExcerpt]:
        """Return the code that the task is about, as much as fits into a request. Empty if there is none."""
        found = await self._code_found()
        return await self._show(self._fitting(found[:SHOWN_TOGETHER]))

    async def answer(self) -> str | None:
        """Return an answer that names its place, or one that says that nothing was found.

        Returns None if there is no code to answer from, and nothing that says why.
        """
        answer = await self._find_answer()
        self._answered = answer or ""
        return answer

    async def _find_answer(self) -> str | None:
        found = await self._code_found()
        texts = question_parts(self.task)
        parts = self._parts = [TaskPart(text, is_whole=text == self.task) for text in texts]
        for part in parts if is_plain_question(self.task) else ():
            part.absent = await self.search.absent_words(part.text)
        if all(part.absent for part in parts):
            names = _listed(list(dict.fromkeys(word for part in parts for word in part.absent)))
            await self.log(f"no code contains {names}: the model is not asked")
            await self._show(found)
            return _joined(f"{NOTHING_FOUND}: no code of this project contains {names}.", self.places())
        if not found and self.limits.has_time:
            return None
        if reason := self._why_not_asked():
            await self.log(reason)
            await self._show(found)
            return _joined(reason, self.places())
        failure: ModelFailed | None = None
        try:
            await self._answer_parts()
        except ModelFailed as error:
            failure = error
            await self.log(f"the model failed: {error.message}")
        if not self._known:
            if failure is not None:
                raise failure
            return await self._likely_places() or await self._nothing_found()
        if any(part.is_in_doubt for part in parts):
            self.doubt = NOTHING_STANDS_OUT
        missing = [await self._missing_part(part, failure) for part in parts if not part.answer]
        return " ".join([self._told(), *missing])

    async def _code_found(self) -> Sequence[CodeExcerpt]:
        """Return the code found for the task. Searches again if nothing was found, maybe for lack of time."""
        self.found = self.found or await find_code(self.search, self.task)
        return self.found

    async def _answer_parts(self) -> None:
        """Answer the parts of the task from what is found for each, and after one more search for each."""
        for is_second_search in (False, True):
            for part in self._parts:
                is_first = part is self._parts[0]
                known = "" if is_first else self._known
                if not part.is_open or (not is_first and not known and refers_back(part.text)):
                    continue
                part.answer = (known and self._judge().follows_from(known, part.text)) or ""
                if part.answer:
                    continue
                if not self._may_go_on(is_second_search=is_second_search):
                    return
                found = await (self._find_more(part, known) if is_second_search else self._find_first(part))
                await self._answer_from(found, part, known)

    def _may_go_on(self, *, is_second_search: bool) -> bool:
        """Return whether there are requests left, also for other words and for looks in a second search."""
        if not is_second_search:
            return self._requester.steps_left > 0
        has_looks = not self.reader.judges_code or self._requester.looks_left >= MIN_LOOKS
        return has_looks and self._requester.steps_left > 1

    def _why_not_asked(self) -> str:
        """Return why the model cannot be asked about code; empty if it can."""
        if not self.limits.has_time:
            return TOO_SLOW if self.found else f"{TOO_SLOW} {NO_CODE_FOUND}"
        fits = any(self._fitting([excerpt]) for excerpt in self.found)
        return "" if fits else TOO_SMALL.format(tokens=self.limits.tokens)

    @property
    def _known(self) -> str:
        """The answers so far."""
        return " ".join(dict.fromkeys(part.answer for part in self._parts if part.answer))

    def _told(self) -> str:
        """Say the answers so far, and how certain they are."""
        told = self._known
        hedges = [self._alternatives(part, told) for part in self._parts]
        if any(part.is_in_doubt for part in self._parts):
            hedges = [NOT_CERTAIN, *hedges]
        return " ".join(dict.fromkeys(filter(None, [told, *hedges])))

    def findings(self) -> str:
        """Say what was found so far: the answer, or the parts of it that count, and the places."""
        told = self._answered or self._told()
        return told if NEAREST in told else _joined(told, self.places())

    def places(self) -> str:
        """Say what our search found, the likeliest first; empty if it found nothing."""
        chances: dict[str, float] = {}
        for part in self._parts:
            chances.update(part.looks.chances)
        likeliest = sorted(self.shown or self.found, key=lambda excerpt: -chances.get(excerpt.place, 0.0))
        return nearest_places(likeliest, self._chosen)

    def quoted_code(self) -> str:
        """Return the lines around those that the answer cites; empty for a place or a yes.

        A small model explains code worse than it finds it, so the reader gets both.
        """
        quotes: list[CodeExcerpt] = []
        for part in self._parts:
            if part.asks_where:
                continue
            if part.cited and not part.asks_yes_or_no:
                quotes.append(quoted_lines(part.cited, self.shown))
            if part.likeliest:
                quotes.append(part.likeliest)
        clipped = [
            replace(one, lines=tuple((at, clip(line, MAX_QUOTED_CHARS)) for at, line in one.lines))
            for one in quotes
        ]
        fitting = fit_quotes(clipped, MAX_QUOTED_TOKENS)
        return "\n".join([QUOTED_HEADING, *map(str, fitting)]) if fitting else ""

    async def _show(self, excerpts: Sequence[CodeExcerpt]) -> tuple[CodeExcerpt, ...]:
        """Count the code as shown: the agent has then seen it."""
        places = {excerpt.place: number for number, excerpt in enumerate(self.shown)}
        for excerpt in excerpts:
            self.search.seen.add_lines(excerpt.path, excerpt.lines)
            if (number := places.get(excerpt.place)) is None:
                self.shown.append(excerpt)
            else:
                lines = {**dict(self.shown[number].lines), **dict(excerpt.lines)}
                self.shown[number] = replace(excerpt, lines=tuple(sorted(lines.items())))
        if new := [excerpt.place for excerpt in excerpts if excerpt.place not in places]:
            await self.log(f"code found: {', '.join(new)}")
        return tuple(excerpts)

    def _fitting(self, excerpts: Sequence[CodeExcerpt]) -> tuple[CodeExcerpt, ...]:
        """Return as much of the code as fits into a request."""
        return fit_excerpts(excerpts, self._code_tokens)

    @property
    def _code_tokens(self) -> int:
        tokens = self.limits.tokens
        both = int(BOTH_SHARES * tokens) - estimate_tokens(self.reader.background)
        return min(int(self.code_share * tokens), both)

    async def _find_first(self, part: TaskPart) -> Sequence[CodeExcerpt]:
        """Search for the code of a part of the task, or of the whole task if the part has no subject."""
        if part.is_whole or not part.has_subject:
            return self.found
        return await find_code(self.search, part.text) or self.found

    async def _find_more(self, part: TaskPart, known: str) -> Sequence[CodeExcerpt]:
        """Return more code for a part of the task, which the model looks at with the question in other words.

        If the code was searched for in these words before, the search for the question itself goes on.
        """
        part.is_searched_twice = True
        return await (
            self._find_unseen(part.text) if part.has_rivals else self._find_in_other_words(part, known)
        )

    async def _find_in_other_words(self, part: TaskPart, known: str) -> Sequence[CodeExcerpt]:
        """Search for code for a part of the task, in the words that the model proposes for it.

        Names of what was said help, too. The names in a refused answer are of the wrong code. For a value,
        the question in other words is enough: with proposed names, the search finds other settings.
        """
        project = self.search.project
        said = known or ("" if part.problem else part.said)
        names = support_of(said, self.task, self.search.seen).seen
        asked = part.text if part.has_subject else self.task
        if not known:
            part.other_words = await self.reader.rephrase(part.text, project)
        if part.other_words:
            await self.log(f"the question in the words of a programmer: {part.other_words}")
        needs_names = part.asks_for_code or not part.other_words
        self._words = await self.reader.propose_words(asked, project, self.task) if needs_names else ()
        if self._words:
            await self.log(f"words that the model proposes: {', '.join(self._words)}")
        words = " ".join([part.other_words or asked, *names, *self._words])
        return await self._find_unseen(asked, words)

    async def _find_unseen(self, question: str, words: str = "") -> Sequence[CodeExcerpt]:
        """Search for code that the model was not shown."""
        return await find_code(self.search, question, {excerpt.place for excerpt in self.shown}, words)

    async def _answer_from(self, excerpts: Sequence[CodeExcerpt], part: TaskPart, known: str) -> None:
        """Ask for the answer to one part of the task. It stays open if these excerpts do not show it."""
        await self._find_likeliest(excerpts, part, known)
        looks = part.looks
        if looks.looked and looks.confidence < part.needed_confidence:
            return
        likeliest = await self._chosen_code(looks)
        chosen = likeliest or await self._show(self._fitting(excerpts[:SHOWN_TOGETHER]))
        if not chosen:
            return
        reply = await self._reply_about(chosen, part, known)
        judge = self._judge(chosen, likeliest)
        judged = judge.judge(part.text, reply, known)
        if judged.names:
            values = await self._show(await self.search.values_of(judged.names))
            judge = replace(self._judge(chosen, likeliest), values=values)
            judged = judge.judge(part.text, reply, known)
        if judged.text is not None and (doubt := await self._doubt(judged, part, known, chosen)):
            judged = Judged(None, judged.text, problem=doubt)
        part.problem = judged.problem
        part.is_distrusted = part.is_distrusted or judged.is_made_up or bool(judged.why)
        part.said = f"{reply.get('answer')} {reply.get('quote')}"
        if judged.text is not None:
            self._accept(judged, part, known, chosen)
            return
        # Asked about more code, a small model says yes at last. A place that stands out needs no words.
        stands_out = looks.confidence >= SURE and not part.is_distrusted
        part.is_given_up = part.asks_yes_or_no or (part.asks_for_place and stands_out)
        looks.refuse(chosen)
        await self.log(f"{judged.problem or judged.why}: {clip(' '.join(judged.said.split()), 160)}")
        if reply.get("shown") is True and (chosen_line := judge.chosen_line(reply)):
            self._chosen.update([chosen_line])

    async def _reply_about(
        self, chosen: Sequence[CodeExcerpt], part: TaskPart, known: str
    ) -> Mapping[str, Json]:
        """Ask the model for an answer from some code, and for the line that shows it."""
        asked = self.reader.about(chosen, part.question(known))
        if not part.asks_yes_or_no:
            said = await self.reader.say(asked)
            return {"answer": said, "quote": await self._copied_line(asked), "shown": True}
        reply = await self.reader.fill_in(asked)  # asked for a sentence, a weak model says "yes"
        if self._judge(chosen).lacks_line(reply):
            return {**reply, "quote": await self._copied_line(asked)}
        return reply

    def _accept(self, judged: Judged, part: TaskPart, known: str, chosen: Sequence[CodeExcerpt]) -> None:
        """Keep an answer that counts, and what makes it uncertain."""
        part.answer = f"{judged.text} {judged.line}".rstrip()  # so that the reader can check it
        cited = list(filter(None, (judged.place, judged.copied)))
        part.cited = judged.copied or judged.place
        part.is_without_the_first = part is not self._parts[0] and not known
        part.is_from_other_code = not any(has_place(chosen, place) for place in cited)
        rivals = [one.excerpt for one in part.looks.ordered] or list(chosen)
        part.rivals = [
            one
            for one in rivals
            if file_category(one.path) != "test" and not any(has_place([one], place) for place in cited)
        ]

    def _alternatives(self, part: TaskPart, told: str) -> str:
        """Say which other places may be meant if a place or an explanation does not clearly stand out."""
        is_clear = part.looks.confidence >= CLEAR and not part.is_in_doubt
        if not part.cited or not part.asks_for_code or is_clear:
            return ""
        return may_also_be([one for one in part.rivals if not _names_place(told, one.place)])

    async def _chosen_code(self, looks: Looks) -> tuple[CodeExcerpt, ...]:
        """Return the code that most likely answers. If that is one definition, return more of it."""
        chosen = looks.chosen
        if len(chosen) == 1:
            wide = [await self.search.widened(chosen[0], WIDENED_LINES)]
            if list(self._fitting(wide)) == wide:  # else the lines that it was chosen by may be cut
                chosen = wide
        return await self._show(self._fitting(chosen))

    async def _find_likeliest(self, excerpts: Sequence[CodeExcerpt], part: TaskPart, known: str) -> None:
        """Let the model look at some excerpts, and further down in their definitions if none is likely.

        For a place or an explanation, the code is searched for in other words, too: if the right code is not
        there, a model takes other code for it. If the question was rephrased, the likeliest excerpts are
        looked at again.
        """
        question = part.question(known, part.rephrased)
        if part.rephrased:
            again = [one.excerpt for one in part.looks.ordered[:LOOKED_AT_AGAIN]]
            part.looks = part.looks.begun_anew()
            excerpts = [*again, *excerpts]
        await self._look_at(excerpts, question, part.looks, all_of_them=part.needs_rivals)
        has_looks = part.looks.looked and self._requester.looks_left >= LOOKS_FOR_RIVALS
        if part.needs_rivals and has_looks and not part.has_rivals:
            part.has_rivals = True
            rivals = await self._find_in_other_words(part, known)
            await self._look_at(rivals, question, part.looks, all_of_them=True)
        if not part.looks.looked and part.looks.earlier is not None:  # the model did not look again
            part.looks = part.looks.earlier
        # Among many looks, one is high by chance.
        may_look_further = not (part.is_searched_twice and (part.rephrased or part.asks_how))
        if part.looks.looked and part.looks.confidence < part.needed_confidence and may_look_further:
            seen = [one.excerpt for one in part.looks.ordered]
            blocks = await self.search.blocks_inside(seen, part.text, MAX_BLOCKS)
            await self._look_at(blocks, question, part.looks)

    async def _look_at(
        self, excerpts: Sequence[CodeExcerpt], question: str, looks: Looks, *, all_of_them: bool = False
    ) -> None:
        """Let the model look at each excerpt alone, by default until one stands out.

        A small model judges one excerpt better than it chooses among several.
        """
        ranked = enumerate(excerpts)  # an excerpt whose lines are too long is left out
        fitting = [(rank, shown) for rank, excerpt in ranked for shown in self._fitting([excerpt])]
        needed = min(MIN_LOOKS, len(fitting))
        if not needed or self._requester.looks_left < needed:  # there is little time
            return
        before = len(looks.looked)
        for rank, excerpt in fitting:
            if (looks.is_enough and not all_of_them) or not self.reader.judges_code:
                break
            if (chance := await self.reader.chance([excerpt], question)) is not None:
                await self._show([excerpt])
                looks.add(excerpt, chance, rank)
        if not looks.is_enough and len(looks.looked) - before < needed:
            del looks.looked[before:]  # a few looks do not tell what stands out
        if looks.looked:
            looks.end_round()
            await self.log(f"chances that this code answers: {looks}")

    async def _doubt(self, judged: Judged, part: TaskPart, known: str, chosen: Sequence[CodeExcerpt]) -> str:
        """Return why an answer does not count although it fits its code; empty if it counts.

        A small model answers from whatever it is shown. Code that stands out when the model looks at each
        excerpt alone is taken for the answer. Other code must have the words of the question, or hold a value
        in the code that was found first, and the model must take the cited lines for the answer when it sees
        them alone.
        """
        looks = part.looks
        cited = filter(None, (judged.place, judged.copied))
        if looks.confidence >= SURE and any(has_place(chosen, place) for place in cited):
            return ""
        is_value = not (part.asks_for_code or part.asks_yes_or_no)
        is_hedged = looks.looked and part.needs_rivals
        # Code with other words than the question may be the place: the model has judged that.
        may_have_other_words = is_hedged and part.asks_for_place and judged.unrelated == ABOUT_SOMETHING_ELSE
        if judged.unrelated and not may_have_other_words and (not is_value or part.is_searched_twice):
            return judged.unrelated
        if is_hedged:
            return ""
        places = dict.fromkeys(filter(None, (judged.copied, judged.place)))
        around = self._fitting([one for place in places for one in lines_around(place, self.shown)])
        chance = await self.reader.chance(around, part.question(known, part.rephrased))
        if chance is not None:
            await self.log(f"{judged.place} answers the question with a chance of {chance:.2f}")
            is_sure = chance >= part.needed_chance
            return "" if is_sure or self._says_it_again(judged, part) else UNCONFIRMED
        # The model may be asked again where an answer that it gives twice is right more often than not.
        may_be_in_doubt = part.needs_rivals and not part.is_searched_twice
        if not may_be_in_doubt or len(chosen) < 2 or self._requester.steps_left < 1:
            return UNCONFIRMED
        try:
            other = await self.reader.say(self.reader.about(chosen[::-1], part.question(known)))
        except (ModelFailed, LimitExceeded):
            return UNCONFIRMED
        return "" if agrees(f"{judged.text} {judged.line}", other, self.task) else SAYS_OTHERWISE

    def _says_it_again(self, judged: Judged, part: TaskPart) -> bool:
        """Return whether the model gave the same name before, from other code.

        Such an answer is marked as not certain, because its code does not stand out.
        """
        if part.asks_yes_or_no or not part.is_searched_twice or part.looks.confidence >= SURE:
            return False
        return shares_name(f"{judged.said} {judged.line}", part.said, self.task)

    async def _copied_line(self, asked: Conversation) -> str:
        """Ask which line of the code shows the answer. Empty if it is none of it."""
        line = await self.reader.copy_line(asked)
        return line if place_of_line(line, self.shown) else ""

    def _judge(
        self, chosen: Sequence[CodeExcerpt] = (), likeliest: Sequence[CodeExcerpt] = ()
    ) -> CodeAnswers:
        """Return what judges an answer from the chosen code.

        That code comes first: a line or a name that is also elsewhere is then looked up there.
        """
        first = {excerpt.place for excerpt in chosen}
        shown = sorted(self.shown, key=lambda excerpt: excerpt.place not in first)
        best = likeliest or chosen[:1]
        return CodeAnswers(self.task, shown, self.search.seen, words=self._words, likeliest=best)

    async def _likely_places(self) -> str:
        """Name the code that the model takes for the likeliest, and claim nothing of it.

        Empty if none is likely, or if the question does not ask where one thing is.
        """
        part = self._parts[0]
        looks = part.looks.surest
        if looks.best_confidence < SURE or not part.asks_for_place:
            return ""
        if (best := await self._quote_likeliest(part)) is None:
            return ""
        self.doubt = NOTHING_STANDS_OUT
        others = [one for one in looks.likeliest if one.definition != best.definition and _is_code(one)]
        number, line = best.first_line
        place = named_place(replace(best, line=number))
        told = f"{NOT_CERTAIN} The likeliest place is {place}: `{line.strip()}`."
        return " ".join(filter(None, [told, may_also_be(others)]))

    async def _missing_part(self, part: TaskPart, failure: ModelFailed | None) -> str:
        """Say that a part of the task has no answer, and name the likeliest code for it."""
        said = f"{NOT_ANSWERED} ({failure.message}): " if failure else f"{NOTHING_FOUND}: "
        said += part.text
        if part.absent:
            return f"{said} No code of this project contains {_listed(part.absent)}."
        if likeliest := await self._quote_likeliest(part):
            said += f" The likeliest code for that is {named_place(likeliest)}."
        return said

    async def _quote_likeliest(self, part: TaskPart) -> CodeExcerpt | None:
        """Have the code that most likely answers a part of the task quoted, and return it.

        None if none is likely, if the model is distrusted, or if the part asks for a yes or no.
        """
        looks = part.looks.surest
        if part.asks_yes_or_no or looks.best_confidence < MIN_TO_QUOTE or part.is_distrusted:
            return None
        found = looks.nearly_likeliest
        code = list(filter(_is_code, found))
        if part.asks_where and not code:
            return None
        best = code[0] if code and part.asks_for_code else found[0]
        if is_gapless(best):
            [best] = await self._show([await self.search.widened(best, QUOTED_LINES)])
        part.likeliest = best
        return best

    async def _nothing_found(self) -> str:
        """Say what was read. Raises `Unverified` if an answer was refused and all words of the task occur.

        A yes that is refused, or an answer that the model itself does not confirm, says no more than that the
        code shows nothing of the kind.
        """
        is_plain = is_plain_question(self.task)
        missing = await self.search.missing_words(subject_of(self.task)) if is_plain else ()
        problems = (part.problem for part in self._parts if part.problem not in ("", *DENIALS))
        problem = next(problems, "")
        if problem and not missing and not is_yes_or_no(self.task):
            raise Unverified(problem, hint=USE_NAMES)
        await self._quote_likeliest(self._parts[0])
        said = f"{NOTHING_FOUND} in the code that was read."
        if missing:
            said += f" No code of this project contains {_listed(missing)}."
        return _joined(said, self.places())


def _names_place(told: str, place: str) -> bool:
    """Return whether a text names a place, and not only one whose line begins with the same digits."""
    return re.search(rf"(?<![\w./-]){re.escape(place)}(?!\d)", told) is not None


def _is_code(excerpt: CodeExcerpt) -> bool:
    return file_category(excerpt.path) not in ("docs", "test")


def _joined(said: str, places: str) -> str:
    return "\n".join(filter(None, [said, places]))


def _listed(words: Sequence[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)
