"""Hosts read runs, logs, reports and documents as resources, in pages and without secrets (P4, P6, P9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from retinue.core import estimate_tokens
from retinue.server import build_server
from retinue.service.run_views import page_of
from retinue.wiring import build_service, lifetime, read_settings
from tests.server.conftest import SECRET, call, host, offering

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


async def text_of(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    return content.model_dump()["text"]


async def read(client: Client, uri: str) -> Any:
    return json.loads(await text_of(client, uri))


async def read_pages(client: Client, uri: str) -> list[str]:
    """All pages of a resource, without the line that names the next one."""
    pages: list[str] = []
    while True:
        text = await text_of(client, uri)
        page, _, rest = text.rpartition("\n[more: ")
        if not rest.endswith("]") or not rest.startswith("retinue://"):
            return [*pages, text]
        pages.append(page)
        uri = rest.removesuffix("]")


def project_server(project: Path) -> Any:
    loaded = read_settings({"roots": (str(project),)})
    return build_server(build_service(loaded), ["all"], lifetime(loaded))


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_runs_with_logs_and_results_are_listed_and_read(era: str) -> None:
    async with host(mode=era) as client:
        ran = await call(client, "run_subagent", agent_name="echo", prompt="hello")
        [row] = (await read(client, "retinue://runs"))["runs"]
        assert row["uri"] == f"retinue://runs/{ran['run_id']}"
        assert (await read(client, row["uri"]))["status"] == "success"
        assert await text_of(client, f"{row['uri']}/log") == "stdout: hello"
        assert await text_of(client, f"{row['uri']}/result") == "hello"


async def test_a_long_result_is_read_page_by_page_and_each_page_fits() -> None:
    """P4"""
    async with host() as client:
        ran = await call(client, "run_subagent", agent_name="counts", prompt="x", wait_s=20)
        pages = await read_pages(client, f"retinue://runs/{ran['run_id']}/result")
    assert "".join(pages).split() == [str(number) for number in range(1, 3_001)]
    assert len(pages) > 2
    assert all(estimate_tokens(page) <= 2_000 for page in pages)


async def test_logs_are_read_without_secrets() -> None:
    """P6"""
    async with host() as client:
        ran = await call(client, "run_subagent", agent_name="fails", prompt="x")
        log = await text_of(client, f"retinue://runs/{ran['run_id']}/log?cursor=0")
    assert "token=" in log
    assert SECRET not in log


@pytest.mark.parametrize("offers", [False, True], ids=["configured", "offered by the host"])
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_reports_and_handoffs_are_read_as_markdown(
    project: Path, monkeypatch: pytest.MonkeyPatch, era: str, offers: bool
) -> None:
    (project / "retry.py").write_text("def retry_request():\n    pass\n")
    monkeypatch.setenv("RETINUE_ALLOW_HOST_ROOTS", "true")
    loaded = read_settings({} if offers else {"roots": (str(project),)})
    server = build_server(build_service(loaded), ["research"], lifetime(loaded))
    async with Client(server, mode=era, list_roots_callback=offering([project])) as client:
        question = "where is retry_request?"
        report = await call(client, "research_codebase", question=question, artifact=True)
        await call(client, "create_handoff", question="go on", references=["retry.py:1"])
        [row] = (await read(client, "retinue://reports"))["reports"]
        assert (row["id"], row["question"]) == (report["id"], question)
        assert "retry.py:1" in await text_of(client, row["uri"])
        names = [row["name"] for row in (await read(client, "retinue://artifacts"))["artifacts"]]
        assert sorted(names) == ["handoff-go-on.md", "where-is-retry-request.md"]
        [handoff] = (await read(client, "retinue://handoffs"))["handoffs"]
        assert "## Decisions" in await text_of(client, handoff["uri"])


async def test_documents_about_folders_of_other_servers_are_not_shown(project: Path, tmp_path: Path) -> None:
    """P6: servers share the data folder, not their roots."""
    (project / "retry.py").write_text("def retry_request():\n    pass\n")
    async with Client(project_server(project)) as client:
        report = await call(client, "research_codebase", question="where is retry_request?", artifact=True)
    (tmp_path / "other").mkdir()
    async with Client(project_server(tmp_path / "other")) as client:
        for kind in ("reports", "artifacts", "handoffs"):
            assert (await read(client, f"retinue://{kind}"))[kind] == []
        for uri in (f"retinue://reports/{report['id']}", "retinue://artifacts/where-is-retry-request.md"):
            with pytest.raises(MCPError, match="may not be searched here"):
                await client.read_resource(uri)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("retinue://runs/1k09m8cp19a5a0m", "no such run"),
        ("retinue://runs/x/y/z", "no resource has the address"),
        ("retinue://secrets", "the resources are: retinue://runs"),
        ("file:///etc/passwd", "no resource has the address"),
        ("retinue://artifacts/..%2F..%2Fretinue.db", "no artifact is named"),
        ("retinue://artifacts/%2Fetc%2Fpasswd", "no artifact is named"),
        ("retinue://runs/1k09m8cp19a5a0m/log?cursor=-1", "not a query of a resource"),
        ("retinue://runs?limit=9", "not a query of a resource"),
        ("retinue://reports/x", "not a report id"),
    ],
)
async def test_wrong_addresses_are_protocol_errors_that_say_what_is_wrong(
    project: Path, uri: str, said: str
) -> None:
    async with Client(project_server(project)) as client:
        with pytest.raises(MCPError, match=said) as raised:
            await client.read_resource(uri)
    assert raised.value.error.code == -32602


async def offered(client: Client) -> list[Any]:
    templates = (await client.list_resource_templates()).resource_templates
    return [*(await client.list_resources()).resources, *templates]


async def test_lists_of_resources_stay_the_same_whatever_runs() -> None:
    """Kept first answers hold them, so nothing in them may change."""
    async with host() as client:
        before = await offered(client)
        await call(client, "run_subagent", agent_name="echo", prompt="hello")
        after = await offered(client)
    assert before == after
    assert all(each.title and each.icons for each in before)


async def test_templates_and_prompts_complete_their_arguments() -> None:
    async with host() as client:
        ran = await call(client, "run_subagent", agent_name="echo", prompt="hello")
        template = ResourceTemplateReference(uri="retinue://runs/{id}/log{?cursor}")
        found = await client.complete(template, {"name": "id", "value": ran["run_id"][:4]})
        assert found.completion.values == [ran["run_id"]]
        assert (await client.complete(template, {"name": "id", "value": "zz"})).completion.values == []
        agents = await client.complete(PromptReference(name="agent"), {"name": "name", "value": "e"})
        assert agents.completion.values == ["echo", "endless"]
        nothing = await client.complete(PromptReference(name="research"), {"name": "question", "value": "e"})
        assert nothing.completion.values == []


def test_pages_are_whole_lines_that_join_to_the_text() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000)) + "ä" * 5_000
    pages, cursor = list[str](), 0
    while cursor is not None:
        page = page_of(text, cursor, 200)
        assert page.text
        assert estimate_tokens(page.text) <= 200
        pages.append(page.text)
        cursor = page.next
    assert "".join(pages) == text
    assert all(page.endswith("\n") for page in pages[:3])
