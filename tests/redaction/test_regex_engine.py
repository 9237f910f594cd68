"""Both regex engines find the same, load lazily, and take bounded time on hostile text."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings
from importlib.resources import files

import pytest

from retinue.redaction import SecretRedactor
from retinue.redaction.regex_engine import Re2Engine, ReEngine, found_keywords, to_python_regex
from retinue.redaction.secret_finder import SecretFinder

SIZE = 100_000
KEY_BEGIN = "-----BEGIN RSA PRIVATE" + " KEY-----"
HOSTILE = (
    "a",
    "a1",
    " ",
    '"',
    "\\",
    "key=",
    "password=",
    'token: "',
    "curl -H ",
    KEY_BEGIN,
    KEY_BEGIN + "\n",
    "://a:",
    "eyJabcdefghij.",
    "data:\n  a: b\n",
    "kind: secret\n",
    "mysql ",
    "authorization: abcd ",
    "cookie: a=b1234567;",
    "[redacted:",
    "[redacted:secret]",
    "name: token value: ",
    "a.token=b,c.key=d.secret,e.password=f(g);",
)


@pytest.mark.parametrize(
    ("go", "text", "found"),
    [
        (r"a(?i)b", "aB", "aB"),
        (r"a(?i)b", "Ab", None),
        (r"(x(?i)y|z)w", "Zw", "Zw"),
        (r"(x(?i)y|z)w", "ZW", None),
        (r"a$", "a\n", None),
        (r"a\z", "a", "a"),
        (r"[[:alnum:]_]+", "a1_!", "a1_"),
        (r"[^]]+", "ab]", "ab"),
        (r"(?P<n>a)\$", "a$", "a$"),
        (r"[$.*]", "$", "$"),
    ],
)
def test_regexes_mean_the_same_in_python(go: str, text: str, found: str | None) -> None:
    """P6: the fallback interprets the rules as RE2 does."""
    match = re.search(to_python_regex(go), text)
    assert (match and match[0]) == found
    spans = [pattern.search(text.encode()) for pattern in (Re2Engine().compile(go), ReEngine().compile(go))]
    assert (spans[0] and spans[0].span()) == (spans[1] and spans[1].span())


def test_every_rule_compiles_without_a_warning(finder: SecretFinder) -> None:
    """P6: a rule that does not compile would let secrets through."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for regex in finder.expressions:
            finder.compile(regex)


def test_failed_keyword_search_tries_every_rule() -> None:
    """P6: RE2 finds nothing if it runs out of memory; that must not let secrets through."""
    assert list(found_keywords(None, 3)) == [0, 1, 2]
    assert list(found_keywords([1], 3)) == [0, 1, 2]
    assert list(found_keywords([1, 3], 3)) == [1]


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    return done.stdout.strip()


def test_importing_loads_neither_rules_nor_engine() -> None:
    """P10: hosts start the server often, mostly with nothing to redact yet."""
    program = (
        "import sys; from retinue.redaction import SecretRedactor; SecretRedactor();"
        "heavy = ('re2', 'tomllib', 'retinue.redaction.secret_finder');"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert run_python(program) == "[]"


def test_secrets_are_hidden_without_re2() -> None:
    """P6, P10: a platform without the wheel falls back to `re`."""
    program = (
        "import sys; sys.modules['re2'] = None;"
        "from retinue.redaction import SecretRedactor;"
        "from retinue.redaction.regex_engine import best_engine;"
        "print(type(best_engine()).__name__, SecretRedactor().redact('password = \"hunter2\"'))"
    )
    assert run_python(program) == 'ReEngine password = "[redacted:password]"'


def test_rules_carry_their_licence() -> None:
    """The rules are gitleaks' under the MIT licence, which must be shipped with them."""
    package = files("retinue.redaction")
    assert "Zachary Rice" in package.joinpath("LICENSE.gitleaks").read_text(encoding="utf-8")
    assert "gitleaks v8" in package.joinpath("rules.json").read_text(encoding="utf-8")[:200]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_bounded_time(redactor: SecretRedactor, piece: str) -> None:
    """P6: no text can block redaction. Catastrophic backtracking would exceed the generous bound by far."""
    began = time.thread_time()
    redactor.redact(piece * (SIZE // len(piece)))
    assert time.thread_time() - began < 5
