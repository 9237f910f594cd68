"""A stream is redacted as a whole text is, however it is cut into pieces."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from benchmarks.redaction_secrets import ALNUM, Maker, Planted, planted
from retinue.redaction import SecretRedactor
from retinue.redaction.stream_redactor import MAX_HELD_LINES, MAX_LINE_CHARS, SEAM_CHARS

REDACTOR = SecretRedactor()
MADE = Maker(17)
TOKEN = "ghp_" + MADE.of(ALNUM, 36)
KEY_BLOCK, KEY_BODY = MADE.key_block()
KEY_LINES = KEY_BLOCK.splitlines()
PROPERTY = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
ALL = [secret for seed in range(20, 30) for secret in planted(seed)]


def streamed(pieces: Iterable[str], redactor: SecretRedactor = REDACTOR) -> str:
    stream = redactor.stream()
    return "".join([*map(stream.feed, pieces), stream.finish()])


def whole(text: str) -> str:
    return "\n".join(REDACTOR.redact_lines(text.split("\n")))


def pieces_of(text: str, cuts: Iterable[int]) -> Iterator[str]:
    at = 0
    for cut in sorted({min(cut, len(text)) for cut in cuts}):
        yield text[at:cut]
        at = cut
    yield text[at:]


def narrow(width: int) -> Iterator[str]:
    """The material of a key in lines of this width."""
    body = "".join(KEY_LINES[1:-1])
    return (body[at : at + width] for at in range(0, len(body), width))


def whole_of(lines: list[str], after: list[str]) -> str:
    return whole("".join(f"{line}\n" for line in [KEY_LINES[0], *lines, *after]))


@PROPERTY
@given(
    st.lists(st.sampled_from(ALL), min_size=1, max_size=3),
    st.lists(st.text(alphabet="ab \n=:'\"", max_size=40), min_size=4, max_size=4),
    st.lists(st.integers(0, 4000), max_size=12),
)
def test_every_cut_gives_what_the_whole_text_gives(
    secrets: list[Planted], between: list[str], cuts: list[int]
) -> None:
    """P6: no secret is shown, and nothing else is hidden."""
    parts = [
        between[0],
        *(f"\n{secret.text}\n{text}" for secret, text in zip(secrets, between[1:], strict=False)),
    ]
    text = "".join(parts)
    shown = streamed(pieces_of(text, cuts))
    assert not any(secret.secret in shown for secret in secrets)
    assert shown == whole(text)


@PROPERTY
@given(st.sampled_from(ALL))
def test_single_characters_give_what_the_whole_text_gives(secret: Planted) -> None:
    """P6: some programs write character by character."""
    text = f"before\n{secret.text}\nafter\n"
    assert streamed(text) == whole(text)


@PROPERTY
@given(st.text(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_no_text_is_lost(text: str, cuts: list[int]) -> None:
    """P5: whatever the characters, without a secret the stream returns what it was given."""
    if REDACTOR.redact(text) == text:
        assert streamed(pieces_of(text, cuts)) == text


@pytest.mark.parametrize("offset", range(-45, 46, 5))
@pytest.mark.parametrize(
    "seam", [MAX_LINE_CHARS, MAX_LINE_CHARS - SEAM_CHARS + 1, MAX_LINE_CHARS - SEAM_CHARS]
)
@pytest.mark.parametrize("filler", ["x", "word ", "a1+/", '"k":1,'])
def test_token_on_a_seam_of_a_long_line_is_hidden(offset: int, seam: int, filler: str) -> None:
    """P6: a line is returned in parts if it is too long, and no part shows a piece of a secret."""
    length = seam + offset
    before = (filler * (length // len(filler) + 1))[:length]
    text = f"{before} {TOKEN} {filler * 9000}"
    pieces = pieces_of(text, range(0, len(text), MAX_LINE_CHARS))
    assert streamed(pieces) == f"{before} [redacted:github-pat] {filler * 9000}"


def test_secret_longer_than_the_searched_text_is_hidden_completely() -> None:
    """P6: the end of a long token has no prefix that a rule could know it by."""
    token = "ghp_" + MADE.of(ALNUM, 3 * MAX_LINE_CHARS)
    text = f"{'word ' * 10_000}{token} after it"
    shown = streamed(pieces_of(text, range(0, len(text), 10_000)))
    assert shown == f"{'word ' * 10_000}[redacted:github-pat] after it"


def test_lines_are_returned_when_they_are_complete() -> None:
    """P8: whoever follows a run's log sees what the program has printed."""
    stream = REDACTOR.stream()
    assert stream.feed("one\ntwo\nthr") == "one\ntwo\n"
    assert stream.feed("ee") == ""
    assert stream.feed("\n") == "three\n"
    assert stream.finish() == ""


def test_key_is_hidden_line_by_line_and_what_follows_is_shown() -> None:
    """P6: each line arrives alone, and a line of a key looks harmless alone."""
    stream = REDACTOR.stream()
    lines = ["before", *KEY_LINES, "after"]
    shown = "".join([*(stream.feed(f"{line}\n") for line in lines), stream.finish()]).splitlines()
    assert len(shown) == len(lines)
    assert (shown[0], shown[1], shown[-2], shown[-1]) == ("before", KEY_LINES[0], KEY_LINES[-1], "after")
    assert set(shown[2:-2]) == {"[redacted:private-key]"}


@pytest.mark.parametrize("width", [12, 16, 24, 31, 64])
def test_key_in_narrow_lines_is_hidden_line_by_line(width: int) -> None:
    """P6: a key may be wrapped more narrowly than OpenSSL does. Its lines alone do not look like a key."""
    lines = list(narrow(width))
    shown = streamed(f"{line}\n" for line in [KEY_LINES[0], *lines, KEY_LINES[-1], "after"])
    assert shown.splitlines() == [
        KEY_LINES[0],
        *("[redacted:private-key]" for _ in lines),
        KEY_LINES[-1],
        "after",
    ]


