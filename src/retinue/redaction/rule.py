"""What a rule is: an expression that finds a kind of secret, and what it may find without it being one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Target = Literal["secret", "match", "name", "line"]


def either(*regexes: str) -> str:
    return "|".join(f"(?:{regex})" for regex in regexes)


@dataclass(frozen=True, slots=True)
class Allowlist:
    """What a rule may find without it being a secret."""

    regex: str = ""
    """Empty for none."""
    stopwords: tuple[bytes, ...] = ()
    """In lower case; a secret that contains one is none."""
    target: Target = "secret"
    """What `regex` looks at: the secret, the match, the match with all of the name before it, or the line."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    id: str
    regex: str
    keywords: tuple[str, ...]
    """Lower-case; a text with none of them cannot match. A rule without keywords is always tried."""
    entropy: float = 0.0
    """Bits per character that a secret must exceed."""
    group: int | None = None
    """The group that holds the secret; None for the first that took part, or the match if there is none."""
    after_identifier: bool = False
    """Whether the match begins with the identifier that stands before what `regex` finds."""
    open_ended: bool = False
    """Whether what goes on after the match without a break belongs to the secret."""
    allowlists: tuple[Allowlist, ...] = ()
