"""A search finds the same lines with and without ripgrep, and nothing hidden (P6, P8)."""

from __future__ import annotations

import os

import pytest

from retinue.codebase import SearchPattern
from retinue.codebase.access import Omitted
from retinue.core import InvalidInput
from tests.codebase.file_support import SECRET, bounded_stop
from tests.codebase.search_support import Files, Grep, as_lines


def test_matches_come_by_path_then_line_with_columns_in_characters(grep: Grep) -> None:
    files: Files = {"b.py": "x = 1\nfoo\n\nél = foo(foo)\n", "a/c.py": "no\nfoo", "B.py": "foo\n"}
    assert grep(files, "foo") == ["B.py:1:1:foo", "a/c.py:2:1:foo", "b.py:2:1:foo", "b.py:4:6:él = foo(foo)"]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (SearchPattern("a.c"), [1, 2]),
        (SearchPattern("a.c", fixed=True), [2]),
        (SearchPattern("ABC", ignore_case=True), [1, 3]),
        (SearchPattern("abc", word=True), [1]),
        (SearchPattern("$x", fixed=True, word=True), [4]),
        (SearchPattern(r"^\s*$"), [5]),
        (SearchPattern(r"\bx\d{2,3}\b"), [6]),
        (SearchPattern("func main() {", fixed=True), [7]),
        (SearchPattern(r"main\(\) {"), [7]),
        (SearchPattern("straße|größe"), [8]),
        (SearchPattern("GRÖSSE|STRAẞE|größe", ignore_case=True), [8]),
        (SearchPattern(r"[^\x00-\x7f]"), [8, 14]),
        (SearchPattern(r"(?i)MAIN"), [7]),
        (SearchPattern("}$"), [9]),
        (SearchPattern(r"[[:digit:]]+[\]\[]"), [10]),
        (SearchPattern(r"\x41\x{42}"), [3, 11]),
        (SearchPattern("-e"), [12]),
        (SearchPattern("--"), [12]),
        (SearchPattern("[a&&b]&"), [13]),
        (SearchPattern(r"\pL\p{Greek}"), [14]),
        (SearchPattern(r"(?P<twice>b{2})"), [15]),
        (SearchPattern(r"\Qa.c\E"), [2]),
    ],
)
def test_patterns_mean_the_same_with_and_without_ripgrep(
    grep: Grep, pattern: SearchPattern, lines: list[int]
) -> None:
    text = "\n".join(
        [
            *("abc", "a.c", "xABC", "echo $x;", "  ", "x42 x1", "func main() {", "Größe größe straße", "}"),
            *("12[x", "AB", "-e --x", "a&&", "aλ", "bb"),
        ]
    )
    found = grep({"f.txt": text}, pattern)
    assert [int(line.split(":")[1]) for line in found] == lines


@pytest.mark.parametrize("pattern", ["(?=x)", "(?<!x)y", r"(a)\1", "(", "[a", "a**", "x{1001}", r"\8"])
def test_unsupported_syntax_is_refused_with_a_reason(grep: Grep, pattern: str) -> None:
    with pytest.raises(InvalidInput) as error:
        grep({}, pattern)
    assert "lookaround" in str(error.value.hint)
    assert "(?m)" not in error.value.message


@pytest.mark.parametrize("pattern", ["", "a\nb", r"a\nb", r"\\\n", "a\0b", "x" * 2_001])
def test_patterns_that_cannot_match_a_line_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        SearchPattern(pattern)


def test_an_escaped_backslash_before_n_is_not_a_line_end(grep: Grep) -> None:
    assert grep({"f": "a\\nb\n"}, r"a\\nb") == ["f:1:1:a\\nb"]
    assert grep({"f": "a\\nb\n"}, SearchPattern(r"a\nb", fixed=True)) == ["f:1:1:a\\nb"]


def test_every_encoding_is_searched_as_it_is_read(grep: Grep) -> None:
    line = "naïve café\n"
    files: Files = {
        "latin1": line.encode("latin-1"),
        "utf16": line.encode("utf-16"),
        "utf16be": b"\xfe\xff" + line.encode("utf-16-be"),
        "utf32": line.encode("utf-32"),
        "utf8": line.encode(),
        "utf8bom": line.encode("utf-8-sig"),
    }
    for pattern in ("^na.ve caf.$", "café", "na[^a-z]ve", r"caf\W"):
        assert [found.split(":")[0] for found in grep(files, pattern)] == sorted(files), pattern


