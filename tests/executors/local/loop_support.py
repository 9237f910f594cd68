"""Runs an agent on a scripted model, for the tests of the loop."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.answers.reader_messages import WORDS_TASK
from retinue.codebase import Codebase, Locator
from retinue.core import (
    UNMETERED,
    Agent,
    AskParent,
    Budget,
    Json,
    McpServer,
    Model,
    ModelFacts,
    ModelSkills,
    ModelSpeed,
    Outcome,
    OutputLine,
    ProcessIdentity,
    Prompt,
    Reply,
    RunContext,
    SkillNotes,
    Spending,
    Task,
)
from retinue.core.agent import OutputFormat
from retinue.executors import LocalExecutor
from retinue.models.client import TokenEstimator
from retinue.redaction import SecretRedactor
from retinue.tools import Allows, allow_all
from tests.codebase.file_support import create_root
from tests.executors.process_trees import RUN_ID
from tests.models.scripted_model import FACTS, ScriptedModel, ScriptLine, says

FILES: Mapping[str, str | bytes] = {
    "src/app.py": "import os\n\n\ndef retry(times):\n    return times\n",
    "README.md": "# A project\n\nIt retries.\n",
}
TASK = "Where is retry handled?"


class ReadingModel(ScriptedModel):
    """Proposes words and judges code without its script."""

    def __init__(self, script: Iterable[ScriptLine], facts: ModelFacts = FACTS) -> None:
        super().__init__(script, facts)
        self.words: list[str] = []
        """The names that it proposes to search for."""

    async def _next(self, prompt: Prompt) -> Reply:
        if prompt.turns[-1].text.endswith(WORDS_TASK):
            return replace(says(", ".join(self.words) or "none"), prompt_tokens=90, reply_tokens=9)
        return await super()._next(prompt)


def reads(line: str, answer: str, answers: str = "yes") -> str:
    """A reply to the reader that copies a line."""
    return json.dumps({"line": line, "answer": answer, "found": answers})


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
        self.model = ReadingModel(self.script, replace(FACTS, context=self.context, tools=self.takes_tools))

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
        """The prompts that ask for an answer, not for other words or for a yes."""
        asked = [prompt for prompt in self.prompts if not prompt.alternatives]
        return [one for one in asked if not one.turns[-1].text.endswith(WORDS_TASK)]

    def told(self, request: int = -1) -> str:
        """Return the text of the last turn in a request."""
        return self.prompts[request].turns[-1].text


async def _started(identity: ProcessIdentity) -> None:
    raise AssertionError("the loop starts no process of its own")
