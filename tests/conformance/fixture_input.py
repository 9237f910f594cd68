"""The tools and the prompt with which the conformance suite sees how a server asks its client.

They ask as Retinue's own tools do, through resolvers, which is right in both eras; only where the suite
wants a question under a certain name is it built by hand.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field, JsonValue

from retinue.server.mcp_server import RetinueServer
from retinue.service import Service

Ctx = Context[Service, Any]


class User(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class Confirmation(BaseModel):
    ok: bool


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


Option = Literal["option1", "option2", "option3"]
TITLED: list[JsonValue] = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]


class Enums(BaseModel):
    """Every way in which the protocol writes a choice; the names are the suite's."""

    untitledSingle: Option
    titledSingle: str = Field(json_schema_extra={"oneOf": TITLED})
    legacyEnum: str = Field(json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]})
    untitledMulti: list[Option]
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": TITLED}})


async def a_user(message: str) -> Elicit[User]:
    return Elicit(message, User)


async def a_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def a_color(name: Annotated[Name, Resolve(a_name)]) -> Elicit[Color]:
    return Elicit(f"What is your favorite color, {name.name}?", Color)


async def a_confirmation() -> Elicit[Confirmation]:
    return Elicit("Please confirm", Confirmation)


async def the_defaults() -> Elicit[Defaults]:
    return Elicit("Is this right?", Defaults)


async def the_enums() -> Elicit[Enums]:
    return Elicit("Which of these?", Enums)


def sample(prompt: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return Sample([message], max_tokens=100)


async def a_reply(prompt: str) -> Sample:
    return sample(prompt)


async def the_capital() -> Sample:
    return sample("What is the capital of France?")


async def the_roots() -> ListRoots:
    return ListRoots()


async def a_name_if_able(ctx: Ctx) -> Elicit[Name] | Name:
    able = ctx.client_capabilities is not None and ctx.client_capabilities.elicitation is not None
    return await a_name() if able else Name(name="unknown")


async def the_capital_if_able(ctx: Ctx) -> Sample | None:
    able = ctx.client_capabilities is not None and ctx.client_capabilities.sampling is not None
    return await the_capital() if able else None


Reply = Annotated[CreateMessageResult, Resolve(the_capital)]
Roots = Annotated[ListRootsResult, Resolve(the_roots)]
Confirmed = Annotated[ElicitationResult[Confirmation], Resolve(a_confirmation)]


async def test_elicitation(message: str, outcome: Annotated[ElicitationResult[User], Resolve(a_user)]) -> str:
    return f"User response: {outcome}"


async def test_elicitation_sep1034_defaults(
    outcome: Annotated[ElicitationResult[Defaults], Resolve(the_defaults)],
) -> str:
    return f"Elicitation completed: {outcome}"


async def test_elicitation_sep1330_enums(
    outcome: Annotated[ElicitationResult[Enums], Resolve(the_enums)],
) -> str:
    return f"Elicitation completed: {outcome}"


async def test_streaming_elicitation(outcome: Confirmed) -> str:
    return f"User response: {outcome}"


async def test_sampling(prompt: str, reply: Annotated[CreateMessageResult, Resolve(a_reply)]) -> str:
    return f"LLM response: {reply.content}"


async def test_missing_capability(reply: Reply) -> str:
    return str(reply.content)


async def test_input_required_result_sampling(reply: Reply) -> str:
    return str(reply.content)


async def test_input_required_result_list_roots(roots: Roots) -> str:
    return str(roots.roots)


async def test_input_required_result_request_state(outcome: Confirmed) -> str:
    return f"state-ok: {outcome}"


async def test_input_required_result_tampered_state(outcome: Confirmed) -> str:
    return f"not tampered with: {outcome}"


async def test_input_required_result_multiple_inputs(
    name: Annotated[Name, Resolve(a_name)], reply: Reply, roots: Roots
) -> str:
    return f"{name.name}: {reply.content}, {roots.roots}"


async def test_input_required_result_multi_round(color: Annotated[Color, Resolve(a_color)]) -> str:
    return color.color


async def test_input_required_result_capabilities(
    name: Annotated[Name, Resolve(a_name_if_able)],
    reply: Annotated[CreateMessageResult | None, Resolve(the_capital_if_able)],
) -> str:
    return f"{name.name}: {reply}"


async def test_input_required_result_elicitation(ctx: Ctx) -> str | InputRequiredResult:
    answer = (ctx.input_responses or {}).get("user_name")
    return f"Hello, {answer.content}!" if isinstance(answer, ElicitResult) else question("user_name", "name")


def question(key: str, field: str) -> InputRequiredResult:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    params = ElicitRequestFormParams(message=f"Which {field}?", requested_schema=schema)
    return InputRequiredResult(input_requests={key: ElicitRequest(params=params)})


TOOLS = (
    *(test_elicitation, test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums),
    *(test_streaming_elicitation, test_sampling, test_missing_capability),
    *(test_input_required_result_elicitation, test_input_required_result_sampling),
    *(test_input_required_result_list_roots, test_input_required_result_request_state),
    *(test_input_required_result_tampered_state, test_input_required_result_multiple_inputs),
    *(test_input_required_result_multi_round, test_input_required_result_capabilities),
)


def add_prompts(server: RetinueServer) -> None:
    @server.prompt(description="Asks for its context first.")
    async def test_input_required_result_prompt(ctx: Ctx) -> str | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("user_context")
        return (
            str(answer.content) if isinstance(answer, ElicitResult) else question("user_context", "context")
        )
