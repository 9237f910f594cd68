"""Nothing outside a root and nothing hidden inside it can be read, whatever the trick (P6)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from retinue.codebase import Codebase, FileEntry, SearchPattern
from retinue.codebase.access import Directory
from retinue.codebase.access.directory import DescriptorDirectory, PathDirectory
from retinue.core import InvalidInput, PathDenied, PathMissing, RetinueError, Root, RootUnknown
from tests.codebase.file_support import SECRET, WAIT_SECONDS, bounded_stop, create_root, read_lines

Open = Callable[[Path], Directory]
ROUNDS = 150


@pytest.fixture(params=[DescriptorDirectory.from_path, PathDirectory.from_path], ids=["held", "named"])
def open_directory(request: pytest.FixtureRequest) -> Open:
    return request.param


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    create_root(tmp_path / "outside", {"secret.txt": SECRET, "sub/deep.txt": SECRET})
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Root:
    return create_root(
        tmp_path / "root",
        {"src/a.py": "print('a')", ".env": SECRET, "keys/x.pem": SECRET, ".ssh/config": SECRET},
    )


@pytest.fixture
def codebase(root: Root, open_directory: Open) -> Codebase:
    return Codebase([root], open_directory=open_directory)


def refused(codebase: Codebase, path: str, *kinds: type[RetinueError]) -> None:
    with pytest.raises(kinds or PathDenied) as error:
        codebase.read(path, bounded_stop())
    told = str(error.value.as_dict())
    assert SECRET not in told
    assert str(codebase.roots[0].path.parent / "outside") not in told
    assert "passwd" not in told
    with pytest.raises(RetinueError):
        codebase.list(path, bounded_stop())


@pytest.mark.parametrize(
    "path",
    [
        *("../outside/secret.txt", "src/../../outside/secret.txt", "..", "src/..", "./../root/.env"),
        *("/etc/passwd", "//etc/passwd", "/", "src/../.env", "/../etc/passwd"),
    ],
)
def test_dots_and_absolute_paths_do_not_leave_the_root(codebase: Codebase, path: str) -> None:
    refused(codebase, path)


def test_an_absolute_path_with_dots_is_refused_even_if_it_comes_back(codebase: Codebase, root: Root) -> None:
    refused(codebase, f"{root}/src/../src/a.py")


@pytest.mark.parametrize("path", ["a\0b", "src/a.py\0.txt", "\0", "src/\udcff.py", "\ud800"])
def test_zero_bytes_and_broken_unicode_are_refused(codebase: Codebase, path: str) -> None:
    refused(codebase, path, InvalidInput)


@pytest.mark.parametrize(
    "path", ["src\\..\\..\\outside\\secret.txt", "C:\\secret.txt", "C:secret", "src/a.py:s"]
)
def test_windows_spellings_find_nothing(codebase: Codebase, path: str) -> None:
    refused(codebase, path, PathDenied, PathMissing)


@pytest.mark.parametrize("path", [".env", ".ENV", "keys/x.pem", "keys/X.PEM", ".env.", "./.env"])
def test_hidden_files_are_refused_in_every_spelling(codebase: Codebase, path: str) -> None:
    refused(codebase, path)


def test_a_refusal_does_not_reveal_whether_a_hidden_file_exists(codebase: Codebase) -> None:
    messages: list[str] = []
    for path in (".env", ".envrc"):
        with pytest.raises(PathDenied) as error:
            codebase.read(path, bounded_stop())
        messages.append(str(error.value.as_dict()).replace(path, "X"))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("target", ["secret.txt", "sub/deep.txt", "no-such-file"])
@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
def test_a_link_out_of_the_root_is_refused_and_reveals_nothing(
    codebase: Codebase, root: Root, outside: Path, target: str, absolute: bool
) -> None:
    link = root.path / "innocent.txt"
    link.symlink_to(outside / target if absolute else Path("../outside") / target)
    refused(codebase, "innocent.txt")
    assert not codebase.glob(["innocent.txt"], bounded_stop()).entries


def test_a_folder_that_links_out_of_the_root_is_neither_read_nor_listed_nor_walked(
    codebase: Codebase, root: Root, outside: Path
) -> None:
    (root.path / "vendor").symlink_to(outside, target_is_directory=True)
    refused(codebase, "vendor/secret.txt")
    refused(codebase, "vendor")
    assert [entry.path for entry in codebase.files(bounded_stop()).entries] == ["src/a.py"]
    with pytest.raises(PathDenied):
        codebase.grep(SearchPattern(SECRET), bounded_stop(), below=["vendor"])


def test_links_to_links_and_in_a_circle_are_refused(codebase: Codebase, root: Root, outside: Path) -> None:
    (root.path / "first").symlink_to("second")
    (root.path / "second").symlink_to(outside / "secret.txt")
    (root.path / "round").symlink_to("about")
    (root.path / "about").symlink_to("round")
    refused(codebase, "first")
    refused(codebase, "round", PathDenied, PathMissing)


def test_a_link_to_a_hidden_file_is_hidden(codebase: Codebase, root: Root) -> None:
    (root.path / "notes.txt").symlink_to(".env")
    (root.path / "more").symlink_to("keys", target_is_directory=True)
    (root.path / "vault").symlink_to(".ssh", target_is_directory=True)
    refused(codebase, "vault")
    refused(codebase, "vault/config")
    for path in ("notes.txt", "more/x.pem"):
        refused(codebase, path)
        with codebase.opener(bounded_stop()) as opener, pytest.raises(PathDenied):
            opener.read_text(FileEntry(root, path))


def test_links_inside_the_root_can_be_read(codebase: Codebase, root: Root) -> None:
    """P10"""
    (root.path / "same.py").symlink_to("src/a.py")
    (root.path / "absolute.py").symlink_to(root.path / "src" / "a.py")
    (root.path / "lib").symlink_to("src", target_is_directory=True)
    for path in ("same.py", "absolute.py", "lib/a.py"):
        assert read_lines(codebase, path) == "print('a')"
    assert [item.path for item in codebase.list("lib", bounded_stop()).items] == ["src/a.py"]


def test_a_file_of_another_root_is_refused(codebase: Codebase, outside: Path) -> None:
    with codebase.opener(bounded_stop()) as opener, pytest.raises(RootUnknown):
        opener.read_text(FileEntry(Root.at(outside), "secret.txt"))


def test_a_path_over_the_depth_limit_is_refused(codebase: Codebase, root: Root) -> None:
    deep = "/".join(["d"] * 101)
    (root.path / deep).mkdir(parents=True)
    (root.path / deep / "a.txt").write_text("deep")
    refused(codebase, f"{deep}/a.txt", PathMissing)


@pytest.mark.parametrize("place", [".env", "keys/x.pem", "node_modules/p/.env", ".git/config"])
def test_a_hard_link_to_a_hidden_file_is_hidden(codebase: Codebase, root: Root, place: str) -> None:
    create_root(root.path, {place: SECRET})
    os.link(root.path / place, root.path / "notes.txt")
    with pytest.raises(PathDenied):
        codebase.read("notes.txt", bounded_stop())
    assert not codebase.grep(SearchPattern(SECRET), bounded_stop()).matches


def test_a_hard_link_made_after_the_first_check_is_hidden_too(codebase: Codebase, root: Root) -> None:
    os.link(root.path / "src" / "a.py", root.path / "b.py")
    assert read_lines(codebase, "b.py") == "print('a')"
    create_root(root.path, {"late/.env": SECRET})
    os.link(root.path / "late" / ".env", root.path / "c.py")
    with pytest.raises(PathDenied):
        codebase.read("c.py", bounded_stop())
    assert read_lines(codebase, "b.py") == "print('a')"


def test_a_hard_link_to_another_roots_hidden_file_is_hidden(
    tmp_path: Path, root: Root, open_directory: Open
) -> None:
    other = create_root(tmp_path / "other", {"b.py": ""})
    os.link(root.path / ".env", other.path / "notes.txt")
    with pytest.raises(PathDenied):
        Codebase([other, root], open_directory=open_directory).read("notes.txt", bounded_stop())


def test_a_root_replaced_by_a_link_is_not_followed(codebase: Codebase, root: Root, outside: Path) -> None:
    root.path.rename(root.path.with_name("moved"))
    root.path.symlink_to(outside, target_is_directory=True)
    with pytest.raises(RetinueError):
        codebase.read("secret.txt", bounded_stop())
    files = codebase.files(bounded_stop())
    assert files.entries == ()
    assert files.omitted.unreadable


def test_a_link_put_above_the_root_is_not_followed(tmp_path: Path, open_directory: Open) -> None:
    root = create_root(tmp_path / "home" / "root", {"a.txt": "inside"})
    create_root(tmp_path / "away" / "root", {"a.txt": SECRET})
    (tmp_path / "home").rename(tmp_path / "moved")
    (tmp_path / "home").symlink_to(tmp_path / "away", target_is_directory=True)
    with pytest.raises(RetinueError):
        Codebase([root], open_directory=open_directory).read("a.txt", bounded_stop())


class Swapped:
    """A path that is alternately the real thing and a link to something else. Starts with the real thing."""

    def __init__(self, place: Path, fake: Path) -> None:
        self.place = place
        self.spare = place.with_name("spare")
        self.spare.symlink_to(fake)
        self.other = place.with_name("other")

    def swap(self) -> None:
        self.place.rename(self.other)
        self.spare.rename(self.place)
        self.other.rename(self.spare)


@pytest.fixture(params=["box", "box/inner.txt", "box/sub/deep.txt"])
def swapped_path(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def swapped(tmp_path: Path, swapped_path: str) -> Swapped:
    create_root(tmp_path / "root", {swapped_path: "inside"})
    create_root(tmp_path / "outside", {swapped_path: SECRET})
    return Swapped(tmp_path / "root" / "box", tmp_path / "outside" / "box")


def readings(codebase: Codebase, path: str) -> str:
    try:
        return read_lines(codebase, path)
    except (PathDenied, PathMissing):
        return "refused"


on_look: list[Callable[[], None]] = []
"""Called each time the disk was looked at, so that a test can change something just then."""


class InterruptedHeld(DescriptorDirectory):
    def lstat(self, name: str) -> os.stat_result:
        found = super().lstat(name)
        on_look[0]()
        return found

    def enter(self, name: str) -> Self:
        on_look[0]()
        return super().enter(name)


class InterruptedNamed(PathDirectory):
    def lstat(self, name: str) -> os.stat_result:
        found = super().lstat(name)
        on_look[0]()
        return found


@pytest.mark.parametrize("kind", [InterruptedHeld, InterruptedNamed])
def test_a_link_swapped_in_at_any_step_between_check_and_open_is_not_followed(
    swapped: Swapped, swapped_path: str, kind: type[InterruptedHeld] | type[InterruptedNamed]
) -> None:
    """Swaps after the first access to the disk, then after the second, and so on through the whole read."""
    looks = 0
    codebase = Codebase([Root.at(swapped.place.parent)], open_directory=kind.from_path)

    def swap_in_time() -> None:
        nonlocal looks
        looks -= 1
        if looks == 0:
            swapped.swap()

    on_look[:] = [swap_in_time]
    seen: list[str] = []
    for looks_before_swap in range(1, 10):
        looks = looks_before_swap
        seen.append(readings(codebase, swapped_path))
        if swapped.place.is_symlink():
            swapped.swap()
    assert "inside" in seen
    assert set(seen) <= {"inside", "refused"}


def test_a_link_swapped_in_by_another_thread_is_not_followed(
    swapped: Swapped, swapped_path: str, open_directory: Open
) -> None:
    codebase = Codebase([Root.at(swapped.place.parent)], open_directory=open_directory)
    turns = threading.Semaphore(0)

    def keep_swapping() -> None:
        for _ in range(ROUNDS):
            assert turns.acquire(timeout=WAIT_SECONDS)
            swapped.swap()

    thread = threading.Thread(target=keep_swapping)
    thread.start()
    seen: set[str] = set()
    for _ in range(ROUNDS):
        turns.release()
        seen.add(readings(codebase, swapped_path))
    while thread.is_alive():  # on a busy machine the thread may only start now
        seen.add(readings(codebase, swapped_path))
    assert seen <= {"inside", "refused"}
    assert readings(codebase, swapped_path) == "inside"
    swapped.swap()
    assert readings(codebase, swapped_path) == "refused"


@pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "pure"])
def test_a_folder_swapped_during_walk_and_search_reveals_nothing(tmp_path: Path, ripgrep: bool) -> None:
    names = [f"box/{number}.txt" for number in range(120)]
    root = create_root(tmp_path / "root", {**dict.fromkeys(names, "inside"), "z.txt": "inside"})
    create_root(
        tmp_path / "outside", {**dict.fromkeys(names, SECRET), "box/whose-name-is-secret.txt": SECRET}
    )
    swapped = Swapped(root.path / "box", tmp_path / "outside" / "box")
    codebase = Codebase([root]) if ripgrep else Codebase([root], ripgrep=lambda: None)
    turns = threading.Semaphore(0)

    def keep_swapping() -> None:
        while turns.acquire(timeout=WAIT_SECONDS):
            if done.is_set():
                return
            swapped.swap()

    done = threading.Event()
    thread = threading.Thread(target=keep_swapping)
    thread.start()
    for _ in range(12):
        turns.release()
        assert not codebase.grep(SearchPattern("hunter2"), bounded_stop()).matches
        turns.release()
        assert "secret" not in str([entry.path for entry in codebase.files(bounded_stop()).entries])
    done.set()
    turns.release()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
