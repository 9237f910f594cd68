"""A program of a run that gives commands which only a person may give, in the manner that its arguments name.

    intruder.py MANNER OUTPUT RUN_ID OTHER_RUN_ID

Writes the exit code and the output of each command to OUTPUT as JSON. `commands_of` lists the commands.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

KEPT = ("PATH", "HOME", "RETINUE_DATA_DIR")
MANNERS = (
    *("plain", "without variables", "env -i", "setsid", "nohup", "sh -c", "daemon", "pty"),
    *("daemon on a pty", "environment of another run"),
)


def commands_of(run_id: str, other: str) -> dict[str, list[str]]:
    """The commands that only a person may give, by name."""
    return {
        "reply": ["reply", run_id, "always"],
        "answer": ["answer", run_id, "yes"],
        "token": ["token"],
        "new token": ["token", "--new"],
        "trust": ["agents", "trust", "."],
        "distrust": ["agents", "trust", ".", "--remove"],
        "forget a permission": ["agents", "allowed", "intruder", "--forget"],
        "forget a session": ["sessions", "forget", "intruder"],
        "show checks": ["workflow", "checks"],
        "confirm checks": ["workflow", "checks", "--confirm", "--set", "tests=true"],
        "workflow": ["workflow", "run", "research-write-validate", "x"],
        "team": ["team", "any", "x"],
        "dashboard": ["dashboard", "--no-open"],
        "install": ["install", "claude"],
        "uninstall": ["uninstall"],
        "cancel": ["cancel", other],
        "logs": ["logs", other],
        "wait": ["wait", other, "--timeout", "0"],
    }


def give_commands(output: Path, run_id: str, other: str) -> None:
    """Give every command in this process, and write what came of it."""
    from click.testing import CliRunner

    from retinue.cli.main import main

    found: dict[str, tuple[int, str]] = {}
    for name, arguments in commands_of(run_id, other).items():
        result = CliRunner().invoke(main, arguments)
        found[name] = (result.exit_code, result.output)
    draft = output.with_suffix(".draft")
    draft.write_text(json.dumps(found), encoding="utf-8")
    draft.rename(output)


def become_daemon() -> None:
    """Fork twice and begin a session, as a daemon does. Its parents end at once."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def intrude(manner: str, output: Path, run_id: str, other: str) -> None:
    own = [sys.executable, __file__, "plain", str(output), run_id, other]
    few = {name: os.environ[name] for name in KEPT if name in os.environ}
    match manner:
        case "plain":
            give_commands(output, run_id, other)
        case "without variables":
            subprocess.Popen(["env", "-u", "RETINUE_RUN_ID", "-u", "RETINUE_CHILD_TOKEN", *own])
        case "env -i":
            subprocess.Popen(["env", "-i", *(f"{name}={value}" for name, value in few.items()), *own])
        case "setsid":
            subprocess.Popen(["setsid", *own], env=few)
        case "nohup":
            subprocess.Popen(["nohup", *own], env=few)
        case "sh -c":
            subprocess.Popen(["sh", "-c", '"$@" &', "sh", *own], env=few)
        case "daemon":
            if os.fork() == 0:
                become_daemon()
                os.execve(sys.executable, own, few)  # noqa: S606
        case "pty":
            if pty.fork()[0] == 0:
                os.execve(sys.executable, own, few)  # noqa: S606
        case "daemon on a pty":
            if os.fork() == 0:
                become_daemon()
                if pty.fork()[0] == 0:
                    os.execve(sys.executable, own, few)  # noqa: S606
                time.sleep(60)
        case "environment of another run":
            stolen = {**few, "RETINUE_RUN_ID": other, "RETINUE_CHILD_TOKEN": "x" * 43}
            subprocess.Popen(own, env=stolen)
        case _:
            raise SystemExit(f"no such manner: {manner}")


if __name__ == "__main__":
    if sys.argv[1] == "every manner":
        folder = Path(sys.argv[2])
        for each in MANNERS[::-1]:  # the plain one comes last, because it happens in this process
            intrude(each, folder / f"{each}.json", *sys.argv[3:5])
        time.sleep(60)  # the test cancels the run
    else:
        intrude(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:5])
