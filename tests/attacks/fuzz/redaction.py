"""Cuts streams that contain secrets anywhere, and checks that what is shown does not depend on the cuts."""

from __future__ import annotations

from functools import cache
from random import Random

from benchmarks.redaction_secrets import Planted, planted
from retinue.redaction import SecretRedactor

NAME = "redaction"
REDACTOR = SecretRedactor()
FILLERS = (
    "INFO: wrote src/app/main.py",
    "data:",
    "  mode: production",
    "kind: ConfigMap",
    "---",
    "password:",
    "token =",
    "x" * 40,
    "-----BEGIN RSA PRIVATE" + " KEY-----",
    "-----END RSA PRIVATE" + " KEY-----",
    '  "a": [1, 2, 3],',
    "",
    "\r",
    "naïve 終わり",
)
INVISIBLE = ("\r", "\b", "x\b", "\\\n", "\\\r\n", "\u200b", "\x1b[1m", '" +\n"')


@cache
def secrets() -> tuple[Planted, ...]:
    return tuple(each for seed in range(40, 44) for each in planted(seed))


def run_case(random: Random) -> None:
    """Stream some lines with up to three secrets, cut at random."""
    chosen = random.sample(secrets(), random.randrange(4))
    lines = [*(each.text for each in chosen), *random.choices(FILLERS, k=random.randrange(6))]
    random.shuffle(lines)
    text = "\n".join(lines) + random.choice(("\n", ""))
    for each in chosen:
        for _ in range(random.randrange(3) if random.random() < 0.3 else 0):
            at = random.randrange(1, len(each.secret))
            text = text.replace(each.secret, each.secret[:at] + random.choice(INVISIBLE) + each.secret[at:])
    cuts = sorted(random.randrange(len(text) + 1) for _ in range(random.randrange(12)))
    stream = REDACTOR.stream()
    edges = zip([0, *cuts], [*cuts, len(text)], strict=True)
    shown = "".join([*(stream.feed(text[start:end]) for start, end in edges), stream.finish()])
    for each in chosen:
        assert each.secret not in shown, f"shown: {each.secret!r}"
    assert shown == "\n".join(REDACTOR.redact_lines(text.split("\n"))), "the cuts matter"
