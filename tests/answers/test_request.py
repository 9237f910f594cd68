"""What a request may ask, where it may look and what it may cost; everything else is refused (P6, P7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.answers import (
    ResearchConstraints,
)
from retinue.answers.request import MAX_DEADLINE_MS, MAX_TOKENS
from retinue.codebase import CodebaseView, reading_policy
from retinue.config import PolicySettings
from retinue.core import (
    ConfigInvalid,
    InvalidInput,
    PathDenied,
    RetinueError,
    RootUnknown,
    Stop,
    estimate_tokens,
)
from retinue.service import (
    ResearchRequest,
    Service,
    analyze_component,
    find_patterns,
    locate_in_codebase,
    research_codebase,
)
from tests.answers.conftest import limited, service_for, write

pytestmark = pytest.mark.anyio
VERBS = pytest.mark.parametrize(
    "verb", [research_codebase, locate_in_codebase, analyze_component, find_patterns]
)


@VERBS
@pytest.mark.parametrize("question", ["", "   \n", "?!", "\0\0", "\x1b[31m"[:1], "x" * 1_000_000])
async def test_empty_or_endless_question_is_refused(service: Service, verb: Any, question: str) -> None:
    with pytest.raises(InvalidInput, match="question"):
        await verb(service, ResearchRequest(question=question))


@pytest.mark.parametrize("noise", ["\0", "\x1b]8;;http://evil\x1b\\", "\ud800", "\r", "\x07"])
async def test_control_characters_are_removed_from_the_question(service: Service, noise: str) -> None:
    answer: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question=f"where is{noise} with_retry?")
    )
    assert answer["locator"]["value"]["references"]
    assert not set(str(answer["question"])) & set("\0\x1b\ud800\r\x07")


@VERBS
@pytest.mark.parametrize(
    "root",
    ["/", "/etc", "..", "../project", "src/../..", "", "nowhere", "docs/retry.md", "~", "a\0b", "out"],
)
async def test_root_outside_the_allowlist_is_unknown(
    service: Service, project: Path, tmp_path: Path, verb: Any, root: str
) -> None:
    """P6: the refusal reveals nothing about the path."""
    (project / "out").symlink_to(tmp_path)
    with pytest.raises(RootUnknown) as caught:
        await verb(service, ResearchRequest(question="with_retry", roots=["src", root]))
    assert "/etc" not in str(caught.value.as_dict())


@pytest.mark.parametrize("hidden", [".ssh", "private"])
async def test_hidden_folder_cannot_be_made_a_root(project: Path, own_folders: Path, hidden: str) -> None:
    """P6: a rule with a path from the root also applies to a search that starts below it."""
    write(project, {f"{hidden}/id.py": "def with_retry(): ...\n", "src/private/a.py": "with_retry = 1\n"})
    policy = PolicySettings(deny=("/private", "src/private"))
    service = service_for(project, data_dir=own_folders, policy=policy)
    with pytest.raises(RootUnknown):
        await research_codebase(service, ResearchRequest(question="with_retry", roots=[hidden]))
    answer: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="with_retry", roots=["src"])
    )
    assert "private" not in str(answer)


@pytest.mark.parametrize("named", ["absolute", "relative", "whole", "twice"])
async def test_folders_inside_roots_may_be_named_in_several_ways(
    service: Service, project: Path, named: str
) -> None:
    """Phase 2, orchestration: the requested roots are searched."""
    roots = {
        "absolute": [str(project / "src" / "shop")],
        "relative": ["src/shop"],
        "whole": [str(project)],
        "twice": ["src/shop", "src", str(project / "src")],
    }[named]
    answer: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is with_retry?", roots=roots)
    )
    searched = {"absolute": "src/shop", "relative": "src/shop", "whole": "", "twice": "src"}[named]
    assert answer["rootsSearched"] == [str(project / searched)]
    found = Path(answer["rootsSearched"][0], answer["references"][0])
    assert found == project / "src" / "shop" / "retry.py:18"


async def test_answer_from_several_roots_says_where_each_reference_belongs(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    other = write(tmp_path / "other", {"again.py": "def with_retry():\n    pass\n"}).resolve()
    service = service_for(project, other, data_dir=own_folders)
    answer: dict[str, Any] = await locate_in_codebase(
        service, ResearchRequest(question="where is with_retry?")
    )
    assert answer["rootsSearched"] == [str(project), str(other)]
    assert set(answer["rootOf"]) == set(answer["references"])
    assert {name for name, root in answer["rootOf"].items() if root} == {"again.py:1"}


async def test_without_roots_the_error_says_how_to_add_one(own_folders: Path) -> None:
    with pytest.raises(RootUnknown) as caught:
        await research_codebase(service_for(data_dir=own_folders), ResearchRequest(question="with_retry"))
    assert "--root DIR" in str(caught.value.hint)


@pytest.mark.parametrize("limit", [0, -1, 201, -(2**70)])
async def test_impossible_limit_is_refused(service: Service, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await locate_in_codebase(service, ResearchRequest(question="with_retry", limit=limit))


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        ({"token": 500}, "did you mean tokens"),
        ({"speed": 1}, "use one of: tokens, deadlineMs"),
        ({"tokens": 399}, "at least 400"),
        ({"tokens": -1}, "at least 400"),
        ({"deadlineMs": 0}, "at least 1"),
        ({"maxFilesRead": -5}, "at least 1"),
    ],
)
async def test_impossible_constraint_is_refused(
    service: Service, constraints: dict[str, int], complaint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await research_codebase(service, ResearchRequest(question="with_retry", constraints=constraints))
    assert complaint in f"{caught.value} {caught.value.hint}"


def test_caller_may_ask_for_less_than_the_settings_allow_but_not_for_more() -> None:
    """P2: what may be read is limited by the settings; the caller chooses the length and the deadline."""
    allowed = ResearchConstraints()
    wanted = {"tokens": 10**9, "deadlineMs": 10**9, "max_files_read": 10**9, "maxBytesRead": 10**9}
    assert allowed.narrow(wanted) == ResearchConstraints(tokens=MAX_TOKENS, deadline_ms=MAX_DEADLINE_MS)
    assert allowed.narrow({"deadlineMs": 180_000}).deadline_ms == 180_000
    assert allowed.narrow({"maxFilesRead": 3, "deadline_ms": 4}) == ResearchConstraints(
        max_files_read=3, deadline_ms=4
    )


async def test_deadline_ends_a_report_in_time_with_partial_results(service: Service) -> None:
    answer: dict[str, Any] = await research_codebase(
        limited(service, deadline_ms=1), ResearchRequest(question="how does with_retry work?")
    )
    statuses = [answer[role]["status"] for role in ("locator", "analyzer") if role in answer]
    assert "timeout" in statuses
    alone: dict[str, Any] = await locate_in_codebase(
        limited(service, deadline_ms=1), ResearchRequest(question="with_retry")
    )
    assert alone["status"] in ("ok", "timeout")


async def test_follow_up_refines_an_earlier_report(service: Service) -> None:
    first: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="how does with_retry work?")
    )
    second: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="and where is the delay computed?", previous=str(first["id"]))
    )
    assert f"Refines the report {first['id']}." in str(second["notes"])
    assert second["locator"]["value"]["references"][0].startswith("src/shop/retry.py")
    assert second["question"] == "and where is the delay computed?"


async def test_what_was_cut_is_fetched_by_the_report_id(service: Service, project: Path) -> None:
    """P4: the whole report can be fetched by its id."""
    write(project, {f"src/many/module_{n}.py": f"def use_{n}():\n    with_retry({n})\n" for n in range(30)})
    question = "where is with_retry used?"
    small: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question=question, constraints={"tokens": 500})
    )
    assert estimate_tokens(str(small)) <= 500
    assert "Cut to fit: " in small["notes"][-1]
    assert f"previous={small['id']}" in small["notes"][-1]
    whole: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="", previous=small["id"], constraints={"tokens": 9_000})
    )
    assert whole["id"] == small["id"]
    assert len(whole["locator"]["value"]["references"]) > len(small["locator"]["value"]["references"])


@pytest.mark.parametrize("previous", ["../../x", "zzz", "1k09mhp54ymrz78"])
async def test_unknown_report_is_refused(service: Service, previous: str) -> None:
    with pytest.raises(InvalidInput):
        await research_codebase(service, ResearchRequest(question="with_retry", previous=previous))


async def test_report_that_cannot_be_stored_is_still_an_answer(service: Service, own_folders: Path) -> None:
    write(own_folders, {"reports": "in the way"})
    answer: dict[str, Any] = await research_codebase(service, ResearchRequest(question="with_retry"))
    assert answer["locator"]["status"] == "ok"
    assert "cannot be saved" in str(answer["notes"])


async def test_missing_thoughts_folder_is_a_wrong_setting(project: Path, own_folders: Path) -> None:
    service = service_for(project, data_dir=own_folders, thoughts_dir=project / "gone")
    with pytest.raises(ConfigInvalid):
        await research_codebase(service, ResearchRequest(question="with_retry"))


async def test_vanished_root_is_reported_as_a_structured_error(project: Path, service: Service) -> None:
    project.rename(project.with_name("moved"))  # noqa: ASYNC240 - nothing else runs here
    try:
        answer: dict[str, Any] = await research_codebase(service, ResearchRequest(question="with_retry"))
    except RetinueError as error:
        assert error.code in ("path_missing", "root_unknown")
    else:
        assert answer["locator"]["value"]["references"] == []


async def test_same_path_in_two_roots_is_two_references(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    """P3: a reference leads to the file it means, never to one with the same path."""
    other = write(tmp_path / "other", {"src/shop/retry.py": "# again\n\ndef with_retry():\n    pass\n"})
    service = service_for(project, other.resolve(), data_dir=own_folders)
    answer: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="where is with_retry defined?")
    )
    found: list[str] = answer["locator"]["value"]["references"]
    assert {"src/shop/retry.py:18", "../other/src/shop/retry.py:3"} <= set(found)
    roots, root_of = answer["rootsSearched"], answer.get("rootOf", {})
    for reference in found:
        path, line = reference.rsplit(":", 1)
        text = Path(roots[root_of.get(reference, 0)], path).read_text()  # noqa: ASYNC240 - nothing else runs
        assert "retry" in "\n".join(text.split("\n")[int(line) - 1 :])
    again: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="where is with_retry defined?")
    )
    assert again["locator"]["value"]["references"] == found


async def test_historical_document_with_the_path_of_a_source_file_gets_another_name(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    thoughts = write(tmp_path / "thoughts", {"docs/retry.md": "# with_retry\n\nWhy we retry.\n"}).resolve()
    service = service_for(project, data_dir=own_folders, thoughts_dir=thoughts)
    answer: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="where is with_retry described?")
    )
    assert answer["thoughtsLocator"]["value"]["references"] == ["../thoughts/docs/retry.md:1"]


@pytest.mark.parametrize("index", [True, False])
async def test_data_folder_inside_a_root_is_never_searched(project: Path, index: bool) -> None:
    """P6: its logs and reports quote earlier questions. With an index and without."""
    own = project / "var"
    write(own, {"logs/with_retry.py": "def with_retry(): ...\n", "artifacts/with_retry.md": "# with_retry\n"})

    def at_once(_: Hashable, work: Callable[[Stop], object]) -> bool:
        return bool(work(Stop()))

    service = replace(service_for(project, data_dir=own, index=index), schedule_job=at_once)
    for _ in range(2):
        answer = await locate_in_codebase(service, ResearchRequest(question="where is with_retry?"))
        assert answer["references"]
        assert "var/" not in str(answer["references"])
    with pytest.raises(RootUnknown):
        await locate_in_codebase(
            service, ResearchRequest(question="where is with_retry?", roots=["var/artifacts"])
        )
    with pytest.raises(PathDenied):
        CodebaseView(service.roots, reading_policy(service.settings)).read(
            "var/artifacts/with_retry.md", Stop()
        )
