"""The analyzer explains how a component works, with evidence for every finding (P3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import RoleResult, Stop
from retinue.research.analyzer import analyze
from retinue.research.locator import locate
from retinue.research.role_context import RoleContext
from tests.research.conftest import ContextFor, findings_starting as starts, write


def analyzed(context: RoleContext) -> RoleResult:
    return analyze(context, locate(context, 20, Stop()).places, Stop())


def test_analyzer_finds_definition_callers_and_callees(context_for: ContextFor) -> None:
    result = analyzed(context_for("how does with_retry work?"))
    assert starts(result, "src/shop/retry.py:18: `with_retry` is defined: `def with_retry(call, policy):`")
    assert starts(result, "src/shop/payment.py:5: `charge_card` uses `with_retry`")
    assert starts(result, "src/shop/stock.py:7: `reserve_items` uses `with_retry`")
    assert starts(result, "tests/test_retry.py:5: a test of `with_retry`")
    assert [
        text
        for text in result.key_findings
        if "uses `RetryPolicy.should_retry`, defined at src/shop/retry.py:11" in text
    ]
    assert "named in 3 files" in result.summary
    assert not [text for text in result.key_findings if text.startswith("src/shop/retry.py:9:")], (
        "a docstring"
    )


def test_analyzer_follows_the_call_path_up_to_an_entry_point(context_for: ContextFor) -> None:
    """Priority 2: entry points and call paths."""
    (path,) = starts(analyzed(context_for("how does with_retry work?")), "Call path: ")
    assert path == (
        "Call path: `main` (src/shop/cli.py:5) -> `charge_card` (src/shop/payment.py:5) -> `with_retry`"
    )


def test_analyzer_finds_constants_and_settings_with_their_origin(context_for: ContextFor) -> None:
    """Priority 3: high-signal configuration and constants."""
    constant = analyzed(context_for("how does RetryPolicy.should_retry decide?"))
    assert starts(
        constant,
        "src/shop/retry.py:12: `RetryPolicy.should_retry` reads `MAX_ATTEMPTS`, "
        "set at src/shop/settings.py:1",
    )
    setting = analyzed(context_for("what is RetryPolicy.delay?"))
    assert starts(setting, "src/shop/retry.py:15: `RetryPolicy.delay` reads `settings.base_delay`")


def test_analyzer_ignores_constants_in_strings_and_comments(project: Path, context_for: ContextFor) -> None:
    code = """
        MAX_WEIGHT = 9

        def weigh(goods):
            label = "HEAVY_GOODS" + str(goods)  # FIXME: not for MAX_CLOUDS
            return label // MAX_WEIGHT
    """
    write(project, {"src/shop/scale.py": code})
    result = analyzed(context_for("what does weigh read?"))
    read = [text.partition(" reads ")[2] for text in result.key_findings if " reads " in text]
    assert read == ["`MAX_WEIGHT`, set at src/shop/scale.py:1"]


def test_analyzer_finds_a_method_only_where_it_is_called_on_something(
    project: Path, context_for: ContextFor
) -> None:
    write(
        project,
        {
            "src/shop/other.py": "def delay():\n    pass\n\n\ndelay()\n",
            "src/shop/cart.py": "class Cart:\n    def fill(self):\n        pass\n\n\n"
            "def go(cart, cart_labels):\n    cart_labels.fill()\n    my_cart2.fill()\n",
        },
    )
    result = analyzed(context_for("what is RetryPolicy.delay?"))
    assert starts(result, "src/shop/retry.py:27: `with_retry` uses `RetryPolicy.delay`")
    assert not starts(result, "src/shop/other.py:5")
    result = analyzed(context_for("what is Cart.fill?"))
    assert starts(result, "src/shop/cart.py:8: `go` may use `Cart.fill`")
    assert not starts(result, "src/shop/cart.py:7")  # labels of a cart are no cart


@pytest.mark.parametrize(
    ("name", "text", "question", "defined", "used"),
    [
        (
            "a.go",
            "package a\n\nfunc (s *Store) Load(key string) int {\n\treturn s.fetch(key)\n}\n\n"
            "func Run(s *Store) {\n\ts.Load(1)\n}\n\ntype Store struct{}\n",
            "what does Store.Load do?",
            "a.go:3: `Store.Load` is defined",
            "a.go:8: `Run` uses `Store.Load`",
        ),
        (
            "lib.rs",
            "pub fn parse_header(text: &str) -> Header {\n    split_line(text)\n}\n\n"
            "fn run() {\n    parse_header(1);\n}\n",
            "how does parse_header work?",
            "lib.rs:1: `parse_header` is defined",
            "lib.rs:6: `run` uses `parse_header`",
        ),
        (
            "tokens.ts",
            "export function makeToken(user: User): string {\n  return sign(user);\n}\n\n"
            "export const login = (user: User) => {\n  return makeToken(user);\n}\n",
            "how does makeToken work?",
            "tokens.ts:1: `makeToken` is defined",
            "tokens.ts:6: `login` uses `makeToken`",
        ),
        (
            "Cart.java",
            "class Cart {\n    int totalPrice(List<Item> items) {\n        return sumOf(items);\n    }\n\n"
            "    void show(Printer printer) {\n        printer.print(this.totalPrice(items));\n    }\n}\n",
            "how is totalPrice computed?",
            "Cart.java:2: `Cart.totalPrice` is defined",
            "Cart.java:7: `Cart.show` uses `Cart.totalPrice`",
        ),
    ],
    ids=["go", "rust", "typescript", "java"],
)
def test_analyzer_understands_other_languages(
    project: Path, context_for: ContextFor, name: str, text: str, question: str, defined: str, used: str
) -> None:
    write(project, {f"other/{name}": text})
    result = analyzed(context_for(question))
    assert starts(result, f"other/{defined}")
    assert starts(result, f"other/{used}")


def test_analyzer_quotes_the_best_lines_of_prose(project: Path, context_for: ContextFor) -> None:
    write(project, {"docs/zebra.md": "# Stripes\n\nThe zebra migrates in spring.\n"})
    result = analyzed(context_for("when does the zebra migrate?"))
    assert starts(result, "docs/zebra.md:3: `The zebra migrates in spring.`")


def test_analyzer_puts_calls_that_the_question_mentions_first(project: Path, context_for: ContextFor) -> None:
    """Calls whose names only repeat the component's own name come later."""
    body = "".join(f"    prepare_order_{number}()\n" for number in range(5))
    helpers = "".join(f"def prepare_order_{number}(): ...\n" for number in range(5))
    text = f"def place_order():\n{body}    split_batches()\n\n{helpers}def split_batches(): ...\n"
    write(project, {"src/shop/order.py": text})
    result = analyzed(context_for("how does place_order split batches?"))
    calls = [finding for finding in result.key_findings if " calls " in finding]
    assert "calls `split_batches`" in calls[0]
    assert "calls `prepare_order_0`" in calls[1]


