"""Tells the kind of a file from its path alone, and whether its text is searched."""

from __future__ import annotations

import functools
import re
from itertools import pairwise
from typing import Literal

FileKind = Literal["implementation", "test", "config", "docs", "types", "entry point"]
FileCategory = Literal["own", "test", "vendored", "example", "docs", "config", "package"]
"""How a file counts in a ranking: all categories but `own` are ranked lower. Generated code is `vendored`."""

_TEST_FOLDER = re.compile(
    r"(?:.*[._-])?(?:(?:unit|integration|functional)?tests?|testing|specs?|testdata|fixtures?|e2e|mocks?)(?:[._-].*)?"
)
_LIBRARY_FOLDERS = frozenset(["test", "testing"])
"""In a Python package, these folders contain test helpers. A file named like a test is still a test."""
_VENDOR_FOLDERS = frozenset(
    [
        *("vendor", "vendored", "_vendor", "third_party", "thirdparty", "node_modules"),
        *("extern", "external", "externals", "dist", "build"),
    ]
)
_WRAPPER_FILES = frozenset(["gradlew", "gradlew.bat", "mvnw", "mvnw.cmd"])
"""Scripts of build tools that projects copy."""
_EXAMPLE_FOLDERS = frozenset(
    [
        *("examples", "example", "demo", "demos", "sample", "samples", "galleries", "gallery"),
        *("tutorials", "tutorial", "benchmarks", "benchmark", "benches", "asv_bench"),
    ]
)
_EXAMPLE_ENDS = ("Example", "Examples", "Sample", "Samples", "Benchmark", "Benchmarks")
"""Ends of folder names in camel case: `MyAppSamples`."""
_BUNDLED_FILE = re.compile(r".*(?:\.min\..*|-\d{1,4}(?:\.\d{1,4}){1,3}\.(?:js|css))")
"""Matches third-party files such as `jquery.min.js` and `jquery-3.6.0.js`."""
_GENERATED_FILE = re.compile(
    r".*(?:\.pb\.(?:go|cc|h|gw\.go)|_pb2(?:_grpc)?\.pyi?|_pb\.(?:js|rb|d\.ts)|\.connect\.go|\.g\.(?:dart|cs)|\.designer\.cs)"
    r"|(?:.*[._-]|zz_)generated\..*|(?:.*[._-])gen\.(?:go|ts|rs)"
    r"|pkg-info"
)
"""Matches generated files. They repeat what their source says: `PKG-INFO` has the whole README."""
_DOC_FOLDERS = frozenset(["doc", "docs", "documentation", "website", "javadoc", "apidocs"])
_DOC_SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc")
_DOC_FILE = re.compile(
    r"(?:readme|changes|changelog|history|news|authors|contributors|contributing|licen[cs]e|unlicense|copying"
    r"|notice|todo|install|upgrading)(?:[_-].*)?"
)
_MAN_PAGE = re.compile(r"[a-z](?:[\w.+-]*[a-z])?\.[1-8]")
_CONFIG_SUFFIXES = (
    *(".toml", ".cfg", ".ini", ".yml", ".yaml", ".json", ".conf", ".properties", ".lock", ".xml"),
    *(".gradle", ".mk", ".csproj", ".vbproj", ".fsproj", ".vcxproj", ".sln", ".props", ".targets"),
)
_PACKAGE_FILES = frozenset(["__init__.py", "index.js", "index.ts", "mod.rs", "package-info.java", "doc.go"])
_CONFIG_FILES = frozenset(["makefile", "dockerfile", "setup.py", "conftest.py", "settings.py", "config.py"])
_ENTRY_POINT_FILE = re.compile(r"(?:__main__|main|manage|cli|app|server|wsgi|asgi|index)\.\w{1,5}")
_TEST_FILE = re.compile(
    r"(?:test_.*|.*[_.-](?:test|spec)s?|tests?|conftest|.*[a-z0-9]Tests?|Test[A-Z].*)\.\w{1,5}"
)
_TYPES_FILE = re.compile(
    r".*(?:\.d\.ts|\.pyi|\.proto|\.graphql)|(?:types?|typing|interfaces?|schemas?|models?)\.\w{1,5}"
)


