"""How something works is told as a flow in order, each step with its reference and its line (P3, P8)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.answers.flow import SHOWN_LINES, tell_flow
from retinue.answers.locator import locate
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from tests.answers.conftest import ContextFor, ContextIn, write


def told(context: RoleContext) -> RoleResult:
    return tell_flow(context, locate(context, 15, Stop()).places, Stop())


def test_flow_goes_from_a_caller_through_the_code_to_the_steps(context_for: ContextFor) -> None:
    result = told(context_for("how does charge_card work?"))
    assert result.key_findings == (
        "src/shop/cli.py:5: `main` calls `charge_card`: `charge_card(connect(), 10)`",
        "src/shop/payment.py:4: `charge_card`\ndef charge_card(gateway, amount):\n"
        "    return with_retry(lambda: gateway.charge(amount), RetryPolicy())",
        "src/shop/payment.py:5: `charge_card` calls `with_retry` (src/shop/retry.py:18)",
    )
    assert result.summary == "`charge_card` calls `with_retry`."


def test_steps_say_what_the_code_says_of_itself(context_for: ContextFor) -> None:
    result = told(context_for("how does RetryPolicy work?"))
    assert result.key_findings[0].startswith(
        "src/shop/retry.py:8: `RetryPolicy`, “How often and how long to wait; `should_retry` decides”"
    )
    assert result.summary.endswith("has `should_retry`, `delay`.")


FLOWS = [
    (
        "job.go",
        """
        package job

        // Run performs a job.
        func Run(name string) error {
            path := locate(name)
            return start(path)
        }

        // locate finds the program of a job.
        func locate(name string) string {
            return "/bin/" + name
        }

        func start(path string) error {
            return nil
        }
        """,
        "How does Run(name) work?",
        [
            "job.go:4: `Run`, “Run performs a job”",
            "job.go:5: `Run` calls `locate` (job.go:10,",
            "`Run` calls `start`",
        ],
    ),
    (
        "job.rs",
        """
        /// Performs a job.
        pub fn perform_job(name: &str) -> u32 {
            let path = find_path(name);
            start_path(&path)
        }

        fn find_path(name: &str) -> String {
            name.to_string()
        }

        fn start_path(path: &str) -> u32 {
            path.len() as u32
        }
        """,
        "how does perform_job work?",
        ["job.rs:2: `perform_job`, “Performs a job”", "job.rs:3: `perform_job` calls `find_path`"],
    ),
    (
        "job.ts",
        """
        // Performs a job.
        export function performJob(name: string): number {
          const path = findPath(name);
          return startPath(path);
        }

        function findPath(name: string): string {
          return name;
        }

        function startPath(path: string): number {
          return path.length;
        }
        """,
        "how does performJob work?",
        ["job.ts:2: `performJob`, “Performs a job”", "job.ts:3: `performJob` calls `findPath`"],
    ),
    (
        "Job.java",
        """
        class Job {
          /** Performs a job. */
          int performJob(String name) {
            String path = findPath(name);
            return startPath(path);
          }

          String findPath(String name) {
            return name;
          }

          int startPath(String path) {
            return path.length();
          }
        }
        """,
        "how does performJob work?",
        [
            "Job.java:3: `Job.performJob`, “Performs a job”",
            "Job.java:4: `Job.performJob` calls `Job.findPath`",
        ],
    ),
    (
        "job.c",
        """
        static int find_path(const char *name)
        {
          return name[0];
        }

        static int start_path(int path)
        {
          return path;
        }

        /* Performs a job. */
        int perform_job(const char *name)
        {
          int path = find_path(name);
          return start_path(path);
        }
        """,
        "how does perform_job work?",
        ["job.c:12: `perform_job`, “Performs a job”", "job.c:14: `perform_job` calls `find_path` (job.c:1)"],
    ),
]


@pytest.mark.parametrize(("name", "code", "question", "expected"), FLOWS, ids=[flow[0] for flow in FLOWS])
def test_flow_is_told_in_every_language(
    tmp_path: Path, context_in: ContextIn, name: str, code: str, question: str, expected: list[str]
) -> None:
    result = told(context_in(write(tmp_path / "jobs", {name: code}), question))
    starts = [
        next((at for at, one in enumerate(result.key_findings) if part in one), -1) for part in expected
    ]
    assert -1 not in starts, result.key_findings
    assert starts == sorted(starts)
    places = [re.findall(rf"{re.escape(name)}:\d+", finding) for finding in result.key_findings]
    every = [place for of_finding in places for place in of_finding]
    assert len(every) == len(set(every))


def test_test_code_is_no_part_of_the_flow(context_for: ContextFor) -> None:
    result = told(context_for("how does retry give up?"))
    assert result.key_findings
    assert not [finding for finding in result.key_findings if finding.startswith("tests/")]


def test_flow_starts_where_work_is_done_not_at_an_accessor(tmp_path: Path, context_in: ContextIn) -> None:
    code = (
        "class Timer:\n    def refresh_rate(self):\n        return self.rate\n\n"
        "    def refresh(self, rate):\n        self.stop_old(rate)\n        return rate\n\n"
        "    def stop_old(self, rate):\n        self.rate = rate\n        return None\n"
    )
    context = context_in(write(tmp_path / "timer", {"timer.py": code}), "how is the refresh rate applied?")
    assert not told(context).summary.startswith("`Timer.refresh_rate`")


def test_caller_of_the_best_member_of_a_type_is_told(tmp_path: Path, context_in: ContextIn) -> None:
    files = {
        "network.py": "class Network:\n    def is_failing(self):\n"
        "        value = self.share\n        return value > 1\n",
        "call.py": "from network import Network\n\n\ndef perform(request):\n"
        "    network = Network()\n    return network.is_failing()\n",
    }
    context = context_in(write(tmp_path / "net", files), "how does Network work if it is failing?")
    assert any(finding.startswith("call.py:6: `perform` calls") for finding in told(context).key_findings)


def test_flow_keeps_the_call_that_the_question_mentions(project: Path, context_for: ContextFor) -> None:
    """Of more calls than are told, those whose names only repeat the component's own name are left out."""
    body = "".join(f"    prepare_order_{number}()\n" for number in range(9))
    helpers = "".join(f"def prepare_order_{number}(): ...\n" for number in range(9))
    text = f"def place_order():\n{body}    split_batches()\n\n{helpers}def split_batches(): ...\n"
    write(project, {"src/shop/order.py": text})
    result = told(context_for("how does place_order split batches?"))
    calls = [finding for finding in result.key_findings if " calls " in finding]
    assert "calls `split_batches`" in calls[-1]
    assert len(calls) == 6


