"""The `skills` group: `use_skill`, and each skill as a prompt, which hosts show as a slash command."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from retinue.core import RetinueError, clip
from retinue.server.core_tools import READ_ONLY, RequestService, ToolContext
from retinue.service import Service

PROMPT_PREFIX = "skill-"
MAX_PROMPTS = 100
"""Skills that become prompts. A host shows all of them in one menu."""
PROMPT_DESCRIPTION_CHARS = 200

SkillName = Annotated[str, Field(description="A skill, or words to search for one.")]
SkillFileName = Annotated[str | None, Field(description="A file of the skill.")]
FirstLine = Annotated[int, Field(description="Where to go on in a long text.")]


def register(server: MCPServer[Service], service: Service) -> None:
    """Add `use_skill` and the prompts of the skills that exist now."""
    server.add_tool(
        use_skill, description="Read a skill: how a kind of task is done here.", annotations=READ_ONLY
    )
    for name, description in list(service.skills.descriptions().items())[:MAX_PROMPTS]:
        _add_prompt(server, name, clip(description, PROMPT_DESCRIPTION_CHARS))


async def use_skill(
    name: SkillName, service: RequestService, file: SkillFileName = None, first_line: FirstLine = 1
) -> dict[str, Any]:
    return await asyncio.to_thread(service.skills.use, name, file, first_line)


def _add_prompt(server: MCPServer[Service], skill: str, description: str) -> None:
    @server.prompt(name=f"{PROMPT_PREFIX}{skill}", description=description or f"The skill {skill}.")
    async def skill_prompt(
        ctx: ToolContext, task: Annotated[str, Field(description="The task to do that way.")] = ""
    ) -> str:
        service = ctx.request_context.lifespan_context
        try:
            read = await asyncio.to_thread(service.skills.use, skill)
        except RetinueError as error:  # it was removed, or changed, since the server started
            return f"Tell me that the skill {skill} cannot be used: {error.message}"
        told = f"Work by these instructions:\n\n{read['instructions']}"
        return f"{told}\n\nThe task:\n{task}" if task else told
