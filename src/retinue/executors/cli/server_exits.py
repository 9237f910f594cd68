"""Which MCP servers of a run did not live as long as it, where the CLI would not say so. Starts nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from retinue.executors.cli.cli_job import Job
from retinue.executors.cli.cli_mcp import ReadyServer

LONGEST_CODE = 12
WITNESS = Path(__file__).with_name("exit_recorder.py")


def witnessing(job: Job) -> Iterator[ReadyServer]:
    """The job's servers, each started by a witness that writes down how it ended."""
    for place, server in enumerate(job.servers):
        if server.argv and server is not job.ours and job.has_host_programs and sys.platform != "win32":
            note = str(job.folder / f"ended-{place}")
            yield replace(server, argv=(sys.executable, "-I", "-S", str(WITNESS), note, *server.argv))
        else:
            yield server


def witnessed(job: Job) -> Iterator[tuple[str, str]]:
    """The servers that have ended, with their exit codes."""
    for place, server in enumerate(job.servers):
        if code := _noted(job.folder / f"ended-{place}"):
            yield server.name, code


def _noted(note: Path) -> str | None:
    """A number and nothing else: the run can change the folder, and a link there may lead anywhere (P6)."""
    try:
        opened = os.open(note, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        written = os.read(opened, LONGEST_CODE).decode("ascii", "replace")
    finally:
        os.close(opened)
    return written if written.lstrip("-").isdigit() else None
