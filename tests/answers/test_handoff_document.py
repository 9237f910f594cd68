"""Handoffs are written without replacing a file, and read back with their references checked (P3, P4, P6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.core import InvalidInput, Reference, RootUnknown, estimate_tokens
from retinue.research import (
    HandoffDocument,
    HandoffReference,
)
from retinue.service import (
    HandoffDraft,
    ResearchRequest,
    Service,
    create_handoff,
    research_codebase,
    resume_handoff,
)
from retinue.service.handoff_documents import MAX_ITEM_CHARS, MAX_ITEMS
from tests.answers.conftest import service_for, write
from tests.answers.test_artifact import SECRET, headings
from tests.answers.test_pipeline_surfaces import connected

HEADINGS = [
    *("# Research Handoff", "## Question", "## Summary", "## Key Findings", "## Decisions", "## Changes"),
    *("## Open", "## References", "## Constraints / Budgets"),
]
DRAFT = HandoffDraft(
    question="how are retries done?",
    summary="Half of it\nis understood.",
    lists={
        "found": ["with_retry loops, see src/shop/retry.py:18", "two\nlines"],
        "decided": ["keep RetryPolicy"],
        "open": ["the delay"],
    },
    references=["src/shop/settings.py:1", "docs/retry.md", "src/shop/gone.py:3", "src/shop/retry.py:9999"],
)


async def create(service: Service, draft: HandoffDraft = DRAFT) -> dict[str, Any]:
    return await create_handoff(service, draft)


async def resume(service: Service, name: str | None = None) -> dict[str, Any]:
    return await resume_handoff(service, name)


def statuses(view: dict[str, Any]) -> dict[str, str]:
    return {one["reference"]: one.get("now", one["status"]) for one in view["references"]}


@pytest.mark.anyio
async def test_handoff_has_the_headings_and_checked_references_with_their_lines(
    service: Service, own_folders: Path
) -> None:
    made = await create(service)
    path = Path(made["path"])
    text = path.read_text()  # noqa: ASYNC240 - nothing else runs here
    assert path.parent == own_folders / "artifacts"
    assert headings(text) == HEADINGS
    assert "- `src/shop/settings.py:1`: `MAX_ATTEMPTS = 3`\n" in text
    assert "- `src/shop/retry.py:18`: `def with_retry(call, policy):`\n" in text
    assert made["dropped"] == ["src/shop/gone.py:3", "src/shop/retry.py:9999"]
    assert made["references"] == 3


@pytest.mark.anyio
async def test_nothing_is_overwritten_and_the_newest_is_resumed(service: Service) -> None:
    first = await create(service)
    second = await create(service)
    assert first["name"] != second["name"]
    assert (await resume(service))["name"] == second["name"]
    for name in (first["name"], first["name"].removesuffix(".md"), first["path"]):
        assert (await resume(service, name))["name"] == first["name"]


@pytest.mark.anyio
async def test_resumed_handoff_says_what_was_written(service: Service) -> None:
    await create(service)
    view = await resume(service)
    assert view["question"] == DRAFT.question
    assert view["summary"] == "Half of it is understood."
    assert {name: view[name] for name in DRAFT.lists} == dict(DRAFT.lists)
    assert set(statuses(view).values()) == {"unchanged", "present"}
    assert view["note"] == "The references hold."


@pytest.mark.anyio
async def test_handoff_without_references_says_so(service: Service) -> None:
    """P8: no reference was checked, so none is said to hold."""
    await create(service, HandoffDraft(question="what is left?", summary="All of it."))
    assert (await resume(service))["note"] == "It names no places, so nothing was looked up."


@pytest.mark.anyio
async def test_handoff_without_a_summary_has_none_when_it_is_resumed(service: Service) -> None:
    """The file says `None.`; the answer does not."""
    await create(service, HandoffDraft(question="what is left?"))
    assert (await resume(service))["summary"] == ""


@pytest.mark.anyio
async def test_references_are_checked_again(service: Service, project: Path) -> None:
    """P3: unchanged, moved within the file, moved to another file, or gone."""
    marks = ["src/shop/retry.py:18", "src/shop/settings.py:4", "src/shop/cli.py:4", "src/shop/stock.py:4"]
    await create(service, HandoffDraft(question="what moves?", references=[*marks, "config/shop.toml:1"]))
    retry, cli = project / "src/shop/retry.py", project / "src/shop/cli.py"
    retry.write_text("# new\n# lines\n" + retry.read_text())
    write(project, {"src/shop/command.py": cli.read_text().replace("main()", "begin()")})
    cli.unlink()
    stock = project / "src/shop/stock.py"
    write(project, {"src/shop/store.py": f"# moved\n{stock.read_text()}"})
    stock.write_text("")
    view = await resume(service)
    assert statuses(view) == {
        "src/shop/retry.py:18": "src/shop/retry.py:20",
        "src/shop/settings.py:4": "unchanged",
        "src/shop/cli.py:4": "gone",
        "src/shop/stock.py:4": "src/shop/store.py:5",
        "config/shop.toml:1": "unchanged",
    }
    assert view["note"] == "The code has moved on since: 3 of 5 references changed."


@pytest.mark.anyio
async def test_findings_and_references_of_a_report_are_added(service: Service) -> None:
    report: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="how does with_retry work?")
    )
    await create(service, HandoffDraft(report=report["id"], lists={"open": ["the delay"]}))
    view = await resume(service)
    assert view["question"] == "how does with_retry work?"
    assert "src/shop/retry.py:18" in statuses(view)
    assert any("src/shop/retry.py:18: `with_retry`" in one for one in view["found"])


@pytest.mark.anyio
async def test_same_path_in_two_roots_is_two_places(project: Path, tmp_path: Path, own_folders: Path) -> None:
    other = write(tmp_path / "other", {"src/shop/retry.py": "x = 1\n", "own.py": "y = 2\n"}).resolve()
    service = service_for(project, other, data_dir=own_folders)
    named = [str(project / "src/shop/retry.py:18"), str(other / "src/shop/retry.py:1"), "own.py:1"]
    made = await create(service, HandoffDraft(question="two roots", references=named))
    assert "dropped" not in made
    (other / "src/shop/retry.py").write_text("z = 0\nx = 1\n")
    assert statuses(await resume(service)) == {
        "src/shop/retry.py:18": "unchanged",
        "../other/src/shop/retry.py:1": "../other/src/shop/retry.py:2",
        "own.py:1": "unchanged",
    }


@pytest.mark.anyio
async def test_references_hold_as_reports_name_them_if_two_roots_have_the_same_path(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    other = write(tmp_path / "other", {"src/shop/retry.py": "x = 1\n"}).resolve()
    service = service_for(project, other, data_dir=own_folders)
    named = ["src/shop/retry.py:18", "../other/src/shop/retry.py:1", "src/shop/gone.py:1"]
    made = await create(service, HandoffDraft(question="two roots", references=named))
    assert made["dropped"] == ["src/shop/gone.py:1"]
    assert made["references"] == 2


@pytest.mark.anyio
async def test_handoff_from_another_machine_is_read_in_the_root_with_the_same_files(
    service: Service, project: Path, own_folders: Path
) -> None:
    await create(service, HandoffDraft(question="moved", references=["src/shop/settings.py:1"]))
    elsewhere = project.rename(project.with_name("clone"))  # noqa: ASYNC240 - as above
    view = await resume(service_for(elsewhere, data_dir=own_folders))
    assert statuses(view) == {"src/shop/settings.py:1": "unchanged"}


@pytest.mark.anyio
async def test_secrets_reach_neither_the_file_nor_its_name(service: Service, project: Path) -> None:
    """P6: a line with a secret is still recognised."""
    write(project, {"src/key.py": f'KEY = "{SECRET}"\n'})
    made = await create(
        service,
        HandoffDraft(question=f"who has {SECRET}?", lists={"found": [SECRET]}, references=["src/key.py:1"]),
    )
    path = Path(made["path"])
    assert SECRET not in path.read_text() + path.name.upper()  # noqa: ASYNC240 - nothing else runs here
    view = await resume(service)
    assert SECRET not in json.dumps(view)
    assert statuses(view) == {"src/key.py:1": "unchanged"}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["../x.md", "/etc/passwd", "", "a\0b", "link.md", "nope", ".draft-1"])
async def test_only_handoffs_in_the_folder_can_be_resumed(
    service: Service, own_folders: Path, name: str
) -> None:
    """P6: no path leads out of the folder, not even through links."""
    await create(service)
    (own_folders / "x.md").write_text("# Research Handoff\n\n## References\n")
    (own_folders / "artifacts" / "link.md").symlink_to(own_folders / "x.md")
    with pytest.raises(InvalidInput, match="no handoff is named"):
        await resume(service, name)


@pytest.mark.anyio
async def test_file_that_is_not_a_handoff_is_refused(service: Service, own_folders: Path) -> None:
    await create(service)
    (own_folders / "artifacts" / "other.md").write_text("# Something else\n")
    with pytest.raises(InvalidInput, match="not a handoff"):
        await resume(service, "other.md")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "draft",
    [
        HandoffDraft(),
        HandoffDraft(question="q", lists={"found": ["x"] * (MAX_ITEMS + 1)}),
        HandoffDraft(question="q", lists={"found": ["x" * (MAX_ITEM_CHARS + 1)]}),
        HandoffDraft(question="q" * 5_000),
        HandoffDraft(question="q", lists={"guessed": ["x"]}),
        HandoffDraft(question="q", report="zzz"),
    ],
)
async def test_invalid_handoff_is_refused_and_nothing_is_written(
    service: Service, own_folders: Path, draft: HandoffDraft
) -> None:
    with pytest.raises(InvalidInput):
        await create(service, draft)
    assert not (own_folders / "artifacts").exists()


@pytest.mark.anyio
async def test_missing_handoffs_and_roots_are_reported(service: Service, own_folders: Path) -> None:
    with pytest.raises(InvalidInput, match="needs a question or a report"):
        await create(service, HandoffDraft(lists={"found": ["it is not empty"]}))
    with pytest.raises(InvalidInput, match="no handoff yet"):
        await resume(service)
    with pytest.raises(RootUnknown):
        await create(service_for(data_dir=own_folders))


@pytest.mark.anyio
async def test_long_handoff_is_cut_to_fit_and_says_so(service: Service) -> None:
    """P4: the answer fits its token budget."""
    many = [f"finding number {number} " + "of many words " * 20 for number in range(MAX_ITEMS)]
    await create(service, HandoffDraft(question="much", lists={"found": many, "decided": ["one"]}))
    view = await resume(service)
    assert estimate_tokens(json.dumps(view)) <= 2_000
    assert view["decided"] == ["one"]
    assert "cut to fit" in view["cut"]


@pytest.mark.parametrize("text", ["plain", "with ` tick", "``two``", "` begins", "ends `", "\\w+ | x"])
def test_what_is_written_is_read_back(text: str) -> None:
    handoff = HandoffDocument(
        question="# not a heading\n```\n## References\n",
        summary="s",
        lists={"found": ("a\n## Open\n- x", "b"), "decided": (), "changed": (), "open": ("o",), "notes": ()},
        references=(HandoffReference(Reference("a b.py", 3), 1, text), HandoffReference(Reference("c.py"))),
        roots=("/one", "/two words"),
    )
    assert HandoffDocument.parse(handoff.to_markdown()) == handoff


@pytest.mark.anyio
async def test_tools_create_and_resume_a_handoff(project: Path) -> None:
    async with connected(project) as client:
        made = await client.call_tool(
            "create_handoff", {"question": "q", "still_open": ["x"], "references": ["src/shop/retry.py:18"]}
        )
        view = await client.call_tool("resume_handoff", {})
        [tool] = [each for each in (await client.list_tools()).tools if each.name == "create_handoff"]
    assert "open" in tool.input_schema["properties"]  # as in the answer; `still_open` is accepted
    assert made.structured_content is not None
    assert view.structured_content is not None
    assert view.structured_content["open"] == ["x"]
    assert statuses(view.structured_content) == {"src/shop/retry.py:18": "unchanged"}


def test_commands_create_and_resume_a_handoff(project: Path) -> None:
    root = ("--root", str(project))
    done = CliRunner().invoke(
        main, ["handoff", "create", "q", "--open", "x", "--reference", "src/shop/retry.py:18", *root]
    )
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(main, ["handoff", "resume", done.stdout.strip(), *root])
    assert "src/shop/retry.py:18  unchanged" in shown.stdout
    assert "Open\n  - x" in shown.stdout
    as_json = CliRunner().invoke(main, ["handoff", "resume", "--json", *root])
    assert json.loads(as_json.stdout)["open"] == ["x"]


@pytest.mark.anyio
async def test_references_into_historical_documents_are_kept(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    thoughts = write(
        tmp_path / "thoughts", {"why.md": "# with_retry\n\nWhy with_retry was chosen.\n"}
    ).resolve()
    service = service_for(project, data_dir=own_folders, thoughts_dir=thoughts)
    assert service.list_roots() == {"roots": [str(project)], "thoughtsDir": str(thoughts)}
    report: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="how does with_retry work?")
    )
    assert report["thoughtsLocator"]["value"]["references"]
    made: dict[str, Any] = await create_handoff(service, HandoffDraft(report=report["id"]))
    assert "note" not in made
    assert statuses(await resume(service))["why.md:1"] == "unchanged"


@pytest.mark.anyio
async def test_references_of_a_report_that_are_gone_are_counted(service: Service, project: Path) -> None:
    """P8: nothing vanishes without a word."""
    report: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="how does charge_card work?")
    )
    (project / "src/shop/payment.py").unlink()
    made: dict[str, Any] = await create_handoff(service, HandoffDraft(report=report["id"]))
    assert "does not hold" in made["note"]
