"""The tools and commands say the same, in the shapes that hosts and scripts rely on (P9)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from mcp import Client

from retinue.answers.report_builder import ABOVE
from retinue.cli.main import main
from retinue.cli.research_output import ReferenceLinks
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings

TOOLS = ("research_codebase", "locate_in_codebase", "analyze_component", "find_patterns")
QUESTION = "where is with_retry implemented?"


@asynccontextmanager
async def connected(project: Path) -> AsyncGenerator[Client]:
    loaded = read_settings({"roots": (str(project),)})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    async with Client(server) as client:
        yield client


async def call(project: Path, tool: str, arguments: dict[str, Any]) -> Any:
    async with connected(project) as client:
        return await client.call_tool(tool, arguments)


def names_below(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.anyio
async def test_tools_are_registered_by_default_with_flat_schemas_and_short_descriptions(
    project: Path,
) -> None:
    """Phase 1: the server registers the expected tools. Their schemas contain no `$ref`."""
    async with connected(project) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(TOOLS) <= set(tools)
    for name in TOOLS:
        schema = json.dumps(tools[name].input_schema)
        assert "$ref" not in schema
        assert "$defs" not in schema
        assert tools[name].input_schema["required"] == ["question"]
        assert len(tools[name].description or "") < 250
    assert list(tools["research_codebase"].input_schema["properties"])[:5] == [
        "question",
        "also",
        "roots",
        "constraints",
        "artifact",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("tool", TOOLS)
async def test_answer_is_structured_and_the_same_json_as_text(project: Path, tool: str) -> None:
    result = await call(project, tool, {"question": QUESTION, "constraints": {"tokens": 1_500}})
    assert not result.is_error
    assert json.loads(result.content[0].text) == result.structured_content
    shown = result.structured_content
    assert shown["rootsSearched"] == [str(project)]
    found = shown["locator"]["value"] if tool == "research_codebase" else shown
    assert found["references"]
    assert {"summary", "references", "key_findings", "confidence", "notes"} <= set(found)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_input"),
        ({"question": ""}, "invalid_input"),
        ({"question": 3}, "invalid_input"),
        ({"question": QUESTION, "roots": ["/etc"]}, "root_unknown"),
        ({"question": QUESTION, "roots": "src"}, "invalid_input"),
        ({"question": QUESTION, "constraints": {"tokens": "many"}}, "invalid_input"),
        ({"question": QUESTION, "constraints": {"token": 500}}, "invalid_input"),
        ({"question": QUESTION, "speed": 1}, "invalid_input"),
        ({"question": QUESTION, "previous": "../x"}, "invalid_input"),
    ],
)
async def test_wrong_arguments_get_a_structured_error(
    project: Path, arguments: dict[str, Any], code: str
) -> None:
    """Phase 1, tool input validation."""
    result = await call(project, "research_codebase", arguments)
    assert result.is_error
    assert json.loads(result.content[0].text)["error"]["code"] == code
    assert "/etc" not in result.content[0].text


@pytest.mark.anyio
async def test_server_builds_the_index_after_the_first_answer(project: Path, own_folders: Path) -> None:
    """Phase 4, caching: the same answer with and without an index; the project is unchanged."""
    before = names_below(project)
    async with connected(project) as client:
        answers = [await client.call_tool("locate_in_codebase", {"question": QUESTION}) for _ in range(2)]
    found = [answer.structured_content["references"] for answer in answers if answer.structured_content]
    assert found[0] == found[1]
    assert any(name.endswith(".sqlite3") for name in names_below(own_folders / "index"))
    assert names_below(project) == before


@pytest.mark.anyio
async def test_roles_are_listed_as_runs(project: Path) -> None:
    async with connected(project) as client:
        await client.call_tool("research_codebase", {"question": QUESTION})
        listed = (await client.call_tool("list_runs", {"children": True})).structured_content
        assert listed is not None
        runs = {run["agent"]: run for run in listed["runs"]}
        status = await client.call_tool("check_subagent_status", {"runId": runs["locator"]["run_id"]})
    assert set(runs) == {"research", "locator", "analyzer"}
    assert runs["locator"]["parent"] == runs["research"]["run_id"]
    assert status.structured_content is not None
    assert status.structured_content["usage"]["files"] > 0
    assert status.structured_content["result"]["value"]["confidence"] in ("low", "med", "high")


def test_command_records_its_runs(project: Path) -> None:
    cli("locate", QUESTION, "--root", str(project))
    runs = json.loads(cli("runs", "--json").stdout)["runs"]
    assert [(run["agent"], run["status"], run["task"]) for run in runs] == [("locator", "success", QUESTION)]


def test_command_answers_even_if_its_run_cannot_be_recorded(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: without a usable data folder there is no record, but an answer."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("RETINUE_DATA_DIR", str(tmp_path / "file" / "data"))
    done = cli("locate", QUESTION, "--root", str(project), "--json")
    assert done.exit_code == 0
    assert "not recorded" in done.stderr
    assert json.loads(done.stdout)["references"]


@pytest.mark.parametrize("command", ["research", "locate", "analyze", "patterns"])
def test_command_prints_the_json_of_the_tool(project: Path, command: str) -> None:
    done = cli(command, QUESTION, "--root", str(project), "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    found = answer["locator"]["value"] if command == "research" else answer
    assert found["references"]
    assert answer["rootsSearched"] == [str(project)]


def test_locate_gives_references_in_rank_order_up_to_its_limit(project: Path) -> None:
    answer = json.loads(cli("locate", QUESTION, "--root", str(project), "--limit", "2", "--json").stdout)
    assert answer["references"][0] == "src/shop/retry.py:18"
    assert len(answer["references"]) == 2


def test_current_folder_is_the_root_of_a_command_without_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    answer = json.loads(cli("locate", QUESTION, "--json").stdout)
    assert answer["rootsSearched"] == [str(project)]


@pytest.mark.parametrize("command", ["research", "locate", "analyze", "patterns"])
def test_report_has_no_escape_codes_outside_a_terminal(project: Path, command: str) -> None:
    done = cli(command, QUESTION, "--root", str(project))
    assert done.exit_code == 0, done.output
    assert "src/shop/" in done.output
    assert "\x1b" not in done.output


def test_links_lead_to_the_right_root_and_only_on_a_terminal(tmp_path: Path) -> None:
    answer = {"rootsSearched": [str(tmp_path / "a"), str(tmp_path / "b c")], "rootOf": {"x.py:3": 1}}
    links = ReferenceLinks(answer, enabled=True)
    assert f"{(tmp_path / 'b c' / 'x.py').as_uri()}#3\x1b" in links.link("x.py:3")
    assert f"{(tmp_path / 'a' / 'y.py').as_uri()}\x1b" in links.link("y.py")
    assert f"{(tmp_path / 'b c' / 'y.py').as_uri()}\x1b" in links.link("../b c/y.py")
    assert ReferenceLinks(answer, enabled=False).link("x.py:3") == "x.py:3 [b c]"


def test_references_in_findings_are_links_and_not_listed_again(project: Path) -> None:
    done = CliRunner().invoke(
        main, ["analyze", "charge_card", "--root", str(project)], env={"FORCE_HYPERLINK": "1"}
    )
    called = next(line for line in done.output.split("\n") if "`charge_card` calls `with_retry` (" in line)
    assert called.count("\x1b]8;;file://") == 2
    plain = cli("analyze", "charge_card", "--root", str(project)).output
    shown = json.loads(cli("analyze", "charge_card", "--root", str(project), "--json").output)["references"]
    assert shown
    assert not [line for line in plain.split("\n") if line.strip() in shown]


def test_nothing_found_leaves_no_empty_heading(project: Path) -> None:
    output = cli("research", "where is frob_nicate?", "--root", str(project)).output
    assert output.startswith("where: Not found")
    assert "Where to look" not in output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("locate", ""), 2),
        (("locate", QUESTION, "--limit", "0"), 2),
        (("locate", QUESTION, "--limit", "many"), 2),
        (("research", QUESTION, "--tokens", "1"), 2),
        (("research", QUESTION, "--previous", "x"), 2),
        (("research", QUESTION, "--root", "nowhere"), 2),
        (("research",), 2),
        (("locate", QUESTION, "--deadline-ms", "1"), 3),
        (("locate", "where is frob_nicate?"), 0),
    ],
)
def test_exit_code_reflects_the_outcome(
    project: Path, arguments: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: 0 with an answer (also "not found"), 2 for a wrong call, 3 for work that was ended."""
    monkeypatch.chdir(project)
    done = cli(*arguments)
    assert done.exit_code == code, done.output


