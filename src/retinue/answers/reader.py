"""Answers a question about the code with a model: shows what the search has found, and checks the answer.

Read `CodeReader.read` first. The model sees the code of the first places and answers in one request, with a
copied line that shows the answer. That line is looked up in the code, so the place of an answer is always
real. Shown the code around that line alone, the model then says whether it does what was asked for. If it
denies that, or if nothing answered, it proposes other words, and gets the next places and those of a search
with these words. If nothing answers then, that is what is told, with the nearest places.

What nothing confirms is marked as doubtful (P8). The reader knows nothing of runs: `ask` sends a request
within the limits of the caller, which may be an agent or a report.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from retinue.answers.claims import cited_places, has_number, names_beyond_task, numbers_in
from retinue.answers.code_finder import CodeExcerpt, CodeFinder, fit_excerpts
from retinue.answers.question_reader import asks_for_number
from retinue.answers.reader_messages import (
    ReaderReply,
    read_prompt,
    read_reply_about_code,
    read_words,
    words_prompt,
)
from retinue.core import (
    BudgetExceeded,
    ContextOverflow,
    DeadlineExceeded,
    EmptyReply,
    LimitExceeded,
    ModelFailed,
    Prompt,
    Reply,
    Unverified,
    chance_of_yes,
    clip,
    look_prompt,
)

FIRST_PLACES, MORE_PLACES = 3, 2
"""How many places the model sees first, and how many of each search it sees after that."""
CODE_TOKENS, ANSWER_TOKENS = 1_500, 220
MIN_CODE_TOKENS = 120
"""With less room, no code is worth showing."""
CHECKED_LINES = 20
"""How many lines around the copied one the model sees alone."""
CONFIRMED, POSSIBLE = 0.55, 0.35
"""The chances of a yes from which an answer is told without a mark, and from which it is told at all."""
MIN_SIMILAR, MIN_LINE_CHARS = 0.8, 4
"""How similar a line must be to the copied one, and how long."""
MAX_NEAREST, MAX_LINE_CHARS = 6, 160
QUOTED_LINES = 6
NOT_FOUND = "Not found"
"""The beginning of an answer that what was asked for is not there."""
NOT_CERTAIN = "This is not certain:"
QUOTED_HEADING = "From the code:"
NEAREST_HEADING = "The nearest places, which nothing confirms:"
UNCONFIRMED = "the model does not confirm it"
NOT_COPIED = "the model copied no line that shows it"
NOT_JUDGED = "this model cannot tell which code answers a question"

_LINE_NUMBER = re.compile(r"^\s*(?:\S+:)?\d+\s*:\s?")
_NAMED_LINE = re.compile(r"\blines?[ :]+(\d{1,6})\b|\A\s*(\d{1,6})\s*\Z", re.IGNORECASE)
"""The number of a line in a sentence, or instead of the copied line."""
_ADDRESS = re.compile(r"\w+://[^\s`\"')]+")
_QUOTATION = re.compile(r"[\"'`]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])")
_SPEAKS_TO_READER = re.compile(
    r"\]\(|</?(?:a|form|iframe|img|input|script|style|svg)\b|[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]"
    r"|\b(?:disregard|ignore) (?:all|any|the|previous)|\binstructions?\b|\bsystem prompt\b"
    r"|\byou (?:must|should|need)\b",
    re.IGNORECASE,
)
"""Links, markup and instructions to whoever reads the answer."""

FAILURES = (ModelFailed, LimitExceeded, BudgetExceeded, DeadlineExceeded)
"""What does not matter any more once the model has answered."""
AskModel = Callable[[Prompt], Awaitable[Reply]]
"""Sends a prompt within the caller's limits."""
WriteLine = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """How much a model is asked."""

    code_tokens: int = CODE_TOKENS
    reply_tokens: int = ANSWER_TOKENS
    may_search_again: bool = True
    unchecked: str = ""
    """Why the model is not asked whether its answer holds; empty if it is."""
    follows_schema: bool = True


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """An answer of a model, and the line of the code that shows it."""

    text: str
    excerpt: CodeExcerpt
    line: int
    chance: float
    """How likely the code around the line does what was asked for, by the model."""
    doubt: str = ""
    """Why nothing confirms it; empty if it is confirmed."""

    @property
    def place(self) -> str:
        return f"{self.excerpt.path}:{self.line}"

    @property
    def sentence(self) -> str:
        """The answer with its place."""
        if self.place in self.text:
            return self.text
        return f"{self.text.rstrip('.')} ({self.place})."

    def __str__(self) -> str:
        told = f"{self.sentence} {NOT_CERTAIN} {self.doubt}." if self.doubt else self.sentence
        return f"{told}\n\n{QUOTED_HEADING}\n{self.excerpt.around(self.line, QUOTED_LINES)}"


