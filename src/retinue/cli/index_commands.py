"""`retinue index`, and how a question starts it for the next ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

import click

from retinue.cli.output import json_option, print_json

WORTH_AN_INDEX = 500
"""Files. From about here on a scan with its look at the history takes a quarter of a second."""
MOST_SECONDS = 1_800
LEAST_PRIORITY = 19
_CREATION_FLAGS = (
    subprocess.DETACHED_PROCESS | subprocess.IDLE_PRIORITY_CLASS if sys.platform == "win32" else 0
)


@click.command()
@click.option("--root", "roots", multiple=True, metavar="DIR", help="What to index. Repeatable.")
@json_option
def index(roots: tuple[str, ...], as_json: bool) -> None:
    """Make or renew the index of some roots now, so that the next questions are answered sooner.

    Questions about large trees start this by themselves, behind their answer.

    \b
    Example:
      retinue index --root ~/project
    """
    from retinue.cli.handoff_commands import service_for
    from retinue.core import Stop
    from retinue.service import make_indexes

    began = time.monotonic()
    folders = make_indexes(service_for(roots), Stop(MOST_SECONDS))
    seconds = time.monotonic() - began
    if as_json:
        print_json({"indexed": folders, "elapsedMs": round(1000 * seconds)})
    else:
        click.echo(f"indexed {', '.join(folders)} in {seconds:.1f} s")


def start_indexing(roots: Sequence[str]) -> None:
    """Have `retinue index` done by a process of its own that nobody waits for, and tell a person so."""
    # Without -P, a file of the project that is named like a library would be loaded in its place.
    command = [sys.executable, "-P", "-m", "retinue", "index", *(f"--root={root}" for root in roots)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=_CREATION_FLAGS,
        )
    except OSError:
        return  # the answer is there, and the next question scans again
    if sys.platform != "win32":
        os.setpriority(os.PRIO_PROCESS, process.pid, LEAST_PRIORITY)
    process.returncode = 0  # it lives on without us: there is nothing to wait for
    if sys.stderr.isatty():
        click.echo(click.style("indexing for the next questions, in the background", dim=True), err=True)
