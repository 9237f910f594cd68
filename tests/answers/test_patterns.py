"""The pattern finder shows a few distinct examples with their code."""

from __future__ import annotations

import re
from dataclasses import replace
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
    assert len(snippets) == 6
    assert max(snippet.count("\n") for snippet in snippets) == 12


def test_every_example_has_one_reference(context_for: ContextFor) -> None:
    for question in ("examples of with_retry", "show existing patterns for retry policies"):
        result = patterns_of(context_for(question))
        assert 2 <= len(result.references) == len(result.key_findings) <= 6
        assert f"{len(result.references)} distinct examples." in result.summary


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


FORMATS = {
    "src/Format.java": "public abstract class Format {\n  abstract String write(Row row);\n}\n",
    **{
        f"src/{name}Output.java": f"class {name}Output extends Format {{\n  String write(Row row) {{\n"
        f"    return row.{name.lower()}();\n  }}\n}}\n"
        for name in ("Csv", "Json", "Xml")
    },
    "test/FakeFormatTest.java": "class FakeFormatTest {\n  void writes() {\n    format();\n  }\n}\n",
}


@pytest.mark.parametrize("also", [(), ("Format",)], ids=["plain", "with a hint"])
def test_existing_things_are_the_types_of_that_kind(
    tmp_path: Path, context_in: ContextIn, also: tuple[str, ...]
) -> None:
    """All of a kind are shown though they look alike, and never the declaration that they extend."""
    context = context_in(write(tmp_path / "formats", FORMATS), "Show me the existing formats")
    context = replace(context, question=context.question.with_hints(also))
    found = {str(reference) for reference in patterns_of(context).references}
    assert {f"src/{name}Output.java:1" for name in ("Csv", "Json", "Xml")} <= found
    assert "src/Format.java:1" not in found


def test_kind_that_the_question_asks_for_comes_first(tmp_path: Path, context_in: ContextIn) -> None:
    """The plugins are wanted, though the files of the query runners have more words of the question."""
    runners = "".join(
        f"export class {name}QueryRunner extends QueryRunner {{\n"
        f"  run(query) {{\n    // the plugins change the query before it is run: {name}\n"
        "    return this.plugins.change(query)\n  }\n}\n"
        for name in ("Plain", "Lazy", "Pooled")
    )
    plugins = {
        f"src/extra/{name}.ts": f"export class {name} implements ShopPlugin {{\n"
        f"  {name}() {{\n    work()\n  }}\n}}\n"
        for name in ("Camel", "Dedupe", "Trim")
    }
    files = {f"src/runner{number}.ts": runners for number in range(9)} | plugins
    asked = "Show me existing plugins that change a query before it is run"
    references = patterns_of(context_in(write(tmp_path / "plugins", files), asked)).references
    found = [str(reference) for reference in references]
    assert found[0] == "src/extra/Camel.ts:1"
    assert {"src/extra/Dedupe.ts:1", "src/extra/Trim.ts:1"} <= set(found)


def test_existing_things_in_go_are_structs_of_that_kind_not_calls(
    tmp_path: Path, context_in: ContextIn
) -> None:
    structs = "".join(
        f"type {name}Resolver struct {{\n\tmu sync.Mutex\n\t{name.lower()} string\n}}\n\n"
        for name in ("Memory", "Remote")
    )
    base = "type AccountResolver interface {\n\tFetch(name string) string\n}\n\n"
    uses = "func load(s *Server) {\n\tif r := s.AccountResolver(); r != nil {\n\t\tr.Fetch(name)\n\t}\n}\n"
    root = write(tmp_path / "go", {"accounts.go": f"package shop\n\n{base}{structs}", "server.go": uses})
    result = patterns_of(context_in(root, "Show me existing account resolvers"))
    assert [str(reference) for reference in result.references[:2]] == ["accounts.go:7", "accounts.go:12"]


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


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (
            "docs/hooks.md",
            "Changing a price before it is shown:\n\n```python\nshop.on_price(lambda price: 2)\n```\n",
        ),
        (
            "docs/hooks.rst",
            "Changing a price before it is shown::\n\n    shop.on_price(lambda price: 2)\n\nEnd.\n",
        ),
        (
            "docs/hooks.rst",
            "Changing a price before it is shown.\n\n.. code-block:: python\n\n"
            "    shop.on_price(lambda price: 2)\n",
        ),
    ],
)
def test_code_of_the_documentation_is_an_example(
    tmp_path: Path, context_in: ContextIn, page: str, code: str
) -> None:
    files = {page: f"Hooks\n=====\n\n{code}", "shop.py": "def price():\n    value = 1\n    return value\n"}
    context = context_in(write(tmp_path / "hooked", files), "Show me an example of changing a shown price")
    assert any("shop.on_price" in finding for finding in patterns_of(context).key_findings)


def test_long_comment_above_an_example_leaves_room_for_its_code(
    tmp_path: Path, context_in: ContextIn
) -> None:
    comment = "/**\n" + " * About the writer.\n" * 15 + " */\n"
    code = f"{comment}class RowWriter implements Writer {{\n  void write() {{\n    flush();\n  }}\n}}\n"
    context = context_in(write(tmp_path / "long", {"RowWriter.java": code}), "examples of `Writer`")
    assert "flush();" in patterns_of(context).key_findings[0]


def test_files_of_a_folder_that_is_named_like_the_kind_are_examples(
    tmp_path: Path, context_in: ContextIn
) -> None:
    body = "  constructor(runner) {\n    super(runner);\n  }\n}\n"
    files = {
        f"lib/reporters/{name}.js": f"class {name} extends Base {{\n{body}" for name in ("Dot", "List", "Min")
    }
    other = "class Runner {\n  report() {\n    return this.reporter.reporters;\n  }\n}\n"
    root = write(tmp_path / "runner", {**files, "lib/runner.js": other})
    result = patterns_of(context_in(root, "Show me existing reporters"))
    assert {one.path for one in result.references[:3]} == set(files)


def test_definition_is_no_example_of_itself(tmp_path: Path, context_in: ContextIn) -> None:
    code = "def with_retry(fn):\n    for _ in range(3):\n        fn()\n\n\n"
    code += "def save():\n    return with_retry(write)\n"
    result = patterns_of(context_in(write(tmp_path / "app", {"retry.py": code}), "examples of with_retry"))
    assert [str(one) for one in result.references] == ["retry.py:7"]
