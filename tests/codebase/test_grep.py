"""A search finds the same lines with and without ripgrep, within bounds, and nothing hidden (P2, P6, P8)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from retinue.codebase.bounds import Bounds
from retinue.codebase.codebase import Codebase
from retinue.codebase.directory import HeldDirectory
from retinue.codebase.linear_regex import Regex
from retinue.codebase.lines import matching_lines, pieces
from retinue.codebase.omitted import Omitted
from retinue.codebase.pattern import Pattern
from retinue.codebase.ripgrep import Ripgrep, find_ripgrep
from retinue.codebase.search import FEW_FILES, Found
from retinue.codebase.text import to_text
from retinue.core.errors import Canceled, InvalidInput, LimitExceeded
from retinue.core.stop import Stop
from tests.codebase.planting import SECRET, plant, soon

Files = dict[str, str | bytes]
FILLER: Files = {f"zz/{number:03}.filler": "" for number in range(FEW_FILES)}
"""Enough other files for ripgrep to be worth starting."""


@pytest.fixture(params=["ripgrep", "pure"])
def ripgrep(request: pytest.FixtureRequest) -> Ripgrep | None:
    return find_ripgrep() if request.param == "ripgrep" else None


LINES = st.text(alphabet="abkKéßẞλx1_ .-]&[#~{}\t\r\u212a\ufeff", max_size=8)


class Grep:
    """Searches planted files and shows matches as `path:line:column:text`."""

    def __init__(self, folder: Path, ripgrep: Ripgrep | None) -> None:
        self.folder = folder
        self.ripgrep = ripgrep

    def codebase(self, files: Files) -> Codebase:
        return Codebase([plant(self.folder, {**files, **FILLER})], ripgrep=lambda: self.ripgrep)

    def __call__(self, files: Files, pattern: str | Pattern) -> list[str]:
        wanted = Pattern(pattern) if isinstance(pattern, str) else pattern
        return as_lines(self.codebase(files).grep(wanted, soon()))


def as_lines(found: Found) -> list[str]:
    return [f"{match.entry.path}:{match.line}:{match.column}:{match.text}" for match in found.matches]


@pytest.fixture
def grep(tmp_path: Path, ripgrep: Ripgrep | None) -> Grep:
    return Grep(tmp_path / "root", ripgrep)


def test_matches_come_by_path_then_line_with_columns_in_characters(grep: Grep) -> None:
    files: Files = {"b.py": "x = 1\nfoo\n\nél = foo(foo)\n", "a/c.py": "no\nfoo", "B.py": "foo\n"}
    assert grep(files, "foo") == ["B.py:1:1:foo", "a/c.py:2:1:foo", "b.py:2:1:foo", "b.py:4:6:él = foo(foo)"]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (Pattern("a.c"), [1, 2]),
        (Pattern("a.c", fixed=True), [2]),
        (Pattern("ABC", ignore_case=True), [1, 3]),
        (Pattern("abc", word=True), [1]),
        (Pattern("$x", fixed=True, word=True), [4]),
        (Pattern(r"^\s*$"), [5]),
        (Pattern(r"\bx\d{2,3}\b"), [6]),
        (Pattern("func main() {", fixed=True), [7]),
        (Pattern(r"main\(\) {"), [7]),
        (Pattern("straße|größe"), [8]),
        (Pattern("GRÖSSE|STRAẞE|größe", ignore_case=True), [8]),
        (Pattern(r"[^\x00-\x7f]"), [8, 14]),
        (Pattern(r"(?i)MAIN"), [7]),
        (Pattern("}$"), [9]),
        (Pattern(r"[[:digit:]]+[\]\[]"), [10]),
        (Pattern(r"\x41\x{42}"), [3, 11]),
        (Pattern("-e"), [12]),
        (Pattern("--"), [12]),
        (Pattern("[a&&b]&"), [13]),
        (Pattern(r"\pL\p{Greek}"), [14]),
        (Pattern(r"(?P<twice>b{2})"), [15]),
        (Pattern(r"\Qa.c\E"), [2]),
    ],
)
def test_patterns_mean_the_same_with_and_without_ripgrep(
    grep: Grep, pattern: Pattern, lines: list[int]
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
def test_what_the_dialect_lacks_is_refused_with_a_reason(grep: Grep, pattern: str) -> None:
    with pytest.raises(InvalidInput) as error:
        grep({}, pattern)
    assert "lookaround" in str(error.value.hint)
    assert "(?m)" not in error.value.message


@pytest.mark.parametrize("pattern", ["", "a\nb", r"a\nb", r"\\\n", "a\0b", "x" * 2_001])
def test_patterns_that_cannot_match_a_line_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        Pattern(pattern)


def test_a_backslash_before_an_n_is_no_line_end(grep: Grep) -> None:
    assert grep({"f": "a\\nb\n"}, r"a\\nb") == ["f:1:1:a\\nb"]
    assert grep({"f": "a\\nb\n"}, Pattern(r"a\nb", fixed=True)) == ["f:1:1:a\\nb"]


def test_every_encoding_is_searched_as_it_would_be_read(grep: Grep) -> None:
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


def test_lines_end_alike_on_every_system(grep: Grep) -> None:
    files: Files = {"dos": "one\r\ntwo\r\n", "unix": "one\ntwo\n", "mixed": "one\r\ntwo"}
    assert grep(files, "one$") == ["dos:1:1:one", "mixed:1:1:one", "unix:1:1:one"]
    assert grep(files, "^two$") == ["dos:2:1:two", "mixed:2:1:two", "unix:2:1:two"]


def test_empty_matches_name_real_lines_only(grep: Grep) -> None:
    assert grep({"f": "a\n\nb\n"}, "^$") == ["f:2:1:"]
    assert [line.split(":")[1] for line in grep({"f": "a\n\nb\n"}, "x*")] == ["1", "2", "3"]


def test_binary_large_hidden_and_ignored_files_never_match_and_are_counted(grep: Grep) -> None:
    """P6, P8: the counts do not depend on what hidden files hold."""
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
    found = codebase.grep(Pattern(SECRET), soon())
    assert as_lines(found) == [f"a.txt:1:1:{SECRET}"]
    assert found.omitted == expected
    assert codebase.grep(Pattern("no such text"), soon()).omitted == expected


def test_a_hard_link_to_a_hidden_file_gives_no_answer_about_it(grep: Grep) -> None:
    """P6: whether the pattern fits must not show, not even as a count."""
    codebase = grep.codebase({".env": SECRET})
    os.link(grep.folder / ".env", grep.folder / "notes.txt")
    right, wrong = (codebase.grep(Pattern(guess), soon()) for guess in (SECRET, "wrong guess"))
    assert right == wrong
    assert not right.matches


def test_search_can_be_kept_to_folders_files_and_globs(grep: Grep) -> None:
    files: Files = {
        "src/a.py": "foo",
        "src/b.js": "foo",
        "src/sub/c.py": "foo",
        "test/d.py": "foo",
        "e.py": "foo",
    }
    codebase = grep.codebase(files)

    def paths(*, below: tuple[str, ...] = (), globs: tuple[str, ...] = ()) -> list[str]:
        found = codebase.grep(Pattern("foo"), soon(), below=below, globs=globs)
        return [match.entry.path for match in found.matches]

    assert paths(below=("src",)) == ["src/a.py", "src/b.js", "src/sub/c.py"]
    assert paths(below=("src/sub", "e.py")) == ["e.py", "src/sub/c.py"]
    assert paths(globs=("*.py",)) == ["e.py", "src/a.py", "src/sub/c.py", "test/d.py"]
    assert paths(globs=("*.py", "!test/**")) == ["e.py", "src/a.py", "src/sub/c.py"]
    assert paths(below=("src",), globs=("src/*.{py,js}",)) == ["src/a.py", "src/b.js"]
    assert paths(globs=("/e.py",)) == ["e.py"]


def test_context_lines_stand_around_a_match(grep: Grep) -> None:
    codebase = grep.codebase({"f": "1\n2\nfoo\n4\n5\nfoo"})
    first, second = codebase.grep(Pattern("foo"), soon(), context=2).matches
    assert (first.before, first.text, first.after) == (("1", "2"), "foo", ("4", "5"))
    assert (second.before, second.text, second.after) == (("4", "5"), "foo", ())
    with pytest.raises(InvalidInput):
        codebase.grep(Pattern("foo"), soon(), context=-1)


def test_an_enormous_line_is_cut_around_the_match(grep: Grep) -> None:
    """P4"""
    (match,) = (
        grep.codebase({"min.js": "x" * 400_000 + "needle" + "é" * 1_000})
        .grep(Pattern("needle"), soon())
        .matches
    )
    assert match.column == 400_001
    assert "needle" in match.text
    assert len(match.text) < 600
    assert match.text.startswith("[399875 characters cut]… x")
    assert match.text.endswith("é …[631 characters cut]")


@pytest.mark.timeout(30)
def test_a_pattern_made_to_be_slow_is_kept_to_its_effort(grep: Grep) -> None:
    """P2, P8: on one line of a megabyte RE2 would need minutes for it."""
    codebase = grep.codebase({"a.min.js": "ab " * 300_000 + "\nab 7\n", "b.py": "ab ab 7\n"})
    found = codebase.grep(Pattern(r"(\w+\s+){0,900}\d"), Stop(20))
    assert as_lines(found) == ["a.min.js:2:1:ab 7", "b.py:1:1:ab ab 7"]
    assert found.omitted == Omitted(over_limit=1, limits=("pattern effort",))


@given(st.lists(LINES, max_size=6).map("\n".join), st.integers(1, 12))
def test_pieces_are_whole_lines_and_together_the_text(text: str, size: int) -> None:
    data = text.encode()
    cut = list(pieces(data, size))
    assert b"".join(data[start:end] for start, end in cut) == data
    for start, end in cut:
        assert end == len(data) or data[end - 1 : end] == b"\n"
        assert end - start <= size or b"\n" not in data[start : end - 1]


@pytest.mark.parametrize(
    ("bounds", "shown", "omitted"),
    [
        (Bounds(max_files=2), 6, Omitted(over_limit=3, limits=("files",))),
        (Bounds(max_matches=4), 4, Omitted(over_limit=2, limits=("matches",))),
        (Bounds(max_matches=6), 6, Omitted(over_limit=3, limits=("matches",))),
        (Bounds(max_matches_per_file=1), 4, Omitted(over_limit=8, limits=("matches per file",))),
        (Bounds(max_bytes=20), 5, Omitted(over_limit=1, limits=("bytes",))),
        (Bounds(), 12, Omitted()),
    ],
)
def test_each_bound_cuts_the_result_and_is_named(
    grep: Grep, bounds: Bounds, shown: int, omitted: Omitted
) -> None:
    """P2, P8"""
    codebase = grep.codebase({f"{name}.txt": "foo\nfoo\nfoo\n" for name in "abcd"})
    found = codebase.grep(Pattern("foo"), soon(), bounds=bounds)
    assert len(found.matches) == shown
    assert found.omitted == omitted


def test_a_budget_that_refuses_ends_the_search_and_is_named(grep: Grep) -> None:
    """P2: told before the text is handed out, and only for text that is."""
    asked: list[tuple[int, int]] = []

    def budget(files: int, size: int) -> None:
        if len(asked) == 2:
            raise LimitExceeded("bytes of the run", 9, 8)
        asked.append((files, size))

    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    found = codebase.grep(Pattern("foo"), soon(), on_read=budget)
    assert [match.entry.path for match in found.matches] == ["a.txt", "b.txt"]
    assert asked == [(1, 4), (1, 4)]
    assert found.omitted == Omitted(over_limit=1, limits=("bytes of the run",))


def test_a_search_out_of_time_says_so(grep: Grep) -> None:
    """P2, P8"""
    found = grep.codebase({"a": "foo"}).grep(Pattern("foo"), Stop(0))
    assert found.matches == ()
    assert "time" in found.omitted.limits


class Clockwork(Stop):
    """A deadline that passes when the test says so."""

    time_is_up = False

    def remaining(self) -> float:
        return 0.0 if self.time_is_up else 60.0


def test_a_deadline_in_the_middle_keeps_what_was_found(grep: Grep) -> None:
    """P2, P8"""
    stop = Clockwork()

    def time_passes(files: int, size: int) -> None:
        stop.time_is_up = True

    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    found = codebase.grep(Pattern("foo"), stop, on_read=time_passes)
    assert as_lines(found) == ["a.txt:1:1:foo"]
    assert found.omitted == Omitted(limits=("time",))


def test_a_deadline_while_hard_links_are_looked_up_keeps_what_was_found(tmp_path: Path) -> None:
    """P2, P8"""
    root = plant(tmp_path / "root", {"a.txt": "foo\n", "b.txt": "foo\n", "folder/c.txt": "foo\n"})
    os.link(root.path / "b.txt", root.path / "d.txt")
    stop = Clockwork()

    class Slow(HeldDirectory):
        def status(self, name: str) -> os.stat_result:
            stop.time_is_up = stop.time_is_up or name == "."  # asked only when links are looked up
            return super().status(name)

    found = Codebase([root], directory_at=Slow.at).grep(Pattern("foo"), stop)
    assert as_lines(found) == ["a.txt:1:1:foo"]
    assert found.omitted == Omitted(limits=("time",))


def test_a_cancel_in_the_middle_ends_the_search(grep: Grep) -> None:
    """P2"""
    stop = Stop()
    codebase = grep.codebase({f"{name}.txt": "foo\n" for name in "abcd"})
    with pytest.raises(Canceled):
        codebase.grep(Pattern("foo"), stop, on_read=lambda files, size: stop.cancel())


def test_few_files_are_searched_without_starting_ripgrep(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a": "foo"})
    codebase = Codebase([root], ripgrep=lambda: Ripgrep(Path("/does/not/exist")))
    assert as_lines(codebase.grep(Pattern("foo"), soon())) == ["a:1:1:foo"]


@pytest.mark.parametrize("script", [None, "exit 2", "echo a; exit 3", "kill -9 $$"])
def test_a_broken_ripgrep_changes_nothing_but_speed(tmp_path: Path, script: str | None) -> None:
    """P10"""
    program = tmp_path / "rg"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
    root = plant(tmp_path / "root", {**FILLER, "a": "foo"})
    codebase = Codebase([root], ripgrep=lambda: Ripgrep(program))
    assert as_lines(codebase.grep(Pattern("foo"), soon())) == ["a:1:1:foo"]


ATOMS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "k",
            "é",
            "ß",
            "λ",
            ".",
            "x",
            " ",
            "^",
            "$",
            r"\b",
            r"\B",
            r"\w",
            r"\W",
            r"\d",
            r"\D",
            r"\s",
            r"\S",
        ),
        *(
            "[ab]",
            "[^a]",
            "[é-ü]",
            "[^é]",
            r"[\w.]",
            r"[^\W]",
            "[[:alpha:]]",
            "[]a]",
            "[^]a]",
            "[a-]",
            "[&&a]",
            "[[a]",
        ),
        *(
            r"\.",
            r"\x61",
            r"\x{e9}",
            r"\t",
            "{",
            "}",
            "]",
            "-",
            "#",
            "~",
            "(?i)",
            "(?:a|é)",
            "(b)",
            "a|b",
            "()",
        ),
    ]
)
PATTERNS = st.lists(
    st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "*?"])).map("".join),
    min_size=1,
    max_size=5,
).map("".join)
TEXTS = st.lists(LINES, max_size=4)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("searched")


def has_match(text: bytes, regex: Regex) -> bool:
    return any(matching_lines(text, regex, 0, len(text)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=PATTERNS,
    fixed=st.booleans(),
    ignore_case=st.booleans(),
    word=st.booleans(),
    lines=TEXTS,
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32"]),
)
@example("^k$", False, True, False, ["K", "\u212a"], "\r\n", "utf-8-sig")
def test_ripgrep_never_sieves_out_a_file_that_matches(
    searched: Path,
    text: str,
    fixed: bool,
    ignore_case: bool,
    word: bool,
    lines: list[str],
    line_end: str,
    encoding: str,
) -> None:
    """P8: what ripgrep passes over is never looked at again."""
    ripgrep = find_ripgrep()
    assert ripgrep
    pattern = Pattern(text, fixed=fixed, ignore_case=ignore_case, word=word)
    try:
        regex = pattern.regex()
    except InvalidInput:
        assume(False)
        raise
    data = line_end.join(lines).encode(encoding, "replace")
    (searched / "file").write_bytes(data)
    rewritten = pattern.for_ripgrep()
    if rewritten is None or not has_match(to_text(data).utf8, regex):
        return
    candidates = ripgrep.candidates(searched, ["file"], rewritten, ignore_case=ignore_case, stop=soon())
    assert candidates is None or candidates == {"file"}
