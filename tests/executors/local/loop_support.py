"""Runs an agent on a scripted model, for the tests of the loop."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.codebase import Codebase, Locator
from retinue.core import (
    UNMETERED,
    Agent,
    AskParent,
    Budget,
    EmptyReply,
    Json,
    McpServer,
    Model,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Outcome,
    OutputLine,
    ProcessIdentity,
    Prompt,
    RunContext,
    SkillNotes,
    Spending,
    Task,
)
from retinue.core.agent import OutputFormat
from retinue.executors import LocalExecutor
from retinue.executors.local.code_reader import LINE_SCHEMA
from retinue.executors.local.search_words import REPHRASE_TASK, WORDS_TASK
from retinue.models.client import TokenEstimator
from retinue.redaction import SecretRedactor
from retinue.tools import Allows, allow_all
from tests.codebase.file_support import create_root
from tests.executors.process_trees import RUN_ID
from tests.models.scripted_model import FACTS, ScriptedModel, ScriptLine

FILES: Mapping[str, str | bytes] = {
    "src/app.py": "import os\n\n\ndef retry(times):\n    return times\n",
    "README.md": "# A project\n\nIt retries.\n",
}
TASK = "Where is retry handled?"


class CopyingModel(ScriptedModel):
    """Answers in words or in JSON, as it is asked. A line of its script is both, with `quote` and `answer`.

    Asked in words, it says the `answer`, and again after the end of its script. Asked for the line that shows
    the answer, it copies the `quote`. A script may also have a line of its own, as `{"line": ...}`.
    """

    def __init__(self, script: Iterable[ScriptLine], facts: ModelFacts = FACTS) -> None:
        super().__init__(self._remaining(script), facts)
        self._ahead: list[ScriptLine] = []
        self._quote: str | None = None
        self._said = ""
        self.words: list[str] = []
        """The words that it proposes to search for."""
        self.rephrased = ""
        """The question in the words of a programmer."""
        self.fails: Callable[[Prompt], bool] = lambda prompt: False
        """The requests to which the server replies with nothing."""

    def _remaining(self, script: Iterable[ScriptLine]) -> Iterator[ScriptLine]:
        lines = iter(script)
        while True:
            if not self._ahead:
                self._ahead = list(itertools.islice(lines, 1))
            yield self._speak

    def _speak(self, prompt: Prompt) -> ScriptLine:
        quote, self._quote = self._quote, None
        if self.fails(prompt):
            return EmptyReply("the server sent an empty reply")
        if prompt.schema == LINE_SCHEMA and quote is not None:
            return json.dumps({"line": quote})
        if prompt.turns[-1].text.endswith(WORDS_TASK):
            return ", ".join(self.words) or "none"
        if prompt.turns[-1].text.endswith(REPHRASE_TASK):
            return self.rephrased or "none"
        if not self._ahead:
            is_asked_again = prompt.schema is None and not prompt.tools and self._said
            return self._said if is_asked_again else ModelFailed("the script has no more replies")
        said = self._ahead.pop()
        if isinstance(said, str) and '"quote"' in said and prompt.schema is None and not prompt.tools:
            answer = json.loads(said)
            self._quote, self._said = answer["quote"], str(answer["answer"])
            return self._said
        return said


@dataclass
class Trial:
    """One run and everything that it reported."""

    folder: Path
    script: Iterable[ScriptLine]
    files: Mapping[str, str | bytes] = field(default_factory=lambda: FILES)
    tools: tuple[str, ...] | None = None
    untrusted_tools: tuple[str, ...] = ()
    prompt: str = ""
    schema: Mapping[str, Json] | None = None
    output_format: OutputFormat = "text"
    servers: tuple[McpServer, ...] = ()
    context: int = FACTS.context
    takes_tools: bool = True
    seconds: float | None = 30.0
    skills: ModelSkills | None = None
    """What the model can do, by default just whether it takes tools."""
    told_skills: SkillNotes | None = None
    """What the agent is told about skills of the project."""
    memories: str = ""
    """What is remembered about the task."""
    speed: ModelSpeed | None = None
    budget: Budget = field(default_factory=Budget)
    spending: Spending = UNMETERED
    ask: AskParent | None = None
    allows: Allows = allow_all
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: list[OutputLine] = field(default_factory=list[OutputLine])
    hidden: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.model = CopyingModel(self.script, replace(FACTS, context=self.context, tools=self.takes_tools))

    async def run(self, task: str = TASK, model: Model | None = None) -> Outcome:
        executor = self.executor(model or self.model)
        context = RunContext(
            RUN_ID,
            self.folder,
            self.seconds,
            emit=self._emit,
            started=_started,
            spending=self.spending,
            ask=self.ask,
            hide=self.hidden.extend,
            skills=self.told_skills,
        )
        return await executor.run(Task("tester", task, background=self.memories), context)

    def executor(self, model: Model) -> LocalExecutor:
        agent = Agent(
            name="tester",
            description="tests",
            executor="local",
            prompt=self.prompt,
            tools=self.tools,
            untrusted_tools=self.untrusted_tools,
            mcp_servers=self.servers,
            output_format=self.output_format,
            output_schema=self.schema,
            timeout_s=60,
            budget=self.budget,
            source="test",
        )
        codebase = Codebase([create_root(self.folder, self.files)])
        return LocalExecutor(
            agent=agent,
            model=model,
            codebase=codebase,
            locator=Locator(codebase),
            skills=self._skills,
            speed=lambda _: self.speed,
            redactor=SecretRedactor(),
            estimator=TokenEstimator(),
            environment=self.environment,
            allows=self.allows,
        )

    async def _skills(self, seconds: float) -> ModelSkills:
        return self.skills or ModelSkills(calls_tools=self.takes_tools, follows_schema=True)

    async def _emit(self, line: OutputLine) -> None:
        self.lines.append(line)

    @property
    def events(self) -> list[str]:
        return [line.text for line in self.lines if line.stream == "event"]

    @property
    def said(self) -> str:
        return "\n".join(line.text for line in self.lines if line.stream == "stdout")

    @property
    def prompts(self) -> list[Prompt]:
        return self.model.prompts

    @property
    def answer_prompts(self) -> list[Prompt]:
        """The prompts that ask for an answer, not for a line of the code, for other words or for a yes."""
        asked = [prompt for prompt in self.prompts if not prompt.alternatives]
        asked = [one for one in asked if not one.turns[-1].text.endswith((WORDS_TASK, REPHRASE_TASK))]
        return [prompt for prompt in asked if prompt.schema != LINE_SCHEMA]

    def told(self, request: int = -1) -> str:
        """Return the text of the last turn in a request."""
        return self.prompts[request].turns[-1].text


async def _started(identity: ProcessIdentity) -> None:
    raise AssertionError("the loop starts no process of its own")
