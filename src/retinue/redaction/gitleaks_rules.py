"""The rules of gitleaks, read from `rules.toml`.

gitleaks reports leaks in files; we hide them in any text. So where its rules only need to point at a leak,
they are adjusted here to cover the whole of it. Knows nothing of how rules are searched for.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any

from retinue.redaction.secret_rule import ABOUT_A_SECRET, CODE, NUMBERED_WORDS, Allowlist, SecretRule, either

SUPERSEDED = frozenset(
    {
        "jwt",  # leaves one that was cut
        "hashicorp-tf-password",  # means .tf files only; our password rules cover it
        "kubernetes-secret-yaml",  # finds one entry of several
        "microsoft-teams-webhook",  # takes a quarter of an id for the secret
        "pkcs12-file",  # has a path alone
        "private-key",  # needs an end that a cut text lacks
        "slack-webhook-url",  # takes the host along
        "sourcegraph-access-token",  # takes any commit id near the name
    }
)
"""Rules of gitleaks that our own replace, because they would hide too little or too much."""

KEYWORDS = {"cloudflare-origin-ca-key": ("v1.0-",), "intra42-client-secret": ("s-s4t2ud-", "s-s4t2af-")}
"""Rarer words that these rules cannot do without: each rule that a text calls for costs a pass over it."""

GROUPS = {"jwt-base64": 0, "sonar-api-token": 2}
"""Where the first group is only a part of the secret or stands beside it."""

IDENTIFIER = r"[\w.-]{0,50}?"
OPENINGS = {f"(?i){IDENTIFIER}": "(?i)", f"{IDENTIFIER}(?i:{IDENTIFIER}": "(?i:"}
"""How rules begin that take the identifier before them along, at the price of RE2's speed; `after_identifier`
says to look at it once something was found."""

TERMINATOR = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
ANY_TERMINATOR = r"(?:[^\w-]|$)"
"""gitleaks looks at source code; in prose, HTML and logs a token ends at a comma, bracket or tag as well."""

GENERIC = "generic-api-key"
"""Goes by the name of a value, not by its form. So the value must end like a literal, lest it be any code."""

MORE_ALLOWED = {GENERIC: (CODE, NUMBERED_WORDS, ABOUT_A_SECRET)}
"""Its own list knows words that secrets do not contain, but not that `key: Ed25519PrivateKey` is code."""


def load() -> tuple[SecretRule, ...]:
    # Imported here: only the first text needs it.
    import tomllib

    document = tomllib.loads(files("retinue.redaction").joinpath("rules.toml").read_text(encoding="utf-8"))
    # Its stopwords are the alphabet and one UUID: samples that nobody misses when they are hidden.
    for_all = replace(allowlist_from(document["allowlist"]), stopwords=())
    return tuple(rule_from(entry, for_all) for entry in document["rules"] if entry["id"] not in SUPERSEDED)


def rule_from(entry: dict[str, Any], for_all: Allowlist) -> SecretRule:
    name, regex = str(entry["id"]), str(entry["regex"])
    opening = next((opening for opening in OPENINGS if regex.startswith(opening)), "")
    if opening:
        regex = OPENINGS[opening] + regex.removeprefix(opening)
    if name != GENERIC:
        regex = regex.replace(TERMINATOR, ANY_TERMINATOR)
    return SecretRule(
        id=name,
        regex=regex,
        keywords=KEYWORDS.get(name) or tuple(keyword.lower() for keyword in entry["keywords"]),
        entropy=float(entry.get("entropy", 0.0)),
        group=GROUPS.get(name, entry.get("secretGroup")),
        after_identifier=bool(opening),
        open_ended=True,
        allowlists=(
            for_all,
            *(allowlist_from(each) for each in entry.get("allowlists", ()) if each.get("condition") != "AND"),
            *MORE_ALLOWED.get(name, ()),
        ),
    )


def allowlist_from(entry: dict[str, Any]) -> Allowlist:
    """Paths are left out: a text has none. For the same reason a list that joins them by AND never holds."""
    return Allowlist(
        regex=either(*entry.get("regexes", ())),
        stopwords=tuple(word.lower().encode() for word in entry.get("stopwords", ())),
        target=entry.get("regexTarget", "secret"),
    )
