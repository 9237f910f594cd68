"""Answers a question about code with a model that cannot choose tools well: our search finds the code.

The model looks at the code of the best places, and at a passage of the documentation if one fits, one by one
(`likely_code.py`). If none of them is likely to answer, it looks further down in their definitions, and one
more search uses names that the model proposes. From the code that is likeliest, the model answers in its own
words, and then copies the line that shows the answer. That line is looked up in the code that was shown, so
the place of an answer is always real. If no answer counts, the likeliest places are named if any is likely
enough. Otherwise the answer is that nothing was found, with the nearest places.

A question with two parts ("which ..., and how ...") is answered part by part. The names in the first answer
help to find the code for the second. A question for something whose words occur nowhere in the project is
answered without the model: it was not found. If an answer is refused and a word of the question occurs
nowhere, it was not found either. A number that the code has only by its name is looked up.

Each answer is judged in `code_answers.py` before it counts. Code that stands out is taken for the answer.
Other code must have the words of the question. A value, a yes or a part of an answer then also needs a second
look at its lines; a place or an explanation is hedged and names its rivals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from retinue.codebase import file_category
from retinue.core import (
    LimitExceeded,
    Unverified,
    clip,
    estimate_tokens,
)
from retinue.executors.local.code_answers import CodeAnswers, Judged
from retinue.executors.local.code_reader import CodeReader
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.evidence import agrees, shares_name, support_of
from retinue.executors.local.likely_code import (
    CLEAR,
    DOUBTFUL,
    FAIR,
    MIN_LOOKS,
    POSSIBLE,
    RELATED,
    SURE,
    Looks,
)
from retinue.executors.local.model_requests import (
    LoopLimits,
    ModelRequester,
    WriteLog,
)
from retinue.executors.local.question_kinds import (
    asks_for_code,
    asks_how,
    asks_where,
    is_plain_question,
    question_parts,
    subject_of,
)
from retinue.executors.local.shown_code import (
    QUOTED_LINES,
    fit_excerpts,
    has_place,
    is_gapless,
    lines_around,
    may_also_be,
    named_place,
    nearest_places,
    place_of_line,
    quoted_lines,
)
from retinue.tools import CodeExcerpt, CodeSearch, content_words, is_yes_or_no

MAX_ROUNDS = 2
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
MIN_OWN_WORDS = 3
"""A part of a question with fewer words of its own is searched for together with the whole question."""
CODE_SHARE = 0.4
CODE_SHARE_BESIDE_TOOLS = 0.2
"""The share of a request's tokens that the code may take."""
BACKGROUND_SHARE, BOTH_SHARES = 0.2, 0.5
"""The share that skills and memories may take, and the one that they and the code may take together."""
NOTHING_FOUND = "Not found"
"""The beginning of an honest answer that what was asked for is not there."""
SURE_LINES, SURE_CLAIM = 0.47, 0.55
"""The chance that the model must give the lines of an answer in doubt, when it sees them alone. The second is
for a yes, and for an answer to one part of a question."""
MAX_QUOTED_TOKENS, MAX_QUOTED_CHARS = 600, 160
"""Limits of all quoted code, and of one line of it."""
MAX_BLOCKS = 4
"""How many blocks of long definitions the model looks at if no code is likely."""
NOT_CERTAIN = "This is not certain."
NOTHING_STANDS_OUT = "no code stands out as the answer, so other places may be meant"
UNCONFIRMED = "shown this code alone, the model does not take it for the answer"
SAYS_OTHERWISE = "shown the same code in another order, the model answers otherwise"
USE_NAMES = "ask about one thing and name it as the code does, or use a stronger model"
TOO_SLOW = "The model was not asked: it is too slow for the time of this run."
QUOTED_HEADING = "From the code:"


async def find_code(search: CodeSearch, question: str, skip: Collection[str] = ()) -> tuple[CodeExcerpt, ...]:
    """Search for the code that a question is about. Empty if the search finds nothing."""
    found = await search.find(question, EXPLAINED_SIZES if asks_how(question) else EXCERPT_SIZES, skip)
    if asks_where(question):  # documentation does not say where something is done
        return tuple(one for one in found if file_category(one.path) != "docs") or found
    return found


