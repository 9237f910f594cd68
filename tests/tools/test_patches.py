"""Patches as models write them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from retinue.core import InvalidInput
from retinue.tools.patches import apply_hunks, parse_patch

TEXT = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


def apply(patch: str, text: str = TEXT) -> str:
    (found,) = parse_patch(patch)
    return apply_hunks(found.path, text, found.hunks)


DIFF = """\
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
FIXED = TEXT.replace("a - b", "a + b", 1)


@pytest.mark.parametrize(
    "patch",
    [
        DIFF,
        f"diff --git a/calc.py b/calc.py\nindex 1..2 100644\n{DIFF}",
        f"```diff\n{DIFF}```",
        DIFF.replace("-1,2 +1,2", "-40,9 +40,9"),
        DIFF.replace("\n", "\r\n"),
        DIFF.replace("a/calc", "calc").replace("b/calc", "calc"),
        "*** Begin Patch\n*** Update File: calc.py\n@@ def add\n def add(a, b):\n-    return a - b\n"
        "+    return a + b\n*** End Patch",
    ],
)
def test_patch_is_applied_where_its_old_lines_are(patch: str) -> None:
    assert apply(patch) == FIXED


def test_real_diff_of_git_is_applied(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    new = old.replace("line 3\n", "line three\n").replace("line 40\n", "").replace("line 58\n", "58\nmore\n")
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    diff = subprocess.run(
        ["git", "diff", "--no-index", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    patch = diff.stdout.replace("b/new", "b/old")
    assert apply(patch, old) == new


def test_files_are_created_removed_and_renamed() -> None:
    patch = (
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"
        "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
        "diff --git a/x.py b/y.py\nsimilarity index 100%\nrename from x.py\nrename to y.py\n"
    )
    new, gone, moved = parse_patch(patch)
    assert (new.path, new.is_new, apply_hunks("new.py", "", new.hunks)) == (
        "new.py",
        True,
        "one\ntwo\n",
    )
    assert (gone.path, gone.target) == ("gone.py", None)
    assert (moved.path, moved.target) == ("x.py", "y.py")
    added, deleted = parse_patch("*** Add File: a.py\n+x\n*** Delete File: b.py\n*** End Patch")
    assert (added.is_new, apply_hunks("a.py", "", added.hunks), deleted.target) == (True, "x\n", None)


def test_hunk_that_fits_in_two_places_names_the_lines() -> None:
    with pytest.raises(InvalidInput, match="lines 2, 6"):
        apply("--- a/calc.py\n+++ b/calc.py\n@@ @@\n-    return a - b\n+    return a + b\n")


def test_line_number_decides_between_two_places() -> None:
    patch = "--- a/calc.py\n+++ b/calc.py\n@@ -6 +6 @@\n-    return a - b\n+    return a * b\n"
    assert apply(patch) == "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a * b\n"


def test_hunk_that_does_not_fit_shows_the_nearest_lines() -> None:
    patch = DIFF.replace("    return a - b", "  return a - b")
    with pytest.raises(InvalidInput) as raised:
        apply(patch)
    assert "differ only in spaces" in raised.value.message
    assert "2:     return a - b" in raised.value.message


@pytest.mark.parametrize("patch", ["", "please add one", "@@ -1 +1 @@\n-a\n+b\n", "--- a/x\n+++ b/x\n"])
def test_text_that_is_no_patch_is_refused_with_the_format(patch: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_patch(patch)
    assert "unified diff" in (raised.value.hint or "")