def test_guess_is_told_as_one(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: only a function that the question names is told without a doubt."""
    code = "def send_parcel(box):\n    return weigh(box)\n\n\ndef weigh(box):\n    return len(box)\n"
    root = write(tmp_path / "parcels", {"src/parcel.py": code})
    named = told(context_in(root, "how does `send_parcel` work?"))
    assert (named.confidence, named.summary) == ("high", "`send_parcel` calls `weigh`.")
    probable = told(context_in(root, "how are parcels sent?"))
    assert (probable.confidence, probable.summary) == ("med", "Probably `send_parcel`, which calls `weigh`.")
    unsure = told(replace(context_in(root, "how are parcels sent?"), found_with="low"))
    assert unsure.confidence == "low" and unsure.summary.startswith("A guess, because")


def test_path_of_another_project_is_no_use_of_a_method(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: `thread::scope` of the standard library was told as the only method named `scope`."""
    code = (
        "struct Environment;\n\nimpl Environment {\n    fn scope_of(&self) -> u8 {\n        1\n    }\n}\n\n"
        "fn run_recipes() -> u8 {\n    thread::scope_of(|inner| inner)\n}\n"
    )
    context = context_in(write(tmp_path / "run", {"src/run.rs": code}), "how does `run_recipes` work?")
    assert not [text for text in told(context).key_findings if "Environment" in text]


def test_tests_inside_a_rust_file_are_no_part_of_a_flow(tmp_path: Path, context_in: ContextIn) -> None:
    code = (
        "pub fn measure_size() -> u8 {\n    1\n}\n\n"
        "#[cfg(all(test, unix))]\nmod unit {\n    use super::*;\n\n    #[test]\n    fn size_is_one() {\n"
        "        assert_eq(measure_size(), 1);\n    }\n\n"
        "    fn twice() -> u8 {\n        measure_size() + measure_size()\n    }\n}\n"
    )
    root = write(tmp_path / "size", {"src/size.rs": code})
    flow = told(context_in(root, "how does `measure_size` work?"))
    assert not [text for text in flow.key_findings if "unit" in text or "twice" in text or "size_is" in text]
    code += "\nfn report_size() -> u8 {\n    measure_size()\n}\n"
    flow = told(context_in(write(root, {"src/size.rs": code}), "how does `measure_size` work?"))
    assert "src/size.rs:20: `report_size` calls `measure_size`: `measure_size()`" in flow.key_findings


def test_docstring_that_begins_below_its_quotes_is_told_without_the_backslash(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = (
        'def reap_workers(self):\n    """\\\n    Reap workers to avoid zombies.\n    """\n    return wait()\n'
    )
    result = told(context_in(write(tmp_path / "app", {"arbiter.py": code}), "how does reap_workers work?"))
    assert result.key_findings[0].startswith("arbiter.py:1: `reap_workers`, “Reap workers to avoid zombies”")


def test_guess_names_the_other_places_that_may_be_meant(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: a flow that the question does not name is one of several, and the others are told too."""
    files = {
        f"src/{name}.py": f"def {name}_orders(orders):\n    return list(orders)\n"
        for name in ("sort", "send", "store")
    }
    result = told(context_in(write(tmp_path / "orders", files), "how are orders sorted, sent and stored?"))
    assert result.confidence != "high"
    assert all(f"`{name}_orders`" in result.summary for name in ("sort", "send", "store"))
    assert " or `" in result.summary


LONG_BODY = """
    def send_parcel(box):
        \"\"\"Send a parcel.

        The customs form is optional.
        \"\"\"
        {before}
        if box.is_fragile:
            add_padding(box)
        {after}
"""


def test_code_of_a_short_function_is_shown_whole_without_its_docstring(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = LONG_BODY.format(before="check(box)", after="return ship(box)")
    root = write(tmp_path / "parcels", {"src/parcel.py": code})
    (shown,) = [
        one for one in told(context_in(root, "how does send_parcel work?")).key_findings if "\n" in one
    ]
    assert shown.split("\n") == [
        "src/parcel.py:1: `send_parcel`, “Send a parcel”",
        "def send_parcel(box):",
        "    ...",
        "    check(box)",
        "    if box.is_fragile:",
        "        add_padding(box)",
        "    return ship(box)",
    ]


def test_part_of_a_long_function_that_fits_the_question_is_shown(
    tmp_path: Path, context_in: ContextIn
) -> None:
    many = "\n        ".join(f"weigh(box, {number})" for number in range(20))
    root = write(tmp_path / "parcels", {"src/parcel.py": LONG_BODY.format(before=many, after=many)})
    question = "how does send_parcel treat fragile things with padding?"
    (shown,) = [one for one in told(context_in(root, question)).key_findings if "\n" in one]
    assert "if box.is_fragile:\n        add_padding(box)" in shown
    assert len(shown.split("\n")) == 3 + SHOWN_LINES
