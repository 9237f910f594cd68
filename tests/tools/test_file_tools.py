"""The file tools show only what is allowed and fits, and say what they leave out."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from retinue.core import Json, estimate_tokens
from tests.tools.tool_support import answer, file_toolbox, metered, spent

pytestmark = pytest.mark.anyio

CODE = """import os


def retry(times):
    return times


class Client:
    def send(self):
        pass
"""
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq\n" * 20 + "-----END RSA PRIVATE KEY-----\n"


async def test_file_is_read_with_line_numbers(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"src/app.py": CODE})
    said = await answer(box, "read_file", path="src/app.py", start=4, lines=2)
    assert said.splitlines()[:3] == [
        "src/app.py, lines 4-5 of 10",
        "4: def retry(times):",
        "5:     return times",
    ]
    assert "start=6" in said


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "src/app.py", "offset": 4, "limit": 1},
        {"path": "src/app.py", "start_line": "4", "end_line": "4"},
        {"file": "./src/app.py", "start": 4.0, "lines": 1},
    ],
)
async def test_argument_names_of_other_programs_are_understood(
    tmp_path: Path, arguments: dict[str, Json]
) -> None:
    box = file_toolbox(tmp_path, {"src/app.py": CODE})
    said = (await box.call("Read", arguments, 500)).text
    assert "4: def retry(times):" in said
    assert "5:" not in said


async def test_long_file_is_cut_and_the_answer_says_where_to_continue(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"long.txt": "".join(f"line number {n}\n" for n in range(1, 900))})
    said = await answer(box, "read_file", tokens=200, path="long.txt", lines=800)
    assert estimate_tokens(said) <= 200
    last = int(said.splitlines()[0].split("-")[1].split()[0])
    assert f"[more: read_file with start={last + 1}]" in said
    assert f"{last}: line number {last}" in said


async def test_endless_line_stays_within_the_limit(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"min.js": "x=1;" * 50_000})
    assert estimate_tokens(await answer(box, "read_file", tokens=150, path="min.js")) <= 170


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("nope.py", "nothing readable"),
        ("../outside", "'..'"),
        (".env", "policy hides"),
        ("/etc/passwd", "outside the roots"),
        ("bin.dat", "binary"),
    ],
)
async def test_forbidden_file_is_refused_in_one_line_P6(tmp_path: Path, path: str, complaint: str) -> None:
    box = file_toolbox(tmp_path / "root", {".env": "A=1", "bin.dat": b"\0\1", "a.py": CODE})
    got = await box.call("read_file", {"path": path}, 500)
    assert got.failed and complaint in got.text and "\n" not in got.text


async def test_missing_and_wrong_arguments_are_named(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"a.py": CODE})
    assert "needs `path`" in await answer(box, "read_file")
    assert "whole number" in await answer(box, "read_file", path="a.py", start="many")
    assert "must be a text" in await answer(box, "read_file", path=["a.py"])
    assert "only 10 lines" in await answer(box, "read_file", path="a.py", start=99)


async def test_search_finds_lines_and_takes_a_broken_pattern_as_text(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"src/app.py": CODE, "docs/a.md": "retry\n"})
    assert "src/app.py:4: def retry(times):" in await answer(box, "Grep", pattern="RETRY(".lower())
    assert "docs" not in await answer(box, "search", pattern="retry", glob="*.py")
    assert "docs/a.md:1: retry" in await answer(box, "search", pattern="retry", path="docs")
    assert "nothing matches" in await answer(box, "search", pattern="absent")


async def test_search_stays_within_the_limit_and_counts_what_it_cuts(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"f{n}.py": "needle here\n" * 5 for n in range(30)}
    said = await answer(file_toolbox(tmp_path, files), "search", tokens=200, pattern="needle")
    assert estimate_tokens(said) <= 200
    assert "cut: narrow the pattern" in said


async def test_no_tool_shows_a_line_of_a_private_key_P6(tmp_path: Path) -> None:
    """A single line of a key looks harmless."""
    box = file_toolbox(tmp_path, {"notes.txt": f"first\n{KEY}last\n"})
    for said in (
        await answer(box, "read_file", path="notes.txt", start=8, lines=4),
        await answer(box, "search", pattern="MIIEpAIB"),
        await answer(box, "search", pattern="first|last|AKCAQ"),
    ):
        assert "MIIEpAIB" not in said and "AKCAQEA" not in said
        assert "redacted" in said


async def test_folders_names_and_outlines_are_listed(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"src/app.py": CODE, "README.md": "# Title\n"})
    assert (await answer(box, "LS")).splitlines()[:2] == ["README.md", "src/"]
    assert "src/app.py" in await answer(box, "Glob", pattern="*.py")
    said = await answer(box, "outline", path="src/app.py")
    assert "4: def retry(times):" in said and "8: class Client:" in said


async def test_files_and_bytes_are_charged_before_they_are_shown_P2(tmp_path: Path) -> None:
    meter = metered(files=2, bytes=10_000)
    box = file_toolbox(tmp_path, {"a.py": CODE, "b.py": CODE}, meter)
    await answer(box, "read_file", path="a.py")
    await answer(box, "search", pattern="retry", path="b.py")
    assert spent(meter)["files"] == 2
    refused = await box.call("read_file", {"path": "a.py"}, 500)
    assert refused.budget is not None and refused.budget.kind == "files"
    assert "def retry" not in refused.text
    assert spent(meter)["files"] == 2


async def test_refused_bytes_charge_no_file_P2(tmp_path: Path) -> None:
    meter = metered(bytes=5)
    refused = await file_toolbox(tmp_path, {"a.py": CODE}, meter).call("read_file", {"path": "a.py"}, 500)
    assert refused.budget is not None and refused.budget.kind == "bytes"
    assert not spent(meter)


async def test_cancel_ends_the_reading_thread(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"d{n}/f{m}.py": CODE for n in range(20) for m in range(20)}
    box = file_toolbox(tmp_path, files)
    before = threading.active_count()
    with anyio.move_on_after(0.001):
        await answer(box, "search", pattern="(a|b|c|d|e)+nothing")
    # anyio keeps its worker threads for later work; none of them is busy now.
    with anyio.fail_after(5):
        await answer(box, "list_folder")
    assert threading.active_count() <= before + 2