def test_both_line_endings_are_searched_alike(grep: Grep) -> None:
    files: Files = {"dos": "one\r\ntwo\r\n", "unix": "one\ntwo\n", "mixed": "one\r\ntwo"}
    assert grep(files, "one$") == ["dos:1:1:one", "mixed:1:1:one", "unix:1:1:one"]
    assert grep(files, "^two$") == ["dos:2:1:two", "mixed:2:1:two", "unix:2:1:two"]


def test_empty_matches_are_on_real_lines_only(grep: Grep) -> None:
    assert grep({"f": "a\n\nb\n"}, "^$") == ["f:2:1:"]
    assert [line.split(":")[1] for line in grep({"f": "a\n\nb\n"}, "x*")] == ["1", "2", "3"]


def test_binary_large_hidden_and_ignored_files_never_match_and_are_counted(grep: Grep) -> None:
    """P6, P8: the counts do not depend on the contents of hidden files."""
    files: Files = {
        "a.txt": f"{SECRET}\n",
        "image.png": b"\x89PNG\0" + SECRET.encode(),
        "other.bin": b"\0nothing",
        "large.txt": SECRET + " " * 1_048_576,
        ".env": SECRET,
        ".ssh/id_rsa": SECRET,
        ".gitignore": "*.log\n",
        "x.log": SECRET,
    }
    codebase = grep.codebase(files)
    expected = Omitted(denied=2, ignored=1, binary=2, too_large=1)
    found = codebase.grep(SearchPattern(SECRET), bounded_stop())
    assert as_lines(found) == [f"a.txt:1:1:{SECRET}"]
    assert found.omitted == expected
    assert codebase.grep(SearchPattern("no such text"), bounded_stop()).omitted == expected


def test_a_hard_link_to_a_hidden_file_reveals_nothing_about_it(grep: Grep) -> None:
    """P6: not even a count may reveal whether the pattern matches."""
    codebase = grep.codebase({".env": SECRET})
    os.link(grep.folder / ".env", grep.folder / "notes.txt")
    right, wrong = (codebase.grep(SearchPattern(guess), bounded_stop()) for guess in (SECRET, "wrong guess"))
    assert right == wrong
    assert not right.matches


def test_a_search_can_be_limited_to_folders_files_and_globs(grep: Grep) -> None:
    files: Files = {
        "src/a.py": "foo",
        "src/b.js": "foo",
        "src/sub/c.py": "foo",
        "test/d.py": "foo",
        "e.py": "foo",
    }
    codebase = grep.codebase(files)

    def paths(*, below: tuple[str, ...] = (), globs: tuple[str, ...] = ()) -> list[str]:
        found = codebase.grep(SearchPattern("foo"), bounded_stop(), below=below, globs=globs)
        return [match.entry.path for match in found.matches]

    assert paths(below=("src",)) == ["src/a.py", "src/b.js", "src/sub/c.py"]
    assert paths(below=("src/sub", "e.py")) == ["e.py", "src/sub/c.py"]
    assert paths(globs=("*.py",)) == ["e.py", "src/a.py", "src/sub/c.py", "test/d.py"]
    assert paths(globs=("*.py", "!test/**")) == ["e.py", "src/a.py", "src/sub/c.py"]
    assert paths(below=("src",), globs=("src/*.{py,js}",)) == ["src/a.py", "src/b.js"]
    assert paths(globs=("/e.py",)) == ["e.py"]


def test_context_lines_surround_a_match(grep: Grep) -> None:
    codebase = grep.codebase({"f": "1\n2\nfoo\n4\n5\nfoo"})
    first, second = codebase.grep(SearchPattern("foo"), bounded_stop(), context=2).matches
    assert (first.before, first.text, first.after) == (("1", "2"), "foo", ("4", "5"))
    assert (second.before, second.text, second.after) == (("4", "5"), "foo", ())
    with pytest.raises(InvalidInput):
        codebase.grep(SearchPattern("foo"), bounded_stop(), context=-1)
