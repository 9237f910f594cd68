"""Reads what package indexes say about a project's packages: their README, their documentation.

Reads the names and versions out of lock and manifest files, and asks PyPI or npm about a single package. A
package that comes from another place than the public index is never asked about: its name is private. Knows
nothing of where the files are.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import quote, urlsplit

from retinue.core import (
    FetchFailed,
    as_object,
    as_object_list,
    as_text,
    clip,
    json_or_none,
    strip_control_characters,
)
from retinue.web.fetcher import Fetcher, OnRequest
from retinue.web.page_cache import Page, read_date

Ecosystem = Literal["pypi", "npm"]
MAX_README_CHARS = 200_000
MAX_DEPENDENCIES = 5_000


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """A package index: its API, and the page that people see."""

    api: str
    page: str


INDEXES: Mapping[Ecosystem, PackageIndex] = {
    "pypi": PackageIndex("https://pypi.org", "https://pypi.org/project/{name}/{version}/"),
    "npm": PackageIndex("https://registry.npmjs.org", "https://www.npmjs.com/package/{name}/v/{version}"),
}
"""The public indexes. The user's settings may name others."""
PYTHON_HOSTS = ("pypi.org", "files.pythonhosted.org", "pypi.python.org")
NPM_HOSTS = ("registry.npmjs.org", "registry.yarnpkg.com")
_INDEX_OPTION = re.compile(
    r"^\s*(?:-i|--index-url|--extra-index-url|-f|--find-links)[\s=]+(\S+)", re.MULTILINE
)
"""A line of a file of requirements that names an index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A package that the project uses."""

    name: str
    ecosystem: Ecosystem
    version: str = ""
    """The version in a lock file; empty if only a manifest names the package."""
    is_public: bool = True
    """Whether it comes from the public index, as far as the project's files say."""
    file: str = ""
    """The file that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFacts:
    """The facts that an index has about a package."""

    page: Page
    """The README of the version that the project uses."""
    latest: str
    links: tuple[str, ...] = ()
    """The documentation, the repository and the changelog."""


def read_dependencies(path: str, text: str) -> list[Dependency]:
    """Return the packages that a lock or manifest file names. A damaged file names none."""
    name = path.rpartition("/")[2].lower()
    reader = next((reader for pattern, reader in _READERS if re.fullmatch(pattern, name)), None)
    if reader is None:
        return []
    try:
        found = [replace(each, file=path) for each in reader(text)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []
    return found[:MAX_DEPENDENCIES]


def merge_dependencies(found: Iterable[Dependency]) -> list[Dependency]:
    """Return each package once: with the version of a lock file, and as private if any file says so."""
    merged: dict[tuple[str, str], Dependency] = {}
    for each in found:
        key = each.ecosystem, normal_name(each.name)
        known = merged.get(key)
        if known is None:
            merged[key] = each
        else:
            locked = each if each.version and not known.version else known
            merged[key] = replace(locked, is_public=known.is_public and each.is_public)
    return list(merged.values())


def named_in(question: str, dependencies: Iterable[Dependency]) -> list[Dependency]:
    """Return the packages that a question names, those with the longest names first."""
    words = f" {' '.join(re.findall(r'@?[A-Za-z0-9][A-Za-z0-9._/-]*', question))} ".lower()
    found = [
        each
        for each in dependencies
        if re.search(rf"(?<![\w@/-]){re.escape(each.name.lower())}(?![\w/-])", words)
        or re.search(rf"(?<![\w-]){re.escape(normal_name(each.name))}(?![\w-])", words.replace("_", "-"))
    ]
    plain = {"test", "types", "build", "click", "wheel", "packaging", "attrs", "six", "node", "next", "open"}
    certain = [each for each in found if len(each.name) > 2 and each.name.lower() not in plain]
    marked = [
        each for each in found if each not in certain and re.search(rf"`{re.escape(each.name)}`", question)
    ]
    return sorted((*certain, *marked), key=lambda each: (-len(each.name), each.name))


def normal_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


async def read_package(
    fetcher: Fetcher, package: Dependency, apis: Mapping[Ecosystem, str], on_request: OnRequest
) -> PackageFacts:
    """Ask the index about a package. Raises `FetchFailed` or `AddressDenied`."""
    index = INDEXES[package.ecosystem]
    api = (apis.get(package.ecosystem) or index.api).rstrip("/")
    why = f"the package {package.name}"
    if package.ecosystem == "pypi":
        name = quote(normal_name(package.name), safe="")
        address = f"{api}/pypi/{name}/json"
        newest = await _get(fetcher, address, why, on_request)
        info, latest = as_object(newest.get("info")), _version(as_object(newest.get("info")).get("version"))
        files = as_object_list(newest.get("urls"))
        if package.version and package.version != latest:
            address = f"{api}/pypi/{name}/{quote(package.version, safe='')}/json"
            own = await _get(fetcher, address, why, on_request)
            info, files = as_object(own.get("info")), as_object_list(own.get("urls"))
        links = as_object(info.get("project_urls"))
        date = read_date(as_text(files[0].get("upload_time"))) if files else ""
        readme, summary = as_text(info.get("description")), as_text(info.get("summary"))
    else:
        name = quote(package.name, safe="@")
        address = f"{api}/{name}"
        found = await _get(fetcher, address, why, on_request)
        latest = _version(as_object(found.get("dist-tags")).get("latest"))
        versions = as_object(found.get("versions"))
        info = as_object(versions.get(package.version or latest))
        links = {"Homepage": info.get("homepage"), "Repository": as_object(info.get("repository")).get("url")}
        date = read_date(as_text(as_object(found.get("time")).get(package.version or latest)))
        readme = as_text(info.get("readme")) or as_text(found.get("readme"))
        summary = as_text(info.get("description"))
    version = package.version or latest
    shown = index.page.format(name=package.name, version=version)
    if api != index.api:  # the page of the public index may say something else
        shown = address
    text = f"# {package.name} {version}\n\n{summary}\n\n{readme}"
    if latest and latest != version:
        text += f"\n\nThe newest version of {package.name} is {latest}.\n"
    page = Page(
        address=shown,
        final=shown,
        title=f"{package.name} {version}",
        date=date,
        text=strip_control_characters(text)[:MAX_README_CHARS],
        fetched_at=time.time(),
    )
    return PackageFacts(page=page, latest=latest, links=tuple(_links(links)))


def _version(found: object) -> str:
    """Return a version from an index; empty if it is not a valid one."""
    return version if re.fullmatch(r"[\w.!+-]{1,60}", version := as_text(found)) else ""


async def _get(fetcher: Fetcher, url: str, why: str, on_request: OnRequest) -> dict[str, Any]:
    got = await fetcher.fetch(url, why=why, on_request=on_request, headers={"accept": "application/json"})
    answer = json_or_none(got.body)
    if not isinstance(answer, dict):
        raise FetchFailed(f"{got.address.host} did not answer with JSON")
    return cast("dict[str, Any]", answer)


def _links(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of the documentation first, then those of changes and of the project."""
    order = ("doc", "guide", "change", "release", "home", "repo", "source")

    def rank(name: str) -> int:
        return next((place for place, word in enumerate(order) if word in name.lower()), len(order))

    for name in sorted(found, key=rank):
        address = clip(as_text(found[name]), 500).removeprefix("git+").removesuffix(".git")
        if rank(name) < len(order) and address.startswith(("https://", "http://")):
            yield address


