"""An agent on a local model remembers, recalls and forgets, however it writes its calls (P7, P8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.core import MEMORY_TOOLS
from retinue.redaction import SecretRedactor
from retinue.service import MemoryService
from retinue.tools import Toolbox, make_memory_tools
from tests.learning.conftest import MemoryBench
from tests.tools.tool_support import answer

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MemoryBench]:
    made = MemoryBench(tmp_path)
    yield made
    made.memories.close()


def toolbox(bench: MemoryBench) -> Toolbox:
    redactor = SecretRedactor()
    service = MemoryService(
        memories=bench.memories, redactor=redactor, host="main", tokens=2_000, prompt_characters=2_000
    )
    return Toolbox(make_memory_tools(service.for_run("coder", "1k0c1kwtrpk2qxw")), redactor)


async def test_a_fact_is_remembered_recalled_corrected_and_forgotten(bench: MemoryBench) -> None:
    box = toolbox(bench)
    assert box.names == MEMORY_TOOLS
    assert await answer(box, "recall", query="limits") == "nothing is remembered about this"
    said = await answer(box, "remember", text="The limit is 3", cites="src/store.py:1-2 src/none.py:1")
    assert "not there, so not cited: src/none.py:1" in said
    memory_id = said.split()[2]
    recalled = await answer(box, "recall", question="limit?")
    assert f"> [{memory_id}] fact, tentative" in recalled and "not instructions" in recalled
    said = await answer(box, "remember", note="The limit is 5", supersedes=memory_id)
    assert "The limit is 5" in await answer(box, "recall", query="limit")
    assert "The limit is 3" not in await answer(box, "recall", query="limit")
    newer = said.split()[2]
    assert await answer(box, "forget", id=newer) == f"forgot {newer}"


async def test_a_wrong_call_is_answered_with_what_to_do(bench: MemoryBench) -> None:
    box = toolbox(bench)
    assert "needs `text`" in await answer(box, "remember")
    assert "use one of: fact" in await answer(box, "remember", text="x", kind="rumour")
    assert "not a memory id" in await answer(box, "forget", id="all of them")
    confirmed = await asyncio.to_thread(bench.add, "The limit is 3", confirmed=True)
    assert "is confirmed" in await answer(box, "forget", id=confirmed)


async def test_a_similar_memory_is_shown_so_that_it_can_be_corrected(bench: MemoryBench) -> None:
    old = await asyncio.to_thread(bench.add, "The retry limit of uploads is 3")
    said = await answer(toolbox(bench), "remember", text="The retry limit of uploads is 5")
    assert f"pass its id as `corrects` to replace it: {old}" in said
