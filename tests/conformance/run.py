"""The official MCP conformance suite against Retinue's server, once for each revision that the suite knows.

    python -m tests.conformance.run [REVISION]...

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

from tests.node.tools import PROJECT, SUITE, install

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
BASELINE = Path(__file__).with_name("baseline.yml")
LOGS = PROJECT / ".cache" / "conformance"
SCENARIO_SECONDS = 120
"""Generous, because the machine may be busy; a scenario takes well under a second otherwise."""


@dataclass(frozen=True, slots=True)
class Outcome:
    revision: str
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
    chosen = ["--suite", "all", "--spec-version", revision, "--expected-failures", str(BASELINE)]
    done = subprocess.run(
        [*SUITE, "server", "--url", url, *chosen, "--timeout", str(SCENARIO_SECONDS * 1000)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    (LOGS / f"{revision}.log").write_text(done.stdout, encoding="utf-8")
    _, _, summary = done.stdout.partition("=== SUMMARY ===")
    counts = re.findall(r"^[✓✗] \S+: (\d+) passed, \d+ failed$", summary, re.MULTILINE)

    def marked(mark: str) -> list[str]:
        return re.findall(rf"^  {mark} (\S+)$", summary, re.MULTILINE)

    return Outcome(
        revision,
        scenarios=len(counts),
        passed=sum(map(int, counts)),
        expected=marked("~"),
        unexpected=marked("✗"),
        stale=marked("✓"),
        exit_code=done.returncode,
    )


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    install()
    with fixture_server() as url:
        outcomes = [run_suite(url, revision) for revision in sys.argv[1:] or REVISIONS]
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
