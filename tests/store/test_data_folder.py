"""The data folder is created, and refused where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Unavailable
from retinue.store import Store
from retinue.store.data_folder import filesystem_type, mount_type, refuse_network_filesystem


def test_file_in_place_of_a_folder_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "owners").write_text("garbage")
    with pytest.raises(Unavailable, match="owners is a file where a folder must be") as refused:
        Store.open(tmp_path)
    assert "move owners away" in (refused.value.hint or "")
    assert str(tmp_path) not in str(refused.value.as_dict())


def test_path_that_cannot_be_a_folder_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable) as refused:
        Store.open(tmp_path / "file" / "data")
    assert refused.value.hint and "RETINUE_DATA_DIR" in refused.value.hint


MOUNTS = """\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
30 22 0:40 / /home/me/net rw - nfs4 server:/export rw
31 22 0:41 / /home/me/with\\040space rw - cifs //server/share rw
32 30 0:42 / /home/me/net/local rw - tmpfs tmpfs rw
33 22 0:43 / /mnt/c rw - 9p drvfs rw
34 22 0:44 / /remote rw - ext4 /dev/sdb rw
35 22 0:45 / /remote rw - fuse.sshfs me@server: rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/.local/share/retinue", "ext4"),
        ("/home/me/net", "nfs4"),
        ("/home/me/net/deep/er", "nfs4"),
        ("/home/me/network", "ext4"),
        ("/home/me/with space/x", "cifs"),
        ("/home/me/net/local/x", "tmpfs"),
        ("/mnt/c/Users", "9p"),
        ("/remote/x", "fuse.sshfs"),
    ],
)
def test_filesystem_type_is_that_of_the_innermost_mount(folder: str, kind: str) -> None:
    assert mount_type(Path(folder), MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "remote"]
)
def test_network_filesystem_is_refused_with_a_hint(kind: str) -> None:
    """P5: file locks and shared memory are unreliable there."""
    with pytest.raises(Unavailable, match="network filesystem") as refused:
        refuse_network_filesystem(kind)
    assert refused.value.hint and "RETINUE_DATA_DIR" in refused.value.hint


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "apfs", "NTFS", "tmpfs", "overlay", "fuse.ntfs-3g", None])
def test_local_filesystem_is_accepted(kind: str | None) -> None:
    refuse_network_filesystem(kind)


def test_filesystem_of_this_machine_is_known_and_accepted(tmp_path: Path) -> None:
    kind = filesystem_type(tmp_path.resolve())
    assert kind
    refuse_network_filesystem(kind)
