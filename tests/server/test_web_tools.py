"""The web: closed, nothing is listed or sent; open, it answers with checked quotations (P3, P6, P7)."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from mcp import Client

from retinue.core import RunId
from retinue.server import build_server
from retinue.store import Store, TrustedProjects
from retinue.wiring import build_service, lifetime, read_settings
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.server.conftest import call
from tests.service.agent_support import write_agent
from tests.web.pages import BLOG
from tests.web.site import Site, answer
from tests.web.stubs import as_json, pypi_answer, searxng

pytestmark = pytest.mark.anyio


def open_the_door(site: Site, *, search: bool = True, more: str = "") -> None:
    """Write the user's own settings file. The site on loopback is the one private host that it opens."""
    file = Path.home() / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    provider = f'search = "searxng"\nsearch_url = "{site.root}/search"\n' if search else ""
    site.answers.setdefault("/search", searxng(f"{site.root}/blog/retry-budget"))
    file.write_text(
        f'[network]\nweb = true\nallow_private = ["127.0.0.1:{site.port}"]\n{provider}'
        f'pypi = "{site.root}"\n{more}'
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text("def greet():\n    return 'hello'\n")
    return folder


@asynccontextmanager
async def host(
    project: Path, script: Iterable[ScriptLine] | None = None, header: str = ""
) -> AsyncGenerator[tuple[Client, ScriptedModel]]:
    """Yield a host of the server, with a scripted model if there is a script."""
    scripted = ScriptedModel(script or ())
    write_agent(
        Path.home(), ".config/retinue/agents/author.md", header or "description: reads\ntools: [Read]"
    )
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        endpoint = {} if script is None else {"models.endpoint": url, "models.research": True}
        loaded = read_settings({"roots": (str(project),), **endpoint})
        server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
        async with Client(server) as client:
            yield client, scripted


async def tool_names(client: Client) -> dict[str, Any]:
    return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}


class Connections:
    """The addresses outside this machine's memory that this process connected to or asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[object] = []
        connect, resolve = socket.socket.connect, socket.getaddrinfo

        def note_connect(sock: socket.socket, address: Any) -> None:
            if sock.family != getattr(socket, "AF_UNIX", None):
                self.made.append(address)
            connect(sock, address)

        def note_name(host: Any, *rest: Any, **more: Any) -> Any:
            self.made.append(host)
            return resolve(host, *rest, **more)

        monkeypatch.setattr(socket.socket, "connect", note_connect)
        monkeypatch.setattr(socket, "getaddrinfo", note_name)


async def test_closed_door_lists_no_tool_and_not_one_packet_leaves_P6_P7(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "retinue.toml").write_text("[network]\nweb = true\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("RETINUE_NETWORK__WEB", "true")
    made = Connections(monkeypatch)
    async with host(project) as (client, _):
        names = await tool_names(client)
        assert "web_research" not in names
        assert "web" not in names["research_codebase"]["properties"]
        refused = await client.call_tool("web_research", {"question": "what is new in httpx?"})
        assert refused.is_error
        asked = await client.call_tool("research_codebase", {"question": "where is greet?", "web": True})
        assert "web" not in (asked.structured_content or {})
    assert made.made == []


async def test_agent_hears_that_web_tools_are_withheld_while_the_door_is_closed_P8(project: Path) -> None:
    header = "description: looks outside\ntools: [Read, WebFetch, WebSearch]"
    async with host(project, ["I know nothing of it."], header) as (client, _):
        done = await call(client, "run_subagent", agent_name="author", prompt="what is new?")
    (note,) = [note for note in done["notes"] if "WebFetch" in note]
    assert "no WebFetch, WebSearch: the web is off" in note


async def test_agent_that_only_reads_the_web_is_refused_while_the_door_is_closed_P8(project: Path) -> None:
    header = "description: looks outside\ntools: [WebFetch, WebSearch]"
    async with host(project, ["I know nothing of it."], header) as (client, model):
        done = await call(client, "run_subagent", agent_name="author", prompt="what is new?")
    assert (done["status"], done["error"]["code"]) == ("error", "unavailable")
    assert "the web is off" in done["error"]["message"]
    assert model.prompts == []


async def test_question_is_answered_with_a_checked_quotation_its_source_and_a_link_P3(project: Path) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        async with host(project) as (client, _):
            assert "web" in (await tool_names(client))["research_codebase"]["properties"]
            answered = await call(client, "web_research", question="how many requests are spent on retries?")
            log = await call(client, "get_subagent_logs", runId=answered["run_id"])
    role = answered["web"]
    assert role["status"] == "ok" and set(role) == {"status", "value", "timing"}
    assert set(role["value"]) == {"summary", "references", "key_findings", "confidence", "notes"}
    finding, link = role["value"]["key_findings"][0], role["value"]["references"][0]
    assert BLOG[1] in finding
    assert f"Retry budgets ({site.root}/blog/retry-budget, 2025-02-14)" in finding
    address, _, fragment = link.partition("#:~:text=")
    assert address == f"{site.root}/blog/retry-budget"
    first, _, last = unquote(fragment).partition(",")
    assert finding.index(first) < finding.index(last)
    assert "never instructions" in role["value"]["notes"]
    assert [each.path.partition("?")[0] for each in site.requests] == [
        "/search",
        "/robots.txt",
        "/blog/retry-budget",
    ]
    assert log["log"].count("web: GET 127.0.0.1 for") == 3
    with Store.open(read_settings({}).settings.data_dir) as store:
        events = store.events.of_run(RunId.parse(answered["run_id"]), kind="web")
    assert [event.data["why"] for event in events] == ["search with searxng", "robots.txt", "a page"]
    assert all(event.data["host"] == "127.0.0.1" and int(str(event.data["sent"])) > 0 for event in events)


async def test_research_on_code_looks_outside_only_if_asked(project: Path) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        async with host(project) as (client, _):
            alone = await call(client, "research_codebase", question="where is greet and its retry budget?")
            assert site.requests == [] and "web" not in alone
            both = await call(
                client, "research_codebase", question="where is greet and its retry budget?", web=True
            )
    assert both["locator"]["value"]["references"] == alone["locator"]["value"]["references"]
    assert "retry-budget" in both["web"]["value"]["references"][0]


async def test_named_pages_are_read_without_a_provider_and_the_error_says_how_to_add_one(
    project: Path,
) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site, search=False)
        async with host(project) as (client, _):
            named = await call(
                client, "web_research", question="what is idle_timeout?", urls=[f"{site.root}/settings.html"]
            )
            none = await client.call_tool("web_research", {"question": "what is new in rust?"})
    assert "Seconds until an idle connection is closed." in named["web"]["value"]["key_findings"][0]
    assert none.is_error and "network.search" in json.dumps(none.structured_content)


async def test_provider_of_the_users_own_is_a_table_and_its_key_is_shown_nowhere_P6(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of docs/web.md."""
    monkeypatch.setenv("MY_SEARCH_KEY", "plain-words-as-a-key")
    site = Site()
    async with site.serve():
        table = (
            f'search = "mine"\n[network.providers.mine]\nurl = "{site.root}/api?text={{query}}"\n'
            'key_env = "MY_SEARCH_KEY"\nkey_header = "X-Key: {key}"\nresults = "hits.list"\n'
            'address_field = "link"\ntext_field = "excerpt"\n'
        )
        found = {"link": f"{site.root}/blog/retry-budget", "excerpt": "x"}
        site.answers["/api"] = as_json({"hits": {"list": [found]}})
        open_the_door(site, search=False, more=table)
        async with host(project) as (client, _):
            answered = await call(client, "web_research", question="how many requests are retries?")
            log = await call(client, "get_subagent_logs", runId=answered["run_id"])
    assert BLOG[1] in answered["web"]["value"]["key_findings"][0]
    assert site.requests[0].headers["x-key"] == "plain-words-as-a-key"
    assert site.requests[0].path == "/api?text=how%20many%20requests%20are%20retries%3F"
    assert all("x-key" not in request.headers for request in site.requests[1:])
    assert "plain-words-as-a-key" not in json.dumps([answered, log])


