"""Answers a question about code with a model that cannot choose tools well: our search finds the code.

Each round is one request. The model sees the code of the best places and answers from it, with a line that it
copies, or says that the code does not show the answer. Then it proposes words, and the next round shows what
they find. The copied line is looked up in the code that was shown, so the place of an answer is always real.

A question with two parts ("which ..., and how ...") is answered part by part from the same code. A question
for something whose words occur nowhere in the project is answered without the model: it was not found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from retinue.core import Json, NotJson, Unverified, clip, estimate_tokens
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.evidence import says_not_found, support_of, unseen_numbers
from retinue.executors.local.model_requests import LoopLimits, ModelRequester, RequestOptions, WriteLog
from retinue.executors.local.replies import first_json_value, without_thoughts
from retinue.tools import CodeExcerpt, CodeSearch, is_yes_or_no, word_coverage

MAX_ROUNDS = 2
EXCERPT_SIZES = (18, 14, 12, 12)
"""How many lines are shown of each definition in a round, best first."""
EXPLAINED_SIZES = (30, 14, 12)
"""For questions how something works: more of the best definition."""
MIN_EXCERPT_LINES = 8
CODE_SHARE = 0.4
CODE_SHARE_BESIDE_TOOLS = 0.2
"""The share of a request's tokens that the code may take."""
REPLY_TOKENS = 300
MIN_QUOTE_CHARS = 6
MIN_COVERAGE = 0.5
"""The share of the words of a yes-or-no question that the code behind a "yes" must contain."""
USE_NAMES = "ask about one thing and name it as the code does, or use a stronger model"
TOO_SLOW = "The model was not asked: it is too slow for the time of this run."
CODE_HEADING = "Code that a search found for this task:"
GUIDED_RULES = (
    "You answer questions about code. You see numbered lines of some files. Use only what these lines say, "
    "and never guess."
)
ANSWER_FROM_CODE = (
    "Answer the question from this code alone. Reply with one JSON object. quote: the one line of code that "
    "best shows the answer, copied without its number; answer: one or two full sentences that answer the "
    "question, with the names and values from the code; shown: true if the code shows the answer, else false."
)
EXPLAIN_FROM_CODE = (
    "Explain from this code alone. Reply with one JSON object. answer: two full sentences that tell what the "
    "code does, with each function that it calls, each condition and each limit, by their names in the code; "
    "quote: the most important line of that code, copied without its number; shown: true if the code shows "
    "the answer, else false."
)
PROPOSE_WORDS = (
    "That code does not show the answer. Reply with one JSON object. words: one to three names or words that "
    "the right code would contain."
)
ANSWER_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "quote": {"type": "string", "maxLength": 200},
        "answer": {"type": "string", "maxLength": 600},
        "shown": {"type": "boolean"},
    },
    "required": ["quote", "answer", "shown"],
    "additionalProperties": False,
}
EXPLAIN_SCHEMA: Mapping[str, Json] = {
    **ANSWER_SCHEMA,
    "properties": {
        "answer": {"type": "string", "maxLength": 450},
        "quote": {"type": "string", "maxLength": 200},
        "shown": {"type": "boolean"},
    },
    "required": ["answer", "quote", "shown"],
}
WORDS_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "words": {
            "type": "array",
            "items": {"type": "string", "maxLength": 40},
            "minItems": 1,
            "maxItems": 3,
        }
    },
    "required": ["words"],
    "additionalProperties": False,
}
MAX_AGENT_PROMPT_TOKENS = 150
"""Longer instructions of an agent are left out: a weak model follows them instead of answering."""
_PLAIN_QUESTION = re.compile(
    r"^\W*(?!\w+ you\b)(?:(?:for|in|to|by|at|on|of|from|with|below|above|under|over|after) )?"
    r"(?:where|how|what|which|who|whose|why|when|is|are|does|do|did|can|could|has|have|will)\b"
    r"[^\n?]{1,300}\?\s*$",
    re.IGNORECASE,
)
"""One question and nothing else. A task to build something may name what is not there yet."""
_SECOND_PART = re.compile(
    r"(?<=\S)[,;]? and (?P<second>(?:(?:in|to|by|with|from|at|on|for|of|under|after) )?"
    r"(?:which|what|where|how|who|whose|when|why)\b.*)$",
    re.IGNORECASE,
)
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|wide|deep)\b"
    r"|\b(?:number|default|maximum|minimum|limit|size|code|value|port|timeout|duration)\b",
    re.IGNORECASE,
)
_ASKS_WHERE = re.compile(r"^\W*(?:where|which (?:function|method|class|file)|in which)\b", re.IGNORECASE)
_NEEDS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|wide|deep)\b"
    r"|\b(?:below|above|under|over|after|from) (?:which|what) (?:\w+ )?(?:time|size|length|number|age)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b")
