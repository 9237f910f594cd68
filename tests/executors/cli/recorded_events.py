"""Recordings of real CLIs (see `recordings`): read as events, or played by a program that acts like a CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retinue.executors.cli.cli_output import CliEvents, CliReport
from tests.executors.cli_fakes import Stage

RECORDINGS = Path(__file__).parent / "recordings"

PLAYER = """
import json, os, sys
talks = "--input-format" in sys.argv
prompt = json.loads(sys.stdin.readline())["message"]["content"] if talks else sys.stdin.read()
shown = {{"argv": sys.argv[1:], "env": dict(os.environ), "prompt": prompt}}
if "--mcp-config" in sys.argv:
    place = sys.argv[sys.argv.index("--mcp-config") + 1]
    shown["mcp"] = open(place).read() if place.startswith("/proc") else place
key = os.environ.get("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR")
if key:
    shown["key"] = os.read(int(key), 1000).decode()
json.dump(shown, open("shown.json", "w"))
for line in open({recording!r}):
    print(line, end="", flush=True)
sys.stdin.read()
sys.exit({code})
"""
"""Writes what it was given to a file, prints a recording, and ends when its stdin does."""


def recorded_events(name: str) -> Iterator[dict[str, Any]]:
    for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def read_recording(events: CliEvents, name: str) -> tuple[CliReport, list[str]]:
    """Return the report of a whole recording and the lines that show it in the log."""
    log = [line for event in recorded_events(name) for line in events.take(event)]
    return events.report, log


def play_recording(stage: Stage, cli: str, recording: str, code: int = 0) -> None:
    """Put a program on the stage's PATH that acts like a CLI and exits with `code`."""
    stage.program(cli, PLAYER.format(recording=str(RECORDINGS / f"{recording}.jsonl"), code=code))


def given_to_cli(stage: Stage) -> dict[str, object]:
    """Return the arguments, the environment and the prompt that the program was given."""
    return json.loads((stage.workspace / "shown.json").read_text(encoding="utf-8"))
