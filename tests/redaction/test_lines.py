"""A key that comes line by line is hidden from its first line to its last (P6)."""

from __future__ import annotations

from retinue.redaction import SecretRedactor

KIND = "RSA PRIVATE" + " KEY"
KEY = [f"-----BEGIN {KIND}-----", "MIIEpAIBAAKCAQEAx" * 4, "q83vEjRWeJCrze8=", f"-----END {KIND}-----"]


def test_no_line_of_a_key_comes_through_and_the_lines_around_it_do() -> None:
    redact = SecretRedactor().lines()
    shown = [redact(line) for line in ["before", *KEY, "after"]]
    assert (shown[0], shown[-1]) == ("before", "after")
    assert set(shown[1:-1]) == {"[redacted:private-key]"}


def test_key_without_an_end_hides_no_more_than_a_key_can_have() -> None:
    redact = SecretRedactor().lines()
    redact(KEY[0])
    shown = [redact(f"line {number}") for number in range(500)]
    assert shown[-1] == "line 499"


def test_streams_do_not_share_a_key() -> None:
    redactor = SecretRedactor()
    first, second = redactor.lines(), redactor.lines()
    first(KEY[0])
    assert second("plain") == "plain"


def test_key_on_one_line_is_hidden_too() -> None:
    whole = "\\n".join(KEY)
    assert KEY[1] not in SecretRedactor().lines()(f"key: {whole} and more")