@dataclass(slots=True, kw_only=True)
class CodeReader:
    """Answers one question from code, with one model."""

    question: str
    finder: CodeFinder
    ask: AskModel
    log: WriteLine
    limits: ReadingLimits = field(default_factory=ReadingLimits)
    rules: str = ""
    """The agent's own instructions, and what is remembered about the question."""
    on_shown: Callable[[CodeExcerpt], None] = lambda _: None
    """Called with each excerpt that the model gets."""
    answer: CodeAnswer | None = field(default=None, init=False)
    """The best answer so far, told or not."""
    words: tuple[str, ...] = field(default=(), init=False)
    """The names that the second search was made with."""
    _has_spoken: bool = field(default=False, init=False)
    """Whether any reply said something about the code."""
    _silence: EmptyReply | None = field(default=None, init=False)
    """The last empty reply."""

    async def read(self) -> CodeAnswer | None:
        """Return an answer, or None if no code answers. Raises what `ask` raises if nothing was answered."""
        await self.finder.search()
        if self.finder.absence:
            await self.finder.show(FIRST_PLACES)
            return None
        await self._read_round(self.finder.shown[:FIRST_PLACES] or await self.finder.show(FIRST_PLACES))
        if self.answer is not None and not self.answer.doubt:
            return self.answer
        if self.limits.may_search_again:
            try:
                await self._read_round(await self._more_code())
            except FAILURES as error:
                await self.log(f"no second search: {error.message}")
        if not self._has_spoken and self.finder.shown:
            raise self._silence or Unverified(
                "the model said nothing about the code that was found", hint="use a stronger model"
            )
        return self.found

    @property
    def found(self) -> CodeAnswer | None:
        """The best answer so far, if it may be told."""
        return self.answer if self.answer is not None and self.answer.chance >= POSSIBLE else None

    def not_found(self) -> str:
        """Return the honest answer that nothing was found: what was searched for, and the nearest places."""
        searched = f" It was also searched for {', '.join(self.words)}." if self.words else ""
        what = self.finder.absence or f"no code that was read does this.{searched}"
        return "\n".join(filter(None, [f"{NOT_FOUND}: {what}", self.nearest_places()]))

    def nearest_places(self) -> str:
        """List the places that the search has found, each with its line; empty if there are none."""
        lines: dict[str, str] = {}
        if (chosen := self.answer) is not None:
            lines[chosen.place] = chosen.excerpt.line_at(chosen.line)
        for one in self.finder.shown[:MAX_NEAREST]:
            self.on_shown(one.around(one.line, 1))
            lines.setdefault(one.place, one.line_at(one.line))
        shown = [
            f"- {place}: `{clip(' '.join(line.split()), MAX_LINE_CHARS)}`"
            for place, line in list(lines.items())[:MAX_NEAREST]
        ]
        return "\n".join([NEAREST_HEADING, *shown]) if shown else ""

    async def _read_round(self, code: Sequence[CodeExcerpt]) -> None:
        """Show some code to the model, and keep its answer if it is better than the one before."""
        if not code:
            return
        reply, shown = await self._reply_about(code)
        said = None if reply is None or not reply.answers else self._answer_from(reply, shown)
        self._has_spoken |= said is not None or (reply is not None and reply.is_clear)
        await self.log(f"says of {', '.join(one.place for one in shown)}: {_told(reply, said)}")
        if said is None:
            return
        before = self.answer
        if before is None:  # it is a finding if the run ends during its check
            self.answer = replace(said, chance=POSSIBLE, doubt=said.doubt or UNCONFIRMED)
        checked = await self._checked(said)
        if before is None or checked.chance > before.chance:
            self.answer = checked

    async def _reply_about(
        self, code: Sequence[CodeExcerpt]
    ) -> tuple[ReaderReply | None, Sequence[CodeExcerpt]]:
        """Ask the model about some code, and about less of it as long as the server finds it too long."""
        tokens = self.limits.code_tokens
        while True:
            shown = fit_excerpts(code, tokens)
            for one in shown:
                self.on_shown(one)
            prompt = read_prompt(
                self.question,
                shown,
                self.limits.reply_tokens,
                as_json=self.limits.follows_schema,
                rules=self.rules,
            )
            try:
                return read_reply_about_code((await self.ask(prompt)).text), shown
            except EmptyReply as error:
                self._silence = error
                return None, shown
            except (ContextOverflow, LimitExceeded) as error:
                is_too_long = isinstance(error, ContextOverflow) or error.kind == "request_tokens"
                tokens //= 2
                if not is_too_long or tokens < MIN_CODE_TOKENS:
                    raise

    def _answer_from(self, reply: ReaderReply, shown: Sequence[CodeExcerpt]) -> CodeAnswer | None:
        """Return an answer with its line. None if neither the line nor a name of it is in the code."""
        found, doubt = find_line(reply.line, shown) or _place_cited_in(reply.answer, shown), ""
        if found is None:
            found, doubt = _line_with_names(reply.answer, self.question, shown), NOT_COPIED
        if found is None:
            return None
        excerpt, number = found
        line = excerpt.line_at(number).strip()
        text = self._part_that_holds(reply.answer, shown)
        if not text or (
            asks_for_number(self.question) and numbers_in(line) and not _shares_number(text, line)
        ):
            text = f"{text} `{line}`".strip()
        if _SPEAKS_TO_READER.search(text):
            return None
        return CodeAnswer(text, excerpt, number, chance=0.0, doubt=doubt)

    def _part_that_holds(self, answer: str, shown: Sequence[CodeExcerpt]) -> str:
        """Return the sentences of an answer without those that name something that was not shown."""
        seen = "\n".join([self.question, *(f"{one.path} {one.symbol} {one.text}" for one in shown)])
        folded = seen.casefold()

        def holds(sentence: str) -> bool:
            names = names_beyond_task(sentence, self.question)
            if not all(address.rstrip(".,") in seen for address in _ADDRESS.findall(sentence)):
                return False
            return all(name.casefold().removesuffix("()") in folded for name in names) and all(
                has_number(number, seen) or number in ("1", "2") for number in numbers_in(sentence)
            )

        sentences = _SENTENCE_END.split(" ".join(answer.split()))
        return " ".join(one for one in sentences if holds(one) and not _SPEAKS_TO_READER.search(one))

    async def _checked(self, said: CodeAnswer) -> CodeAnswer:
        """Ask the model whether the code around the copied line does this, and note how likely that is."""
        if self.limits.unchecked:
            return replace(said, chance=POSSIBLE, doubt=said.doubt or self.limits.unchecked)
        alone = said.excerpt.around(said.line, CHECKED_LINES)
        try:
            chance = chance_of_yes(await self.ask(look_prompt(str(alone), self.question)))
        except FAILURES:
            chance = None
        if chance is None:
            return replace(said, chance=POSSIBLE, doubt=said.doubt or UNCONFIRMED)
        await self.log(f"{said.place} answers it with a chance of {chance:.2f}")
        return replace(said, chance=chance, doubt=said.doubt or ("" if chance >= CONFIRMED else UNCONFIRMED))

    async def _more_code(self) -> list[CodeExcerpt]:
        """Return the next places, after those of a search with the names that the model proposes."""
        project = self.finder.context.scope.folders[0].root.path.name
        try:
            reply = await self.ask(words_prompt(self.question, project))
            self.words = read_words(reply.text, f"{self.question} {project}")
        except EmptyReply:
            self.words = ()
        found = await self.finder.search_again(self.words, MORE_PLACES) if self.words else []
        await self.log(f"searches again for: {', '.join(self.words) or 'nothing'}")
        return [*found, *await self.finder.show(2 * MORE_PLACES - len(found))]


