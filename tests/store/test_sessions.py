"""Session files of agents: listed, deleted together or not at all, and ignored if broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Conflict, FileLock, Resumed
from retinue.store import SessionFile, delete_sessions, list_sessions


def keep(state: Path, agent: str, cwd: Path, session: str) -> SessionFile:
    folder = state / "claude" / f"{agent}.sessions"
    folder.mkdir(parents=True, exist_ok=True)
    note = SessionFile.for_agent(folder, cwd)
    note.write(Resumed(session, 5, 7), agent, cwd)
    return note


def test_each_agent_and_folder_has_its_own_session(tmp_path: Path) -> None:
    for agent, cwd in (("a", tmp_path / "x"), ("a", tmp_path / "y"), ("b", tmp_path / "x")):
        keep(tmp_path, agent, cwd, f"{agent}-{cwd.name}")
    found = list_sessions(tmp_path)
    assert {(each.agent, each.folder, each.session) for each in found} == {
        ("a", str(tmp_path / "x"), Resumed("a-x", 5, 7)),
        ("a", str(tmp_path / "y"), Resumed("a-y", 5, 7)),
        ("b", str(tmp_path / "x"), Resumed("b-x", 5, 7)),
    }
    assert {each.executor for each in found} == {"claude"}


@pytest.mark.parametrize("content", ["{", "[]", '{"session_id": 7}', '{"session_id": ""}'])
def test_broken_file_is_not_a_session(tmp_path: Path, content: str) -> None:
    note = keep(tmp_path, "a", tmp_path, "s")
    note.file.write_text(content)
    assert note.read() is None
    assert list_sessions(tmp_path) == []


def test_session_file_without_an_agent_uses_the_folder_name(tmp_path: Path) -> None:
    note = keep(tmp_path, "a", tmp_path, "s")
    note.file.write_text('{"session_id": "s", "cost_micros": "much"}')
    [found] = list_sessions(tmp_path)
    assert (found.agent, found.folder, found.session) == ("a", None, Resumed("s"))


def test_delete_sessions_deletes_none_while_a_run_uses_one(tmp_path: Path) -> None:
    free, used = keep(tmp_path, "a", tmp_path / "x", "1"), keep(tmp_path, "a", tmp_path / "y", "2")
    lock = FileLock(used.lock)
    assert lock.try_acquire()
    with pytest.raises(Conflict, match="a run of a is using its session"):
        delete_sessions(list_sessions(tmp_path))
    assert free.file.exists() and used.file.exists()
    lock.close()
    delete_sessions(list_sessions(tmp_path))
    assert list_sessions(tmp_path) == []
