"""Properties of the redactor for any text."""

from __future__ import annotations

from random import Random
from string import ascii_letters

from hypothesis import HealthCheck, assume, given, settings, strategies as st

from benchmarks.redaction_generated import generated
from benchmarks.redaction_ordinary import ordinary
from benchmarks.redaction_secrets import Planted, planted
from retinue.redaction import SecretRedactor

REDACTOR = SecretRedactor()
MARKER = "[redacted:hidden-value]"
BOUNDS = ("\n", " ", "\n\n", "\t", "; ", "\n- ", "\n> ", "\n| ")

PROPERTY = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
surroundings = st.text(max_size=200)
secrets = st.sampled_from([secret for seed in range(10, 20) for secret in planted(seed)])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@PROPERTY
@given(surroundings, st.sampled_from(BOUNDS), secrets, st.sampled_from(BOUNDS), surroundings)
def test_planted_secret_is_always_hidden(
    before: str, opening: str, secret: Planted, closing: str, after: str
) -> None:
    """P6: anywhere in a text."""
    if secret.kind == "environment":
        opening = closing = "\n"  # one to a line is what makes it one
    assert secret.secret not in REDACTOR.redact(before + opening + secret.text + closing + after)


@PROPERTY
@given(st.lists(surroundings | secrets.map(lambda secret: secret.text), max_size=5), st.sampled_from(BOUNDS))
def test_redacting_twice_changes_nothing(parts: list[str], joint: str) -> None:
    """P6: text is redacted in more than one place."""
    once = REDACTOR.redact(joint.join(parts))
    assert REDACTOR.redact(once) == once


@PROPERTY
@given(st.text(alphabet=ascii_letters + " ", max_size=500))
def test_letters_and_blanks_are_kept(text: str) -> None:
    """P6: prose is not secret."""
    assert REDACTOR.redact(text) == text


@PROPERTY
@given(st.text(max_size=300))
def test_any_text_can_be_redacted(text: str) -> None:
    """P6: redaction never fails, whatever the characters."""
    assert REDACTOR.redact(text) is not None


@PROPERTY
@given(surroundings, st.text(min_size=6, max_size=30), surroundings)
def test_hidden_value_is_always_replaced(before: str, value: str, after: str) -> None:
    """P6: exact values are hidden in any context."""
    assume(value not in MARKER)
    assert value not in SecretRedactor(hidden=[value]).redact(before + value + after).replace(MARKER, "\x00")


@PROPERTY
@given(json_values)
def test_values_keep_their_shape(value: object) -> None:
    """P6: only strings change."""
    assert shape(REDACTOR.redact_value(value)) == shape(value)


@PROPERTY
@given(secrets, st.lists(st.text(max_size=10), max_size=3))
def test_secret_inside_a_value_is_always_hidden(secret: Planted, path: list[str]) -> None:
    """P6: at any depth."""
    value: object = f"\n{secret.text}\n"
    for key in path:
        value = [{key: value}]
    assert secret.secret not in str(REDACTOR.redact_value(value))


def shape(value: object) -> object:
    """Return a value without its strings."""
    if isinstance(value, dict):
        return [shape(member) for member in value.values()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [shape(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str if isinstance(value, str) else value


def test_lines_that_arrive_together_are_redacted_as_if_they_came_one_by_one() -> None:
    """P6: output is redacted in blocks of many lines, because that is much faster."""
    chance = Random(2026)  # noqa: S311
    texts = [each.text for each in (*planted(3), *generated(3))]
    secret_lines = [line for text in texts for line in text.split("\n")]
    ordinary_lines = [line for each in ordinary(3) for line in each.text.split("\n")]
    for _ in range(60):
        share = chance.choice((0.02, 0.3))
        block = [
            chance.choice(secret_lines if chance.random() < share else ordinary_lines)
            for _ in range(chance.randint(2, 40))
        ]
        lines = [f"{line}\n" for line in block]
        together, single = REDACTOR.stream(), REDACTOR.stream()
        assert together.feed("".join(lines)) + together.finish() == "".join(
            [*map(single.feed, lines), single.finish()]
        )
