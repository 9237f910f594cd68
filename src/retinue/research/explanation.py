"""Lets a model explain what the search found, beside the search's own results.

First the model proposes names that the code may contain; the search runs once more with them, and what it
finds in addition is listed with the explanation. Then the model looks at the code of some places, one by one,
and says whether each answers the question. Of the two likeliest it copies the line that answers best, and
says in a sentence what it does. A sentence is kept only if it holds against that code. If it does not, the
copied line is shown instead: it is looked up in the code, so it is always true. `explanation_messages.py` has
the prompts and reads the replies.

Everything happens within the time that the request has left: from the model's speed, `plan_request` decides
how much code it is shown, or that it is not asked at all. The rest of the report does not depend on the
model. A note says once what it did, or why it did nothing (P8).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from retinue.answers import RoleContext, ShownCode, is_test, locate, mentions, show_code
from retinue.core import (
    UNMETERED,
    BudgetKind,
    Canceled,
    DeadlineExceeded,
    Endpoint,
    Intent,
    Model,
    ModelExplanation,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Outcome,
    OutputLine,
    Prompt,
    Reference,
    Reply,
    RetinueError,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Spending,
    Stop,
    Task,
    chance_of_yes,
    clip,
    counted,
    estimate_tokens,
    look_prompt,
    run_in_thread,
)
from retinue.research.explanation_messages import (
    MAX_SENTENCES,
    check_sentences,
    cites,
    explain_prompt,
    read_explanation,
)
from retinue.runtime import PreparedRun, Supervisor

EXPLAINED_INTENTS: tuple[Intent, ...] = ("how", "where", "options", "error")
"""The intents whose answers a model explains. The others are answered by complete lists."""
ANALYZER_FIRST: tuple[Intent, ...] = ("options", "error")
"""The intents for which the first places of the analyzer are shown before those of the locator."""
MAX_EXCERPTS, EXCERPT_LINES = 4, 30
MIN_EXCERPT_LINES = 6
LOOKED_LINES, FURTHER_LOOKED = 16, 2
"""Lines of each excerpt that the model looks at alone, and how many of these excerpts are of new places."""
EXPLAINED_EXCERPTS = 2
"""How many of them it explains."""
FURTHER_PLACES = 5
"""How many places are listed that only the second search finds."""
SEARCHED_PLACES = 25
CONTEXT_SHARE = 0.5
"""The share of the loaded context that a prompt may take."""
TIME_SHARE = 0.9
"""The share of the remaining time that the model gets; the rest is for building the report."""
SEARCH_S = 2.0
"""The time that is set aside for the second search."""
MIN_SECONDS = 1.0
FILLED_REPLY = 0.6
"""The part of the allowed reply that a model usually writes. A reply that is cut keeps whole sentences."""
NOTE_SPEED_S = 1.0
MIN_MEASURED_TOKENS = 100
"""A prompt with fewer tokens is too short to measure the speed of a model."""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """How much a model is asked, so that it answers in time."""

    lines: int
    """Lines of code that it is shown."""
    reply_tokens: int
    looks: int = 0
    """How many excerpts it looks at alone, to explain those that most likely answer the question."""
    proposes_words: bool = False


PLANS = (
    RequestPlan(EXPLAINED_EXCERPTS * LOOKED_LINES, 180, looks=6, proposes_words=True),
    RequestPlan(EXPLAINED_EXCERPTS * LOOKED_LINES, 180, looks=4),
    RequestPlan(60, 240),
    RequestPlan(40, 180),
    RequestPlan(24, 120),
    RequestPlan(12, 80),
)
"""Best first."""
USUAL_PLAN = PLANS[2]
PROMPT_TOKENS, TOKENS_PER_LINE = 160, 12
"""Tokens of a prompt without its code, and of a line of code."""
WORDS_PROMPT_TOKENS, WORDS_REPLY_TOKENS = 130, 70
LOOK_PROMPT_TOKENS = 80


def plan_request(speed: ModelSpeed | None, seconds: float) -> RequestPlan | None:
    """Return the best plan that fits into the time, or None. A model of unknown speed gets the usual one."""
    if speed is None:
        return USUAL_PLAN if seconds >= MIN_SECONDS else None
    shortest = PLANS[-1] if speed.is_old and seconds >= MIN_SECONDS else None
    return next((plan for plan in PLANS if _seconds_for(plan, speed) <= seconds), shortest)


def _seconds_for(plan: RequestPlan, speed: ModelSpeed) -> float:
    read = PROMPT_TOKENS + TOKENS_PER_LINE * plan.lines
    written = FILLED_REPLY * plan.reply_tokens
    rest = 0.0
    if plan.proposes_words:
        read += WORDS_PROMPT_TOKENS
        written += FILLED_REPLY * WORDS_REPLY_TOKENS
        rest = SEARCH_S
    read += plan.looks * (LOOK_PROMPT_TOKENS + TOKENS_PER_LINE * LOOKED_LINES)
    return read / speed.prompt_tokens_s + written / speed.reply_tokens_s + rest


class ResearchModels(Protocol):
    """Where the model of research comes from, and what is known about it."""

    def client_for(self, name: str = ...) -> Model:
        """Return the model, or raise an error if it cannot be used."""
        ...

    def known_skills(self, facts: ModelFacts) -> ModelSkills | None:
        """Return what a model can do; None if it was not asked yet."""
        ...

    def speed(self, facts: ModelFacts) -> ModelSpeed | None:
        """Return the measured speed of a model."""
        ...

    def note_speed(self, facts: ModelFacts, read: float | None, written: float | None) -> None:
        """Remember how many tokens a second a model has read and written."""
        ...


@dataclass(frozen=True, slots=True)
class FoundPlaces:
    """The findings of the search, for a model to explain."""

    context: RoleContext
    references: tuple[Reference, ...]
    """The places that answer the question, best first."""
    known: frozenset[str]
    """All places that the report names already."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The outcome of asking a model to explain."""

    explanation: ModelExplanation | None
    note: str


