"""Reports say that something calls, uses or reads something else only if the code says so (P3, P8)."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from retinue.answers.callers import list_callers
from retinue.answers.flow import tell_flow
from retinue.answers.locator import locate
from retinue.codebase.parse import languages
from retinue.core import RoleResult, Stop
from tests.answers.conftest import ContextFor, write

_PLACE = re.compile(r"([\w./-]+\.\w+):(\d+)")
_NAME = re.compile(r"`([^`]+)`")


def told(context_for: ContextFor, question: str) -> RoleResult:
    """Return how the subject of a question works."""
    context = context_for(question)
    return tell_flow(context, locate(context, 20, Stop()).places, Stop())


def callers_of(context_for: ContextFor, question: str) -> RoleResult:
    """Return who uses the subject of a question."""
    context = context_for(question)
    return list_callers(context, locate(context, 20, Stop()).places, Stop())


def findings(result: RoleResult, verb: str) -> list[str]:
    return [text for text in result.key_findings if f" {verb} `" in text]


@pytest.mark.parametrize(
    ("files", "question"),
    [
        pytest.param(
            {
                "words.py": "def clip(text):\n    return text\n",
                "other.py": "def clip(text):\n    return 1\n",
                "use.py": "from words import clip\n\n\ndef fit_text(text):\n    return clip(text)\n",
            },
            "how does fit_text work?",
            id="import",
        ),
        pytest.param(
            {
                "words.ts": "export function clip(text) {\n  return text;\n}\n",
                "other.ts": "export function clip(text) {\n  return 1;\n}\n",
                "use.ts": (
                    "import { clip } from './words';\n"
                    "export function fitText(text) {\n  return clip(text);\n}\n"
                ),
            },
            "how does fitText work?",
            id="script import",
        ),
    ],
)
def test_call_leads_to_the_imported_namesake(
    project: Path, context_for: ContextFor, files: dict[str, str], question: str
) -> None:
    write(project, {f"lib/{name}": text for name, text in files.items()})
    (call,) = findings(told(context_for, question), "calls")
    assert re.search(r"calls `clip` \(lib/words\.\w+:1\)$", call)


@pytest.mark.parametrize(
    ("name", "text", "question"),
    [
        pytest.param(
            "steal.rs",
            "pub fn steal_into(x: T) -> Option<u8> {\n    let (a, b) = x;\n    if let Some(q) = a {\n"
            "        return Some(q);\n    }\n    Ok(b)\n}\nmod inner {\n    pub fn Some() {}\n}\n",
            "how does steal_into work?",
            id="keywords and variants",
        ),
        pytest.param(
            "fit.py",
            "def helper(): ...\n\n\ndef fit_rows(helper, rows):\n    label = 'helper()'\n"
            "    return [helper(row) for row in rows]\n",
            "how does fit_rows work?",
            id="parameter and string",
        ),
        pytest.param(
            "Make.java",
            "class Maker {\n  Maker() {}\n  Object makeThing(Object x) {\n    return new Maker();\n  }\n}\n",
            "how does makeThing work?",
            id="constructor",
        ),
        pytest.param(
            "mac.c",
            "#define TWICE(x) ((x) * 2)\nint double_it(int x) {\n  return TWICE(x);\n}\n",
            "how does double_it work?",
            id="macro",
        ),
        pytest.param(
            "two.py",
            "class A:\n    def refresh(self): ...\n\n\nclass B:\n    def refresh(self): ...\n\n\n"
            "def go_round(thing):\n    thing.refresh()\n",
            "how does go_round work?",
            id="one of two methods",
        ),
        pytest.param(
            "lib.py",
            "import json\n\nclass Box:\n    def dumps(self): ...\n\ndef write_out(x):\n    json.dumps(x)\n",
            "how does write_out work?",
            id="library",
        ),
    ],
)
def test_what_is_no_certain_call_is_not_told_as_one(
    project: Path, context_for: ContextFor, name: str, text: str, question: str
) -> None:
    write(project, {f"lib/{name}": text})
    result = told(context_for, question)
    assert findings(result, "calls") == []
    assert "calls" not in result.summary


def test_definition_lines_types_and_fields_make_no_call_path(project: Path, context_for: ContextFor) -> None:
    text = (
        "class Parcel:\n    weight: int\n\n\ndef weigh_parcel(parcel: Parcel): ...\n\n\n"
        "def ship_parcel(parcel: Parcel, weigh_parcel=None):\n    return weigh_parcel\n\n\n"
        "def main(ship_parcel):\n    ship_parcel(1)\n"
    )
    write(project, {"src/shop/parcel.py": text})
    assert findings(told(context_for, "how does weigh_parcel work?"), "calls") == []
    assert findings(callers_of(context_for, "who calls weigh_parcel?"), "calls") == []


def test_types_are_told_apart_from_calls(project: Path, context_for: ContextFor) -> None:
    text = "class Parcel:\n    pass\n\n\ndef weigh(parcel: Parcel): ...\n"
    write(project, {"src/shop/parcel.py": text})
    (use,) = callers_of(context_for, "who uses Parcel?").key_findings
    assert use == "src/shop/parcel.py:5: `weigh` names the type `Parcel`: `def weigh(parcel: Parcel): ...`"


def test_only_method_of_its_name_is_used_unless_the_receiver_is_foreign(
    project: Path, context_for: ContextFor
) -> None:
    text = (
        "import queue\n\n\nclass Cart:\n    def total_weight(self): ...\n\n\n"
        "def show_cart(cart):\n    cart.total_weight()\n\n\n"
        "def show_queue():\n    waiting = queue.Queue()\n    waiting.total_weight()\n"
    )
    write(project, {"src/shop/cart.py": text})
    uses = callers_of(context_for, "who uses Cart.total_weight?").key_findings
    assert [use.partition(": `cart")[0] for use in uses] == [
        "src/shop/cart.py:9: `show_cart` uses `Cart.total_weight`"
    ]


def test_without_grammars_a_report_claims_less(
    project: Path, context_for: ContextFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: without a grammar, a report shows lines, and says nothing about definitions and calls."""
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    languages.load_grammar.cache_clear()
    try:
        users = callers_of(context_for, "who calls with_retry?")
        flow = told(context_for, "how does with_retry work?")
    finally:
        languages.load_grammar.cache_clear()
    assert any("src/shop/payment.py" in finding for finding in users.key_findings)
    for result in (users, flow):
        for verb in ("uses", "may use", "calls", "is defined at"):
            assert not findings(result, verb)


