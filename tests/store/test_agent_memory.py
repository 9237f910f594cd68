"""An agent's memory: its location, its size limit, atomic writes, and no links (P2, P5, P6)."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retinue.core import InvalidInput, LimitExceeded, Unavailable
from retinue.store import AgentMemory
from retinue.store.agent_memory import MAX_MEMORY_BYTES, MAX_NOTE_CHARACTERS

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


@pytest.fixture
def memory(tmp_path: Path) -> AgentMemory:
    return AgentMemory(tmp_path.resolve() / "data" / "memory")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file of an agent in its own folder."""
    file = tmp_path.resolve() / "project" / "agents" / "web" / "agent.md"
    file.parent.mkdir(parents=True)
    return file


def test_memory_lies_next_to_an_agent_file_in_its_own_folder(memory: AgentMemory, own: Path) -> None:
    assert memory.read("web", own) == ""
    memory.append("web", own, "the API is at /v2\nand slow")
    memory.append("web", own, "second")
    noted = (own.parent / "memory.md").read_text()
    assert noted == memory.read("web", own)
    first, more, second = noted.splitlines()
    assert first.endswith(": the API is at /v2") and first.startswith("- 20")
    assert (more, second.partition(": ")[2]) == ("  and slow", "second")
    assert [file.name for file in own.parent.iterdir()] == ["memory.md"], "no draft and no lock remains there"


@pytest.mark.parametrize("path", [".claude/agents/web.md", ".retinue/agents/agent.md"])
def test_memory_of_agents_in_a_shared_folder_lies_in_the_data_folder(
    memory: AgentMemory, tmp_path: Path, path: str
) -> None:
    """A shared folder would make it an agent. Agents of the same name in two projects share nothing."""
    here, there = (tmp_path.resolve() / project / path for project in ("a", "b"))
    here.parent.mkdir(parents=True)
    memory.append("web", here, "of a")
    assert list(here.parent.iterdir()) == []
    assert "of a" in memory.read("web", here)
    assert memory.read("web", there) == ""


def test_appending_keeps_the_persons_text_byte_for_byte(memory: AgentMemory, own: Path) -> None:
    (own.parent / "memory.md").write_bytes(b"# Mine \xff\nno newline")
    memory.append("web", own, "note")
    kept = (own.parent / "memory.md").read_bytes()
    assert kept.startswith(b"# Mine \xff\nno newline\n- ")


@pytest.mark.parametrize("note", ["", " \n ", "x" * (MAX_NOTE_CHARACTERS + 1)])
def test_empty_or_too_long_note_is_refused(memory: AgentMemory, own: Path, note: str) -> None:
    with pytest.raises(InvalidInput):
        memory.append("web", own, note)
    assert not (own.parent / "memory.md").exists()


def test_full_memory_refuses_notes_and_loses_nothing_P2(memory: AgentMemory, own: Path) -> None:
    with pytest.raises(LimitExceeded, match="memory_bytes"):
        for _ in range(MAX_MEMORY_BYTES):
            memory.append("web", own, "é" * MAX_NOTE_CHARACTERS)
    full = (own.parent / "memory.md").read_bytes()
    assert MAX_MEMORY_BYTES - 2 * MAX_NOTE_CHARACTERS - 20 < len(full) <= MAX_MEMORY_BYTES
    assert full.count(b"- ") == len(full.splitlines())


def test_too_large_memory_is_read_from_its_end(memory: AgentMemory, own: Path) -> None:
    (own.parent / "memory.md").write_text("old\n" * MAX_MEMORY_BYTES + "new\n")
    assert len(memory.read("web", own)) == MAX_MEMORY_BYTES
    assert memory.read("web", own).endswith("new\n")
    with pytest.raises(LimitExceeded):
        memory.append("web", own, "x")
    assert (own.parent / "memory.md").stat().st_size == 4 * MAX_MEMORY_BYTES + 4


def test_concurrent_writers_lose_no_notes_P5(memory: AgentMemory, own: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(40):
            pool.submit(memory.append, "web", own, f"note {number}!")
    noted = memory.read("web", own)
    assert all(f"note {number}!" in noted for number in range(40))


@needs_links
@pytest.mark.parametrize("kind", ["symlink", "hard link", "folder"])
def test_link_instead_of_the_memory_file_is_not_followed_P6(
    memory: AgentMemory, own: Path, kind: str
) -> None:
    """Otherwise a run that may write there could show any file of the user to the next run."""
    secret = own.parents[3] / "secret"
    secret.write_text("s3cret")
    place = own.parent / "memory.md"
    match kind:
        case "symlink":
            place.symlink_to(secret)
        case "hard link":
            place.hardlink_to(secret)
        case _:
            place.mkdir()
    for act in (lambda: memory.read("web", own), lambda: memory.append("web", own, "x")):
        with pytest.raises(Unavailable, match=r"memory\.md of agent web cannot be used"):
            act()
    assert secret.read_text() == "s3cret"


@needs_links
def test_folder_replaced_by_a_link_is_not_entered_P6(memory: AgentMemory, own: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "memory.md").write_text("s3cret")
    own.parent.rmdir()
    own.parent.symlink_to(elsewhere)
    with pytest.raises(Unavailable):
        memory.read("web", own)
    with pytest.raises(Unavailable):
        memory.append("web", own, "planted")
    assert (elsewhere / "memory.md").read_text() == "s3cret"
