"""Has the text taken out of pages by a separate program that is killed if a page takes too long.

`page_worker.py` is that program. It starts with the first page and gets no environment, no file and no
network of ours. Knows nothing of where pages come from.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from retinue.core import FetchFailed, Unavailable, json_or_none, strip_control_characters

WORKER = Path(__file__).with_name("page_worker.py")
READ_SECONDS = 10.0
"""How long one page may take. An ordinary one takes a hundredth of a second."""
MAX_ANSWER_BYTES = 16 << 20
HOW_TO_INSTALL = "install the extra: pip install 'retinue[web]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The text of a page as a reader sees it."""

    title: str = ""
    date: str = ""
    """`2026-03-03`, if the page says when it was published or changed."""
    text: str = field(default="", repr=False)
    """As Markdown."""
    cut: bool = False
    """Whether the end is missing because the page is too long."""


class PageReader:
    """Takes the text out of pages: `async with PageReader() as reader`. One page at a time."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._worker: asyncio.subprocess.Process | None = None
        self._pages = 0
        """How many pages the worker has read."""
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def read(self, kind: str, body: bytes, charset: str = "") -> PageText:
        """Return the text of a page of the kind `html`, `markdown`, `text` or `pdf`. Raises `FetchFailed`."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await self._ask_fresh_worker_if_needed(kind, body, charset)
            except TimeoutError:
                await self._end()
                raise FetchFailed(f"reading the page takes more than {self._seconds:g} seconds") from None
            except (OSError, EOFError, ValueError):
                await self._end()
                raise FetchFailed("the page cannot be read: it takes too much memory or time") from None
            except asyncio.CancelledError:
                await self._end()
                raise
        if "missing" in answer:
            library = answer["missing"]
            raise Unavailable(f"pages of the kind {kind} need the library {library}", hint=HOW_TO_INSTALL)
        if "error" in answer:
            raise FetchFailed(f"the page cannot be read: {strip_control_characters(answer['error'])}")
        return PageText(
            title=str(answer["title"]),
            date=str(answer["date"]),
            text=str(answer["text"]),
            cut=bool(answer["cut"]),
        )

    async def _ask_fresh_worker_if_needed(self, kind: str, body: bytes, charset: str) -> dict[str, Any]:
        """Ask the worker; ask a new one if earlier pages have used up the CPU time of this one."""
        try:
            answer = await self._ask(kind, body, charset)
        except (OSError, EOFError):
            if self._pages == 0:
                raise
            await self._end()
            answer = await self._ask(kind, body, charset)
        self._pages += 1
        return answer

    async def _ask(self, kind: str, body: bytes, charset: str) -> dict[str, Any]:
        worker = self._worker
        if worker is None or worker.returncode is not None:
            worker = self._worker = await self._start()
            self._pages = 0
        assert worker.stdin is not None and worker.stdout is not None  # noqa: S101 - both are pipes
        header = json.dumps({"kind": kind, "bytes": len(body), "charset": charset})
        worker.stdin.write(header.encode() + b"\n" + body)
        await worker.stdin.drain()
        line = await worker.stdout.readuntil(b"\n")
        answer = json_or_none(line)
        if not isinstance(answer, dict):
            raise EOFError
        return cast("dict[str, Any]", answer)

    async def _start(self) -> asyncio.subprocess.Process:
        kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows needs it
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(WORKER)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=kept,
            limit=MAX_ANSWER_BYTES,
        )

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with suppress(ProcessLookupError):
            worker.kill()
        await asyncio.shield(worker.wait())
        transport: Any = getattr(worker, "_transport", None)
        if transport is not None:
            transport.close()