def _requirements(text: str) -> Iterator[Dependency]:
    others = any(_is_other_index(place) for place in _INDEX_OPTION.findall(text))
    for line in text.splitlines():
        found = re.match(
            r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:(==)\s*([\w.!+-]+)|([<>=!~@ ;#,].*)?$)", line
        )
        if found:
            yield Dependency(
                name=found[1],
                ecosystem="pypi",
                version=found[3] or "",
                is_public=not others and "@" not in line,
            )


def _pyproject(text: str) -> Iterator[Dependency]:
    tree = tomllib.loads(text)
    project = as_object(tree.get("project"))
    extras = as_object(project.get("optional-dependencies")).values()
    lists: list[Any] = [
        project.get("dependencies"),
        *extras,
        *as_object(tree.get("dependency-groups")).values(),
    ]
    tools = as_object(tree.get("tool"))
    uv, poetry = as_object(tools.get("uv")), as_object(tools.get("poetry"))
    others = any(map(_is_other_index, _indexes_for_all(uv, poetry, as_object(tools.get("pdm")))))
    elsewhere = {normal_name(name) for name in as_object(uv.get("sources"))}
    for each in lists:
        if isinstance(each, list):
            for one in _requirements("\n".join(str(one) for one in cast("list[Any]", each))):
                is_public = one.is_public and not others and normal_name(one.name) not in elsewhere
                yield replace(one, is_public=is_public)
    for name, wanted in as_object(poetry.get("dependencies")).items():
        if name.lower() != "python":
            private = others or not {"path", "git", "url", "source"}.isdisjoint(as_object(wanted))
            yield Dependency(name=name, ecosystem="pypi", is_public=not private)


def _indexes_for_all(*tools: Mapping[str, Any]) -> Iterator[str]:
    """Yield the indexes that a manifest's tools ask for every package, not only for those that name them."""
    for tool in tools:
        for each in (*as_object_list(tool.get("index")), *as_object_list(tool.get("source"))):
            if not each.get("explicit") and each.get("priority") != "explicit":
                yield as_text(each.get("url"))
        for name in ("index-url", "extra-index-url", "find-links"):
            given = tool.get(name)
            yield from map(str, cast("list[Any]", given) if isinstance(given, list) else [given or ""])


def _is_other_index(place: str) -> bool:
    """Return whether packages come from another place than the public index of Python."""
    return bool(place) and _host(place) not in PYTHON_HOSTS


def _toml_lock(text: str) -> Iterator[Dependency]:
    """uv.lock and poetry.lock."""
    for each in as_object_list(tomllib.loads(text).get("package")):
        source = as_object(each.get("source"))
        place = as_text(source.get("registry")) or as_text(source.get("url"))
        is_public = not source or (bool(place) and _host(place) in PYTHON_HOSTS)
        name, version = as_text(each.get("name")), as_text(each.get("version"))
        if name:
            yield Dependency(name=name, ecosystem="pypi", version=version, is_public=is_public)


def _pipfile_lock(text: str) -> Iterator[Dependency]:
    tree = as_object(json.loads(text))
    sources = as_object_list(as_object(tree.get("_meta")).get("sources"))
    others = {as_text(each.get("name")) for each in sources if _is_other_index(as_text(each.get("url")))}
    for group in ("default", "develop"):
        for name, each in as_object(tree.get(group)).items():
            found = as_object(each)
            version = as_text(found.get("version")).removeprefix("==")
            index = as_text(found.get("index"))
            private = not {"git", "path", "file"}.isdisjoint(found)
            private = private or index in others or (bool(others) and not index)
            yield Dependency(name=name, ecosystem="pypi", version=version, is_public=not private)


def _package_json(text: str) -> Iterator[Dependency]:
    tree = as_object(json.loads(text))
    for group in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, wanted in as_object(tree.get(group)).items():
            private = bool(
                re.match(r"(?:file|link|workspace|git|github|https?)[:+]|[\w-]+/[\w-]+$", as_text(wanted))
            )
            yield Dependency(name=name, ecosystem="npm", is_public=not private)


def _package_lock(text: str) -> Iterator[Dependency]:
    tree = as_object(json.loads(text))
    found = as_object(tree.get("packages")) or as_object(tree.get("dependencies"))
    for key, each in found.items():
        name = key.rpartition("node_modules/")[2]
        entry = as_object(each)
        place = as_text(entry.get("resolved"))
        if name and "node_modules/" not in key.removeprefix("node_modules/"):
            is_public = not entry.get("link") and (not place or _host(place) in NPM_HOSTS)
            yield Dependency(
                name=name, ecosystem="npm", version=as_text(entry.get("version")), is_public=is_public
            )


def _yarn_lock(text: str) -> Iterator[Dependency]:
    for entry in re.split(r"\n(?=\S)", text):
        name = re.match(r'"?(@?[\w./-]+)@', entry)
        version = re.search(r'^\s+"?version"?:?\s+"?([\w.+-]+)', entry, re.MULTILINE)
        if name and version:
            place = re.search(r'^\s+resolved "?(\S+)', entry, re.MULTILINE)
            other = re.search(r'^\s+resolution: "[^"\n]*@(?!npm:)\w+:', entry, re.MULTILINE)
            is_public = not other and (place is None or _host(place[1]) in NPM_HOSTS)
            yield Dependency(name=name[1], ecosystem="npm", version=version[1], is_public=is_public)


def _pnpm_lock(text: str) -> Iterator[Dependency]:
    for entry in re.split(r"\n(?= {2}\S)", text):
        found = re.match(r" {2}'?/?(@?[\w.-]+(?:/[\w.-]+)?)[@/](\d[\w.+-]*)", entry)
        if found:
            place = re.search(r"\btarball: ([^\s,}]+)", entry)
            is_public = place is None or _host(place[1]) in NPM_HOSTS
            yield Dependency(name=found[1], ecosystem="npm", version=found[2], is_public=is_public)


def _host(address: str) -> str:
    return urlsplit(address).hostname or ""


_READERS: tuple[tuple[str, Callable[[str], Iterator[Dependency]]], ...] = (
    (r"uv\.lock|poetry\.lock|pdm\.lock", _toml_lock),
    (r"pipfile\.lock", _pipfile_lock),
    (r"(?:requirements|constraints)[\w.-]*\.txt", _requirements),
    (r"pyproject\.toml", _pyproject),
    (r"package-lock\.json|npm-shrinkwrap\.json", _package_lock),
    (r"package\.json", _package_json),
    (r"yarn\.lock", _yarn_lock),
    (r"pnpm-lock\.yaml", _pnpm_lock),
)
DEPENDENCY_FILES = (
    *(
        "uv.lock",
        "poetry.lock",
        "pdm.lock",
        "Pipfile.lock",
        "requirements.txt",
        "constraints.txt",
        "pyproject.toml",
    ),
    *(
        "requirements-dev.txt",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "package.json",
        "yarn.lock",
        "pnpm-lock.yaml",
    ),
)
"""The files at the top of a project that name its packages; locks first, because they know the versions."""
