"""An answer starts from the definitions that the question is about, or quotes the best lines (P3)."""

from __future__ import annotations

from pathlib import Path

from retinue.answers.components import find_components, quote_lines
from retinue.answers.flow import tell_flow
from retinue.answers.locator import locate
from retinue.answers.role_context import RoleContext
from retinue.core import Stop
from tests.answers.conftest import ContextFor, write


def found(context: RoleContext) -> list[tuple[str, str, int]]:
    """Return the name, the file and the line of each component."""
    components = find_components(context, locate(context, 20, Stop()).places, Stop())
    return [(one.name, one.entry.path, one.definition.line) for one in components]


def test_named_definition_is_the_component(context_for: ContextFor) -> None:
    assert found(context_for("how does with_retry work?")) == [("with_retry", "src/shop/retry.py", 18)]
    assert found(context_for("what is RetryPolicy.delay?")) == [
        ("RetryPolicy.delay", "src/shop/retry.py", 14)
    ]


def test_prose_has_no_component_and_its_best_line_is_quoted(project: Path, context_for: ContextFor) -> None:
    write(project, {"docs/zebra.md": "# Stripes\n\nThe zebra migrates in spring.\n"})
    context = context_for("when does the zebra migrate?")
    places = locate(context, 20, Stop()).places
    expected = ("docs/zebra.md:3: `The zebra migrates in spring.`",)
    assert quote_lines(context, places, Stop()).key_findings == expected
    assert tell_flow(context, places, Stop()).key_findings == expected


def test_nothing_is_quoted_if_no_line_has_a_word(project: Path, context_for: ContextFor) -> None:
    context = context_for("where do the walruses sleep?")
    result = quote_lines(context, (), Stop())
    assert result.key_findings == ()
    assert result.summary == "No line has the words of the question."
    assert result.confidence == "low"


def test_single_word_finds_the_component_with_that_name(project: Path, context_for: ContextFor) -> None:
    """Of several overloads, the one with the body counts."""
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
    assert found(context_for("parcelled")) == [("parcelled", "src/web/parcelled.ts", 9)]
