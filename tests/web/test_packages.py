"""The packages of a project are known from its files; private ones are never asked about (P6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retinue.core import AddressDenied
from retinue.redaction import SecretRedactor
from retinue.web import (
    Dependency,
    Fetcher,
    OutgoingGuard,
    PageCache,
    WebPages,
    WebRules,
    merge_dependencies,
    named_in,
    read_dependencies,
)
from tests.web.site import Notes, Site
from tests.web.stubs import npm_answer, pypi_answer

UV_LOCK = """
version = 1
[[package]]
name = "httpx"
version = "0.27.2"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "inhouse-billing"
version = "1.0"
source = { registry = "https://packages.corp.example/simple" }
[[package]]
name = "me"
version = "0.1"
source = { editable = "." }
"""
LOCKS = {
    "uv.lock": (
        UV_LOCK,
        [("httpx", "0.27.2", True), ("inhouse-billing", "1.0", False), ("me", "0.1", False)],
    ),
    "poetry.lock": ('[[package]]\nname = "rich"\nversion = "13.0"\n', [("rich", "13.0", True)]),
    "requirements.txt": (
        "# x\nhttpx[http2]==0.27.2 ; python_version > '3'\nrich>=13\n-e .\nown @ git+ssh://git/x\n--hash=a\n",
        [("httpx", "0.27.2", True), ("rich", "", True), ("own", "", False)],
    ),
    "pyproject.toml": (
        '[project]\ndependencies = ["httpx>=0.27", "rich[x]"]\n[tool.poetry.dependencies]\npython = "3"\n'
        'inner = { path = "../inner" }\n',
        [("httpx", "", True), ("rich", "", True), ("inner", "", False)],
    ),
    "Pipfile.lock": (
        json.dumps({"default": {"rich": {"version": "==13.0"}, "own": {"git": "x"}}}),
        [("rich", "13.0", True), ("own", "", False)],
    ),
    "package.json": (
        json.dumps(
            {"dependencies": {"left-pad": "^1", "@corp/x": "file:../x"}, "devDependencies": {"vite": "5"}}
        ),
        [("left-pad", "", True), ("@corp/x", "", False), ("vite", "", True)],
    ),
    "package-lock.json": (
        json.dumps(
            {
                "packages": {
                    "": {"name": "me"},
                    "node_modules/left-pad": {
                        "version": "1.3.0",
                        "resolved": "https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz",
                    },
                    "node_modules/@corp/x": {"version": "1", "resolved": "https://npm.corp.example/x.tgz"},
                    "node_modules/left-pad/node_modules/inner": {"version": "9"},
                }
            }
        ),
        [("left-pad", "1.3.0", True), ("@corp/x", "1", False)],
    ),
    "yarn.lock": ('left-pad@^1.0.0:\n  version "1.3.0"\n', [("left-pad", "1.3.0", True)]),
    "pnpm-lock.yaml": ("packages:\n  left-pad@1.3.0:\n    x: y\n", [("left-pad", "1.3.0", True)]),
}


ELSEWHERE = {
    "requirements.txt": "--extra-index-url https://pypi.corp.example/simple\ninhouse-billing==1\n",
    "requirements-dev.txt": "-i=https://pypi.corp.example/simple\ninhouse-billing\n",
    "constraints.txt": "--find-links https://wheels.corp.example/\ninhouse-billing==1\n",
    "pyproject.toml": (
        '[project]\ndependencies = ["inhouse-billing"]\n[[tool.uv.index]]\nurl = "https://pypi.corp.example/simple"\n'
    ),
    "sources/pyproject.toml": (
        '[project]\ndependencies = ["Inhouse_Billing"]\n'
        "[tool.uv.sources]\ninhouse-billing = {workspace = true}\n"
    ),
    "poetry/pyproject.toml": (
        '[tool.poetry.dependencies]\ninhouse-billing = "^1"\n[[tool.poetry.source]]\nname = "corp"\n'
        'url = "https://pypi.corp.example/simple"\n'
    ),
    "Pipfile.lock": json.dumps(
        {
            "_meta": {"sources": [{"name": "corp", "url": "https://pypi.corp.example/simple"}]},
            "default": {"inhouse-billing": {"version": "==1"}},
        }
    ),
    "yarn.lock": 'inhouse-billing@^1:\n  version "1.0"\n  resolved "https://npm.corp.example/x.tgz#1"\n',
    "berry/yarn.lock": '"inhouse-billing@^1":\n  version: 1.0\n  resolution: "inhouse-billing@workspace:x"\n',
    "pnpm-lock.yaml": (
        "packages:\n  inhouse-billing@1.0.0:\n    resolution: {tarball: https://npm.corp.example/x.tgz}\n"
    ),
}
"""Files that say that a package, or all packages, come from an index of the company."""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_package_of_another_index_is_private_P6(name: str) -> None:
    (found,) = read_dependencies(name, ELSEWHERE[name])
    assert found.name.lower().replace("_", "-") == "inhouse-billing"
    assert not found.is_public


def test_index_that_only_some_packages_use_leaves_the_others_public() -> None:
    text = (
        '[project]\ndependencies = ["httpx", "torch"]\n[tool.uv.sources]\ntorch = {index = "cpu"}\n'
        '[[tool.uv.index]]\nname = "cpu"\nurl = "https://download.example/whl"\nexplicit = true\n'
    )
    found = {each.name: each.is_public for each in read_dependencies("pyproject.toml", text)}
    assert found == {"httpx": True, "torch": False}


@pytest.mark.parametrize("name", LOCKS)
def test_names_and_versions_are_read(name: str) -> None:
    text, expected = LOCKS[name]
    found = read_dependencies(name, text)
    assert [(each.name, each.version, each.is_public) for each in found] == expected


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("text", ["", "{", "\x00\xff", "[[[", "null", "[]", '{"packages": 3}', "x" * 100_000])
def test_damaged_file_names_nothing_or_little(name: str, text: str) -> None:
    assert len(read_dependencies(name, text)) <= 1


def test_other_files_name_nothing() -> None:
    assert read_dependencies("README.md", "httpx==1.0") == []


def test_lock_gives_the_version_and_a_private_source_wins() -> None:
    manifest = read_dependencies("pyproject.toml", '[project]\ndependencies = ["httpx", "inhouse-billing"]')
    merged = {
        each.name: each for each in merge_dependencies([*manifest, *read_dependencies("uv.lock", UV_LOCK)])
    }
    assert merged["httpx"].version == "0.27.2"
    assert not merged["inhouse-billing"].is_public


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("how does httpx limit connections?", ["httpx"]),
        ("HTTPX timeouts", ["httpx"]),
        ("what is @corp/x", ["@corp/x"]),
        ("how to click a button", []),
        ("how does `click` parse options", ["click"]),
        ("using typing_extensions here", ["typing-extensions"]),
        ("httpxyz is another", []),
        ("where are retries?", []),
    ],
)
def test_question_names_its_packages(question: str, names: list[str]) -> None:
    known = ("httpx", "click", "typing-extensions")
    dependencies = [Dependency(name=each, ecosystem="pypi") for each in known]
    dependencies.append(Dependency(name="@corp/x", ecosystem="npm"))
    assert [each.name for each in named_in(question, dependencies)] == names


def pages_on(site: Site, folder: Path) -> WebPages:
    return WebPages(
        Fetcher(WebRules(allow_private=("127.0.0.1",))),
        PageCache(folder, 0),
        OutgoingGuard(SecretRedactor()),
        indexes={"pypi": site.root, "npm": site.root},
    )


@pytest.mark.anyio
async def test_package_page_is_that_of_the_projects_version_and_names_the_newest(tmp_path: Path) -> None:
    readme = "# httpx\n\nA client with <!-- hidden -->limits."
    site = Site(
        {
            "/pypi/httpx/json": pypi_answer("httpx", "0.28.0", "newer", "https://docs.example/"),
            "/pypi/httpx/0.27.2/json": pypi_answer("httpx", "0.27.2", readme, "https://docs.example/"),
            "/left-pad": npm_answer(
                "left-pad", {"1.2.0": "pads", "1.3.0": "pads more"}, "1.3.0", "Pads strings."
            ),
        }
    )
    async with site.serve(), pages_on(site, tmp_path) as pages:
        notes = Notes()
        facts = await pages.package(
            Dependency(name="httpx", ecosystem="pypi", version="0.27.2"), on_request=notes
        )
        assert facts.latest == "0.28.0"
        assert facts.links == ("https://docs.example/",)
        assert facts.page.title == "httpx 0.27.2"
        assert facts.page.date == "2025-03-01"
        assert (
            facts.page.final == f"{site.root}/pypi/httpx/0.27.2/json"
        )  # the user's own index, not the public one
        assert "A client with limits." in facts.page.text and "hidden" not in facts.page.text
        assert "The newest version of httpx is 0.28.0." in facts.page.text
        padded = await pages.package(
            Dependency(name="left-pad", ecosystem="npm", version="1.2.0"), on_request=notes
        )
        assert (padded.latest, padded.page.title) == ("1.3.0", "left-pad 1.2.0")
        assert "Pads strings." in padded.page.text
        with pytest.raises(AddressDenied, match="does not come from the public index"):
            await pages.package(
                Dependency(name="inhouse-billing", ecosystem="pypi", is_public=False), on_request=notes
            )
    assert "inhouse" not in str(site.requests)