@dataclass(slots=True, kw_only=True)
class GuidedSearch:
    """Answers one task from code that our own search finds."""

    reader: CodeReader
    search: CodeSearch
    task: str
    limits: LoopLimits
    log: WriteLog
    code_share: float = CODE_SHARE
    found: Sequence[CodeExcerpt] = ()
    """What the search has found for the task already."""
    shown: list[CodeExcerpt] = field(default_factory=list[CodeExcerpt])
    """Everything that the model was shown, in order."""
    doubt: str = field(default="", init=False)
    """Why the answer is not certain; empty if it is."""
    _problems: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Why the last answer to a part was refused; none if the model said that the code does not show it."""
    _rivals: dict[str, Sequence[CodeExcerpt]] = field(
        default_factory=dict[str, "Sequence[CodeExcerpt]"], init=False
    )
    """Other code that may answer a part, the likeliest first."""
    _cited: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The line that the answer to a part cites."""
    _likeliest: dict[str, CodeExcerpt] = field(default_factory=dict[str, CodeExcerpt], init=False)
    """The likeliest code for a part without an answer."""
    _chosen: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The lines that refused answers cite, by their places."""
    _said: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """What the model said and copied last for a part."""
    _words: Sequence[str] = field(default=(), init=False)
    """The words that the last search was made with."""
    _is_second_search: bool = field(default=False, init=False)
    _looks: dict[str, Looks] = field(default_factory=dict[str, Looks], init=False)
    """What the model has looked at for each part of the task."""
    _distrusted: set[str] = field(default_factory=set[str], init=False)
    """Parts for which the model made up an answer, or found none in code that it took for the answer."""
    _given_up: set[str] = field(default_factory=set[str], init=False)
    """Parts of the task for which the search has stopped."""

    @property
    def _requester(self) -> ModelRequester:
        return self.reader.requester

    async def first_excerpts(self) -> Sequence[CodeExcerpt]:
        """Return the code that the task is about, as much as fits into a request. Empty if there is none."""
        self.found = self.found or await self._find(self.task)
        return await self._show(self._fitting(self.found[:SHOWN_TOGETHER]))

    async def answer(self) -> str | None:
        """Return an answer that names its place, or one that says that nothing was found.

        Returns None if there is no code to answer from, and nothing that says why.
        """
        excerpts = self.found = self.found or await self._find(self.task)
        is_plain = is_plain_question(self.task)
        if is_plain and (absent := await self.search.absent_words(self.task)):
            names = _listed(absent)
            await self.log(f"no code contains {names}: the model is not asked")
            await self._show(excerpts)
            return _joined(f"{NOTHING_FOUND}: no code of this project contains {names}.", self.places())
        if not excerpts:
            return None
        if not self.limits.has_time:
            await self.log("the model is too slow for the time of this run and is not asked")
            await self._show(excerpts)
            return _joined(TOO_SLOW, self.places())
        parts = question_parts(self.task)
        answers: dict[str, str] = {}
        for number in range(MAX_ROUNDS):
            for part in parts:
                if part not in answers and part not in self._given_up and self._requester.steps_left > 0:
                    known = " ".join(answers.values())
                    if known and (follows := self._judge().follows_from(known, part)):
                        answers[part] = follows
                    elif answer := await self._answer_from(excerpts, part, known):
                        answers[part] = answer
            missing = [part for part in parts if part not in answers and part not in self._given_up]
            is_out_of_looks = self.reader.judges_code and self._requester.looks_left < MIN_LOOKS
            if not missing or number + 1 == MAX_ROUNDS or self._requester.steps_left <= 1 or is_out_of_looks:
                break
            excerpts = await self._find_more(missing[0], " ".join(answers.values()))
        if parts[0] not in answers:  # nobody knows what the rest is about
            answers.clear()
            self._cited.clear()
        if not answers:
            return await self._likely_places() or await self._nothing_found()
        told = " ".join(dict.fromkeys(answers.values()))
        hedges = [self._hedge(part, told) for part in parts if part in answers]
        if any(self._is_in_doubt(part) for part in answers):
            self.doubt = NOTHING_STANDS_OUT
        missing = [await self._missing_part(part) for part in parts if part not in answers]
        return " ".join(dict.fromkeys(filter(None, [told, *hedges, *missing])))

    def places(self) -> str:
        """Say what our search found, the likeliest first; empty if it found nothing."""
        chances = {one.excerpt.place: one.chance for looks in self._looks.values() for one in looks.looked}
        likeliest = sorted(self.shown, key=lambda excerpt: -chances.get(excerpt.place, 0.0))
        return nearest_places(likeliest, self._chosen)

    def quoted_code(self) -> str:
        """Return the lines around those that the answer cites; empty for a place or a yes.

        A small model explains code worse than it finds it, so the reader gets both.
        """
        files: dict[str, dict[int, str]] = {}
        for part, place in self._cited.items():
            if not (is_yes_or_no(part) or asks_where(part)):
                path, lines = quoted_lines(place, self.shown)
                files.setdefault(path, {}).update(lines)
        for part, excerpt in self._likeliest.items():
            if not asks_where(part):
                files.setdefault(excerpt.path, {}).update(excerpt.lines[:QUOTED_LINES])
        quoted = [
            CodeExcerpt(
                path, min(lines), tuple((at, clip(lines[at], MAX_QUOTED_CHARS)) for at in sorted(lines))
            )
            for path, lines in files.items()
        ]
        fitting = fit_excerpts(quoted, MAX_QUOTED_TOKENS)
        return "\n".join([QUOTED_HEADING, *map(str, fitting)]) if fitting else ""

    async def _find(self, question: str) -> tuple[CodeExcerpt, ...]:
        """Search for code that was not shown yet."""
        return await find_code(self.search, question, {excerpt.place for excerpt in self.shown})

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

    async def _find_more(self, part: str, known: str) -> tuple[CodeExcerpt, ...]:
        """Search for more code for a part of the task, with names of what was said and words for the code.

        The names in a refused answer are of the wrong code.
        """
        self._is_second_search = True
        said = known or ("" if self._problems.get(part) else self._said.get(part, ""))
        names = support_of(said, self.task, self.search.seen).seen
        asked = self.task if _is_short(part) else part
        self._words = await self.reader.propose_words(asked, self.search.project, self.task)
        if self._words:
            await self.log(f"words that the model proposes: {', '.join(self._words)}")
        return await self._find(" ".join([asked, *names, *self._words]))

    async def _answer_from(self, excerpts: Sequence[CodeExcerpt], part: str, known: str) -> str | None:
        """Ask for the answer to one part of the task. Return None if these excerpts do not show it."""
        question = f"Known: {known}\nQuestion: {part}" if known else f"Question: {part}"
        looks = self._looks.setdefault(part, Looks())
        await self._look_at(excerpts, question, looks)
        is_place = asks_for_code(part) and part == self.task
        needed = FAIR if is_place or is_yes_or_no(part) else DOUBTFUL
        if (
            looks.looked
            and looks.confidence < needed
            and not (
                self._is_second_search and asks_how(part)  # among many looks, one is high by chance
            )
        ):
            seen = [one.excerpt for one in looks.ordered]
            blocks = await self.search.blocks_inside(seen, part, MAX_BLOCKS)
            await self._look_at(blocks, question, looks)
        if looks.looked and looks.confidence < needed:
            return None
        chosen = await self._chosen_code(looks) or await self._show(self._fitting(excerpts[:SHOWN_TOGETHER]))
        if not chosen:
            return None
        asked = self.reader.about(chosen, question)
        if is_yes_or_no(part):  # asked for a sentence, a weak model says "yes"
            reply = await self.reader.fill_in(asked)
            if self._judge(chosen).lacks_line(reply):
                reply = {**reply, "quote": await self._copied_line(asked)}
        else:
            said = await self.reader.say(asked)
            reply = {"answer": said, "quote": await self._copied_line(asked), "shown": True}
        judge = self._judge(chosen)
        judged = judge.judge(part, reply, known)
        if judged.names:
            values = await self._show(await self.search.values_of(judged.names))
            judge = replace(self._judge(chosen), values=values)
            judged = judge.judge(part, reply, known)
        if judged.text is not None and (doubt := await self._doubt(judged, question, part, looks, chosen)):
            judged = Judged(None, judged.text, problem=doubt)
        self._problems[part] = judged.problem
        if judged.is_made_up or judged.why:
            self._distrusted.add(part)
        self._said[part] = f"{reply.get('answer')} {reply.get('quote')}"
        if judged.text is None:
            looks.refuse(chosen)
            if is_yes_or_no(part):  # asked about more code, a small model says yes sooner or later
                self._given_up.add(part)
            await self.log(f"{judged.problem or judged.why}: {clip(' '.join(judged.said.split()), 160)}")
            if reply.get("shown") is True and (chosen_line := judge.chosen_line(reply)):
                self._chosen.update([chosen_line])
            return None
        answer = f"{judged.text} {judged.line}".rstrip()  # so that the reader can check it
        cited = list(filter(None, (judged.place, judged.copied)))
        self._cited[part] = judged.copied or judged.place
        rivals = [one.excerpt for one in looks.ordered] or list(chosen)
        self._rivals[part] = [
            one
            for one in rivals
            if file_category(one.path) != "test" and not any(has_place([one], place) for place in cited)
        ]
        return answer

    def _hedge(self, part: str, told: str) -> str:
        """Return what is said of an answer if its code does not clearly stand out; empty if it does.

        A place or an explanation then names others that may be meant, and that the answer does not name.
        """
        if part not in self._rivals or self._looks[part].confidence >= CLEAR:
            return ""
        others = [one for one in self._rivals[part] if one.place not in told] if asks_for_code(part) else []
        said = NOT_CERTAIN if self._is_in_doubt(part) else ""
        return " ".join(filter(None, [said, may_also_be(others)]))

    def _is_in_doubt(self, part: str) -> bool:
        """Return whether no code stands out for an answer of the model. Other answers follow from one."""
        return part in self._rivals and self._looks[part].confidence < SURE

    async def _chosen_code(self, looks: Looks) -> tuple[CodeExcerpt, ...]:
        """Return the code that most likely answers. If that is one definition, return more of it."""
        chosen = looks.chosen
        if len(chosen) == 1:
            wide = [await self.search.widened(chosen[0], WIDENED_LINES)]
            if list(self._fitting(wide)) == wide:  # else the lines that it was chosen by may be cut
                chosen = wide
        return await self._show(self._fitting(chosen))

    async def _look_at(self, excerpts: Sequence[CodeExcerpt], question: str, looks: Looks) -> None:
        """Let the model look at each excerpt alone, until one stands out.

        A small model judges one excerpt better than it chooses among several.
        """
        needed = min(MIN_LOOKS, len(excerpts))
        if self._requester.looks_left < needed:  # there is little time
            return
        before = len(looks.looked)
        for rank, excerpt in enumerate(excerpts):
            if not (fitting := self._fitting([excerpt])):  # its lines are too long
                continue
            if looks.is_enough or (chance := await self.reader.chance(fitting, question)) is None:
                break
            await self._show(fitting)
            looks.add(fitting[0], chance, rank)
        if not looks.is_enough and len(looks.looked) - before < needed and not self.reader.judges_code:
            del looks.looked[before:]  # a few looks do not tell what stands out
        if looks.looked:
            looks.end_round()
            await self.log(f"chances that this code answers: {looks}")

    async def _doubt(
        self, judged: Judged, question: str, part: str, looks: Looks, chosen: Sequence[CodeExcerpt]
    ) -> str:
        """Return why an answer does not count although it fits its code; empty if it counts.

        A small model answers from whatever it is shown. Code that stands out when the model looks at each
        excerpt alone is taken for the answer. Other code must have the words of the question, and the model
        must take the cited lines for the answer when it sees them alone.
        """
        cited = filter(None, (judged.place, judged.copied))
        if looks.confidence >= SURE and any(has_place(chosen, place) for place in cited):
            return ""
        if judged.unrelated:
            return judged.unrelated
        is_whole = part == self.task and not is_yes_or_no(part)
        if looks.looked and is_whole and asks_for_code(part):
            return ""  # it is hedged
        chance = await self.reader.chance(
            self._fitting(list(lines_around(judged.place, self.shown))), question
        )
        if chance is not None:
            await self.log(f"{judged.place} answers the question with a chance of {chance:.2f}")
            is_sure = chance >= (SURE_LINES if is_whole else SURE_CLAIM)
            return "" if is_sure or self._says_it_again(judged, part, looks) else UNCONFIRMED
        if not self._may_be_in_doubt(part) or self._requester.steps_left < 1:
            return UNCONFIRMED
        again = self.reader.about(chosen[::-1], question)
        try:
            other = await self.reader.say(again)
        except LimitExceeded:
            return UNCONFIRMED
        return "" if agrees(f"{judged.text} {judged.line}", other, self.task) else SAYS_OTHERWISE

    def _says_it_again(self, judged: Judged, part: str, looks: Looks) -> bool:
        """Return whether the model gave the same name before, from other code.

        Such an answer is marked as not certain, because its code does not stand out.
        """
        if is_yes_or_no(part) or not self._is_second_search or looks.confidence >= SURE:
            return False
        return shares_name(judged.said, self._said.get(part, ""), self.task)

    def _may_be_in_doubt(self, part: str) -> bool:
        """Return whether an answer in doubt is right more often than not if the model gives it twice.

        That is so for where or how one thing is done, and for code of the first search.
        """
        return asks_for_code(part) and part == self.task and not self._is_second_search

    async def _copied_line(self, asked: Conversation) -> str:
        """Ask which line of the code shows the answer. Empty if it is none of it."""
        line = await self.reader.copy_line(asked)
        return line if place_of_line(line, self.shown) else ""

    def _judge(self, chosen: Sequence[CodeExcerpt] = ()) -> CodeAnswers:
        """Return what judges an answer from the chosen code.

        That code comes first: a line or a name that is also elsewhere is then looked up there.
        """
        first = {excerpt.place for excerpt in chosen}
        shown = sorted(self.shown, key=lambda excerpt: excerpt.place not in first)
        best = chosen[0] if chosen else None
        return CodeAnswers(self.task, shown, self.search.seen, words=self._words, best=best)

    async def _likely_places(self) -> str:
        """Name the code that the model takes for the likeliest, and claim nothing of it.

        Empty if none is likely, or if the question does not ask where or how one thing is done.
        """
        looks = self._looks.get(self.task)
        if looks is None or looks.best_confidence < POSSIBLE or not asks_for_code(self.task):
            return ""
        if (best := await self._quote_likeliest(self.task)) is None:
            return ""
        self.doubt = NOTHING_STANDS_OUT
        others = [one for one in looks.likeliest if one.definition != best.definition and _is_code(one)]
        number, line = best.first_line
        place = named_place(replace(best, line=number))
        told = f"{NOT_CERTAIN} The likeliest place is {place}: `{line.strip()}`."
        return " ".join(filter(None, [told, may_also_be(others)]))

    async def _missing_part(self, part: str) -> str:
        """Say that a part of the task has no answer, and name the likeliest code for it."""
        said = f"{NOTHING_FOUND}: {part}"
        if likeliest := await self._quote_likeliest(part):
            said += f" The likeliest code for that is {named_place(likeliest)}."
        return said

    async def _quote_likeliest(self, part: str) -> CodeExcerpt | None:
        """Have the code that most likely answers a part of the task quoted, and return it.

        None if none is likely, if the model is distrusted, or if the part asks for a yes or no.
        """
        looks = self._looks.get(part)
        if is_yes_or_no(part) or looks is None or looks.best_confidence < RELATED or part in self._distrusted:
            return None
        found = looks.likeliest
        best = next(filter(_is_code, found), found[0]) if asks_for_code(part) else found[0]
        if is_gapless(best):
            [best] = await self._show([await self.search.widened(best, QUOTED_LINES)])
        self._likeliest[part] = best
        return best

    async def _nothing_found(self) -> str:
        """Say what was read. Raises `Unverified` if an answer was refused and all words of the task occur.

        A yes that is refused says no more than that the code shows nothing of the kind.
        """
        is_plain = is_plain_question(self.task)
        missing = await self.search.missing_words(subject_of(self.task)) if is_plain else ()
        problem = next(filter(None, self._problems.values()), "")
        if problem and not missing and not is_yes_or_no(self.task):
            raise Unverified(problem, hint=USE_NAMES)
        await self._quote_likeliest(question_parts(self.task)[0])
        said = f"{NOTHING_FOUND} in the code that was read."
        if missing:
            said += f" No code of this project contains {_listed(missing)}."
        return _joined(said, self.places())


def _is_code(excerpt: CodeExcerpt) -> bool:
    return file_category(excerpt.path) not in ("docs", "test")


def _joined(said: str, places: str) -> str:
    return f"{said}\n{places}" if places else said


def _is_short(part: str) -> bool:
    """Return whether a part of a question says too little to be searched for alone."""
    return len(content_words(part)) < MIN_OWN_WORDS


def _listed(words: Sequence[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)