def test_memo_and_follow_up_work_from_the_command_line(project: Path) -> None:
    first = json.loads(cli("research", QUESTION, "--root", str(project), "--artifact", "--json").stdout)
    assert Path(first["artifactPath"]).read_text().startswith("# Research Handoff\n")
    again = cli("research", "", "--previous", first["id"], "--root", str(project), "--json")
    assert json.loads(again.stdout)["id"] == first["id"]


def test_failed_role_is_shown_on_the_terminal(project: Path) -> None:
    done = cli("research", QUESTION, "--root", str(project), "--deadline-ms", "1")
    assert done.exit_code == 3
    assert "timeout: the deadline passed" in done.output


ASKED = {
    "where": QUESTION,
    "how": "how does charge_card work?",
    "a guess": "how are failed payments repeated?",
    "callers": "who calls with_retry?",
    "options": "which setting limits the attempts?",
    "examples": "show existing examples of with_retry",
    "exists": "is there a retry policy?",
    "absent": "is there support for HTTP/3?",
    "nothing found": "where is `frobnicate_widget` defined?",
    "vague": "how does it work?",
    "German": "Wo wird die Zahlung noch einmal versucht und warum nicht?",
    "error": 'ValueError: "no more attempts"',
}


def _texts(value: Any) -> list[str]:
    """Return every text in an answer, without the question and the lists of references."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        skipped = ("question",) if "rootsSearched" in fields else ()
        found = [_texts(one) for name, one in fields.items() if name not in (*skipped, "references")]
        return [text for texts in found for text in texts]
    if isinstance(value, list):
        return [text for one in cast("list[Any]", value) for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def _repeated(texts: list[str]) -> list[str]:
    """Return the sentences of three words or more that occur twice. Lines of code are no sentences."""
    plain = [re.sub(r"`[^`]*`", "`x`", text) for text in texts if not re.match(r"[\w./-]+:\d+", text)]
    sentences = [one.strip() for text in plain for one in re.split(r"(?<=[.?!])\s+|\n", text)]
    counted = Counter(one for one in sentences if len(one.split()) > 2)
    return [one for one, times in counted.items() if times > 1 and one != ABOVE]


@pytest.mark.parametrize("kind", ASKED)
def test_nothing_is_told_twice(project: Path, kind: str) -> None:
    """Each sentence, finding and reference of a report is in one place, in JSON and as text."""
    report = json.loads(cli("research", ASKED[kind], "--json", "--root", str(project)).output)
    assert _repeated(_texts(report)) == []
    values = {role: report[role]["value"] for role in ("locator", "analyzer", "patterns") if role in report}
    findings = [finding for value in values.values() for finding in value["key_findings"]]
    assert len(findings) == len(set(findings))
    first, *others = [value["references"] for role, value in values.items() if role != "patterns"]
    # A role whose references the first one has all keeps them.
    assert all(set(own).isdisjoint(first) or set(own) <= set(first) for own in others)
    assert all(value["summary"] for value in values.values())
    printed = cli("research", ASKED[kind], "--root", str(project)).output.split("\n")
    told = [line.strip().removeprefix("- ") for line in printed if line.strip() and line[:6].strip()]
    assert [one for one, times in Counter(told).items() if times > 1] == []
    assert _repeated(told) == []