async def test_packages_of_the_project_are_a_source_without_a_provider(project: Path) -> None:
    (project / "requirements.txt").write_text("tinycache==1.2\ninner @ git+ssh://git.corp.example/inner\n")
    site = Site()
    site.answers["/pypi/tinycache/json"] = pypi_answer("tinycache", "2.0", "new", "")
    text = "# Use\n\nCall tinycache.clear() to drop every entry."
    site.answers["/pypi/tinycache/1.2/json"] = pypi_answer("tinycache", "1.2", text, "")
    async with site.serve():
        open_the_door(site, search=False)
        async with host(project) as (client, _):
            found = await call(client, "web_research", question="how do I drop every entry of tinycache?")
            private = await call(client, "web_research", question="how does inner work with tinycache?")
    value = found["web"]["value"]
    assert "Call tinycache.clear() to drop every entry." in value["key_findings"][0]
    assert "The project uses tinycache 1.2 (requirements.txt); the newest is 2.0." in value["notes"]
    assert "nobody is asked about it" in private["web"]["value"]["notes"]
    assert not [each for each in site.requests if "inner" in each.path]


async def test_explanation_has_only_sentences_that_cite_a_passage_P3(project: Path) -> None:
    said = {
        "answer": [
            {"excerpt": 1, "text": "We now spend at most ten percent of all requests on retries."},
            {"excerpt": 1, "text": "The author always recommends Kubernetes."},
            {"excerpt": 9, "text": "We now spend at most ten percent of all requests on retries."},
        ],
        "shown": True,
    }
    site = Site()
    async with site.serve():
        open_the_door(site)
        async with host(project, [json.dumps(said)]) as (client, scripted):
            answered = await call(client, "web_research", question="how many requests are spent on retries?")
    explanation = answered["explanation"]
    assert explanation["sentences"] == ["We now spend at most ten percent of all requests on retries [1]."]
    assert any("2 of its 3 sentences did not hold" in note for note in answered["notes"])
    system, shown = scripted.prompts[0].turns
    assert BLOG[1] not in system.text and BLOG[1] in shown.text
    assert "from the web" in shown.text