class Explainer(Protocol):
    """Asks a model to explain found places within some seconds. Raises `RetinueError` if it cannot."""

    async def __call__(self, found: FoundPlaces, seconds: float) -> Explained: ...


async def explain_findings(
    explainer: Explainer, found: FoundPlaces, intent: Intent, seconds: float
) -> tuple[ModelExplanation | None, str | None]:
    """Return the model's explanation, and a note on what it did or why it did nothing."""
    if not found.references:
        return None, None
    if intent not in EXPLAINED_INTENTS:
        return None, "Without the model: this answer is a list that needs no explanation."
    try:
        explained = await explainer(found, seconds * TIME_SHARE)
    except RetinueError as error:
        return None, f"Without the model: {clip(error.message, 160)}."
    return explained.explanation, explained.note


@dataclass(slots=True, kw_only=True)
class Explanation:
    """One model's work on one question."""

    models: ResearchModels
    model: Model
    found: FoundPlaces
    deadline: float
    """When the work must be done, in seconds of the monotonic clock."""
    spending: Spending = UNMETERED
    log: Callable[[str], Awaitable[None]]
    """Writes a line to the log of the run."""
    name: str = ""
    tokens: int = 0
    began: float = field(default_factory=time.monotonic)
    searched: tuple[str, ...] = ()
    """The words that the second search added."""
    further: tuple[Reference, ...] = ()
    """What only the second search found."""
    likely: tuple[ShownCode, ...] = ()
    """The code that the model, shown nothing else, takes for the answer."""

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    async def make(self) -> Explained:
        """Ask the model as far as the time allows. Raises `RetinueError` if it says nothing usable."""
        facts = await self.model.facts()
        self.name = facts.model
        skills = self.models.known_skills(facts)
        if skills is not None and not skills.judges_code:
            raise ModelFailed(f"{self.name} cannot tell which code answers a question")
        speed = self.models.speed(facts)
        plan = plan_request(speed, self.seconds_left)
        if plan is None:
            raise DeadlineExceeded(_too_slow(facts.model, speed, self.seconds_left))
        if plan.proposes_words and self.found.context.question.intent != "error":
            await self._search_again(facts)
        code = await self._choose_code(plan, facts)
        if not code and self.further:
            return self._explained([], kept=0, dropped=0)
        if not code:
            raise ModelFailed("the places that were found have no code to show")
        text = await self._ask(facts, explain_prompt(self._question, code, plan.reply_tokens))
        if (said := read_explanation(text)) is None and not self.likely:
            raise ModelFailed(f"{self.name} did not answer with the JSON it was asked for")
        sentences, dropped = check_sentences(said or (), code, self._question)
        for sentence in dropped:
            await self.log(f"left out: {sentence}")
        return self._explained(self._with_likely(sentences), kept=len(sentences), dropped=len(dropped))

    def _with_likely(self, sentences: Sequence[str]) -> list[str]:
        """Return the sentences, and one for each definition that the model takes for the answer."""
        added = [
            f"The model takes `{one.name}` for a likely place ({Reference(one.path, one.line)})."
            for one in self.likely
            if one.name and not any(cites(sentence, one) for sentence in sentences)
        ]
        return [*sentences, *added][:MAX_SENTENCES]

    def _explained(self, sentences: Sequence[str], *, kept: int, dropped: int) -> Explained:
        """Return the explanation. The model wrote `kept` of its sentences, and `dropped` others."""
        used = f"{time.monotonic() - self.began:.0f} s, {counted(self.tokens, 'token')}"
        of = f"{dropped} of its {counted(dropped + kept, 'sentence')}"
        if not sentences and not self.further:
            why = (
                f"{of} did not hold against the code" if dropped else "it says that the code does not show it"
            )
            raise ModelFailed(f"{self.name} explained nothing: {why} ({used})")
        made = ModelExplanation(
            model=self.name,
            sentences=tuple(sentences),
            searched=self.searched if self.further else (),
            references=self.further,
        )
        left_out = f"; {of} did not hold" if dropped else ""
        return Explained(
            made,
            f"The explanation is by {self.name} ({used}){left_out}. All else was found without a model.",
        )

    @property
    def _question(self) -> str:
        return self.found.context.request.question

    async def _search_again(self, facts: ModelFacts) -> None:
        """Search once more with words that the model proposes, and keep the places that are new."""
        # Imported here because most questions are answered without a model.
        from retinue.executors import read_search_words, search_words_prompt

        context = self.found.context
        project = context.scope.folders[0].root.path.name
        text = await self._ask(facts, search_words_prompt(self._question, project), reserve=SEARCH_S)
        known = f"{self._question} {project} {' '.join(context.request.also)}"
        words = read_search_words(text, known)
        if not words:
            return
        wider = replace(context, question=context.question.with_hints((*context.request.also, *words)))

        def search(stop: Stop) -> list[Reference]:
            found = locate(wider, SEARCHED_PLACES, stop, self.spending).references
            new = [one for one in found if one.line and str(one) not in self.found.known]
            new = [one for one in new if not is_test(one.path, self._question)]
            return [one for one in new if mentions(context, one, words, stop)]

        try:
            new = await run_in_thread(search, min(2 * SEARCH_S, self.seconds_left))
        except RetinueError:
            return
        self.searched, self.further = tuple(words), tuple(new[:FURTHER_PLACES])

    async def _choose_code(self, plan: RequestPlan, facts: ModelFacts) -> list[ShownCode]:
        """Return the code that the model explains, as much as the plan allows.

        That is the code of the first places and of the best new one. If there is time, the model looks at
        some more places, one by one, and explains those that most likely answer.
        """
        room = round(facts.context * CONTEXT_SHARE) - PROMPT_TOKENS - plan.reply_tokens
        lines = min(plan.lines, room // TOKENS_PER_LINE)
        most, new = (plan.looks, FURTHER_LOOKED) if plan.looks else (MAX_EXCERPTS, 1)
        longest = LOOKED_LINES if plan.looks else min(EXCERPT_LINES, lines)

        def choose(stop: Stop) -> tuple[list[ShownCode], list[ShownCode]]:
            show = partial(show_code, self.found.context, stop=stop, spending=self.spending)
            last = show(self.further, new, min(longest, lines // 2 if plan.looks else lines // 3), ())
            return show(self.found.references, most - len(last), longest, last), last

        first, last = await run_in_thread(choose, self.seconds_left)
        if plan.looks and (best := await self._likeliest([*first, *last], facts)) is not None:
            return best
        return list(_fit_lines([*first[:MAX_EXCERPTS], *last[:1]], lines, len(last[:1])))

    async def _likeliest(self, code: Sequence[ShownCode], facts: ModelFacts) -> list[ShownCode] | None:
        """Return the excerpts that most likely answer the question. None if the server does not tell."""
        # Imported here because most questions are answered without a model.
        from retinue.executors import LIKELY, UNLIKELY, likeliest

        chances: list[float] = []
        for one in code:
            try:
                reply = await self._reply(facts, look_prompt(f"{one.path}:\n{one.text}", self._question))
            except ModelFailed:  # it cannot answer with one word
                return None
            chance = None if reply is None else chance_of_yes(reply)
            if chance is None:
                return None
            chances.append(chance)
        best = [number for number in likeliest(chances) if chances[number] >= UNLIKELY]
        told = ", ".join(f"{code[number].path}:{code[number].first} {chances[number]:.2f}" for number in best)
        await self.log(f"code that may answer: {told or 'none'}")
        if code and not best and not self.further:
            raise ModelFailed(f"{self.name} takes none of the code that was found for the answer")
        chosen = best[:EXPLAINED_EXCERPTS]
        self.likely = tuple(code[number] for number in chosen if chances[number] >= LIKELY)
        return [code[number] for number in chosen]

    async def _ask(self, facts: ModelFacts, prompt: Prompt, reserve: float = 0.0) -> str:
        """Return the text of a reply. One that is cut at the deadline is kept."""
        pieces: list[tuple[float, str]] = []
        started = time.monotonic()
        reply = await self._reply(facts, prompt, reserve, pieces)
        if reply is not None:
            return reply.text
        if not pieces:
            raise DeadlineExceeded(
                f"{self.name} did not answer within {time.monotonic() - started:.1f} seconds"
            )
        return "".join(piece for _, piece in pieces)

    async def _reply(
        self,
        facts: ModelFacts,
        prompt: Prompt,
        reserve: float = 0.0,
        pieces: list[tuple[float, str]] | None = None,
    ) -> Reply | None:
        """Send a prompt within the time and the budget (P2). Return None if it was cut at the deadline.

        `pieces` gets the pieces of the reply that arrived, each with its time.
        """
        size = sum(estimate_tokens(turn.text) for turn in prompt.turns)
        received: list[tuple[float, str]] = [] if pieces is None else pieces

        async def note_piece(text: str) -> None:
            received.append((time.monotonic(), text))

        reply: Reply | None = None
        steps = int(not prompt.alternatives)  # a yes or no counts by its tokens only
        async with (
            self.spending.reserving(BudgetKind.STEPS, steps) as step,
            self.spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
        ):
            step.settle(steps)
            started = time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, self.seconds_left - reserve)):
                    reply = await self.model.reply(prompt, note_piece)
            except TimeoutError:
                pass
            text = reply.text if reply is not None else "".join(piece for _, piece in received)
            read = (reply and reply.prompt_tokens) or size
            written = (reply and reply.reply_tokens) or estimate_tokens(text)
            tokens.settle(read + written)
        self.tokens += read + written
        if reply is not None:
            self.name = reply.model
        else:
            await self._note_delay(facts, read, started, received[0][0] if received else None)
        return reply

    async def _note_delay(self, facts: ModelFacts, tokens: int, started: float, began: float | None) -> None:
        """Remember that the model was cut at the deadline. If it did not begin, it was slower than this."""
        read = tokens / max(MIN_SECONDS / 10, (began or time.monotonic()) - started)
        known = self.models.speed(facts)
        if tokens >= MIN_MEASURED_TOKENS and (began or known is None or read < known.prompt_tokens_s):
            note = partial(self.models.note_speed, facts, round(read, 2), None)
            await run_in_thread(lambda _: note(), NOTE_SPEED_S)


def _too_slow(model: str, speed: ModelSpeed | None, seconds: float) -> str:
    if speed is None:
        return f"only {seconds:.1f} s were left for {model}"
    return (
        f"{model} reads {speed.prompt_tokens_s:.0f} and writes {speed.reply_tokens_s:.0f} tokens a second, "
        f"too slow for the {seconds:.0f} s that were left"
    )


def _fit_lines(code: Sequence[ShownCode], lines: int, keep_last: int) -> Iterator[ShownCode]:
    """Yield the excerpts until they have so many lines. The last `keep_last` ones keep their room."""
    reserved = sum(len(one.lines) for one in code[len(code) - keep_last :]) if keep_last else 0
    left = lines - reserved
    for number, one in enumerate(code):
        if number >= len(code) - keep_last:
            yield one
        elif left >= min(MIN_EXCERPT_LINES, len(one.lines)):
            cut = one.cut(left)
            left -= len(cut.lines)
            yield cut


@dataclass(frozen=True, slots=True)
class ModelExplainer:
    """Asks a model in a separate run, which waits for a free slot at the model's endpoint."""

    supervisor: Supervisor
    parent: RunId
    cwd: Path
    models: Callable[[], ResearchModels]

    async def __call__(self, found: FoundPlaces, seconds: float) -> Explained:
        deadline = time.monotonic() + seconds
        models = self.models()
        model = models.client_for()
        try:
            async with asyncio.timeout(seconds):
                facts = await model.facts()
        except TimeoutError:
            raise _timeout_error(seconds) from None
        speed, left = models.speed(facts), max(0.0, deadline - time.monotonic())
        if plan_request(speed, left) is None:  # no run, and no request
            raise DeadlineExceeded(_too_slow(facts.model, speed, left))
        spec = RunSpec(
            agent="explanation",
            task=found.context.request.question,
            executor="local",
            caller="research",
            parent=self.parent,
            model=facts.model,
            limits=RunLimits(queue_s=left, run_s=left + 1.0),
            endpoint=Endpoint(facts.endpoint, facts.slots),
        )
        work = ExplanationRun(models, model, found, deadline)
        performed = await self.supervisor.perform(PreparedRun(spec, work, self.cwd))
        if performed.outcome is not None:
            return performed.outcome.result
        if performed.run.status is RunStatus.TIMEOUT:
            raise _timeout_error(seconds)
        match performed.run.error:
            case {"message": str() as message} if performed.run.status is RunStatus.ERROR:
                raise ModelFailed(message)
            case _:
                raise Canceled("the request to the model was canceled")


def _timeout_error(seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"it did not answer within {seconds:.1f} seconds")


@dataclass(frozen=True, slots=True)
class ExplanationRun:
    """The executor of a run that asks a model; `result` of its outcome is `Explained`."""

    models: ResearchModels
    model: Model
    found: FoundPlaces
    deadline: float

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        async def log(text: str) -> None:
            await ctx.emit(OutputLine("stdout", text))

        work = Explanation(
            models=self.models,
            model=self.model,
            found=self.found,
            deadline=self.deadline,
            spending=ctx.spending,
            log=log,
        )
        explained = await work.make()
        sentences = explained.explanation.sentences if explained.explanation else ()
        for sentence in sentences:
            await log(sentence)
        return Outcome(" ".join(sentences), result=explained)
