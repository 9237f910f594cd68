"""Asks a model about code: whether it answers a question, what the answer is, and which line shows it.

Knows nothing of searching, or of what an answer is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from retinue.core import (
    LOOK_RULES,
    LOOK_TASK,
    LOOK_TOKENS,
    WORD_CHOICES,
    BudgetExceeded,
    EmptyReply,
    Json,
    LimitExceeded,
    ModelFailed,
    NotJson,
    chance_of_yes,
    estimate_tokens,
)
from retinue.executors.local.conversation import Conversation, Exchange
from retinue.executors.local.model_requests import ModelRequester, RequestOptions
from retinue.executors.local.replies import first_json_value, without_thoughts
from retinue.executors.local.search_words import (
    REPHRASE_REPLY_TOKENS,
    REPHRASE_TASK,
    WORDS_REPLY_TOKENS,
    WORDS_RULES,
    WORDS_TASK,
    ask_for_words,
    read_question,
    read_search_words,
)
from retinue.tools import CodeExcerpt

ANSWER_TOKENS, REPLY_TOKENS = 160, 300
"""Tokens of an answer in words, and of one in JSON."""
MAX_SILENT_LOOKS = 2
"""Looks in a row without a yes or a no that end all looks. A server may send one empty reply by mistake."""
MIN_STEPS_FOR_WORDS = 3
"""Steps that must be left: for the words or another question, the answer and its line."""
MAX_AGENT_PROMPT_TOKENS = 150
"""Longer instructions of an agent are left out: a weak model follows them instead of answering."""
ANSWER_FROM_CODE = (
    "Reply with one JSON object. quote: a line of this code, copied exactly; answer: one or two sentences "
    "that answer the question with the names and values of that line; shown: false if this code does not "
    "answer the question."
)
SAY_FROM_CODE = (
    "Answer in one or two sentences, only from the code above. Name the functions, values and conditions of "
    "that code."
)
"""A weak model says more, and more that is right, in its own words than in the fields of a JSON object."""
COPY_LINE = (
    "Copy the one line of the code above that shows this answer best. Reply with one JSON object. line: that "
    "line, copied without its number."
)
ANSWER_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "quote": {"type": "string", "maxLength": 200},
        "answer": {"type": "string", "maxLength": 300},
        "shown": {"type": "boolean"},
    },
    "required": ["quote", "answer", "shown"],
    "additionalProperties": False,
}
LINE_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"line": {"type": "string", "maxLength": 200}},
    "required": ["line"],
    "additionalProperties": False,
}


@dataclass(slots=True, kw_only=True)
class CodeReader:
    """Asks one model about code, within the limits of its run."""

    requester: ModelRequester
    agent_prompt: str = ""
    """The agent's own instructions."""
    background: str = ""
    """The skills and memories that the model is told about."""
    judges_code: bool = True
    """Whether the model can tell which code answers a question, looking at each excerpt alone."""
    _silent_looks: int = field(default=0, init=False)
    """How many of the last looks had no answer."""

    async def chance(self, code: Sequence[CodeExcerpt], question: str) -> float | None:
        """Return how likely the model says that some code answers a question. None if it does not say.

        A model that says neither yes nor no `MAX_SILENT_LOOKS` times in a row is not asked again.
        """
        if not self.judges_code or self.requester.looks_left < 1:
            return None
        options = RequestOptions(
            as_text=True,
            last_turn=LOOK_TASK,
            temperature=0.0,
            reply_tokens=LOOK_TOKENS,
            alternatives=WORD_CHOICES,
        )
        asked = Conversation(LOOK_RULES, "\n\n".join([*map(str, code), question]))
        try:
            chance = chance_of_yes(await self.requester.ask(asked, options))
        except EmptyReply:  # perhaps it cannot answer with one word
            chance = None
        except (ModelFailed, LimitExceeded):  # another look may succeed
            return None
        self._silent_looks = 0 if chance is not None else self._silent_looks + 1
        self.judges_code = self._silent_looks < MAX_SILENT_LOOKS
        return chance

    def about(self, code: Sequence[CodeExcerpt], question: str) -> Conversation:
        """Return a conversation about some code.

        The code comes first: the server need not read it again for the next part of a task.
        """
        rules = LOOK_RULES
        if self.agent_prompt and estimate_tokens(self.agent_prompt) <= MAX_AGENT_PROMPT_TOKENS:
            rules = f"{self.agent_prompt.strip()}\n\n{LOOK_RULES}"
        return Conversation(rules, "\n\n".join(filter(None, [self.background, *map(str, code), question])))

    async def say(self, asked: Conversation) -> str:
        """Ask for an answer in words, and add it to the conversation."""
        said = await self._ask(asked, SAY_FROM_CODE, ANSWER_TOKENS)
        asked.add(Exchange(said))
        return said

    async def fill_in(self, asked: Conversation) -> Mapping[str, Json]:
        """Ask for an answer as JSON, which may say that the code does not show it."""
        return await self._ask_json(asked, ANSWER_FROM_CODE, ANSWER_SCHEMA)

    async def copy_line(self, asked: Conversation) -> str:
        """Ask which line of the code shows the answer. Empty if no step is left."""
        if self.requester.steps_left < 1:
            return ""
        reply = await self._ask_json(asked, COPY_LINE, LINE_SCHEMA)
        return str(reply.get("line") or "").strip()

    async def propose_words(self, question: str, project: str, task: str) -> list[str]:
        """Ask for words that the code may use for what is asked for. Empty if there are none."""
        reply = await self._other_words(question, project, WORDS_TASK, WORDS_REPLY_TOKENS)
        return read_search_words(reply, task)

    async def rephrase(self, question: str, project: str) -> str:
        """Ask for a question in the words of a programmer. Empty if it is the same, or another question."""
        reply = await self._other_words(question, project, REPHRASE_TASK, REPHRASE_REPLY_TOKENS)
        return read_question(reply, question)

    async def _other_words(self, question: str, project: str, instruction: str, tokens: int) -> str:
        """Ask for other words for a question. Empty if there is no time for it, or if the model fails."""
        if self.requester.steps_left < MIN_STEPS_FOR_WORDS:
            return ""
        try:
            return await self._ask(
                Conversation(WORDS_RULES, ask_for_words(question, project)), instruction, tokens
            )
        except BudgetExceeded:
            raise
        except (ModelFailed, LimitExceeded):  # the answer does not depend on it
            return ""

    async def _ask(
        self,
        asked: Conversation,
        instruction: str,
        reply_tokens: int,
        schema: Mapping[str, Json] | None = None,
    ) -> str:
        options = RequestOptions(
            schema=schema, as_text=True, last_turn=instruction, temperature=0.0, reply_tokens=reply_tokens
        )
        reply = await self.requester.ask(asked, options)
        return without_thoughts(reply.text)

    async def _ask_json(
        self, asked: Conversation, instruction: str, schema: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Ask for a JSON object. Empty if the model sends none."""
        try:
            value = first_json_value(await self._ask(asked, instruction, REPLY_TOKENS, schema))
        except NotJson:
            return {}
        return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}
