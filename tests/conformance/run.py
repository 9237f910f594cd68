"""The official MCP conformance suite against Retinue's server: each revision that it knows, and tasks.

    python -m tests.conformance.run [REVISION|tasks]...

Ends non-zero when a check fails that `baseline.yml` does not explain, and when one that it explains passes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from tests.node.npm import PROJECT
from tests.node.tools import SUITE, install

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
TASKS = "tasks"
TASK_SCENARIOS = (
    *("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input"),
    *("request-headers", "dispatch-and-envelope", "status-notifications", "required-task-error"),
    "mrtr-composition",
)
"""Of the extension; the suite runs them only by name."""
BASELINE = Path(__file__).with_name("baseline.yml")
LOGS = PROJECT / ".cache" / "conformance"
SCENARIO_SECONDS = 120
"""Generous, because the machine may be busy; a scenario takes well under a second otherwise."""


@dataclass(frozen=True, slots=True)
class Outcome:
    revision: str
    """Or `tasks`."""
    scenarios: int
    passed: int
    """Checks, of which a scenario has one or many."""
    expected: Sequence[str]
    unexpected: Sequence[str]
    stale: Sequence[str]
    exit_code: int

    @property
    def holds(self) -> bool:
        return self.exit_code == 0 and self.scenarios > 0


@contextmanager
def fixture_server() -> Generator[str]:
    """The address of a server that ends with the block, with no settings of the person who runs this."""
    with tempfile.TemporaryDirectory() as home, (LOGS / "server.log").open("w", encoding="utf-8") as log:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("RETINUE_", "XDG_"))
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.fixture_server"],
            cwd=PROJECT,
            stderr=subprocess.PIPE,
            text=True,
            env={**kept, "HOME": home, "RETINUE_DATA_DIR": home},
        )
        assert process.stderr is not None
        reader = Thread(target=shutil.copyfileobj, args=(process.stderr, log))
        try:
            for line in process.stderr:
                log.write(line)
                if "serving " in line:
                    reader.start()
                    yield line.split("serving ")[1].strip()
                    return
            raise SystemExit(f"the server did not start: see {Path(log.name).relative_to(PROJECT)}")
        finally:
            process.terminate()
            process.wait(10)
            if reader.is_alive():
                reader.join()
            process.stderr.close()


def run_suite(url: str, revision: str) -> Outcome:
    code, said = ask_suite(url, "--suite", "all", "--spec-version", revision)
    (LOGS / f"{revision}.log").write_text(said, encoding="utf-8")
    _, _, summary = said.partition("=== SUMMARY ===")
    counts = re.findall(r"^[✓✗] \S+: (\d+) passed, \d+ failed$", summary, re.MULTILINE)
    return outcome(revision, summary, counts, code)


def run_tasks(url: str) -> Outcome:
    ran: list[tuple[int, str]] = []
    for name in TASK_SCENARIOS:
        ran.append(ask_suite(url, "--scenario", f"tasks-{name}", "--force", "--spec-version", "2026-07-28"))
    said = "\n".join(text for _, text in ran)
    (LOGS / f"{TASKS}.log").write_text(said, encoding="utf-8")
    counts = re.findall(r"^Passed: (\d+)/\d+, \d+ failed", said, re.MULTILINE)
    return outcome(TASKS, said, counts, max(code for code, _ in ran))


def ask_suite(url: str, *chosen: str) -> tuple[int, str]:
    allowed = ["--expected-failures", str(BASELINE), "--timeout", str(SCENARIO_SECONDS * 1000)]
    done = subprocess.run(
        [*SUITE, "server", "--url", url, *chosen, *allowed],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    return done.returncode, done.stdout


def outcome(name: str, said: str, counts: Sequence[str], exit_code: int) -> Outcome:
    def marked(mark: str) -> list[str]:
        return re.findall(rf"^  {mark} (\S+)$", said, re.MULTILINE)

    return Outcome(
        name,
        scenarios=len(counts),
        passed=sum(map(int, counts)),
        expected=marked("~"),
        unexpected=marked("✗"),
        stale=marked("✓"),
        exit_code=exit_code,
    )


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    install()
    with fixture_server() as url:
        outcomes = [
            run_tasks(url) if name == TASKS else run_suite(url, name)
            for name in sys.argv[1:] or (*REVISIONS, TASKS)
        ]
    print(f"{'revision':12}{'scenarios':>10}{'passed':>8}{'expected':>10}{'failed':>8}{'stale':>7}")
    for each in outcomes:
        expected, failed, stale = len(each.expected), len(each.unexpected), len(each.stale)
        print(f"{each.revision:12}{each.scenarios:10}{each.passed:8}{expected:10}{failed:8}{stale:7}")
    for each in outcomes:
        for name in each.unexpected:
            print(f"{each.revision}: {name} fails and {BASELINE.name} does not explain it")
        for name in each.stale:
            print(f"{each.revision}: {name} passes now: take it out of {BASELINE.name}")
        if not each.holds:
            log = (LOGS / f"{each.revision}.log").relative_to(PROJECT)
            print(f"{each.revision}: exit code {each.exit_code}; all that the suite said is in {log}")
    return 0 if all(each.holds for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
