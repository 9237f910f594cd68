"""One line on stderr while a question is worked on: the roles, and what they have found so far."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.terminal import is_plain
from retinue.core import counted

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import RunService

NOT_BEFORE_S = 0.3
"""What is done by then needs no line that only flickers."""
AT_LEAST_EVERY_S = 0.5
CLEAR = "\r\x1b[K"


@asynccontextmanager
async def showing_progress(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
    """Within the block: the run it was told of, on a terminal alone. Nothing of it stays."""
    told = asyncio.get_running_loop().create_future()

    def tell(run_id: RunId) -> None:
        if not told.done():
            told.set_result(run_id)

    if runs is None or is_plain(os.environ, is_tty=sys.stderr.isatty()):
        yield tell
        return
    drawing = asyncio.create_task(_draw(runs, told))
    try:
        yield tell
    finally:
        drawing.cancel()
        await asyncio.gather(drawing, return_exceptions=True)
        click.echo(CLEAR, nl=False, err=True)


async def _draw(runs: RunService, told: asyncio.Future[RunId]) -> None:
    run_id = await told
    await asyncio.sleep(NOT_BEFORE_S)
    while True:
        room = shutil.get_terminal_size().columns - 1
        click.echo(CLEAR + line(runs.progress(run_id))[:room], nl=False, err=True)
        await runs.next_change(AT_LEAST_EVERY_S)


def line(roles: Sequence[Mapping[str, Any]]) -> str:
    """`locator: 15 places in 0.4 s; analyzer: 1.2 s`."""
    return "; ".join(map(_role, roles))


def _role(role: Mapping[str, Any]) -> str:
    seconds = f"{role['elapsed_ms'] / 1000:.1f} s"
    if role["status"] in ("queued", "running"):
        return f"{role['agent']}: {seconds}"
    if "places" in role:
        return f"{role['agent']}: {counted(role['places'], 'place')} in {seconds}"
    return f"{role['agent']}: {role['status']} after {seconds}"
