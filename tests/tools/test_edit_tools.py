"""The tools that change files: exact, with errors that help, and only what is permitted (P6, P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase
from retinue.core import Json, ToolRequest, Verdict
from retinue.redaction import SecretRedactor
from retinue.tools import EditTools, SeenCode, Toolbox
from retinue.tools.toolbox import ToolAnswer
from tests.codebase.file_support import create_root

pytestmark = pytest.mark.anyio

CODE = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


class Editor:
    """A toolbox on a small project, which records what was asked for."""

    def __init__(self, folder: Path, *, denies: str = "") -> None:
        self.folder = folder
        self.asked: list[str] = []
        self._denies = denies
        redactor = SecretRedactor()
        root = create_root(folder, {"calc.py": CODE, "notes.txt": "one\ntwo\n"})
        self.read: list[str] = []
        seen = SeenCode(self.read.append)
        tools = EditTools(Codebase([root]), root, self._permit, redactor, seen=seen)
        self.box = Toolbox(tools.tools(), redactor)

    async def _permit(self, request: ToolRequest) -> Verdict:
        self.asked.append(str(request))
        return Verdict(request.subject != self._denies, "not this one")

    async def call(self, tool: str, **arguments: Json) -> ToolAnswer:
        return await self.box.call(tool, arguments, 1_000)

    def text(self, path: str = "calc.py") -> str:
        return (self.folder / path).read_text()


async def test_new_file_is_written(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call("write_file", path="tests/test_calc.py", content="import calc")
    assert answer.text == "created tests/test_calc.py, 1 line"
    assert editor.text("tests/test_calc.py") == "import calc\n"
    assert editor.asked == ["Write(tests/test_calc.py)"]
    assert editor.read == [], "a receipt lists what was read, and the agent wrote this file itself (P8)"


async def test_edit_replaces_a_text_that_occurs_once_and_shows_the_lines(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call(
        "edit_file",
        path="calc.py",
        old="def add(a, b):\n    return a - b",
        new="def add(a, b):\n    return a + b",
    )
    assert not answer.failed
    assert "2:     return a + b" in answer.text
    assert editor.text() == CODE.replace("a - b", "a + b", 1)
    assert editor.asked == ["Edit(calc.py)"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("patch", {"path": "calc.py", "old_str": "def add", "new_str": "def plus"}),
        ("Edit", {"file_path": "calc.py", "old_string": "def add", "new_string": "def plus"}),
        ("str_replace", {"path": "calc.py", "old_str": "def add", "new_str": "def plus"}),
        ("edit_file", {"path": "calc.py", "old": "1: def add(a, b):", "new": "1: def plus(a, b):"}),
        ("patch", {"patch": "--- calc.py\n+++ calc.py\n@@\n-def add(a, b):\n+def plus(a, b):\n"}),
    ],
)
async def test_names_of_other_programs_are_understood(
    tmp_path: Path, tool: str, arguments: dict[str, Json]
) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call(tool, **arguments)
    assert not answer.failed, answer.text
    assert editor.text() == CODE.replace("def add", "def plus")


async def test_text_that_occurs_twice_is_not_replaced_unless_all_are_meant(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call("edit_file", path="calc.py", old="a - b", new="a + b")
    assert answer.failed
    assert "2 times" in answer.text and "lines 2, 6" in answer.text
    assert editor.text() == CODE
    await editor.call("edit_file", path="calc.py", old="a - b", new="a + b", all=True)
    assert editor.text() == CODE.replace("a - b", "a + b")


async def test_text_that_is_not_there_shows_the_nearest_lines_with_numbers(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call("edit_file", path="calc.py", old="def add(a,b):\n  return a-b", new="x")
    assert answer.failed
    assert "1: def add(a, b):\n2:     return a - b" in answer.text
    assert "differ only in spaces" in answer.text
    answer = await editor.call("edit_file", path="calc.py", old="class Elsewhere:", new="x")
    assert "no lines like these" in answer.text


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("edit_file", {"path": "clac.py", "old": "a", "new": "b"}, "there is no file"),
        ("edit_file", {"path": "calc.py", "old": "", "new": "b"}, "`old` is empty"),
        ("edit_file", {"path": "calc.py", "old": "def", "new": "def"}, "the same"),
        ("edit_file", {"path": "calc.py", "new": "b"}, "`old` is missing"),
        ("write_file", {"path": "calc.py"}, "`content` is missing"),
        ("write_file", {"path": "../x.py", "content": "x"}, "'..'"),
        ("write_file", {"path": ".git/config", "content": "x"}, "hides"),
        ("write_file", {"path": ".env", "content": "x"}, "hides"),
        ("apply_patch", {"patch": "nothing"}, "names no file"),
        ("apply_patch", {"patch": "--- /dev/null\n+++ b/calc.py\n@@ -0,0 +1 @@\n+x\n"}, "exists already"),
    ],
)
async def test_wrong_call_is_explained_and_changes_nothing(
    tmp_path: Path, tool: str, arguments: dict[str, Json], says: str
) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call(tool, **arguments)
    assert answer.failed and says in answer.text
    assert editor.asked == []
    assert editor.text() == CODE


async def test_patch_of_several_files_is_applied_as_a_whole_or_not_at_all_P7(tmp_path: Path) -> None:
    patch = (
        "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
        "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-def add(a, b):\n+def plus(a, b):\n"
    )
    editor = Editor(tmp_path, denies="calc.py")
    answer = await editor.call("apply_patch", patch=patch)
    assert answer.failed and "not this one" in answer.text
    assert (editor.text(), editor.text("notes.txt")) == (CODE, "one\ntwo\n")
    editor = Editor(tmp_path)
    assert not (await editor.call("apply_patch", patch=patch)).failed
    assert editor.text("notes.txt") == "1\ntwo\n"
    assert editor.asked == ["Edit(notes.txt)", "Edit(calc.py)"]


async def test_denied_change_is_not_made_and_the_reason_is_told_P7(tmp_path: Path) -> None:
    editor = Editor(tmp_path, denies="calc.py")
    answer = await editor.call("write_file", path="calc.py", content="x = 1\n")
    assert answer.failed and "not this one" in answer.text
    assert editor.text() == CODE


async def test_mark_of_a_secret_is_not_written_over_the_secret_P6(tmp_path: Path) -> None:
    """A model sees `[redacted:...]` instead of a secret, and copies it if it writes the whole file."""
    editor = Editor(tmp_path)
    (tmp_path / "settings.py").write_text(f'TOKEN = "{SECRET}"\nDEBUG = True\n')
    shown = SecretRedactor().redact(editor.text("settings.py"))
    assert SECRET not in shown
    answer = await editor.call("write_file", path="settings.py", content=shown.replace("True", "False"))
    assert answer.failed and "stands for a secret" in answer.text
    answer = await editor.call("edit_file", path="settings.py", old="DEBUG = True", new="DEBUG = False")
    assert not answer.failed
    assert SECRET not in answer.text
    assert editor.text("settings.py") == f'TOKEN = "{SECRET}"\nDEBUG = False\n'


async def test_mistake_in_the_syntax_is_told(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    answer = await editor.call("edit_file", path="calc.py", old="def add(a, b):", new="def add(a, b:")
    assert "calc.py is not valid Python: line 1" in answer.text


async def test_windows_line_ends_stay(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    (tmp_path / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    await editor.call("edit_file", path="dos.txt", old="one\ntwo", new="1\n2")
    assert (tmp_path / "dos.txt").read_bytes() == b"1\r\n2\r\n"
