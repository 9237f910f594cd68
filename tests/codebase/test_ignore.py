"""Rules of ignore files: the last rule that matches decides, however many there are."""

from __future__ import annotations

import time

from hypothesis import given, strategies as st

from retinue.codebase.access.ignore import IgnoreFile

names = st.sampled_from(["a", "b", "c.x", "d.y", "foo", "é"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
globs = st.lists(
    st.sampled_from(
        ["a", "b", "foo", "*", "**", "/", "?", "*.x", ".y", "[ab]", "[!a]", "{a,b}", "\\a", "[z-a]"]
    ),
    min_size=1,
    max_size=5,
).map("".join)
rules = st.tuples(st.sampled_from(["", "!", "/", "!/"]), globs, st.sampled_from(["", "/"])).map("".join)


def verdict(rules: list[str], path: str, is_folder: bool) -> bool | None:
    return IgnoreFile("\n".join(rules)).verdict(path, path.rpartition("/")[2], is_folder)


@given(st.lists(rules, max_size=12), st.lists(paths, max_size=8), st.booleans())
def test_a_file_decides_as_its_last_rule_that_matches_P8(
    rules: list[str], paths: list[str], is_folder: bool
) -> None:
    for path in paths:
        verdicts = [verdict([rule], path, is_folder) for rule in rules]
        last = next((each for each in reversed(verdicts) if each is not None), None)
        assert verdict(rules, path, is_folder) == last


def test_many_globs_cost_little_for_a_path_that_matches_none() -> None:
    globs = [glob for number in range(1_000) for glob in (f"*.part-{number}.tmp", f"cache-{number}.*")]
    file = IgnoreFile("\n".join(globs))
    file.verdict("a", "a", False)
    began = time.process_time()
    for number in range(2_000):
        assert file.verdict(f"src/part-{number}.py", f"part-{number}.py", False) is None
    assert time.process_time() - began < 0.5
