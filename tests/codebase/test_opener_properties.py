"""With any links and any requested path, nothing outside the root or hidden is read (P6)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from retinue.codebase import Codebase, SearchPattern
from retinue.codebase.access import Directory
from retinue.codebase.access.directory import DescriptorDirectory, PathDirectory
from retinue.core import InvalidInput, LimitExceeded, PathDenied, PathMissing
from tests.codebase.file_support import SECRET, bounded_stop, create_root

UNGUESSED = "a-name-that-nobody-asks-for"
"""Of files outside and hidden: no listing may show it."""
NAMES = [
    "a",
    "b",
    "c.txt",
    "src",
    ".env",
    ".ENV",
    ".ssh",
    "id_rsa",
    "é",
    "é",
    " ",
    "..",
    ".",
    "x.pem",
    "root",
    "away",
]
names = st.sampled_from(NAMES)
inside = st.lists(names.filter(lambda name: name not in ("..", ".")), min_size=1, max_size=3).map("/".join)
targets = st.one_of(
    st.lists(names, min_size=1, max_size=4).map("/".join),
    st.sampled_from(
        ["TOP/away", "TOP/away/loot", "TOP/away/nest/loot", "TOP/root", "TOP", "/", "/etc", "/etc/passwd"]
    ),
    st.sampled_from(
        ["TOP/root/.env", "TOP/root/../away/loot", "../away", "../../away/loot", "../root/../away"]
    ),
)
links = st.lists(st.tuples(inside, targets, st.sampled_from(["soft", "hard"])), max_size=5)
asked = st.lists(
    st.one_of(
        inside,
        targets,
        st.tuples(inside, targets).map("/".join),
        st.text(alphabet="ab./\\~:*\0é\u202e\udcff ", max_size=12),
    ),
    max_size=8,
)


def lay_link(top: Path, place: str, target: str, kind: str) -> None:
    """Create a link if possible: a generated case may have a file where a folder must be."""
    path = top / "root" / place
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "soft":
            path.symlink_to(target.replace("TOP", str(top)))
        else:
            os.link(top / "root" / ".env", path)
    except OSError:
        return


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(inside, max_size=5), links=links, asked=asked)
@pytest.mark.parametrize(
    "open_directory", [DescriptorDirectory.from_path, PathDirectory.from_path], ids=["held", "named"]
)
def test_no_links_and_no_path_read_what_is_outside_or_hidden(
    tmp_path: Path,
    open_directory: Callable[[Path], Directory],
    files: list[str],
    links: list[tuple[str, str, str]],
    asked: list[str],
) -> None:
    shutil.rmtree(tmp_path)
    root = create_root(tmp_path / "root", {".env": SECRET, f".ssh/{UNGUESSED}": SECRET, "plain.txt": "plain"})
    create_root(
        tmp_path / "away",
        {"loot": SECRET, "nest/loot": SECRET, UNGUESSED: SECRET, f"nest/{UNGUESSED}": SECRET},
    )
    for name in files:
        path = root.path / name
        if (
            not any(os.path.lexists(one) and not one.is_dir() for one in (path, *path.parents))
            and not path.is_dir()
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SECRET if ".env" in name.lower() or ".ssh" in name else "plain")
    for place, target, kind in links:
        lay_link(tmp_path, place, target, kind)

    codebase = Codebase([root], open_directory=open_directory)
    shown = [entry.path for entry in codebase.files(bounded_stop()).entries]
    assert not [path for path in shown if UNGUESSED in path]
    assert not codebase.grep(SearchPattern(SECRET), bounded_stop()).matches
    for path in {*asked, *shown, *files, *(place for place, _, _ in links)}:
        given_path = path.replace("TOP", str(tmp_path))
        for look in (read, list_names):
            try:
                told = look(codebase, given_path)
            except (PathDenied, PathMissing, InvalidInput, LimitExceeded) as error:
                told = str(error.as_dict())
            assert SECRET not in told
            assert UNGUESSED not in told


def read(codebase: Codebase, path: str) -> str:
    return "\n".join(codebase.read(path, bounded_stop()).lines)


def list_names(codebase: Codebase, path: str) -> str:
    return "\n".join(item.path for item in codebase.list(path, bounded_stop(), depth=3).items)
