"""What each role finds, and that each finding carries its evidence (P3)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.codebase import Claim, FileEntry, Located, Locator, ParsedQuestion
from retinue.core import Canceled, DeadlineExceeded, RoleResult, Root, Stop
from retinue.research.analyzer import analyze
from retinue.research.locator import find
from retinue.research.patterns import find_patterns
from retinue.research.report_builder import FINDINGS
from retinue.research.role_context import Finding, Inquiry, verify
from tests.research.conftest import write

Inquire = Callable[..., Inquiry]


def located(inquiry: Inquiry, limit: int = 20) -> RoleResult:
    return find(inquiry, limit, Stop())[0]


def analyzed(inquiry: Inquiry) -> RoleResult:
    return analyze(inquiry, find(inquiry, 20, Stop())[1], Stop())


def patterns_of(inquiry: Inquiry) -> RoleResult:
    return find_patterns(inquiry, find(inquiry, 20, Stop())[1], Stop())


def starts(result: RoleResult, beginning: str) -> list[str]:
    return [finding for finding in result.key_findings if finding.startswith(beginning)]


def test_locator_groups_places_by_kind_with_counts(inquire: Inquire) -> None:
    """Phase 2, locator output: summary, references, findings and confidence are there and bounded."""
    result = located(inquire("where is with_retry implemented and tested?"))
    assert starts(result, "implementation (")
    assert starts(result, "tests (1): tests/test_retry.py")
    assert starts(result, "docs (1): docs/retry.md")
    assert result.confidence in ("low", "med", "high")
    assert all(len(finding) <= 300 for finding in result.key_findings)


def test_locator_references_are_deduped_stable_and_without_excerpts(inquire: Inquire) -> None:
    """Phase 2, locator evidence."""
    results = [located(inquire("with_retry")) for _ in range(3)]
    assert results[0] == results[1] == results[2]
    references = results[0].references
    assert len(set(references)) == len(references)
    assert not any("return call()" in finding for finding in results[0].key_findings)


def test_locator_says_why_each_place_is_there(inquire: Inquire) -> None:
    result = located(inquire("where is with_retry implemented?"))
    assert starts(result, "src/shop/retry.py:18: ")
    assert len(result.references) > 3
    assert all(starts(result, f"{reference}: ") for reference in result.references)


def test_locator_says_so_of_the_best_places_where_there_is_no_room_for_all(
    project: Path, inquire: Inquire
) -> None:
    for number in range(20):
        write(project, {f"src/shop/more_{number}.py": f"def with_retry_{number}():\n    return {number}\n"})
    result, _ = find(inquire("with_retry"), 20, Stop())
    assert len(result.references) > len(result.key_findings) == FINDINGS
    assert starts(result, f"{result.references[0]}: ")
    assert starts(result, "implementation (")


def test_locator_tells_names_that_do_not_exist_from_those_that_do(inquire: Inquire) -> None:
    """P8: a name that is nowhere is said to be, although others were found."""
    result = located(inquire("does with_retry call frob_nicate?"))
    assert result.references
    assert result.notes is not None
    assert "frob_nicate" in result.notes


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_locator_keeps_to_its_limit(inquire: Inquire, limit: int) -> None:
    assert len(located(inquire("with_retry"), limit).references) == limit


def test_analyzer_tells_where_defined_who_calls_what_is_called_and_read(inquire: Inquire) -> None:
    result = analyzed(inquire("how does with_retry work?"))
    assert starts(result, "src/shop/retry.py:18: `with_retry` is defined: `def with_retry(call, policy):`")
    assert starts(result, "src/shop/payment.py:5: `charge_card` uses `with_retry`")
    assert starts(result, "src/shop/stock.py:7: `reserve_items` uses `with_retry`")
    assert starts(result, "tests/test_retry.py:5: a test of `with_retry`")
    assert [
        text
        for text in result.key_findings
        if "calls `should_retry`, defined at src/shop/retry.py:11" in text
    ]
    assert "named in 3 files" in result.summary
    assert not [text for text in result.key_findings if text.startswith("src/shop/retry.py:9:")], (
        "a docstring"
    )


def test_analyzer_follows_the_call_path_up_to_an_entry_point(inquire: Inquire) -> None:
    """Priority 2: entry points and call paths."""
    (path,) = starts(analyzed(inquire("how does with_retry work?")), "Call path: ")
    assert path == (
        "Call path: `main` (src/shop/cli.py:5) -> `charge_card` (src/shop/payment.py:5) -> `with_retry`"
    )


def test_analyzer_tells_constants_and_settings_with_their_origin(inquire: Inquire) -> None:
    """Priority 3: high-signal configuration and constants."""
    constant = analyzed(inquire("how does RetryPolicy.should_retry decide?"))
    assert starts(
        constant,
        "src/shop/retry.py:12: `RetryPolicy.should_retry` reads `MAX_ATTEMPTS`, "
        "set at src/shop/settings.py:1",
    )
    setting = analyzed(inquire("what is RetryPolicy.delay?"))
    assert starts(setting, "src/shop/retry.py:15: `RetryPolicy.delay` reads `settings.base_delay`")


def test_analyzer_takes_no_word_of_a_text_or_comment_for_a_constant(project: Path, inquire: Inquire) -> None:
    code = """
        MAX_WEIGHT = 9

        def weigh(goods):
            label = "HEAVY_GOODS" + str(goods)  # FIXME: not for MAX_CLOUDS
            return label // MAX_WEIGHT
    """
    write(project, {"src/shop/scale.py": code})
    result = analyzed(inquire("what does weigh read?"))
    read = [text.partition(" reads ")[2] for text in result.key_findings if " reads " in text]
    assert read == ["`MAX_WEIGHT`, set at src/shop/scale.py:1"]


def test_analyzer_finds_a_method_only_where_something_reaches_it(project: Path, inquire: Inquire) -> None:
    write(
        project,
        {
            "src/shop/other.py": "def delay():\n    pass\n\n\ndelay()\n",
            "src/shop/cart.py": "class Cart:\n    def fill(self):\n        pass\n\n\n"
            "def go(cart, cart_labels):\n    cart_labels.fill()\n    my_cart2.fill()\n",
        },
    )
    result = analyzed(inquire("what is RetryPolicy.delay?"))
    assert starts(result, "src/shop/retry.py:27: `with_retry` uses `RetryPolicy.delay`")
    assert not starts(result, "src/shop/other.py:5")
    result = analyzed(inquire("what is Cart.fill?"))
    assert starts(result, "src/shop/cart.py:8: `go` uses `Cart.fill`")
    assert not starts(result, "src/shop/cart.py:7")  # labels of a cart are no cart


@pytest.mark.parametrize(
    ("name", "text", "question", "defined", "used"),
    [
        (
            "a.go",
            "package a\n\nfunc (s *Store) Load(key string) int {\n\treturn s.fetch(key)\n}\n\n"
            "func Run(s *Store) {\n\ts.Load(1)\n}\n",
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
def test_analyzer_reads_other_languages_too(
    project: Path, inquire: Inquire, name: str, text: str, question: str, defined: str, used: str
) -> None:
    write(project, {f"other/{name}": text})
    result = analyzed(inquire(question))
    assert starts(result, f"other/{defined}")
    assert starts(result, f"other/{used}")


def test_analyzer_of_prose_quotes_the_telling_lines(project: Path, inquire: Inquire) -> None:
    write(project, {"docs/zebra.md": "# Stripes\n\nThe zebra migrates in spring.\n"})
    result = analyzed(inquire("when does the zebra migrate?"))
    assert starts(result, "docs/zebra.md:3: `The zebra migrates in spring.`")


def test_patterns_are_distinct_examples_with_short_snippets(project: Path, inquire: Inquire) -> None:
    """Phase 4: 2-6 examples; near-duplicates are left out."""
    copy = (project / "src/shop/stock.py").read_text().replace("reserve_items", "reserve_more")
    (project / "src/shop/stock_copy.py").write_text(copy)
    result = patterns_of(inquire("show examples of with_retry"))
    snippets = [finding for finding in result.key_findings if "\n" in finding]
    assert 2 <= len(snippets) <= 6
    assert sum("warehouse.reserve" in snippet for snippet in snippets) == 1
    assert any(
        snippet.startswith("src/shop/payment.py:5 in `charge_card`\ndef charge_card") for snippet in snippets
    )


def test_examples_that_differ_in_their_layout_alone_are_one(project: Path, inquire: Inquire) -> None:
    code = "def buy(shop):\n    total = shop.price + shop.tax\n    return with_retry(shop.pay, total)\n"
    write(project, {"src/shop/buy.py": code, "src/web/buy.py": re.sub(r"([+(,])", r"\1\n        ", code)})
    snippets = [
        one for one in patterns_of(inquire("show examples of with_retry")).key_findings if "\n" in one
    ]
    assert sum("shop.tax" in one for one in snippets) == 1


def test_patterns_are_six_at_most_of_twelve_lines_at_most(project: Path, inquire: Inquire) -> None:
    """Phase 3, compaction budget: most snippets, and their longest."""
    for operator, letter in zip("+-*/%|&^", "abcdefgh", strict=True):
        word = 3 * letter
        lines = "".join(f"    {word}_{line} = {word} {operator} {line}\n" for line in range(30))
        code = f"def {word}_total({word}):\n    with_retry({word} {operator} 1)\n{lines}"
        write(project, {f"src/shop/{word}.py": code})
    result = patterns_of(inquire("show examples of with_retry"))
    snippets = [finding for finding in result.key_findings if "\n" in finding]
    assert len(snippets) == 6
    assert max(snippet.count("\n") for snippet in snippets) == 12


def test_patterns_name_the_tests_of_their_examples(inquire: Inquire) -> None:
    result = patterns_of(inquire("examples of retry policies"))
    assert starts(result, "tests/test_retry.py: a test of `")


def test_findings_whose_evidence_is_gone_are_dropped_and_counted(project: Path, inquire: Inquire) -> None:
    """P3: between the reading and the telling a file was changed."""
    file = project / "src/shop/payment.py"
    telling = "return with_retry(lambda: gateway.charge(amount), RetryPolicy())"

    def change(text: str) -> str:
        """The last to see a line before it is told."""
        if telling in text:
            file.write_text("nothing\n" * 9)
        return text

    def patterns_after(redact: Callable[[str], str]) -> RoleResult:
        inquiry = inquire("examples of with_retry")
        inquiry.sources.redact = redact
        return patterns_of(inquiry)

    assert telling in "".join(patterns_after(str).key_findings)
    result = patterns_after(change)
    assert not [text for text in result.key_findings if "payment.py" in text]
    assert result.notes is not None
    assert "1 finding dropped: the evidence did not hold." in result.notes


def test_place_that_says_nothing_of_the_question_any_more_is_dropped(project: Path, inquire: Inquire) -> None:
    """P3: between the search and the last look one file was changed, and another removed."""
    inquiry = inquire("where is with_retry used?")

    class Late(Locator):
        def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
            found = super().locate(question, limit, stop)
            (project / "src/shop/payment.py").write_text("nothing\n" * 9)
            (project / "src/shop/stock.py").unlink()
            return found

    before = located(inquiry)
    after = located(replace(inquiry, scope=replace(inquiry.scope, locator=Late(inquiry.scope.codebase))))
    lost = {one.path for one in before.references} - {one.path for one in after.references}
    assert lost == {"src/shop/payment.py", "src/shop/stock.py"}
    assert after.notes == "2 references dropped: not as claimed any more."


def test_a_finding_is_told_only_if_all_its_evidence_holds(project: Path, inquire: Inquire) -> None:
    """P3: and only then are its references."""
    retry, payment = (FileEntry(Root.at(project), f"src/shop/{name}.py") for name in ("retry", "payment"))
    defined, used = Claim(retry, 18, ("with_retry",)), Claim(payment, 5, ("with_retry",))
    elsewhere = Claim(payment, 4, ("with_retry",))
    findings = [Finding("both", (defined, used)), Finding("half", (defined, elsewhere))]
    verified = verify(inquire("with_retry"), findings, Stop())
    assert verified.findings == ("both",)
    assert [str(one) for one in verified.references] == ["src/shop/retry.py:18", "src/shop/payment.py:5"]
    assert verified.notes == "1 finding dropped: the evidence did not hold."


@pytest.mark.parametrize("role", [analyze, find_patterns])
def test_canceled_role_ends(inquire: Inquire, role: Callable[..., RoleResult]) -> None:
    inquiry = inquire("examples of with_retry")
    _, places = find(inquiry, 20, Stop())
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        role(inquiry, places, stop)
    with pytest.raises(DeadlineExceeded):
        role(inquiry, places, Stop(0))


@pytest.mark.parametrize(
    "text",
    [
        "def with_retry():\n    " + "a" * 400_000 + "(1)\n",
        "def with_retry():\n    " + "'\"`" * 130_000 + "\n",
        "def with_retry():\n    x = [" + "a.b(c)." * 60_000 + "]\n",
        "".join(f"{' ' * (number % 60)}def with_retry_{number}():\n" for number in range(8_000)),
    ],
    ids=["one word", "quotes", "calls", "definitions"],
)
def test_hostile_files_cost_no_more_than_ordinary_ones(project: Path, inquire: Inquire, text: str) -> None:
    """P2: whatever a file holds, a role ends."""
    write(project, {"src/odd.py": text})
    start = time.process_time()
    for role in (analyzed, patterns_of):
        role(inquire("examples of with_retry"))
    assert time.process_time() - start < 10


def test_long_report_with_many_words_is_answered(project: Path, inquire: Inquire) -> None:
    words = " ".join(f"word{number}" for number in range(9_000))
    result = located(inquire(f"with_retry fails\n\n```\n{words}\n```"))
    assert str(result.references[0]) == "src/shop/retry.py:18"


def test_analyzer_tells_first_what_the_question_asks_of_a_component(project: Path, inquire: Inquire) -> None:
    """Of many calls and settings, those that the question speaks of; not those named like the component."""
    body = "".join(f"    prepare_order_{number}()\n" for number in range(5))
    helpers = "".join(f"def prepare_order_{number}(): ...\n" for number in range(5))
    text = f"def place_order():\n{body}    split_batches()\n\n{helpers}def split_batches(): ...\n"
    write(project, {"src/shop/order.py": text})
    result = analyzed(inquire("how does place_order split batches?"))
    calls = [finding for finding in result.key_findings if " calls " in finding]
    assert "calls `split_batches`" in calls[0]
    assert "calls `prepare_order_0`" in calls[1]


def test_analyzer_takes_a_bare_word_for_the_component_of_that_name(project: Path, inquire: Inquire) -> None:
    """And of its overloads the one with the body."""
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
    result = analyzed(inquire("parcelled"))
    assert starts(result, "src/web/parcelled.ts:9: `parcelled` is defined")
    assert "`parcelled` is defined at src/web/parcelled.ts:9" in result.summary
    assert len([finding for finding in result.key_findings if "is defined" in finding]) == 1


def test_type_of_the_same_name_in_another_file_is_another_type(project: Path, inquire: Inquire) -> None:
    """P8: what it calls on itself is its own."""
    saving = "class Store:\n    def save_all(self): ...\n\n    def flush(self):\n        self.save_all()\n"
    other = "class Store(Base):\n    def rotate(self):\n        self.save_all()\n"
    write(project, {"src/shop/database.py": saving, "src/shop/files.py": other})
    result = analyzed(inquire("how does Store.save_all in database.py work?"))
    assert starts(result, "src/shop/database.py:5: `Store.flush` uses `Store.save_all`")
    assert not starts(result, "src/shop/files.py:")


def test_examples_that_differ_in_names_alone_are_one(project: Path, inquire: Inquire) -> None:
    """Near-duplicates: registrations, accessors and the like are written again with other words."""
    module = (
        "def register_{0}(registry):\n    registry.add(\n        '{0} plugin',\n        make={0},\n    )\n"
    )
    other = "def register_all(registry):\n  for one in PLUGINS:\n    if one.on:\n      yield one\n"
    plugins = {f"src/shop/plugin_{name}.py": module.format(name) for name in ("mail", "print", "fax")}
    write(project, plugins | {"src/shop/plugins.py": other})
    result = patterns_of(inquire("examples of how to register a plugin in the registry"))
    shown = [finding for finding in result.key_findings if "register_" in finding]
    assert len([finding for finding in shown if "registry.add(" in finding]) == 1
    assert [finding for finding in shown if "register_all" in finding]