_DEFINED = r"(?<![\w.]){name}\b[^=\n]{{0,60}}(?::=|=)\s*[^=].*\d"
_ASKS_HOW = re.compile(
    r"^\W*(?:please )?(?:how (?!many|much|long|often|large|big|old|wide|deep)|why\b|explain|describe"
    r"|what (?:happens|does|do)\b)",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s+")
_LINE_NUMBER = re.compile(r"^\s*\d+\s*:\s?")


def task_with_code(task: str, excerpts: Sequence[CodeExcerpt]) -> str:
    """Return the task, followed by the code that was found for it."""
    if not excerpts:
        return task
    return "\n\n".join([task, CODE_HEADING, *map(str, excerpts)])


@dataclass(slots=True, kw_only=True)
class GuidedSearch:
    """Answers one task from code that our own search finds."""

    requester: ModelRequester
    search: CodeSearch
    task: str
    limits: LoopLimits
    log: WriteLog
    agent_prompt: str = ""
    """The agent's own instructions."""
    code_share: float = CODE_SHARE
    shown: list[CodeExcerpt] = field(default_factory=list[CodeExcerpt])
    """Everything that the model was shown, in order."""
    _problem: str = field(default="", init=False)
    """Why the last answer was refused; empty if the model said that the code does not show it."""

    async def first_excerpts(self) -> Sequence[CodeExcerpt]:
        """Search for the code that the task is about. Empty if the search finds nothing."""
        return await self._find(self.task)

    async def answer(self, excerpts: Sequence[CodeExcerpt]) -> str | None:
        """Return an answer that names its place, or one that says that nothing was found.

        Returns None if there is no code to answer from, and nothing that says why.
        """
        is_plain = _PLAIN_QUESTION.match(self.task) is not None
        if is_plain and (absent := await self.search.absent_words(self.task)):
            names = _listed(absent)
            await self.log(f"no code contains {names}: the model is not asked")
            nearest = f" The nearest code is {excerpts[0].place}." if excerpts else ""
            return f"Not found: no code of this project contains {names}.{nearest}"
        if not excerpts:
            return None
        if not self.limits.has_time:
            await self.log("the model is too slow for the time of this run and is not asked")
            return f"{TOO_SLOW} {self.places()}"
        parts = question_parts(self.task)
        answers: dict[str, str] = {}
        words: list[str] = []
        for number in range(MAX_ROUNDS):
            for part in parts:
                if part not in answers and excerpts and self.requester.steps_left > 0:
                    known = " ".join(answers.values())
                    if known and self._gives_number(part, known):
                        answers[part] = known
                    elif answer := await self._answer_from(excerpts, part, known, is_late=number > 0):
                        answers[part] = answer
            if len(answers) == len(parts) or number + 1 == MAX_ROUNDS or self.requester.steps_left <= 1:
                break
            words += await self._propose_words(words)
            excerpts = await self._find(" ".join([self.task, *answers.values(), *words]))
        if not answers:
            return self._nothing_found()
        missing = [f"Not found: {part}" for part in parts if part not in answers]
        return " ".join([*dict.fromkeys(answers.values()), *missing])

    def places(self) -> str:
        """Say what our search found; empty if it found nothing."""
        found = ", ".join(
            f"{excerpt.place} ({excerpt.symbol})" if excerpt.symbol else excerpt.place
            for excerpt in self.shown
        )
        return f"The search found these places: {found}." if found else ""

    async def _find(self, question: str) -> tuple[CodeExcerpt, ...]:
        skip = {excerpt.place for excerpt in self.shown}
        sizes = EXPLAINED_SIZES if _ASKS_HOW.search(self.task) else EXCERPT_SIZES
        found = await self.search.find(question, sizes, skip)
        fitting = _fit(found, int(self.code_share * self.limits.tokens)) if self.limits.has_time else found
        for excerpt in fitting:
            self.search.seen.add_lines(excerpt.path, excerpt.lines)
        self.shown += fitting
        if fitting:
            await self.log(f"code found: {', '.join(excerpt.place for excerpt in fitting)}")
        return fitting

    async def _answer_from(
        self, excerpts: Sequence[CodeExcerpt], part: str, known: str, *, is_late: bool
    ) -> str | None:
        """Ask for the answer to one part of the task. Return None if these excerpts do not show it.

        `is_late` is set for code that was not among the best: an answer from it must be about the question.
        """
        question = f"Known: {known}\nQuestion: {part}" if known else f"Question: {part}"
        explains = _ASKS_HOW.search(part) is not None
        # The code comes first: the server need not read it again for the next part.
        reply = await self._ask(
            "\n\n".join([*map(str, excerpts), question]),
            EXPLAIN_FROM_CODE if explains else ANSWER_FROM_CODE,
            EXPLAIN_SCHEMA if explains else ANSWER_SCHEMA,
        )
        answer, quote = str(reply.get("answer") or "").strip(), str(reply.get("quote") or "")
        place = _place_of(quote, self.shown)
        support = support_of(answer, self.task, self.search.seen)
        self._problem = ""
        if not isinstance(reply.get("shown"), bool):
            self._problem = "the model gave no readable answer"
        elif not reply["shown"] or says_not_found(answer):
            await self.log(f"the model does not find the answer in this code: {clip(answer, 160)}")
            return None
        elif not support.holds and (place is None or support.unseen):
            self._problem = "the answer names nothing that this code contains"
        elif invented := [
            number
            for number in unseen_numbers(answer, self.task, self.search.seen)
            if float(number) > 2 or _ASKS_FOR_NUMBER.search(part)  # "two steps" is a way of speaking
        ]:
            self._problem = f"the answer has a number that this code does not contain: {invented[0]}"
        elif (place is None or part != self.task) and not word_coverage(self.task, f"{answer} {quote}"):
            self._problem = "the answer has nothing to do with the task"
        elif (is_late or is_yes_or_no(part)) and self._coverage(place) < MIN_COVERAGE:
            await self.log(
                f"the model calls this the answer, but it is about something else: {clip(answer, 160)}"
            )
            return None
        elif _NEEDS_NUMBER.search(part) and not any(name[:1].isdigit() for name in support.seen):
            defined = _definition_of(_NAME.findall(f"{answer} {quote}"), self.shown)
            if defined is None:
                self._problem = "the answer gives no number that this code contains"
            else:
                place, line = defined
                answer = f"{answer.rstrip('.')}: `{line}`"
        if self._problem:
            await self.log(f"{self._problem}: {clip(' '.join(answer.split()), 160)}")
            return None
        if _ASKS_WHERE.search(part):
            place = self._defined_at(answer) or place
        if place is None:
            place = _place_with(support.seen, self.shown)
        if place is None or place in answer:
            return answer
        symbol = self._symbol_at(place)
        within = f", in {symbol}" if symbol and symbol not in answer else ""
        also = self._other_place(place) if _ASKS_WHERE.search(part) else ""
        return f"{answer.rstrip('.')} ({place}{within}).{also}"

    def _defined_at(self, answer: str) -> str | None:
        """Return the place of the first shown definition that an answer names."""
        named = [
            (answer.find(name), excerpt.place)
            for excerpt in self.shown
            if (name := excerpt.symbol.rpartition(".")[2])
            and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer)
            and (not name.islower() or "_" in name or f"`{name}`" in answer)
        ]
        return min(named)[1] if named else None

    def _other_place(self, place: str) -> str:
        """Return a sentence that names the search's best place if the model chose another one."""
        best = self.shown[0]
        path, _, line = place.rpartition(":")
        if best.path == path and any(number == int(line) for number, _ in best.lines):
            return ""
        return f" The search ranks {best.place}{f' ({best.symbol})' if best.symbol else ''} first."

    def _symbol_at(self, place: str) -> str:
        """Return the name of the definition that a shown place is in, or an empty string."""
        path, _, line = place.rpartition(":")
        names = (excerpt.symbol_at(int(line)) for excerpt in self.shown if excerpt.path == path)
        return next(filter(None, names), "")

    def _coverage(self, place: str | None) -> float:
        """Return the share of the question's words in the shown code around a place, or in all of it."""
        path = (place or "").rpartition(":")[0]
        inside = [
            str(excerpt)
            for excerpt in self.shown
            if excerpt.path == path and any(place == f"{path}:{number}" for number, _ in excerpt.lines)
        ]
        return word_coverage(self.task, "\n".join(inside or map(str, self.shown)))

    def _gives_number(self, part: str, known: str) -> bool:
        """Return whether an answer already has the number that another part of the question asks for."""
        names = support_of(known, self.task, self.search.seen).seen
        return _ASKS_FOR_NUMBER.search(part) is not None and any(name[:1].isdigit() for name in names)

    async def _propose_words(self, known: Sequence[str]) -> list[str]:
        places = ", ".join(excerpt.place for excerpt in self.shown)
        reply = await self._ask(f"{self.task}\n\nThis code was read: {places}", PROPOSE_WORDS, WORDS_SCHEMA)
        words = reply.get("words")
        proposed = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
        new = [clip(word, 40) for word in proposed if word and word not in known]
        await self.log(f"searches for: {', '.join(new) or 'the next places'}")
        return new

    async def _ask(self, task: str, instruction: str, schema: Mapping[str, Json]) -> Mapping[str, Json]:
        options = RequestOptions(
            schema=schema, as_text=True, last_turn=instruction, temperature=0.0, reply_tokens=REPLY_TOKENS
        )
        system = GUIDED_RULES
        if self.agent_prompt and estimate_tokens(self.agent_prompt) <= MAX_AGENT_PROMPT_TOKENS:
            system = f"{self.agent_prompt.strip()}\n\n{system}"
        reply = await self.requester.ask(Conversation(system, task), options)
        try:
            value = first_json_value(without_thoughts(reply.text))
        except NotJson:
            return {}
        return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}

    def _nothing_found(self) -> str:
        if self._problem:
            raise Unverified(self._problem, hint=USE_NAMES)
        looked = ", ".join(excerpt.place for excerpt in self.shown)
        return f"Not found in the code that was read: {looked}."


