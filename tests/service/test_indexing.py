"""Commands build indexes on request, and in the background after an answer about a large tree (P10)."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from retinue.cli.main import main
from retinue.cli.research_commands import WORTH_AN_INDEX, ask_service, start_indexing
from retinue.codebase import CodebaseView, reading_policy
from retinue.codebase.index import index_exists
from retinue.config import CHILD_TOKEN
from retinue.core import FileLock, Root, RootUnknown, Stop, Unavailable
from retinue.service import (
    ResearchRequest,
    Service,
    can_index,
    locate_in_codebase,
    make_indexes,
    research_codebase,
)
from tests.answers.conftest import service_for

QUESTION = "where is the anchor raised?"


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def tree(folder: Path, files: int) -> Path:
    folder.mkdir()
    for number in range(files):
        (folder / f"part_{number}.py").write_text(f"def raise_anchor_{number}(): ...\n")
    return folder.resolve()


def has_index(service: Service) -> bool:
    codebase = CodebaseView(service.roots, reading_policy(service.settings))
    return index_exists(service.settings.data_dir / "index", codebase)


def index_files(data_dir: Path) -> list[Path]:
    return list(data_dir.glob("index/*.sqlite3"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return tree(tmp_path / "small", 3)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return tree(tmp_path / "large", WORTH_AN_INDEX)


@pytest.mark.anyio
async def test_a_question_leaves_no_empty_index(small: Path, own_folders: Path) -> None:
    await locate_in_codebase(service_for(small, data_dir=own_folders), ResearchRequest(question=QUESTION))
    assert index_files(own_folders) == []


def test_index_is_built_on_request(small: Path, own_folders: Path) -> None:
    service = service_for(small, data_dir=own_folders)
    made = json.loads(cli("index", "--root", str(small), "--json").output)
    assert made["indexed"] == [str(small)]
    assert has_index(service)
    assert f"indexed {small} in " in cli("index", "--root", str(small)).output


def test_historical_documents_are_indexed_too(small: Path, tmp_path: Path, own_folders: Path) -> None:
    thoughts = tree(tmp_path / "thoughts", 1)
    service = service_for(small, data_dir=own_folders, thoughts_dir=thoughts)
    assert make_indexes(service, Stop()) == (str(small), str(thoughts))


@pytest.mark.anyio
async def test_index_of_historical_documents_is_renewed_after_answers(
    small: Path, tmp_path: Path, own_folders: Path
) -> None:
    asked_for: list[object] = []

    def schedule_job(key: Hashable, _: object) -> None:
        asked_for.append(key)

    service = service_for(small, data_dir=own_folders, thoughts_dir=tree(tmp_path / "thoughts", 1))
    await research_codebase(replace(service, schedule_job=schedule_job), ResearchRequest(question=QUESTION))
    assert len(asked_for) == 2


def test_no_index_is_built_if_the_settings_switch_it_off(small: Path, own_folders: Path) -> None:
    with pytest.raises(Unavailable, match="switched off"):
        make_indexes(service_for(small, data_dir=own_folders, index=False), Stop())


def test_without_a_root_there_is_nothing_to_index(own_folders: Path) -> None:
    with pytest.raises(RootUnknown):
        make_indexes(service_for(data_dir=own_folders), Stop())


def test_unusable_data_folder_is_reported(small: Path, own_folders: Path) -> None:
    own_folders.mkdir()
    (own_folders / "index").write_text("in the way")
    with pytest.raises(Unavailable, match="data folder"):
        make_indexes(service_for(small, data_dir=own_folders), Stop())


def test_unusable_data_folder_does_not_prevent_an_answer(large: Path, own_folders: Path) -> None:
    """P10: a failure after the answer must not take the answer away."""
    own_folders.mkdir()
    (own_folders / "index").write_text("in the way")
    answer = cli("locate", QUESTION, "--root", str(large), "--json")
    assert answer.exit_code == 0
    assert json.loads(answer.output)["references"]


def test_other_processes_see_that_an_index_is_being_built(small: Path, own_folders: Path) -> None:
    settings = service_for(small, data_dir=own_folders).settings
    assert can_index(settings)
    lock = FileLock(own_folders / "index" / "making.lock")
    assert lock.acquire(1)
    assert not can_index(settings)
    lock.close()
    assert can_index(settings)


@pytest.mark.anyio
async def test_command_builds_an_index_only_for_a_large_tree(
    small: Path, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wants_index(root: Path, *, index: bool = True) -> bool:
        _, wanted = await ask_service(
            locate_in_codebase, ResearchRequest(question=QUESTION), (str(root),), index=index
        )
        return wanted

    assert await wants_index(large)
    assert not await wants_index(small)
    assert not await wants_index(large, index=False)
    monkeypatch.setenv(CHILD_TOKEN, "a run's")
    assert not await wants_index(large)


def test_large_tree_is_indexed_once_after_the_answer(large: Path, own_folders: Path) -> None:
    service = service_for(large, data_dir=own_folders)
    first = cli("locate", QUESTION, "--root", str(large), "--json")
    assert first.exit_code == 0
    await_that(lambda: has_index(service) and can_index(service.settings))
    ask = ResearchRequest(question=QUESTION)
    answer, wants_more = asyncio.run(ask_service(locate_in_codebase, ask, (str(large),), index=True))
    assert not wants_more
    assert answer["references"] == json.loads(first.output)["references"]


@pytest.mark.anyio
async def test_unused_indexes_are_removed_after_a_while(
    small: Path, tmp_path: Path, own_folders: Path
) -> None:
    used, unused = service_for(small, data_dir=own_folders), service_for(tmp_path, data_dir=own_folders)
    for service in (used, unused):
        make_indexes(service, Stop())
    for file in index_files(own_folders):
        os.utime(file, (0, 0))
    await locate_in_codebase(used, ResearchRequest(question=QUESTION))
    make_indexes(used, Stop())
    assert has_index(used)
    assert not has_index(unused)


def await_that(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for the background process, which takes a while on a busy machine."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_failure_to_start_the_background_process_does_not_prevent_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    start_indexing([str(Root.at(Path.cwd()).path)])
