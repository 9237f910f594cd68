"""The prompt of an agent on a local model: its own one, the rules of the loop, and the task with its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retinue.answers import CodeExcerpt
from retinue.core import estimate_tokens, first_value

MAX_PROMPT_TOKENS = 600
MAX_AGENT_PROMPT_CHARS = 1_600
MAX_READER_PROMPT_TOKENS = 150
"""The reader leaves out longer instructions: a weak model follows them instead of answering."""
HANDOFF_BLOCK = "```json\n{"
"""The beginning of what the task of a workflow's phase has to pass on."""
CUT_NOTE = "\n[the rest of these instructions was cut]"
RULES = (
    "You work alone on one task; nobody reads along. Look things up with the tools and never guess what a "
    "file says. Name places as path:line, and only lines that you have seen. When you know enough, or "
    "nothing more can be found, answer without calling a tool, in plain text unless the task asks for "
    "another form. If you did not find it, say so."
)
RULES_FOR_WRITERS = (
    "You work alone on one task; nobody reads along. Read a file before you change it, and never guess what "
    "it says. Change files only with the tools: a change that you describe is not made. Change only what the "
    "task asks for. When the work is done, answer in plain text without calling a tool: which files you "
    "changed, and what you ran. If you cannot do it, say why."
)
RULES_WITHOUT_TOOLS = (
    "You work alone on one task; nobody reads along. Answer with what the task tells you. If that is not "
    "enough, say what is missing."
)
FORM_RULES = (
    "You write down what was found for a task, as JSON. Copy the names, places and numbers of what was "
    "found, and add nothing."
)
CODE_HEADING = "Code that a search found for this task, with line numbers:"
NOT_ASKED = "The model was not asked about the code"
TOO_SLOW = f"{NOT_ASKED}: it is too slow for the time of this run."
ANSWER_NOW = (
    "No more tools can be used. Answer the task now, with what you have seen. Say what you did not find."
)


def system_prompt(agent_prompt: str, *, has_tools: bool, writes: bool = False) -> str:
    """Return the agent's own prompt, cut to a limit, followed by the rules of the loop.

    It is the same for every run of an agent (no date, no folder, no id), so that the server can reuse its
    cache.
    """
    rules = RULES_FOR_WRITERS if writes else RULES if has_tools else RULES_WITHOUT_TOOLS
    agent_prompt = agent_prompt.strip()
    if not agent_prompt:
        return rules
    length = min(len(agent_prompt), MAX_AGENT_PROMPT_CHARS)
    while True:
        is_cut = length < len(agent_prompt)
        shown = agent_prompt[:length].rstrip() + CUT_NOTE if is_cut else agent_prompt
        prompt = f"{shown}\n\n{rules}"
        if estimate_tokens(prompt) <= MAX_PROMPT_TOKENS:
            return prompt
        length = length * 9 // 10  # some text is dense in tokens, such as Chinese or encoded data


def fit_memories(background: str, tokens: int) -> str:
    """Return as many lines of what is remembered about a task as fit, and no heading without its text."""
    lines = list[str]()
    for line in background.split("\n"):
        tokens -= estimate_tokens(f"{line}\n")
        if tokens < 0:
            while lines and not _is_text_of_memory(lines[-1]):
                lines.pop()
            break
        lines.append(line)
    return "\n".join(lines)


def _is_text_of_memory(line: str) -> bool:
    """Return whether a line quotes a memory and is not a heading."""
    return line.startswith("> ") and not (line.startswith("> [") and line.endswith(":"))


def rules_for_reader(agent_prompt: str, background: str) -> str:
    """Return what a model that answers from code is told besides: the agent's prompt, skills and memories."""
    prompt = agent_prompt.strip()
    fits = estimate_tokens(prompt) <= MAX_READER_PROMPT_TOKENS
    return "\n\n".join(filter(None, [prompt if fits else "", background]))


def task_with_code(task: str, excerpts: Sequence[CodeExcerpt]) -> str:
    """Return the task, followed by the code that was found for it."""
    return "\n\n".join([task, CODE_HEADING, *map(str, excerpts)]) if excerpts else task


def is_handoff(task: str) -> bool:
    """Return whether a task is a phase of a workflow."""
    return HANDOFF_BLOCK in task


def question_in(task: str) -> str:
    """Return what a task asks for: the feature of a workflow's handoff, else the task itself."""
    whole = task.strip()
    _, block, rest = whole.partition(HANDOFF_BLOCK)
    found = first_value(f"{{{rest}") if block else None
    request = found[0] if found is not None else None
    context = request.get("context") if isinstance(request, Mapping) else None
    feature = context.get("feature") if isinstance(context, Mapping) else None
    return (isinstance(feature, str) and feature.strip()) or whole