def test_single_word_finds_the_component_with_that_name(project: Path, context_for: ContextFor) -> None:
    """Of several overloads, the analyzer takes the one with the body."""
    text = """
        interface BaseParcelledRef<T> extends ParcelledRef<T> {
          readonly parcelled: ParcelledRef<T>
          parcelledAgain: Parcelled
          isParcelled: boolean
        }

        export function parcelled(one: string): string
        export function parcelled(one: number): string
        export function parcelled(one: unknown): string {
          const parcelledText = String(one)
          return parcelledText
        }
    """
    write(project, {"src/web/parcelled.ts": text})
    result = analyzed(context_for("parcelled"))
    assert starts(result, "src/web/parcelled.ts:9: `parcelled` is defined")
    assert "`parcelled` is defined at src/web/parcelled.ts:9" in result.summary
    assert len([finding for finding in result.key_findings if "is defined" in finding]) == 1


def test_type_with_the_same_name_in_another_file_is_not_confused(
    project: Path, context_for: ContextFor
) -> None:
    """P8: a call on `self` belongs to the type of its own file."""
    saving = "class Store:\n    def save_all(self): ...\n\n    def flush(self):\n        self.save_all()\n"
    other = "class Store(Base):\n    def rotate(self):\n        self.save_all()\n"
    write(project, {"src/shop/database.py": saving, "src/shop/files.py": other})
    result = analyzed(context_for("how does Store.save_all in database.py work?"))
    assert starts(result, "src/shop/database.py:5: `Store.flush` uses `Store.save_all`")
    assert not starts(result, "src/shop/files.py:")
