"""docs/hosts.md matches the table of hosts."""

from __future__ import annotations

import pytest

from retinue.setup import HOSTS
from retinue.setup.hosts import Host
from retinue.setup.machine import DEFAULT_FOLDERS
from scripts.make_docs import DOCS
from tests.hosts.host_programs import ALL, HostProgram, version_of

PAGE = (DOCS / "hosts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_page_has_a_section_for_every_host(host: Host) -> None:
    heading = f"## `{host.name}`: {host.title}\n"
    assert PAGE.count(heading) == 1
    section = PAGE.split(heading)[1].split("\n## ")[0]
    assert f"retinue install {host.name}" in section
    for path in {*host.user_file.values(), host.project_file} - {None}:
        assert f"`{path}`" in section
    assert ("Project: `" in section) == (host.project_file is not None)
    assert f"under `{host.servers_key}`" in section.replace("\n  ", " ")
    assert ("Link: `" + host.link_base in section) if host.link else ("Link:" not in section)
    for sentence in (host.after_install, host.after_project_install, host.other_product, host.approval_note):
        assert sentence in section
    assert ("--approve\n" in section) == bool(host.approval)
    assert ("name the folders with `--root`" in section) == (host.tells_project is None)


def test_page_has_no_unknown_host() -> None:
    assert PAGE.count("\n## ") == len(HOSTS)


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_page_tells_what_the_tested_version_of_a_host_shows(program: HostProgram) -> None:
    assert f"\n| `{program.name}` {version_of(program)} | yes | yes | yes | yes | " in PAGE


def test_page_explains_every_folder_variable() -> None:
    for name, place in DEFAULT_FOLDERS.items():
        assert f"`${name}`" in PAGE and f"`{place}`" in PAGE
