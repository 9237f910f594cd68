"""Memories of one scope: searched by terms, changed in whole transactions, kept in bounds (P2, P5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.core import Conflict, InvalidInput, Memory, MemoryId
from retinue.store import MemoryStore, memory_file
from retinue.store.memories import POSTINGS


def terms_of(text: str) -> str:
    return text.lower()


def memory(text: str, **more: object) -> Memory:
    return Memory(id=MemoryId.new(), text=text, created_at=1.0, last_used_at=1.0, **more)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    opened = MemoryStore.open(tmp_path, "user", terms_of)
    yield opened
    opened.close()


def found(store: MemoryStore, *terms: str) -> list[str]:
    return [each.memory.text for each in store.search(store.document_counts(terms), 10)]


def test_the_memory_with_the_rarest_terms_is_first(store: MemoryStore) -> None:
    store.import_all([memory(f"deploy part{number}") for number in range(30)])
    store.add(memory("deploy the zebra"))
    assert found(store, "deploy", "zebra")[0] == "deploy the zebra"
    assert found(store, "nothing") == []
    assert store.search({}, 10) == []


def test_words_that_almost_every_memory_has_do_not_make_a_search_long(store: MemoryStore) -> None:
    store.import_all([memory(f"common word number{number}") for number in range(POSTINGS + 50)])
    counts = store.document_counts(["common", "word"])
    assert counts == {"common": POSTINGS + 50, "word": POSTINGS + 50}
    newest = [each.memory.text for each in store.search(counts, 3)]
    assert newest == [f"common word number{POSTINGS + 49 - back}" for back in range(3)]
    assert [each.memory.text for each in store.search(store.document_counts(["common", "number7"]), 3)] == [
        "common word number7"
    ]


def test_the_file_is_private_and_its_name_says_whose_it_is(store: MemoryStore, tmp_path: Path) -> None:
    store.add(memory("x"))
    file = memory_file(tmp_path, "user")
    assert file == tmp_path / "memories" / "user.db"
    assert file.stat().st_mode & 0o077 == 0 and file.parent.stat().st_mode & 0o077 == 0


def test_terms_are_made_anew_if_they_are_made_in_another_way(store: MemoryStore, tmp_path: Path) -> None:
    store.add(memory("The Zebra"))
    assert found(store, "zebra")
    other = MemoryStore.open(tmp_path, "user", lambda text: "horse", terms_version="2")
    assert found(other, "horse") == ["The Zebra"] and found(other, "zebra") == []
    other.close()
    again = MemoryStore.open(tmp_path, "user", terms_of, terms_version="2")
    assert found(again, "horse") == ["The Zebra"], "made once"
    again.close()


def test_a_change_that_fails_changes_nothing(store: MemoryStore) -> None:
    first = store.add(memory("first"))
    with pytest.raises(InvalidInput):
        store.forget([first.id, MemoryId.new()])
    with pytest.raises(InvalidInput):
        store.add(memory("second", supersedes=(first.id, MemoryId.new())))
    assert [each.text for each in store.all()] == ["first"]
    second = store.add(memory("second"))
    with pytest.raises(Conflict, match="says the same"):
        store.replace(Memory(id=second.id, text="First.", created_at=1.0))
    assert [each.text for each in store.all()] == ["second", "first"]
    assert store.last_change() is not None


def test_a_new_connection_sees_what_another_wrote(store: MemoryStore, tmp_path: Path) -> None:
    other = MemoryStore.open(tmp_path, "user", terms_of)
    stored = store.add(memory("shared"))
    assert other.get(stored.id) == stored
    other.touch([stored.id])
    touched = store.get(stored.id)
    assert touched is not None and touched.uses == 1
    other.close()