@functools.lru_cache(maxsize=16_384)
def file_category(path: str) -> FileCategory:
    """Return the category of a file: the project's own code, or something that is ranked lower."""
    *folders, name = path.split("/")
    inside = {folder.lower() for folder in folders}
    base = name.lower()
    if _TEST_FILE.fullmatch(name) or _is_in_test_folder(folders, base):
        return "test"
    if (
        inside & _VENDOR_FOLDERS
        or folders[:1] == ["deps"]
        or base in _WRAPPER_FILES
        or _BUNDLED_FILE.fullmatch(base)
        or _GENERATED_FILE.fullmatch(base)
        or _is_bundled_package(folders, base)
    ):
        return "vendored"
    if inside & _EXAMPLE_FOLDERS or any(folder.endswith(_EXAMPLE_ENDS) for folder in folders):
        return "example"
    if inside & _DOC_FOLDERS or base.endswith(_DOC_SUFFIXES) or _is_doc_page(base):
        return "docs"
    if base.endswith(_CONFIG_SUFFIXES):
        return "config"
    return "package" if base in _PACKAGE_FILES else "own"


def _is_bundled_package(folders: list[str], base: str) -> bool:
    """Return whether a file is third-party code, as in `requests/packages/urllib3`.

    A top-level `packages` folder belongs to the project.
    """
    return "packages" in folders[1:] and base.endswith(".py")


def _is_doc_page(base: str) -> bool:
    """Return whether a file is a manual page, or documentation without a suffix such as README."""
    page = _DOC_FILE if "." not in base else _MAN_PAGE
    return page.fullmatch(base) is not None


def _is_in_test_folder(folders: list[str], base: str) -> bool:
    """Return whether the file is inside a folder of tests. Folders of test helpers do not count."""
    if ("src", "main") in pairwise(folders):  # the layout of Maven and Gradle: tests are in `src/test`
        return False
    for depth, folder in enumerate(folders):
        if _is_test_folder(folder):
            library = depth and folder in _LIBRARY_FOLDERS and base.endswith(".py")
            if not library:
                return True
    return False


@functools.lru_cache(maxsize=4_096)
def _is_test_folder(folder: str) -> bool:
    """Return whether a folder is named like `tests`, `unit-tests`, `test_data`, `Core.Tests`, `AppTests`."""
    return _TEST_FOLDER.fullmatch(folder.lower()) is not None or folder.endswith(("Test", "Tests"))


def file_kind(path: str) -> FileKind:
    """Return what a file is for."""
    category = file_category(path)
    base = path.rsplit("/", 1)[-1].lower()
    if category == "test":
        return "test"
    if category == "docs":
        return "docs"
    if category == "config" or base in _CONFIG_FILES:
        return "config"
    if _TYPES_FILE.fullmatch(base):
        return "types"
    return "entry point" if _ENTRY_POINT_FILE.fullmatch(base) else "implementation"


MAX_SEARCHED_BYTES = 500_000
"""Larger text files are data or generated code; they are neither searched nor parsed."""

_DATA_SUFFIXES = """
.po .pot .mo .svg .csv .tsv .lock .map .min.js .min.css .ipynb .geojson .ndjson .jsonl .parquet .sqlite
.db .dat .png .jpg .jpeg .gif .ico .webp .bmp .tif .tiff .pdf .ps .eps .dvi .woff .woff2 .ttf .otf .eot
.afm .pfb .zip .gz .bz2 .xz .zst .tar .tgz .7z .jar .war .whl .egg .so .dll .dylib .exe .o .a .lib .class
.pyc .pyd .wasm .mp3 .mp4 .wav .ogg .webm .mov .avi .npy .npz .pkl .pickle .h5 .hdf5 .nc .fits .bin .snap
.sum
"""
_DATA_ENDINGS = tuple(_DATA_SUFFIXES.split())


def has_searchable_text(path: str) -> bool:
    """Return whether the text of a file is searched. Other files are found only by their path."""
    return not path.lower().endswith(_DATA_ENDINGS)