def question_parts(task: str) -> tuple[str, ...]:
    """Return the parts of a question that asks two things, else the question itself."""
    found = _SECOND_PART.search(task)
    if found is None or "\n" in task.strip():
        return (task,)
    first, second = task[: found.start()].strip(" ,;"), found["second"].strip()
    return (f"{first}?", second[:1].upper() + second[1:])


def _listed(words: Sequence[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)


def _fit(excerpts: Sequence[CodeExcerpt], tokens: int) -> tuple[CodeExcerpt, ...]:
    """Shorten the excerpts until they fit into `tokens`. At the end, leave out the last ones."""
    lines = max((len(excerpt.lines) for excerpt in excerpts), default=0)
    while excerpts and sum(estimate_tokens(str(excerpt)) for excerpt in excerpts) > tokens:
        if lines > MIN_EXCERPT_LINES:
            lines -= 2
            excerpts = [replace(excerpt, lines=excerpt.lines[:lines]) for excerpt in excerpts]
        else:
            excerpts = excerpts[:-1]
    return tuple(excerpts)


def _place_of(quote: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that the model copied."""
    wanted = _plain(_LINE_NUMBER.sub("", quote))
    if len(wanted) < MIN_QUOTE_CHARS:
        return None
    for excerpt in excerpts:
        for number, line in excerpt.lines:
            plain = _plain(line)
            if wanted in plain or (len(plain) >= MIN_QUOTE_CHARS and plain in wanted):
                return f"{excerpt.path}:{number}"
    return None


def _place_with(names: Sequence[str], excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the line that contains most of these names, and the first of several."""
    wanted = [name.casefold().removesuffix("()") for name in names]
    best, most = None, 0
    for excerpt in excerpts:
        for number, line in excerpt.lines:
            count = sum(name in line.casefold() for name in wanted)
            if count > most:
                best, most = f"{excerpt.path}:{number}", count
    return best


def _definition_of(names: Sequence[str], excerpts: Sequence[CodeExcerpt]) -> tuple[str, str] | None:
    """Return the place and the text of a shown line that gives one of these names a number."""
    for name in names:
        pattern = re.compile(_DEFINED.format(name=re.escape(name)))
        for excerpt in excerpts:
            for number, line in excerpt.lines:
                if pattern.search(line):
                    return f"{excerpt.path}:{number}", line.strip()
    return None


def _plain(line: str) -> str:
    return _SPACE.sub(" ", line).strip().casefold()
