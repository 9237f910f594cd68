"""Whether real hosts have our tools in their first request to the model, on a busy machine.

    python -m benchmarks.host_race [--starts 20] [--load 3]

Starts `claude -p` and `codex exec` again and again, with our server and, in turns, with a bare server on the
MCP library, while `load` processes are busy. Begins when `retinue install` has kept the answers to the host's
first requests, and counts every start. Fails if our tools are missing once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import bare_server
from tests.clis.replies import Say
from tests.hosts.conftest import Hosted, text_of
from tests.hosts.host_programs import CLAUDE, CODEX, HostProgram
from tests.hosts.install import install

BUSY = "while True: pass"
OURS, BARE = "retinue", "bare server"


@contextmanager
def busy(processes: int) -> Generator[None]:
    """Keep the machine busy. Each process has a session of its own: Linux divides a core by sessions."""
    command = [sys.executable, "-c", BUSY]
    started = [subprocess.Popen(command, start_new_session=True) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def make_host(program: HostProgram, folder: Path) -> Hosted:
    """A host with a home and a project of its own."""
    home, project = folder / "home", folder / "project"
    for each in (home, project):
        each.mkdir(parents=True)
    return Hosted(program, home, project, {})


def put_bare_server(hosted: Hosted) -> None:
    """Let the entry of ours start the bare server."""
    name, _ = hosted.program.settings(hosted.stub.url)
    file = hosted.home / name
    text = file.read_text(encoding="utf-8")
    ours = json.dumps(["-m", "retinue", "serve", "--follow-host"])
    theirs = json.dumps([bare_server.__file__])
    for before, after in ((ours, theirs), (_spread(ours), _spread(theirs))):
        text = text.replace(before, after)
    assert bare_server.__file__ in text, text
    file.write_text(text, encoding="utf-8")


def _spread(arguments: str) -> str:
    """The list as `retinue install` writes it to a JSON file, over several lines."""
    lines = json.dumps(json.loads(arguments), indent=2).splitlines()
    return "\n".join([lines[0], *(f"      {line}" for line in lines[1:])])


def race(program: HostProgram, starts: int, folder: Path) -> Counter[str]:
    """Return how often each server's tools were in the host's first request."""
    hosts = {server: make_host(program, folder / server.split()[0]) for server in (OURS, BARE)}
    won: Counter[str] = Counter({OURS: 0, BARE: 0})
    with hosts[OURS].stub.serving(), hosts[BARE].stub.serving():
        for server, hosted in hosts.items():
            hosted.install(*(["--approve"] if program is CODEX else []))
            if server == BARE:
                put_bare_server(hosted)
            else:
                hosted.wait_until_prepared(b"templates/list")
        for number in range(starts):
            for server, hosted in hosts.items():
                hosted.run([Say("hello")])
                tool = "research_codebase" if server == OURS else "mcp__retinue"
                won[server] += tool in text_of(hosted.stub.requests[0])
            print(f"{program.name} {number + 1}: {dict(won)}", file=sys.stderr, flush=True)
    return won


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--load", type=int, default=3)
    options = parser.parse_args()
    install()
    missed = 0
    print(f"| first request with the tools, load {options.load} | {OURS} | {BARE} |\n| --- | --- | --- |")
    with busy(options.load), tempfile.TemporaryDirectory() as folder:
        for program in (CLAUDE, CODEX):
            won = race(program, options.starts, Path(folder) / program.name)
            missed += options.starts - won[OURS]
            cells = [f"{won[server]} of {options.starts}" for server in (OURS, BARE)]
            print(f"| `{program.name}` | {' | '.join(cells)} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