FoundLine = tuple[CodeExcerpt, int]


def find_line(copied: str, shown: Sequence[CodeExcerpt]) -> FoundLine | None:
    """Return where the copied line is: the same line, one that contains it, or a similar one.

    A model may also name the place instead of copying the line.
    """
    if (cited := _place_cited_in(copied, shown)) is not None:
        return cited
    wanted = _plain(_LINE_NUMBER.sub("", copied))
    if len(wanted) < MIN_LINE_CHARS:
        return None
    lines = [(one, number, _plain(line)) for one in shown for number, line in one.numbered]
    same = [(one, number) for one, number, line in lines if line == wanted]
    longer = [(one, number) for one, number, line in lines if wanted in line]
    if same or longer:
        return (same or longer)[0]
    rated = [(SequenceMatcher(None, line, wanted).ratio(), one, number) for one, number, line in lines]
    ratio, one, number = max(rated, key=lambda each: each[0], default=(0.0, None, 0))
    if one is not None and ratio >= MIN_SIMILAR:
        return one, number
    joined = [each for each in lines if len(each[2]) > 2 * MIN_LINE_CHARS and each[2] in wanted]
    return max(joined, key=lambda each: len(each[2]))[:2] if joined else None


def _place_cited_in(text: str, shown: Sequence[CodeExcerpt]) -> FoundLine | None:
    """Return the first place in a text that was shown, be it `path:line` or only the line's number."""
    for path, number in cited_places(text):
        for one in shown:
            if one.holds(one.path, number) and f"/{one.path}".endswith(f"/{path}"):
                return one, number
    for named in _NAMED_LINE.finditer(text):
        number = int(named[1] or named[2])
        if found := next((one for one in shown if one.holds(one.path, number)), None):
            return found, number
    return None


def _line_with_names(answer: str, question: str, shown: Sequence[CodeExcerpt]) -> FoundLine | None:
    """Return the line with most of the names of an answer. None if no line has one."""
    names = [name.removesuffix("()") for name in names_beyond_task(answer, question)]
    counts = [
        (sum(name in line for name in names), one, number) for one in shown for number, line in one.numbered
    ]
    most, one, number = max(counts, key=lambda each: each[0], default=(0, None, 0))
    return (one, number) if one is not None and most else None


def _shares_number(answer: str, line: str) -> bool:
    return any(has_number(number, line) for number in numbers_in(answer))


def _plain(line: str) -> str:
    """Return a line without what a model changes when it copies it into JSON."""
    return " ".join(_QUOTATION.sub("", line).split()).casefold()


def _told(reply: ReaderReply | None, said: CodeAnswer | None) -> str:
    if said is not None:
        return clip(said.sentence, MAX_LINE_CHARS)
    if reply is None:
        return "nothing"
    return (
        f"no ({clip(reply.answer, MAX_LINE_CHARS)})"
        if not reply.answers
        else "something that it does not show"
    )