@pytest.mark.parametrize("width", [16, 24, 31])
@pytest.mark.parametrize("after", [[], ["more text"], ["more text", KEY_LINES[-1], "after"]])
def test_key_in_narrow_lines_is_hidden_without_its_end(width: int, after: list[str]) -> None:
    """P6: the output may be cut, or the key may be followed by other text."""
    lines = [line for line in narrow(width) if len(line) == width]
    for shown in (streamed(f"{line}\n" for line in [KEY_LINES[0], *lines, *after]), whole_of(lines, after)):
        assert not any(line in shown.splitlines() for line in lines)
        assert shown.splitlines()[1 + len(lines) :] == after


def test_words_after_the_beginning_of_a_key_are_shown() -> None:
    """P5, P8: they are held back until it is certain that they are no key, and no longer."""
    stream = REDACTOR.stream()
    words = ["one", "", "two,", "three"]
    assert stream.feed("\n".join(["before", KEY_LINES[0], *words, ""])) == "before\n"
    assert stream.feed("no key\n") == "\n".join([KEY_LINES[0], *words, "no key", ""])
    lines = [f"word{number}" for number in range(3 * MAX_HELD_LINES)]
    assert stream.feed("\n".join([KEY_LINES[0], *lines, ""])).splitlines() == [KEY_LINES[0], *lines]


def test_beginning_of_a_key_hides_no_ordinary_lines() -> None:
    """P6: a program may print the words that begin a key; its other output stays."""
    lines = [
        KEY_LINES[0],
        *(f"INFO: step {number} wrote src/app/module_{number}.py" for number in range(500)),
    ]
    assert streamed(f"{line}\n" for line in lines).splitlines() == lines
    assert REDACTOR.redact("\n".join(lines)) == "\n".join(lines)


def test_key_without_an_end_hides_only_its_own_lines() -> None:
    """P6: the first line that is no key material ends the key, even if another key's end follows."""
    text = "\n".join([*KEY_LINES[:6], "the end of the key is missing", "more text", KEY_LINES[-1], "after"])
    for shown in (streamed(text), REDACTOR.redact(text)):
        assert not any(line in shown for line in KEY_LINES[1:6])
        assert shown.endswith(f"the end of the key is missing\nmore text\n{KEY_LINES[-1]}\nafter")


def test_end_of_a_key_hides_the_lines_before_it() -> None:
    """P6: `tail` prints the end of a key without its beginning."""
    shown = streamed(f"{line}\n" for line in ["last lines:", *KEY_LINES[4:], "after"])
    assert not any(line in shown for line in KEY_LINES[4:-1])
    assert shown.startswith("last lines:\n[redacted:private-key]\n")
    assert shown.endswith(f"{KEY_LINES[-1]}\nafter\n")


@pytest.mark.parametrize("kind_first", [True, False])
def test_secret_manifest_is_hidden_line_by_line(kind_first: bool) -> None:
    """P6: `kubectl get secret -o yaml` prints the entries before the kind."""
    value = MADE.base64(18)
    data = ["data:", f"  entry: {value}", "  mode: cHJvZA=="]
    kind = ["kind: Secret", "metadata:", "  name: db"]
    lines = ["apiVersion: v1", *(kind + data if kind_first else data + kind), "---", "plain: text"]
    shown = streamed(f"{line}\n" for line in lines)
    assert value not in shown
    assert "cHJvZA" not in shown
    assert shown.endswith("---\nplain: text\n")
    assert "name: db" in shown


def test_manifest_of_another_kind_is_shown() -> None:
    lines = ["data:", "  mode: production", "kind: ConfigMap", "metadata:", "  name: app"]
    assert streamed(f"{line}\n" for line in lines).splitlines() == lines


def test_lines_that_may_belong_to_a_key_are_not_held_back_for_ever() -> None:
    """P5, P8: a dump of base64 has the form of a key, and it is shown."""
    lines = [MADE.of(ALNUM, 64) for _ in range(3 * MAX_HELD_LINES)]
    stream = REDACTOR.stream()
    early = "".join(stream.feed(f"{line}\n") for line in lines).splitlines()
    assert len(early) > MAX_HELD_LINES
    assert early + stream.finish().splitlines() == lines


def test_two_streams_share_nothing() -> None:
    first, second = REDACTOR.stream(), REDACTOR.stream()
    first.feed(f"{KEY_LINES[0]}\n")
    assert second.feed(f"{KEY_LINES[1]}\nplain text\n") == f"{KEY_LINES[1]}\nplain text\n"


def test_hidden_value_of_several_lines_is_hidden_line_by_line() -> None:
    """P6: a variable may hold several lines, such as the file of a service account."""
    value = "first line of it\nsecond line of it\nx\n"
    shown = streamed((f"{line}\n" for line in value.splitlines()), SecretRedactor(hidden=[value]))
    assert "line of it" not in shown


def test_many_short_lines_take_bounded_time() -> None:
    """P2: a program that prints without a pause must not stall the others."""
    stream = REDACTOR.stream()
    began = time.thread_time()
    for _ in range(16):
        stream.feed("y\n" * 32_768)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("line", ["a" * 64, "data:", "  x: y", KEY_LINES[0], "kind: Secret", "password ="])
def test_hostile_lines_take_bounded_time(line: str) -> None:
    """P2: lines that are held back or searched again do not add up."""
    stream = REDACTOR.stream()
    began = time.thread_time()
    for _ in range(2_000):
        stream.feed(f"{line}\n")
    stream.finish()
    assert time.thread_time() - began < 5
