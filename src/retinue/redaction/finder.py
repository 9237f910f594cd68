"""Finds secrets in UTF-8 bytes by the rules. Knows nothing of what is done with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from retinue.redaction import gitleaks
from retinue.redaction.assignment_rules import ASSIGNMENT_RULES
from retinue.redaction.candidate import Candidate, entropy
from retinue.redaction.engine import RegexEngine, RegexMatch, RegexPattern, best_engine
from retinue.redaction.key_rules import KEY_RULES
from retinue.redaction.provider_rules import PROVIDER_RULES
from retinue.redaction.rule import Allowlist, SecretRule
from retinue.redaction.spans import Span
from retinue.redaction.web_rules import WEB_RULES


class Finder:
    """The rules on one engine. An expression is compiled when a text first has one of its keywords."""

    def __init__(self, engine: RegexEngine) -> None:
        self._engine = engine
        self._rules = rules_in_order()
        self.kinds = frozenset(rule.id for rule in self._rules)
        words = sorted({keyword for rule in self._rules for keyword in rule.keywords})
        self.keywords = [word.encode() for word in words]
        self._keywords_present = engine.keyword_finder(self.keywords)
        self._rules_by_keyword = [
            [index for index, rule in enumerate(self._rules) if word in rule.keywords] for word in words
        ]
        self._rules_without_keywords = [index for index, rule in enumerate(self._rules) if not rule.keywords]
        self._patterns: dict[str, RegexPattern] = {}

    @property
    def expressions(self) -> Iterator[str]:
        """All that may ever be searched for."""
        for rule in self._rules:
            yield rule.regex
            yield from (allowlist.regex for allowlist in rule.allowlists if allowlist.regex)

    def find(self, text: bytes) -> Iterator[Span]:
        """The secrets in `text`, rule by rule; they may overlap."""
        to_try = set(self._rules_without_keywords)
        for keyword in self._keywords_present(text.lower()):
            to_try.update(self._rules_by_keyword[keyword])
        for index in sorted(to_try):
            yield from self._apply(self._rules[index], text)

    def _apply(self, rule: SecretRule, text: bytes) -> Iterator[Span]:
        pattern = self.compiled(rule.regex)
        at = 0
        while at < len(text) and (match := pattern.search(text, at)):
            start, end = secret_span(rule, pattern, match)
            candidate = Candidate(rule, text, match.span(), start, end)
            if self._is_secret(candidate):
                at = candidate.end_of_token if rule.open_ended else end
                yield Span(start, at, rule.id)
            else:
                # What is no secret to this rule may still begin one: `key: token=...`.
                at = start if start > match.span()[0] else end

    def _is_secret(self, candidate: Candidate) -> bool:
        rule = candidate.rule
        if rule.entropy and entropy(candidate.secret) <= rule.entropy:
            return False
        return not any(self._allows(each, candidate) for each in rule.allowlists)

    def _allows(self, allowlist: Allowlist, candidate: Candidate) -> bool:
        if allowlist.regex and self.compiled(allowlist.regex).search(candidate.seen_as(allowlist.target)):
            return True
        lowered = candidate.secret.lower()
        return any(word in lowered for word in allowlist.stopwords)

    def compiled(self, regex: str) -> RegexPattern:
        pattern = self._patterns.get(regex)
        if pattern is None:
            pattern = self._patterns[regex] = self._engine.compile(regex)
        return pattern


def rules_in_order() -> tuple[SecretRule, ...]:
    """The most telling first: of two that find the same, the first names its kind."""
    *by_form, generic = sorted(gitleaks.load(), key=lambda rule: rule.id == gitleaks.GENERIC)
    return (*KEY_RULES, *by_form, *PROVIDER_RULES, *WEB_RULES, *ASSIGNMENT_RULES, generic)


@cache
def default_finder() -> Finder:
    """One for the whole process: what it compiled serves every redactor."""
    return Finder(best_engine())


def secret_span(rule: SecretRule, pattern: RegexPattern, match: RegexMatch) -> tuple[int, int]:
    if rule.group is not None:
        return match.span(rule.group)
    groups = (match.span(group) for group in range(1, pattern.groups + 1))
    return next((span for span in groups if span[0] < span[1]), match.span())
