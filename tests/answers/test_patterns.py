"""The pattern finder shows a few distinct examples with their code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retinue.answers.locator import locate
from retinue.answers.patterns import find_examples
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from tests.answers.conftest import ContextFor, ContextIn, write


def patterns_of(context: RoleContext) -> RoleResult:
    return find_examples(context, locate(context, 20, Stop()).places, Stop())


def test_examples_are_distinct_and_short(project: Path, context_for: ContextFor) -> None:
    """Phase 4: two to six examples; near-duplicates are left out."""
    copy = (project / "src/shop/stock.py").read_text().replace("reserve_items", "reserve_more")
    (project / "src/shop/stock_copy.py").write_text(copy)
    result = patterns_of(context_for("show examples of with_retry"))
    snippets = [finding for finding in result.key_findings if "\n" in finding]
    assert 2 <= len(snippets) <= 6
    assert sum("warehouse.reserve" in snippet for snippet in snippets) == 1
    assert any(
        snippet.startswith("src/shop/payment.py:5 in `charge_card`\ndef charge_card") for snippet in snippets
    )


def test_examples_that_differ_only_in_layout_count_once(project: Path, context_for: ContextFor) -> None:
    code = "def buy(shop):\n    total = shop.price + shop.tax\n    return with_retry(shop.pay, total)\n"
    write(project, {"src/shop/buy.py": code, "src/web/buy.py": re.sub(r"([+(,])", r"\1\n        ", code)})
    snippets = [
        one for one in patterns_of(context_for("show examples of with_retry")).key_findings if "\n" in one
    ]
    assert sum("shop.tax" in one for one in snippets) == 1


def test_there_are_at_most_six_examples_of_at_most_twelve_lines(
    project: Path, context_for: ContextFor
) -> None:
    """Phase 3, compaction budget: number and length of snippets."""
    for operator, letter in zip("+-*/%|&^", "abcdefgh", strict=True):
        word = 3 * letter
        lines = "".join(f"    {word}_{line} = {word} {operator} {line}\n" for line in range(30))
        code = f"def {word}_total({word}):\n    with_retry({word} {operator} 1)\n{lines}"
        write(project, {f"src/shop/{word}.py": code})
    result = patterns_of(context_for("show examples of with_retry"))
    snippets = [finding for finding in result.key_findings if "\n" in finding]
    assert 2 <= len(snippets) <= 6
    assert max(snippet.count("\n") for snippet in snippets) == 12


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("examples of with_retry", "distinct examples."),
        ("show existing patterns for retry policies", "which may be examples."),
    ],
)
def test_only_what_has_a_name_of_the_question_is_certainly_an_example(
    context_for: ContextFor, question: str, told: str
) -> None:
    """P8: code with words of the question may show something else. Each example has one reference."""
    result = patterns_of(context_for(question))
    assert 2 <= len(result.references) == len(result.key_findings) <= 6
    assert result.summary.startswith(f"{len(result.references)} ")
    assert result.summary.endswith(told)


@pytest.mark.parametrize(
    ("files", "name", "first"),
    [
        (
            {
                "src/Adapter.java": """
                    public interface Adapter<T> {
                      T read(In in);
                      void write(Out out);
                    }
                """,
                "src/DateAdapter.java": """
                    class DateAdapter implements Adapter<Date> {
                      public Date read(In in) {
                        return in.date();
                      }
                    }
                """,
            },
            "Adapter",
            "src/DateAdapter.java:1",
        ),
        (
            {
                "src/sink.ts": """
                    export interface LogSink {
                      write(line: string): void;
                      close(): void;
                    }
                """,
                "examples/console.ts": """
                    class Console implements LogSink {
                      write(line: string) {
                        console.log(line);
                      }
                    }
                """,
            },
            "LogSink",
            "examples/console.ts:1",
        ),
        (
            {
                "src/lib.rs": """
                    pub trait Shape {
                        fn area(&self) -> f64;
                        fn name(&self) -> String;
                    }
                """,
                "src/circle.rs": """
                    impl Shape for Circle {
                        fn area(&self) -> f64 {
                            3.14 * self.r
                        }
                    }
                """,
            },
            "Shape",
            "src/circle.rs:1",
        ),
    ],
)
def test_examples_of_a_type_are_its_implementers_never_its_declaration(
    tmp_path: Path, context_in: ContextIn, files: dict[str, str], name: str, first: str
) -> None:
    context = context_in(write(tmp_path / "typed", files), f"show existing patterns for a custom `{name}`")
    result = patterns_of(context)
    assert str(result.references[0]) == first
    assert not [finding for finding in result.key_findings if re.search(r"interface|trait", finding)]


def test_examples_that_differ_only_in_names_count_once(project: Path, context_for: ContextFor) -> None:
    """Registrations and accessors are often repeated with other words."""
    module = (
        "def register_{0}(registry):\n    registry.add(\n        '{0} plugin',\n        make={0},\n    )\n"
    )
    other = "def register_all(registry):\n  for one in PLUGINS:\n    if one.on:\n      yield one\n"
    plugins = {f"src/shop/plugin_{name}.py": module.format(name) for name in ("mail", "print", "fax")}
    write(project, plugins | {"src/shop/plugins.py": other})
    result = patterns_of(context_for("examples of how to register a plugin in the registry"))
    shown = [finding for finding in result.key_findings if "register_" in finding]
    assert len([finding for finding in shown if "registry.add(" in finding]) == 1
    assert [finding for finding in shown if "register_all" in finding]


def test_siblings_of_the_best_definition_are_examples(tmp_path: Path, context_in: ContextIn) -> None:
    names = ("trim", "pad", "split")
    code = "".join(
        f"def {name}_column(value):\n    total = {number}\n    return value.{name}(total)\n\n\n"
        for number, name in enumerate(names)
    )
    other = "def unrelated():\n    first = 1\n    return first\n"
    context = context_in(
        write(tmp_path / "columns", {"cells.py": code + other}), "examples of changing a column"
    )
    text = "\n".join(patterns_of(context).key_findings)
    assert "trim_column" in text
    assert "unrelated" not in text


def test_long_comment_above_an_example_leaves_room_for_its_code(
    tmp_path: Path, context_in: ContextIn
) -> None:
    comment = "/**\n" + " * About the writer.\n" * 15 + " */\n"
    code = f"{comment}class RowWriter implements Writer {{\n  void write() {{\n    flush();\n  }}\n}}\n"
    context = context_in(write(tmp_path / "long", {"RowWriter.java": code}), "examples of `Writer`")
    assert "flush();" in patterns_of(context).key_findings[0]


def test_definition_is_no_example_of_itself(tmp_path: Path, context_in: ContextIn) -> None:
    code = "def with_retry(fn):\n    for _ in range(3):\n        fn()\n\n\n"
    code += "def save():\n    return with_retry(write)\n"
    result = patterns_of(context_in(write(tmp_path / "app", {"retry.py": code}), "examples of with_retry"))
    assert [str(one) for one in result.references] == ["retry.py:7"]
