"""Finds secrets in UTF-8 bytes by applying all rules. Knows nothing of what happens to the secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log2

from retinue.redaction import gitleaks_rules
from retinue.redaction.assignment_rules import ASSIGNMENT_RULES
from retinue.redaction.disguised_secrets import (
    JOINT,
    JOINT_KEYWORDS,
    LONG_WORD,
    OVERSTRIKE,
    decode_base64,
    find_between_joints,
)
from retinue.redaction.regex_engine import RegexEngine, RegexMatch, RegexPattern, best_engine
from retinue.redaction.secret_rule import Allowlist, AllowlistTarget, SecretRule, SecretSpan
from retinue.redaction.token_rules import KEY_RULES, PROVIDER_RULES
from retinue.redaction.web_rules import WEB_RULES

TOKEN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
IDENTIFIER_BYTES = TOKEN_BYTES | frozenset(b".")
NAME_BYTES = IDENTIFIER_BYTES | frozenset(b":*")
MAX_NAME_BYTES = 50
LONG_WORD_MARGIN = 3
MAX_LINE_DISTANCE = 400
"""A line is cut at this distance from the secret, because a minified file can be one long line."""


class SecretFinder:
    """Finds secrets by all rules, using one regex engine.

    A rule's regex is compiled when one of its keywords first occurs.
    """

    def __init__(self, engine: RegexEngine) -> None:
        self._engine = engine
        self._rules = load_rules()
        self.kinds = frozenset(rule.id for rule in self._rules)
        words = sorted({*JOINT_KEYWORDS, *(keyword for rule in self._rules for keyword in rule.keywords)})
        self.keywords = [word.encode() for word in words]
        self._keywords_present = engine.keyword_finder(self.keywords)
        rules_of: dict[str, list[int]] = {word: [] for word in words}
        for index, rule in enumerate(self._rules):
            for word in set(rule.keywords):
                rules_of[word].append(index)
        self._rules_by_keyword = list(rules_of.values())
        self._joint_keywords = frozenset(map(words.index, JOINT_KEYWORDS))
        self._rules_of_long_words = [rule for rule in self._rules if rule.at_long_word]
        self._patterns: dict[str, RegexPattern] = {}

    @property
    def expressions(self) -> Iterator[str]:
        """Yield the regexes of all rules and allowlists."""
        for rule in self._rules:
            yield rule.regex
            yield from (allowlist.regex for allowlist in rule.allowlists if allowlist.regex)
        yield from (JOINT, OVERSTRIKE, LONG_WORD)

    def has_keyword(self, text: bytes) -> bool:
        """Whether the text contains a keyword of any rule."""
        return next(iter(self._keywords_present(text.lower())), None) is not None

    def find(self, text: bytes) -> Iterator[SecretSpan]:
        """Yield the secrets in `text`, rule by rule, then the disguised ones. They may overlap."""
        present = set(self._keywords_present(text.lower()))
        yield from self._find_plain(text, present)
        yield from self._find_long_words(text)
        if present & self._joint_keywords:
            yield from find_between_joints(text, self.compile(JOINT), self._find_visible)
        if b"\b" in text:
            yield from find_between_joints(text, self.compile(OVERSTRIKE), self._find_visible)

    def _find_visible(self, text: bytes) -> Iterator[SecretSpan]:
        """Yield the secrets in a text without disguise."""
        yield from self._find_plain(text)
        yield from self._find_long_words(text)

    def _find_long_words(self, text: bytes) -> Iterator[SecretSpan]:
        """Yield the long words that are secret by what stands before them or by what they encode."""
        words = self.compile(LONG_WORD)
        at = 0
        while match := words.search(text, at):
            start, at = match.span()
            near = max(0, start - LONG_WORD_MARGIN)
            window = text[near : at + 2 * MAX_NAME_BYTES]
            for rule in self._rules_of_long_words:
                for found in self._apply(rule, window):
                    yield SecretSpan(found.start + near, found.end + near, found.kind)
            if (decoded := decode_base64(text[start:at])) and (
                found := next(self._find_plain(decoded), None)
            ):
                yield SecretSpan(start, at, found.kind)

    def _find_plain(self, text: bytes, present: Iterable[int] | None = None) -> Iterator[SecretSpan]:
        """Yield the secrets that rules find in the text as it is. `present` are the keywords in it."""
        to_try: set[int] = set()
        for keyword in self._keywords_present(text.lower()) if present is None else present:
            to_try.update(self._rules_by_keyword[keyword])
        for index in sorted(to_try):
            yield from self._apply(self._rules[index], text)

    def _apply(self, rule: SecretRule, text: bytes) -> Iterator[SecretSpan]:
        """Yield the secrets that one rule finds."""
        pattern = self.compile(rule.regex)
        at = 0
        while at < len(text) and (match := pattern.search(text, at)):
            start, end = locate_secret(rule, pattern, match)
            if rule.length:
                end = start + rule.length(text[start:end])
            candidate = SecretCandidate(rule, text, match.span(), start, end)
            if self._is_secret(candidate):
                at = candidate.end_of_token if rule.open_ended else end
                yield SecretSpan(start, at, rule.id)
            else:
                # The rejected value may itself start a match, as in `key: token=...`.
                at = start if start > match.span()[0] else end

    def _is_secret(self, candidate: SecretCandidate) -> bool:
        """Whether a candidate has enough entropy and is not on an allowlist."""
        rule = candidate.rule
        if candidate.start == candidate.end:
            return False
        if rule.entropy and shannon_entropy(candidate.secret) <= rule.entropy:
            return False
        return not any(self._allows(each, candidate) for each in rule.allowlists)

    def _allows(self, allowlist: Allowlist, candidate: SecretCandidate) -> bool:
        """Whether an allowlist contains the candidate."""
        if allowlist.regex and self.compile(allowlist.regex).search(candidate.text_for(allowlist.target)):
            return True
        lowered = candidate.secret.lower()
        return any(word in lowered for word in allowlist.stopwords)

    def compile(self, regex: str) -> RegexPattern:
        """Compile a regex, or return it from the cache."""
        pattern = self._patterns.get(regex)
        if pattern is None:
            pattern = self._patterns[regex] = self._engine.compile(regex)
        return pattern


def load_rules() -> tuple[SecretRule, ...]:
    """Return all rules, the most specific first. The first rule that finds a secret sets its kind."""
    *by_form, generic = sorted(
        gitleaks_rules.load_gitleaks_rules(), key=lambda rule: rule.id == gitleaks_rules.GENERIC_RULE
    )
    return (*KEY_RULES, *by_form, *PROVIDER_RULES, *WEB_RULES, *ASSIGNMENT_RULES, generic)


@cache
def default_finder() -> SecretFinder:
    """Return the finder that all redactors of this process share, so that each regex is compiled once."""
    return SecretFinder(best_engine())


def locate_secret(rule: SecretRule, pattern: RegexPattern, match: RegexMatch) -> tuple[int, int]:
    """Return the position of the secret within a match."""
    if rule.group is not None:
        return match.span(rule.group)
    groups = (match.span(group) for group in range(1, pattern.groups + 1))
    return next((span for span in groups if span[0] < span[1]), match.span())


@dataclass(frozen=True, slots=True)
class SecretCandidate:
    """A match of a rule and its surroundings, which decide whether it is a secret."""

    rule: SecretRule
    text: bytes
    match_span: tuple[int, int]
    start: int
    end: int

    @property
    def secret(self) -> bytes:
        return self.text[self.start : self.end]

    @property
    def end_of_token(self) -> int:
        """The end of the token that the secret is part of, if it continues after the match."""
        end = self.end
        while end < len(self.text) and self.text[end - 1] in TOKEN_BYTES and self.text[end] in TOKEN_BYTES:
            end += 1
        return end

    def text_for(self, target: AllowlistTarget) -> bytes:
        """Return the text that an allowlist with this target searches."""
        start, end = self.match_span
        if target == "secret":
            return self.secret
        if target == "line":
            return self._line()
        if target == "name":
            start = self._extend_left(NAME_BYTES)
        elif self.rule.after_identifier:
            start = self._extend_left(IDENTIFIER_BYTES)
        return self.text[start:end]

    def _extend_left(self, letters: frozenset[int]) -> int:
        """Return the start of the run of `letters` directly before the match."""
        start = self.match_span[0]
        furthest = max(0, start - MAX_NAME_BYTES)
        while start > furthest and self.text[start - 1] in letters:
            start -= 1
        return start

    def _line(self) -> bytes:
        """Return the line that contains the secret, cut on both sides if it is long."""
        first, last = (
            max(0, self.start - MAX_LINE_DISTANCE),
            min(len(self.text), self.end + MAX_LINE_DISTANCE),
        )
        line_start = self.text.rfind(b"\n", first, self.start) + 1
        line_end = self.text.find(b"\n", self.end, last)
        return self.text[line_start or first : line_end if line_end >= 0 else last]


def shannon_entropy(secret: bytes) -> float:
    """Return the Shannon entropy in bits per byte."""
    shares = [count / len(secret) for count in Counter(secret).values()]
    return -sum(share * log2(share) for share in shares)
