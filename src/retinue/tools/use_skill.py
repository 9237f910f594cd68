"""The `use_skill` tool: reads the instructions of a skill, or a file of it. Knows nothing of folders."""

from __future__ import annotations

from retinue.core import USE_SKILL, SkillNotes, Stop, ToolSpec, run_in_thread
from retinue.tools.toolbox import Arguments, Tool, parameters

READ_TIMEOUT_S = 10.0


def use_skill_tool(skills: SkillNotes) -> Tool:
    """Return a tool that reads the skills of a run."""

    async def act(arguments: Arguments, tokens: int) -> str:
        name = arguments.text("name", "skill", "skill_name")
        file = arguments.text("file", "path", default="") or None
        first_line = arguments.number("first_line", "line", default=1)

        def read(_: Stop) -> str:
            return skills.use(name, file, first_line, tokens)

        return await run_in_thread(read, READ_TIMEOUT_S)

    spec = ToolSpec(
        USE_SKILL,
        "Read a skill: how a kind of task is done here.",
        parameters(
            ("name",),
            name=("string", "a skill, or words to search for one"),
            file=("string", "a file of the skill"),
        ),
    )
    return Tool(spec, act)
