"""Loads the rules of gitleaks from `rules.json` and adapts them.

gitleaks only reports where a file contains a leak, but Retinue must hide the whole secret in any text. This
module changes the rules that would not match the whole secret. Knows nothing of how rules are applied.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from string import punctuation, whitespace
from typing import Any

from retinue.redaction.secret_rule import CODE, NUMBERED_WORDS, SECRET_METADATA, Allowlist, SecretRule, any_of

RULES = Path(__file__).with_name("rules.json")

REPLACED_RULES = frozenset(
    {
        "jwt",  # misses a token that was cut
        "hashicorp-tf-password",  # is for .tf files only; our password rules cover it
        "kubernetes-secret-yaml",  # finds only one of several entries
        "microsoft-teams-webhook",  # treats a quarter of an id as the secret
        "pkcs12-file",  # checks only a file's path
        "private-key",  # requires the end of the key, which a cut text lacks
        "slack-webhook-url",  # hides the host as well
        "sourcegraph-access-token",  # matches any commit id near the name
    }
)
"""Rules that our own rules replace, because they would hide too little or too much."""

CURL_KEYWORDS = tuple(f"curl{end}" for end in (*punctuation.replace("_", ""), *whitespace))
KEYWORD_OVERRIDES = {
    "authress-service-client-access-key": (".acc_", ".acc-"),
    "cloudflare-origin-ca-key": ("v1.0-",),
    "curl-auth-header": CURL_KEYWORDS,
    "curl-auth-user": CURL_KEYWORDS,
    "intra42-client-secret": ("s-s4t2ud-", "s-s4t2af-"),
    "vault-service-token": ("hvs.",),  # token_rules.py has the older form, which starts with only `s.`
}
"""More specific keywords for these rules. Each rule whose keyword occurs costs a pass over the text."""

SECRET_GROUPS = {"jwt-base64": 0, "sonar-api-token": 2}
"""The group of the secret in rules where it is not the first one."""

IDENTIFIER = r"[\w.-]{0,50}?"
IDENTIFIER_PREFIXES = {f"(?i){IDENTIFIER}": "(?i)", f"{IDENTIFIER}(?i:{IDENTIFIER}": "(?i:"}
"""Prefixes of regexes that also match the identifier before the secret, with their replacements. Matching the
identifier slows RE2 down, so it is examined only after a match (`SecretRule.after_identifier`)."""

TERMINATOR = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
ANY_TERMINATOR = r"(?:[^\w-]|$)"
"""gitleaks expects source code, but in prose, HTML and logs a comma, bracket or tag also ends a token."""

GENERIC_RULE = "generic-api-key"
"""A rule that matches by the name of a value, not by its form. It keeps its terminator to not match code."""

EXTRA_ALLOWLISTS = {GENERIC_RULE: (CODE, NUMBERED_WORDS, SECRET_METADATA)}
"""Allowlists in addition to a rule's own, which does not know that `key: Ed25519PrivateKey` is code."""


def load_gitleaks_rules() -> tuple[SecretRule, ...]:
    """Return the adapted rules of gitleaks, except those that our own rules replace."""
    document = json.loads(RULES.read_bytes())
    # The global stopwords are the alphabet and one UUID. Hiding these samples does no harm.
    global_allowlist = replace(make_allowlist(document["allowlist"]), stopwords=())
    return tuple(
        make_rule(entry, global_allowlist) for entry in document["rules"] if entry["id"] not in REPLACED_RULES
    )


def make_rule(entry: dict[str, Any], global_allowlist: Allowlist) -> SecretRule:
    """Adapt one rule. `global_allowlist` applies to every rule."""
    name, regex = str(entry["id"]), str(entry["regex"])
    opening = next((opening for opening in IDENTIFIER_PREFIXES if regex.startswith(opening)), "")
    if opening:
        regex = IDENTIFIER_PREFIXES[opening] + regex.removeprefix(opening)
    if name != GENERIC_RULE:
        regex = regex.replace(TERMINATOR, ANY_TERMINATOR)
    return SecretRule(
        id=name,
        regex=regex,
        keywords=KEYWORD_OVERRIDES.get(name) or tuple(keyword.lower() for keyword in entry["keywords"]),
        entropy=float(entry.get("entropy", 0.0)),
        group=SECRET_GROUPS.get(name, entry.get("secretGroup")),
        after_identifier=bool(opening),
        open_ended=True,
        allowlists=(
            global_allowlist,
            *(make_allowlist(each) for each in entry.get("allowlists", ()) if each.get("condition") != "AND"),
            *EXTRA_ALLOWLISTS.get(name, ()),
        ),
    )


def make_allowlist(entry: dict[str, Any]) -> Allowlist:
    """Convert an allowlist. Drops its path conditions, because redacted text has no path."""
    return Allowlist(
        regex=any_of(*entry.get("regexes", ())),
        stopwords=tuple(word.lower().encode() for word in entry.get("stopwords", ())),
        target=entry.get("regexTarget", "secret"),
    )
