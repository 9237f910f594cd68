"""A search that finds nothing looks for what was probably meant, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.tool_support import answer, file_toolbox

pytestmark = pytest.mark.anyio

FILES = {
    "src/upload.py": "MAX_TRIES = 12\n\n\ndef retry_upload(client):\n    return client.send(MAX_TRIES)\n",
    "src/net/client.py": "class Client:\n    def send(self, tries):\n        pass\n",
    "docs/notes.md": "Uploads are sent by the client.\n",
}


@pytest.mark.parametrize(
    ("pattern", "line", "note"),
    [
        ("retry_upload", "src/upload.py:4:", ""),
        ("Retry_Upload", "src/upload.py:4:", "in another"),
        ("retry upload", "src/upload.py:4:", "its words together"),
        ("def send(client)", "src/upload.py:5:", "in another order"),
        ("upload retry", "src/upload.py:4:", "in another order"),
        ("where is the zebra client handled", "src/net/client.py:1:", "nowhere: zebra, handled"),
    ],
)
async def test_search_finds_what_was_meant(tmp_path: Path, pattern: str, line: str, note: str) -> None:
    said = await answer(file_toolbox(tmp_path, FILES), "search", pattern=pattern)
    assert line in said
    assert note in said
    assert bool(note) == ("[" in said)


async def test_words_that_are_nowhere_find_nothing(tmp_path: Path) -> None:
    assert (
        await answer(file_toolbox(tmp_path, FILES), "search", pattern="zebra crossing") == "nothing matches"
    )


async def test_folder_that_does_not_exist_is_ignored_with_a_note(tmp_path: Path) -> None:
    said = await answer(file_toolbox(tmp_path, FILES), "search", pattern="MAX_TRIES", path="/path/to/search")
    assert "src/upload.py:1:" in said and "all files were searched" in said


@pytest.mark.parametrize("path", ["upload.py", "lib/upload.py", "SRC/Upload.py", "/src/upload.py"])
async def test_file_is_found_by_its_name(tmp_path: Path, path: str) -> None:
    said = await answer(file_toolbox(tmp_path, FILES), "read_file", path=path)
    assert "1: MAX_TRIES = 12" in said and "this is src/upload.py" in said


async def test_several_files_with_the_name_are_listed(tmp_path: Path) -> None:
    files = {"a/x.py": "1\n", "b/x.py": "2\n"}
    box = file_toolbox(tmp_path, files)
    got = await box.call("read_file", {"path": "c/x.py"}, 500)
    assert got.failed and "a/x.py, b/x.py" in got.text
    assert "this is b/x.py" in await answer(box, "read_file", path="deep/b/x.py")


async def test_part_of_a_name_finds_files(tmp_path: Path) -> None:
    said = await answer(file_toolbox(tmp_path, FILES), "find_files", glob="upload")
    assert said.splitlines()[0] == "src/upload.py" and "in theirs" in said
