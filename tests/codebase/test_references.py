"""P3: a reference is returned only if its file, opened again, supports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Claim, Codebase, FileEntry, check_claims, words_in_files
from retinue.core import Canceled, LimitExceeded, Root, Stop


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "a.py").write_text("import os\n\ndef Retry():\n    pass\n", encoding="utf-8")
    (tmp_path / ".env").write_text("RETRY=1\n")
    (tmp_path / "blob").write_bytes(b"\0retry")
    return Root.at(tmp_path)


def free(entry: FileEntry, size: int) -> None:
    """Charge nothing."""


@pytest.mark.parametrize(
    ("path", "line", "says", "reach", "holds"),
    [
        ("a.py", 3, ("retry",), 1, True),
        ("a.py", 3, ("nothing", "RETRY"), 1, True),
        ("a.py", 1, ("retry",), 1, False),
        ("a.py", 1, ("retry",), 3, True),
        ("a.py", 4, (), 1, True),
        ("a.py", 5, (), 1, False),
        ("a.py", 0, (), 1, False),
        ("a.py", -1, ("retry",), 1, False),
        ("a.py", None, (), 1, True),
        ("a.py", None, ("retry",), 1, True),
        ("a.py", None, ("absent",), 1, False),
        ("b.py", None, (), 1, False),
        (".env", 1, ("retry",), 1, False),
        ("../outside", 1, (), 1, False),
        ("blob", None, ("retry",), 1, False),
    ],
)
def test_claim_holds_only_if_its_lines_contain_the_words(
    root: Root, path: str, line: int | None, says: tuple[str, ...], reach: int, holds: bool
) -> None:
    claim = Claim(FileEntry(root, path), line, says, reach)
    checked = check_claims(Codebase([root]), [claim], Stop(), free)
    assert (claim in checked.held, claim in checked.failed) == (holds, not holds)


def test_reference_to_a_line_that_moved_is_dropped(root: Root) -> None:
    claim = Claim(FileEntry(root, "a.py"), 3, ("retry",))
    (root.path / "a.py").write_text("def Retry():\n    pass\n")
    assert check_claims(Codebase([root]), [claim], Stop(), free).failed == (claim,)


def test_claims_past_a_limit_are_neither_held_nor_failed(root: Root) -> None:
    """P2: claims that could not be checked are not returned, and are counted separately."""
    claims = [Claim(FileEntry(root, "a.py"), line) for line in (1, 3)]
    charged: list[int] = []

    def charge(entry: FileEntry, size: int) -> None:
        if charged:
            raise LimitExceeded("bytes", 2, 1)
        charged.append(size)

    checked = check_claims(Codebase([root]), claims, Stop(), charge)
    assert (checked.held, checked.failed, checked.unchecked) == ((claims[0],), (), (claims[1],))
    assert charged == [len("import os")]


def test_words_are_found_in_path_and_text_and_not_in_hidden_files(root: Root) -> None:
    entries = [FileEntry(root, "a.py"), FileEntry(root, ".env")]
    found = words_in_files(Codebase([root]), entries, ["RETRY", "a.p", "gone"], Stop())
    assert found == {entries[0]: frozenset({"RETRY", "a.p"}), entries[1]: frozenset()}


def test_canceled_check_ends(root: Root) -> None:
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        check_claims(Codebase([root]), [Claim(FileEntry(root, "a.py"))], stop, free)
