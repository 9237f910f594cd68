"""The files of all packages fit together, and with the program that they start (P8)."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from retinue.setup import SHARED_COMMAND
from scripts import release
from scripts.release import PACKAGING, PLUGIN, ROOT
from tests.cli.conftest import run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERVER = json.loads((PACKAGING / "server.json").read_text(encoding="utf-8"))
BUNDLE = json.loads((PACKAGING / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
MARKET = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", release.stated_versions())
def test_every_package_states_the_version_of_the_project(place: str) -> None:
    assert release.stated_versions()[place] == PROJECT["version"]


def test_tag_needs_a_section_in_the_changelog() -> None:
    """Or the checkout has changes, or the tag exists: nothing is tagged by accident."""
    with pytest.raises(release.NotReleasable):
        release.check(tag=True)


def test_entry_for_the_registry_is_within_its_limits() -> None:
    assert len(SERVER["description"]) <= 100
    [package] = SERVER["packages"]
    assert (package["identifier"], package["transport"]) == (PROJECT["name"], {"type": "stdio"})
    arguments: list[dict[str, Any]] = package["packageArguments"]
    assert [each.get("value", each.get("name")) for each in arguments] == ["serve", "--root"]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/someone/retinue.git", "io.github.someone/retinue"),
        ("git@github.com:some-one/re.tinue", "io.github.some-one/re.tinue"),
        ("https://example.org/someone/retinue", None),
        ("", None),
    ],
)
def test_entry_for_the_registry_is_named_after_the_repository(address: str, name: str | None) -> None:
    assert release.registry_name(address) == name
    assert "name" not in SERVER  # nobody's name is made up


def test_packages_start_the_server_with_options_that_exist() -> None:
    entry = json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["retinue"]
    assert (entry["command"],) == SHARED_COMMAND
    started = [entry["args"], BUNDLE["server"]["mcp_config"]["args"][-3:]]
    usage = run("serve", "--help").output
    for arguments in started:
        assert arguments[0] == "serve"
        assert all(option in usage for option in arguments if option.startswith("--"))


def test_bundle_has_everything_that_its_manifest_names() -> None:
    assert (ROOT / BUNDLE["server"]["entry_point"]).is_file()
    assert {"src", "pyproject.toml", PROJECT["readme"]} <= {*release.BUNDLED}
    assert BUNDLE["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]


def test_marketplace_leads_to_the_plugin() -> None:
    [plugin] = MARKET["plugins"]
    manifest = ROOT / plugin["source"] / ".claude-plugin" / "plugin.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["name"] == plugin["name"]


def test_image_runs_as_a_user_without_rights_and_from_pins() -> None:
    image = (PACKAGING / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER [1-9]\d+$", image, re.MULTILINE)
    assert "--require-hashes -r requirements-release.txt" in image
    assert all(":3." in line for line in image.splitlines() if line.startswith("FROM "))
