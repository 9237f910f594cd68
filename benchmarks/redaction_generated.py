"""Secrets made from the rules' own expressions: random text that each expression matches.

The expressions are those published by gitleaks, before our adjustments, so that these cannot hide a loss.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from benchmarks.redaction_secrets import Planted
from retinue.redaction.gitleaks_rules import RULES, SECRET_GROUPS
from retinue.redaction.regex_engine import to_python_regex
from retinue.redaction.secret_finder import shannon_entropy

# The parser of `re` has no public face; it is used here as it is.
op: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

PRINTABLE = "".join(map(chr, range(33, 127)))
LONGEST_RUN = 40
"""More than an expression's least count, where it names no greatest."""


class Generator:
    """Random text from a parsed expression. What takes no character, such as `\\b`, is left to chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.out: list[str] = []

    def walk(self, nodes: Any) -> None:
        for kind, value in nodes:
            self.node(kind, value)

    def node(self, kind: Any, value: Any) -> None:
        if kind is op.LITERAL:
            self.out.append(chr(value))
        elif kind in (op.IN, op.NOT_LITERAL, op.ANY):
            self.out.append(self.chance.choice(letters_of(kind, value)))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, nodes = value
            most = min(int(most), max(int(least), 2) + LONGEST_RUN)
            for _ in range(self.chance.randint(int(least), most)):
                self.walk(nodes)
        elif kind is op.BRANCH:
            self.walk(self.chance.choice(value[1]))
        elif kind is op.SUBPATTERN:
            self.walk(value[-1])


def letters_of(kind: Any, value: Any) -> str:
    if kind is op.ANY:
        return PRINTABLE
    if kind is op.NOT_LITERAL:
        return PRINTABLE.replace(chr(value), "")
    wanted = {letter for item in value for letter in members(*item)}
    if value[0][0] is op.NEGATE:
        return "".join(letter for letter in PRINTABLE if letter not in wanted)
    # Visible characters where there is a choice: they make the harder secrets.
    return "".join(sorted(wanted & set(PRINTABLE)) or sorted(wanted))


def members(kind: Any, value: Any) -> Iterator[str]:
    if kind is op.LITERAL:
        yield chr(value)
    elif kind is op.RANGE:
        yield from map(chr, range(value[0], value[1] + 1))
    elif kind is op.CATEGORY:
        shape = {op.CATEGORY_WORD: r"\w", op.CATEGORY_DIGIT: r"\d", op.CATEGORY_SPACE: r"\s"}
        negated = {op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_NOT_WORD: r"\W", op.CATEGORY_NOT_DIGIT: r"\D"}
        yield from re.findall((shape | negated)[value], PRINTABLE + " \n", re.ASCII)


def generated(seed: int = 1, per_rule: int = 5) -> Iterator[Planted]:
    """For every rule, texts that gitleaks would report: by keyword, expression and entropy."""
    chance = random.Random(seed)
    document = json.loads(RULES.read_bytes())
    for entry in document["rules"]:
        if "regex" in entry:
            samples = (sample(entry, chance) for _ in range(per_rule * 60))
            yield from islice((made for made in samples if made), per_rule)


def sample(entry: dict[str, Any], chance: random.Random) -> Planted | None:
    regex = to_python_regex(entry["regex"])
    generator = Generator(chance)
    generator.walk(parser.parse(regex))
    text = "# settings\n{}\n# end\n".format("".join(generator.out))
    match = re.search(regex, text)
    if match is None or not any(word in text.lower() for word in entry["keywords"]):
        return None
    group = SECRET_GROUPS.get(entry["id"])
    secret = match[group] if group is not None else next(filter(None, match.groups()), match[0])
    if shannon_entropy(secret.encode()) <= entry.get("entropy", 0):
        return None
    return Planted(entry["id"], text, secret)
