"""The checker of `make bench-claims` tells true claims of a report from false ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.claims import Checker, Claim, claims_of
from benchmarks.claims_verdict import Verdict
from tests.answers.conftest import write

FILES = {
    "words.py": "def clip(text):\n    return text\n",
    "other.py": "def clip(text):\n    return 1\n",
    "use.py": (
        "from words import clip\n\n\ndef fit(text):\n    return clip(text)\n\n\n"
        "def trim(clip):\n    return clip('clip(1)')\n"
    ),
    "a.go": (
        "package a\n\nfunc clip() {}\n\nfunc fit(x int) {\n\tclip()\n}\n\n"
        "func trim(clip func()) {\n\tclip()\n}\n"
    ),
    "b/b.go": "package b\n\nfunc clip() {}\n",
    "a.ts": "import { clip } from './b';\nexport function fit(x) {\n  return clip(x);\n}\n",
    "b.ts": "export function clip(x) {\n  return x;\n}\n",
    "e.ts": (
        "import { clip } from './b.js'\n\nclass Box {\n  get fn(): Given<A, keyof A> {\n    return clip()\n"
        "  }\n}\n"
    ),
    "c.ts": "export function clip(x) {\n  return 1;\n}\n",
    "f.c": (
        "int clip(int x) {\n  return x;\n}\n\nint fit(int x) {\n#ifdef BIG\n  if (x > 1) {\n"
        "#else\n  if (x) {\n#endif\n    x = 1;\n  }\n  return x;\n}\n\n"
        "int trim(int x) {\n  return clip(x);\n}\n"
    ),
    "d.ts": (
        "type Given = string | number\n\nexport class Box<T = {}> {\n  public catch(x: Given): Given {\n"
        "    return this.fold<Given>(x);\n  }\n\n  public fold<U extends Given = Given>(\n    x: U,\n"
        "  ): ((y: U) => void) | null {\n    throw new Error(x);\n  }\n}\n"
    ),
}


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        ("use.py:5: `fit` calls `clip`, defined at words.py:1", "true"),
        ("use.py:5: `fit` calls `clip`, defined at other.py:1", "false"),
        ("use.py:9: `trim` calls `clip`, defined at words.py:1", "false"),
        ("use.py:4: `fit` calls `clip`, defined at words.py:1", "false"),
        ("use.py:5: `trim` calls `clip`, defined at words.py:1", "false"),
        ("d.ts:5: `Box.catch` calls `Box.fold`, defined at d.ts:8", "true"),
        ("d.ts:5: `Box.fold` calls `Box.fold`, defined at d.ts:8", "false"),
        (
            "d.ts:11 in `Box.fold`: `throw new Error(x);`, reached by d.ts:5: `return this.fold<Given>(x);`",
            "true",
        ),
        ("d.ts:11 in `Box.fold`: `throw new Error(x);`, reached by d.ts:5: `return null;`", "false"),
        ("d.ts:11 in `Box.fold`: `throw x;`, reached by d.ts:5: `return this.fold<Given>(x);`", "false"),
        ("a.go:6: `fit` calls `clip`, defined at a.go:3", "true"),
        ("use.py:4: `fit`\ndef fit(text):\n    return clip(text)", "true"),
        ("use.py:4: `fit`\ndef fit(text):\n    ...\n    return clip(1)", "false"),
        ("f.c:17: `trim` calls `clip`, defined at f.c:1", "true"),
        ("f.c:17: `fit` calls `clip`, defined at f.c:1", "false"),
        ("a.go:6: `fit` calls `clip`, defined at b/b.go:3", "false"),
        ("a.go:10: `trim` calls `clip`, defined at a.go:3", "false"),
        ("a.ts:3: `fit` calls `clip`, defined at b.ts:1", "true"),
        ("a.ts:3: `fit` calls `clip`, defined at c.ts:1", "false"),
        ("e.ts:5: `Box.fn` calls `clip`, defined at b.ts:1", "true"),
        ("e.ts:5: `Box.fn` calls `clip`, defined at c.ts:1", "false"),
        ("a.ts:3: `fit` calls `clip` (b.ts:1, “Clips”): `return clip(x);`", "true"),
        ("a.ts:3: `fit` calls `clip` (b.ts:1): `return cut(x);`", "false"),
        ("words.py:1: `clip` is defined: `def clip(text):`", "true"),
        ("words.py:2: `clip` is defined: `def clip(text):`", "false"),
        ("d.ts:4: has `catch`: `public catch(x: Given): Given {`", "true"),
        ("d.ts:5: has `catch`: `return this.fold<Given>(x);`", "false"),
    ],
)
def test_checker_finds_false_claims(tmp_path: Path, finding: str, expected: str) -> None:
    checker = Checker(write(tmp_path, FILES))
    report = {"summary": "", "analyzer": {"status": "ok", "value": {"key_findings": [finding]}}}
    verdicts = {checker.check(claim).kind for claim in claims_of(report)}
    assert ("false" if "false" in verdicts else "true") == expected
    assert verdicts


STEPS = ["use.py:5: `fit` calls `clip` (words.py:1): `return clip(text)`"]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("No: `YAML` occurs nowhere in the project's own code.", "true"),
        ("No: `clip` occurs nowhere in the project's own code.", "false"),
        ("Not by that name: `Given` occurs nowhere in the project's own code, but `a` may", "false"),
        ("No: `HTTP/3` occurs nowhere in the project's own code.", "true"),
        ("Probably: `text` and `clips` occur together in `fit`.", "true"),
        ("Probably: `text` and `parcels` occur together in `fit`.", "false"),
        ("Probably: `clip` names `clip`.", "true"),
        ("Probably: `cut` names `clip`.", "false"),
        ("`fit` calls `clip`.", "true"),
        ("Probably `fit`, which calls `trim`.", "false"),
    ],
)
def test_checker_finds_false_summaries(tmp_path: Path, summary: str, expected: str) -> None:
    checker = Checker(write(tmp_path, FILES))
    report = {"summary": summary, "analyzer": {"status": "ok", "value": {"key_findings": STEPS}}}
    claims = [claim for claim in claims_of(report) if claim.kind in ("terms", "call path")]
    assert [checker.check(claim).kind for claim in claims] == [expected]


def test_steps_in_another_order_are_false(tmp_path: Path) -> None:
    lines = ["a.py:2: `fit` calls `a` (b.py:1): `a()`", "a.py:3: `fit` calls `b` (b.py:3): `b()`"]
    report = {"summary": "`fit` calls `b`, then `a`.", "analyzer": {"value": {"key_findings": lines}}}
    claim = next(claim for claim in claims_of(report) if claim.kind == "call path")
    write(tmp_path, {"a.py": "def fit():\n    a()\n    b()\n"})
    assert Checker(tmp_path).check(claim) == Verdict("false", "the steps are in another order")


def test_step_that_no_finding_shows_is_looked_up_in_the_code(tmp_path: Path) -> None:
    lines = ["a.rs:2: `fit` calls `a` (b.rs:1): `a();`"]
    for words, expected in (("`a`, then `b`", "true"), ("`a`, then `c`", "false")):
        report = {"summary": f"`fit` calls {words}.", "analyzer": {"value": {"key_findings": lines}}}
        claim = next(claim for claim in claims_of(report) if claim.kind == "call path")
        write(tmp_path, {"a.rs": "fn fit() {\n    a();\n    if x { b(x); }\n}\n"})
        assert Checker(tmp_path).check(claim).kind == expected


def test_definition_below_an_else_of_the_preprocessor_is_true(tmp_path: Path) -> None:
    text = "#ifdef WIN\nint umain(int n) {\n#else\nint main(int n) {\n#endif\n  return 0;\n}\n"
    checker = Checker(write(tmp_path, {"a.c": text}))
    assert checker.check(Claim("defined at", "", "a.c", 4, name="main")).kind == "true"
    assert checker.check(Claim("defined at", "", "a.c", 6, name="return")).kind == "false"


def test_keyword_of_another_language_is_a_name_in_java(tmp_path: Path) -> None:
    text = "interface Fallback {\n  static <R> Fallback<R> of(Runnable run) {\n    return null;\n  }\n}\n"
    checker = Checker(write(tmp_path, {"Fallback.java": text}))
    assert checker.check(Claim("defined at", "", "Fallback.java", 2, name="of")).kind == "true"
