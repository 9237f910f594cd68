"""Pipes, devices, sockets and the files of /proc are refused at once and never block (P2, P6)."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from retinue.codebase import Codebase, FileEntry, SearchPattern
from retinue.codebase.access.directory import DescriptorDirectory, read_fully
from retinue.core import LimitExceeded, PathDenied, PathMissing, RetinueError, Root
from tests.codebase.file_support import WAIT_SECONDS, bounded_stop, create_root

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return create_root(tmp_path / "root", {"a.txt": "text"})


def error_of(root: Root, path: str) -> RetinueError:
    with pytest.raises(RetinueError) as error:
        Codebase([root]).read(path, bounded_stop())
    return error.value


def test_a_pipe_is_refused_without_waiting_for_a_writer(root: Root) -> None:
    os.mkfifo(root.path / "pipe")
    (root.path / "link").symlink_to("pipe")
    assert isinstance(error_of(root, "pipe"), PathDenied)
    assert isinstance(error_of(root, "link"), PathDenied)


def test_a_pipe_that_replaces_a_file_after_the_check_is_refused(root: Root) -> None:
    """The check sees the file, but the open gets the pipe."""

    class Swapping(DescriptorDirectory):
        def lstat(self, name: str) -> os.stat_result:
            found = super().lstat(name)
            if stat.S_ISREG(found.st_mode):
                (root.path / "a.txt").unlink()
                os.mkfifo(root.path / "a.txt")
            return found

    codebase = Codebase([root], open_directory=Swapping.from_path)
    with codebase.opener(bounded_stop()) as opener, pytest.raises(PathDenied):
        opener.read_text(FileEntry(root, "a.txt"))


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = create_root(tmp_path / "root", {"a.txt": ""})
    monkeypatch.chdir(root.path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert isinstance(error_of(root, "socket"), PathDenied)


@pytest.mark.parametrize(
    "device", ["/dev/zero", "/dev/random", "/dev/tty", "/dev/stdin", "/proc/kmsg", "/proc/self/mem"]
)
def test_devices_and_proc_behind_a_link_are_refused(root: Root, device: str) -> None:
    (root.path / "link").symlink_to(device)
    assert isinstance(error_of(root, "link"), PathDenied)


def test_a_device_inside_the_root_is_refused(root: Root) -> None:
    try:
        os.mknod(root.path / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root may make devices")
    assert isinstance(error_of(root, "zero"), PathDenied)


def test_walks_lists_and_searches_skip_special_files(root: Root) -> None:
    os.mkfifo(root.path / "pipe")
    (root.path / "zero").symlink_to("/dev/zero")
    codebase = Codebase([root])
    assert [entry.path for entry in codebase.files(bounded_stop()).entries] == ["a.txt"]
    kinds = {item.path: item.kind for item in codebase.list("", bounded_stop()).items}
    assert kinds == {"a.txt": "file", "pipe": "other", "zero": "link"}
    assert len(codebase.grep(SearchPattern("."), bounded_stop()).matches) == 1
    assert len(codebase.grep(SearchPattern("."), bounded_stop(), below=["pipe", "a.txt"]).matches) == 1


def test_a_file_is_read_up_to_the_size_it_had_when_opened(root: Root) -> None:
    """Files in /proc report size 0, so nothing is read from them and endless ones do not block."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system has no /proc")
    fd = os.open("/proc/self/status", os.O_RDONLY)
    try:
        assert read_fully(fd, os.fstat(fd).st_size) == b""
    finally:
        os.close(fd)


def test_reading_a_growing_file_ends(root: Root) -> None:
    stop_writing = threading.Event()

    def keep_writing() -> None:
        with (root.path / "a.txt").open("ab") as file:
            for _ in range(10_000):
                if stop_writing.is_set():
                    return
                file.write(b"x")
                file.flush()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        with Codebase([root]).opener(bounded_stop()) as opener:
            for _ in range(50):
                smallest = (root.path / "a.txt").stat().st_size
                text = opener.read_text(FileEntry(root, "a.txt"))
                assert smallest <= len(text.utf8) <= (root.path / "a.txt").stat().st_size
    finally:
        stop_writing.set()
        writer.join(WAIT_SECONDS)
    assert not writer.is_alive()


def test_a_file_over_the_size_limit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    """P2"""
    root = create_root(tmp_path, {"big.txt": "x" * 1_048_577})
    error = error_of(root, "big.txt")
    assert isinstance(error, LimitExceeded)
    assert (error.used, error.limit) == (1_048_577, 1_048_576)


def test_a_file_without_permission_says_so(root: Root) -> None:
    """P8"""
    if os.geteuid() == 0:
        pytest.skip("permissions mean nothing to root")
    (root.path / "a.txt").chmod(0)
    assert isinstance(error_of(root, "a.txt"), PathDenied)
    assert Codebase([root]).grep(SearchPattern("text"), bounded_stop()).omitted.unreadable == 1


@pytest.mark.parametrize("path", ["", ".", "sub", "no-such", "a.txt/b", "sub/no/such", "x" * 300])
def test_a_path_that_is_no_file_is_refused(root: Root, path: str) -> None:
    """P8"""
    (root.path / "sub").mkdir()
    assert isinstance(error_of(root, path), PathDenied | PathMissing)
