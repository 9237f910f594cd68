"""Receipts: what runs did, counted from events (P8)."""

from __future__ import annotations

from retinue.core import Activity, ToolRequest, build_receipt


def test_receipt_counts_calls_files_and_commands_P8() -> None:
    activity = Activity()
    for path in ("/work/a.py", "/work/b.py", "/work/a.py"):
        activity.request(ToolRequest.of("Read", {"file_path": path}, "/work"))
    activity.request(ToolRequest.of("Bash", {"command": "pytest  -q"}, "/work"), failed=True, exit_code=1)
    activity.request(ToolRequest.of("Grep", {"pattern": "x"}, "/work"), failed=True)
    assert build_receipt(activity, {"model": "m", "seconds": 1.5, "steps": 4, "tokens": 90}) == {
        "model": "m",
        "seconds": 1.5,
        "steps": 4,
        "tokens": 90,
        "tool_calls": {"Read": 3, "Bash": 1, "Grep": 1},
        "failed_calls": 1,
        "files_read": ["a.py", "b.py"],
        "commands": [{"command": "pytest -q", "exit_code": 1}],
    }


def test_files_outside_the_folder_are_counted_and_not_named_P6() -> None:
    activity = Activity()
    for path in ("/home/me/.netrc", "../other/x.py", "in.py", "/work/../etc/passwd"):
        activity.read(path, "/work")
    receipt = build_receipt(activity, {})
    assert (receipt["files_read"], receipt["more_files_read"]) == (["in.py"], 3)


def test_long_lists_are_counted_P4() -> None:
    activity = Activity()
    for number in range(25):
        activity.read(f"{number}.py", "/work")
        activity.command(f"make {number} " + "x" * 500, 0)
    receipt = build_receipt(activity, {})
    assert len(receipt["files_read"]) == len(receipt["commands"]) == 10  # pyright: ignore
    assert (receipt["more_files_read"], receipt["more_commands"]) == (15, 15)
    assert len(str(receipt)) < 2_000


def test_parent_sums_up_its_children() -> None:
    child = Activity()
    child.request(ToolRequest.of("Read", {"file_path": "a.py"}, "/work"))
    child.command("make test", 2)
    first = build_receipt(child, {"model": "small", "seconds": 3.0, "steps": 2, "tokens": 10})
    second = build_receipt(child, {"model": "large", "seconds": 4.0, "steps": 1, "tokens": 5})
    inner = build_receipt(Activity(), {"seconds": 5.0}, [second])
    whole = build_receipt(Activity(), {"seconds": 9.0}, [first, inner, None])
    assert whole == {
        "seconds": 9.0,
        "steps": 3,
        "tokens": 15,
        "models": ["small", "large"],
        "tool_calls": {"Read": 2},
        "files_read": ["a.py"],
        "commands": [{"command": "make test", "exit_code": 2}] * 2,
        "children": 4,
    }


def test_program_that_reports_no_calls_claims_none() -> None:
    """A missing count is not a count of zero."""
    activity = Activity()
    activity.command("my-agent", 0)
    assert build_receipt(activity, {}) == {"commands": [{"command": "my-agent", "exit_code": 0}]}
    assert build_receipt(Activity(sees_calls=True), {}) == {
        "tool_calls": {},
        "files_read": [],
        "commands": [],
    }


def test_only_calls_that_show_something_support_a_finding() -> None:
    activity = Activity()
    for tool in ("AskUserQuestion", "Write", "StructuredOutput", "mcp__retinue__ask_parent"):
        activity.call(tool)
    activity.request(ToolRequest.of("Read", {"file_path": "gone.py"}, "/work"), failed=True)
    assert not activity.has_looked
    activity.call("mcp__docs__search")
    assert activity.has_looked


def test_floods_of_tools_and_files_stay_bounded() -> None:
    activity = Activity()
    for number in range(20_000):
        activity.call(f"tool-{number}")
        activity.read(f"{number}.py", "/work")
        activity.command(str(number), 0)
    assert len(activity.tools) == 51
    assert len(activity.files) == 10_000
    assert (len(activity.commands), activity.command_count) == (10, 20_000)


def test_failed_calls_in_a_row_are_counted_as_retries_of_their_tool() -> None:
    activity = Activity()
    for failed in (True, True, True, False, True):
        activity.call("Grep", failed=failed)
    activity.call("Grep", failed=True)
    activity.call("Read", failed=True)
    assert build_receipt(activity, {})["retries"] == {"Grep": 2}, "of the longest row"


def test_call_that_is_refused_because_it_was_made_before_is_a_retry() -> None:
    activity = Activity()
    activity.call("read_file", failed=True)
    for _ in range(2):
        activity.refuse("read_file")
    assert (activity.retries, activity.tools) == ({"read_file": 2}, {"read_file": 1})


def test_command_that_fails_again_is_a_retry_unless_something_else_was_done_between() -> None:
    activity = Activity()
    test = ToolRequest.of("Bash", {"command": "make test"}, "/work")
    for _ in range(3):
        activity.request(test, exit_code=1)
    assert activity.retries == {"Bash": 2}
    activity.call("Edit")
    activity.request(test, exit_code=1)
    assert activity.retries == {"Bash": 2}


def test_repeated_calls_cost_the_tokens_of_the_requests_that_made_them() -> None:
    activity = Activity()
    for tokens, failed in ((100, True), (250, True), (450, True), (900, False), (1000, True), (5000, True)):
        activity.tokens = tokens
        activity.call("Grep", failed=failed)
    receipt = build_receipt(activity, {})
    assert receipt["retries"] == {"Grep": 2}
    assert receipt["retry_tokens"] == {"Grep": 350}, "of the longest row, without its first call"


def test_calls_of_one_request_that_fail_together_cost_nothing_more() -> None:
    activity = Activity(tokens=100)
    for _ in range(3):
        activity.call("Grep", failed=True)
    assert build_receipt(activity, {})["retry_tokens"] == {"Grep": 0}


def test_receipt_has_no_tokens_of_retries_if_the_executor_learns_of_them_at_the_end() -> None:
    activity = Activity()
    for _ in range(3):
        activity.call("Grep", failed=True)
    assert "retry_tokens" not in build_receipt(activity, {})
