from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.runtime_support import Server, server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with two slots."""
    async with server(tmp_path) as made:
        yield made