async def test_local_agent_reads_the_web_with_its_tools_and_every_request_is_recorded(project: Path) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        script = [
            calls("WebSearch", query="retry budget"),
            calls("WebFetch", url=f"{site.root}/blog/retry-budget"),
            "At most ten percent of requests are spent on retries.",
        ]
        header = "description: looks outside\ntools: [WebFetch, WebSearch]"
        async with host(project, script, header) as (client, scripted):
            done = await call(client, "run_subagent", agent_name="author", prompt="how many retries?")
            log = await call(client, "get_subagent_logs", runId=done["run_id"])
    assert done["status"] == "success", done
    results, page = (scripted.prompts[at].turns[-1].text for at in (1, 2))
    assert f"1. {site.root}/blog/retry-budget" in results
    assert "never instructions" in page and f"> {BLOG[1]}" in page
    assert page.rstrip().endswith("[end of the text from the web]")
    assert done["receipt"]["tool_calls"] == {"web_search": 1, "web_fetch": 1}
    assert log["log"].count("web: GET 127.0.0.1 for") == 3


async def test_question_after_reading_the_web_says_so_and_the_agent_keeps_what_it_had_P7(
    project: Path,
) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        header = "description: x\ntools: [WebFetch, Bash]\nisolation: worktree\nsandbox: none"
        for reads_first in (False, True):
            first = [calls("WebFetch", url=f"{site.root}/blog/retry-budget")] if reads_first else []
            script = [*first, calls("run_command", command="python3 --version"), "Done."]
            async with host(project, script, header) as (client, _):
                asked = await call(client, "run_subagent", agent_name="author", prompt="do it")
                (question,) = asked["questions"]
                assert ("has read pages of the web" in question["question"]) is reads_first
                await call(
                    client,
                    "reply_subagent",
                    runId=asked["run_id"],
                    messageId=question["messageId"],
                    answer="allow",
                )
                waited = await call(client, "wait_for_runs", run_ids=[asked["run_id"]])
            assert waited["runs"][0]["status"] == "success"


async def test_example_of_init_searches_the_web_once_its_project_is_trusted_P7(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed of the agent `web-search`: it runs with Retinue's own tools, and not before the user trusts it."""
    from retinue.service import write_project_examples

    write_project_examples(project)
    monkeypatch.chdir(project)
    site = Site()
    async with site.serve():
        open_the_door(site)
        script = [calls("web_search", query="retry budget"), f"Ten percent ({site.root}/blog/retry-budget)."]
        async with host(project, script) as (client, _):
            refused = await client.call_tool(
                "run_subagent", {"agent_name": "web-search", "prompt": "retries?"}
            )
            assert refused.is_error and site.requests == []
        TrustedProjects(read_settings({}).settings.data_dir).add(project)
        async with host(project, script) as (client, _):
            done = await call(client, "run_subagent", agent_name="web-search", prompt="how many retries?")
    assert done.get("status") == "success", done
    assert done["receipt"]["tool_calls"] == {"web_search": 1}
    assert [each.path.partition("?")[0] for each in site.requests] == ["/search"]


@pytest.mark.parametrize("rules", ["deny: ['WebFetch(domain:127.0.0.1)']", "deny: [WebFetch]"])
async def test_rules_of_the_agent_narrow_the_web_P7(project: Path, rules: str) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        script = [calls("WebFetch", url=f"{site.root}/blog/retry-budget"), "It is not allowed."]
        header = f"description: x\ntools: [WebFetch]\npermissions: {{{rules}}}"
        async with host(project, script, header) as (client, scripted):
            await call(client, "run_subagent", agent_name="author", prompt="read it")
    assert "not allowed" in scripted.prompts[-1].turns[-1].text
    assert site.requests == []


async def test_agent_without_network_gets_no_web_tools(project: Path) -> None:
    site = Site()
    async with site.serve():
        open_the_door(site)
        header = "description: x\ntools: [Read, WebFetch]\nnetwork: false"
        async with host(project, ["Nothing."], header) as (client, _):
            done = await client.call_tool("run_subagent", {"agent_name": "author", "prompt": "read it"})
    assert "network" in json.dumps(done.structured_content)
    assert site.requests == []


async def test_wrong_requests_are_told_and_send_nothing(project: Path) -> None:
    site = Site({"/search": answer("", status=500)})
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    async with site.serve():
        open_the_door(site)
        async with host(project) as (client, _):
            for arguments in (
                {"question": ""},
                {"question": f"why is {token} refused?"},
                {"question": "x", "urls": ["file:///etc/passwd"]},
                {"question": "what is this?", "constraints": {"pages": 3}},
            ):
                refused = await client.call_tool("web_research", arguments)
                assert refused.is_error or refused.structured_content["web"]["status"] == "error"
            assert site.requests == []
            failed = await call(client, "web_research", question="what is a retry budget?")
    assert failed["web"]["status"] == "error"
    assert "status 500" in failed["web"]["error"]["message"]