@pytest.mark.parametrize("seed", range(12))
def test_line_of_every_claim_holds_the_claimed_name(
    project: Path, context_for: ContextFor, seed: int
) -> None:
    """Property: whatever the code looks like, a finding's place holds the name that the finding is about."""
    write(project, _generated_files(random.Random(seed)))  # noqa: S311 - no secrets
    told_findings = told(context_for, f"how does task_{seed % 5} work?").key_findings
    assert told_findings
    for finding in (*told_findings, *callers_of(context_for, f"who calls task_{seed % 5}?").key_findings):
        places = [(project / path, int(line)) for path, line in _PLACE.findall(finding)]
        names = [name.rpartition(".")[2] for name in _NAME.findall(finding)]
        for path, line in places:
            text = path.read_text(encoding="utf-8").split("\n")[line - 1]
            assert any(name in text for name in names), finding


def _generated_files(chance: random.Random) -> dict[str, str]:
    """Return modules whose functions shadow, import, alias and call each other at random."""
    files: dict[str, str] = {}
    for module in range(4):
        lines = [
            f"from made{chance.randrange(4)} import task_{chance.randrange(5)}"
            + chance.choice(["", f" as task_{chance.randrange(5)}"])
            for _ in range(2)
        ]
        for number in chance.sample(range(5), 3):
            parameter = f"task_{chance.randrange(5)}"
            lines += ["", "", f"def task_{number}({parameter}=None):"]
            for _ in range(3):
                called = f"task_{chance.randrange(5)}"
                lines.append(
                    "    "
                    + chance.choice(
                        [
                            f"{called}()",
                            f"print('{called}()')  # {called}",
                            f"{called} = 3",
                            f"return [{called} for {called} in ()]",
                            f"self.{called}()",
                            f"(lambda {called}: {called}())(1)",
                        ]
                    )
                )
        files[f"src/made{module}.py"] = "\n".join(lines) + "\n"
    return files


def test_method_of_a_standard_type_is_not_taken_for_the_only_one_in_the_project(
    project: Path, context_for: ContextFor
) -> None:
    write(
        project,
        {
            "path/module.rs": (
                "pub struct ModulePath;\n\nimpl ModulePath {\n"
                "  pub fn starts_with(&self, other: &str) -> bool {\n    true\n  }\n}\n"
            ),
            "path/line.rs": "pub fn is_comment(text: &str) -> bool {\n  text.starts_with('#')\n}\n",
        },
    )
    result = callers_of(context_for, "who uses ModulePath::starts_with?")
    assert not [text for text in result.key_findings if "is_comment" in text and "may use" not in text]


def test_decorators_are_not_calls_of_what_they_decorate(project: Path, context_for: ContextFor) -> None:
    text = (
        "def register_card(name):\n    return str\n\n\ndef weigh_card(card):\n    return card\n\n\n"
        "@register_card('plain')\ndef print_card(card):\n    return weigh_card(card)\n"
    )
    write(project, {"src/shop/card.py": text})
    (call,) = findings(told(context_for, "how does print_card work?"), "calls")
    assert "`print_card` calls `weigh_card`" in call


def test_calls_of_functions_below_an_unbalanced_macro_are_told_of_these_alone(
    project: Path, context_for: ContextFor
) -> None:
    text = (
        "static int walk_all(struct list *all, int depth) {\n#ifdef FAST\n"
        "  if (all) {\n#else\n  if (depth) {\n"
        "#endif\n    depth++;\n  }\n  return depth;\n}\n\nstatic int add_one(int x) {\n  return x + 1;\n}\n\n"
        "int count_all(struct list *all) {\n  return add_one(walk_all(all, 0));\n}\n"
    )
    write(project, {"native/walk.c": text})
    assert findings(told(context_for, "how does walk_all work?"), "calls `add_one") == []
    (use,) = callers_of(context_for, "who calls walk_all?").key_findings
    assert re.match(r"native/walk\.c:17: `count_all` (?:calls|may use) `walk_all`", use)
