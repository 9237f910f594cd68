"""The types of redaction rules, and regex parts and allowlists that several rules share.

All regexes use the syntax of RE2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

AllowlistTarget = Literal["secret", "match", "name", "line"]


def any_of(*regexes: str) -> str:
    """Combine regexes into one that matches any of them."""
    return "|".join(f"(?:{regex})" for regex in regexes)


class SecretSpan(NamedTuple):
    """The position of a secret in UTF-8 bytes, and its kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Exceptions of a rule: matches that are not secrets."""

    regex: str = ""
    """Empty if the allowlist has only stopwords."""
    stopwords: tuple[bytes, ...] = ()
    """Lower-case words. A match that contains one is not a secret."""
    target: AllowlistTarget = "secret"
    """Where to search for `regex`: the secret, the match, the match with the name before it, or the line."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A regex that finds one kind of secret."""

    id: str
    """The kind of secret, as in `[redacted:<kind>]`."""
    regex: str
    keywords: tuple[str, ...]
    """Lower-case words. Only text that contains one of them is searched. Empty if `at_long_word`."""
    entropy: float = 0.0
    """A secret must have more bits of entropy per byte than this."""
    group: int | None = None
    """The regex group of the secret. None means the first group that matched, or the whole match."""
    after_identifier: bool = False
    """Whether allowlists also see the identifier before the match."""
    open_ended: bool = False
    """Whether token characters directly after the match belong to the secret."""
    allowlists: tuple[Allowlist, ...] = ()
    at_long_word: bool = False
    """Whether the secret begins with a long word, or a few bytes before it. Only such words are searched."""
    length: Callable[[bytes], int] | None = None
    """Returns how many bytes of what the regex found are the secret. 0 means that it is none."""


QUOTE = r"""(?:\\{0,3}["'\x60]|&quot;|&#39;)"""
"""A quote, including the escaped forms of nested JSON and HTML."""

QUOTED_VALUE = (
    r"""(?:\\{1,3}"([^"\\\s]{4,})\\{1,3}"|"([^"\s]{4,})"|'([^'\s]{4,})'|\x60([^\x60\s]{4,})\x60"""
    r"""|&quot;([^&\s]{4,})&quot;)"""
)
"""A quoted value without spaces, because a value with spaces is usually a sentence."""

BARE_VALUE = r"""([^\s"'\x60<>(){}\[\],;&\\]{4,})(?:[\s,;&)}\]"'<\\]|$)"""
ASSIGNMENT = rf"{QUOTE}?\]?[ \t]{{0,8}}(?:=>|:=|\?=|={{1,3}}|:|[ \t]is:?[ \t])[ \t]{{0,8}}"
TYPE_ANNOTATION = r"(?:[ \t]{0,2}:[ \t]{0,2}[\w.\[\]| ?]{1,40})?"
"""The type between a name and its value, as in Python and TypeScript."""


PLACEHOLDER = Allowlist(
    regex=any_of(
        r"^\{.*\}$|^<.*>$|^\[.*\]$|^\(.*\)$|^[{<]\w+$",
        r"^[)\]}]*[,;]",  # the text between two literals
        r"^\$[A-Za-z_][\w.-]*$|^%\w+%$|^(?:\xc2\xa0)?(?:%[sdrv][:/@]?)+$|^@\w+@$",
        r"\$\{|\{\{|\{\w*\}|%\(\w+\)|\$\([^)]*\)|\$S?\d|<[\w -]+>",  # a template
        r"^[*.xX_#\x80-\xff-]+$|^(?:\*{3}|\.{3})|(?:\*{3}|\.{3})$|x{5}|X{5}",
        r"(?i)^(?:your|my|some|the|an?)[_-]|(?:change|replace)[_-]?(?:me|this|it)\b|\b_?example|placeholder|dummy|redacted",
        r"(?i)^(?:none|null|nil|true|false|undefined|string|required|optional|(?:password|secret|token)\d{0,3})$",
    )
)
WORD = r"(?:[A-Z]?[a-z\x80-\xff]+|[A-Z]+)"
CAMEL_CASE = r"(?:[a-z]+|[A-Z][a-z]+)\d{0,5}(?:[A-Z][a-z]{2,})+_?\d{0,3}"
WORDS = Allowlist(regex=rf"^[_.:/-]*{WORD}(?:[_.:/-]+{WORD})*[:*?.]{{0,3}}$|^{CAMEL_CASE}$")
"""Plain words. They are identifiers, labels or translations far more often than secrets."""

NUMBERED_WORDS = Allowlist(
    regex=rf"^[_.:/-]*(?:{WORD}\d{{0,3}}|\d{{1,4}})(?:[_.:/ -]{{1,2}}(?:{WORD}\d{{0,3}}|\d{{1,4}}))*$",
)
"""Words with short numbers: `db-secret-v2`, `AWS4-HMAC-SHA256`, `urn:oauth:2.0`."""

NO_DIGIT = Allowlist(regex=r"^[^0-9]*$")
"""Values without digits. Credentials that machines generate contain digits."""

PATH_PART = r"[A-Za-z_.@-]+\d{0,4}[A-Za-z.]{0,5}"
PATH_OR_URL = Allowlist(
    regex=any_of(
        rf"^(?:[.~]{{0,2}}|[A-Za-z]:)[\\/](?:{PATH_PART}[\\/])*{PATH_PART}[\\/]?$",
        r"^(?:https?|file)://[^@]*$|^arn:",
    )
)
"""A path, or a URL without credentials."""

NAME_STEMS = "pass|pwd|user|secret|token|key|str|val|arg|field|name|data|input|conf|param|env|test|hash|cred"
CODE = Allowlist(
    regex=any_of(
        r"^[A-Za-z_$]+\d{0,2}(?:(?:\.|->|::|\?\.)[A-Za-z_$]+\d{0,2})+$|^(?:this|self)\.",  # user.password1
        rf"^[a-z_]*(?:{NAME_STEMS})[a-z_]*\d{{0,5}}[a-z_]*$|^[A-Z_]*(?:{NAME_STEMS.upper()})[A-Z_]*\d{{0,5}}[A-Z_]*$",
        rf"^{CAMEL_CASE}$",
        r"^[\w.]*(?:Key|Password|Token|Secret|Credential)(?:s|Types?)?$",  # x509.Ed448PrivateKey
        r"^\^|\)$|^--?[a-z][a-z-]*$",  # a pattern, a call, an option
        r"^!+[A-Za-z_$][\w$.]*$|^=|\|\||&&|\?\.|^\d+\?|^!\d|^0x[0-9A-Fa-f]+:?$",  # an operation, a number
    )
)
SECRET_METADATA = Allowlist(
    target="name",
    regex=any_of(
        r"(?i)^[^=:>]*(?:field|regex|pattern|file|path|dir|url|uri|id|name|label|hint|help|title|message|msg|error|"
        r"policy|length|len|min|max|input|selector|class|type|kind|usage|icon|column|prefix|suffix|format|count|limit|"
        r"size|ttl|expir\w*|endpoint|host|header|param|provider|store|manager|service|version|algorithm|alg|izers?|ized|ref|"
        r"arn|scope|source|expression|generation)s?[^\w=:>]*[=:>]",
        r"(?i)(?:public|cache|primary|foreign|sort|partition|object|bucket|csrf|next|page|max|num|cancel\w*|lock|"
        r"change|idempotency|continuation|sync|pagination)[ _-]?(?:key|token)",
        r"(?i)\barn:|::\w*(?:secret|token|key|credential)",
    ),
)
"""Names that mention a secret but hold something else: `password_field = ...`, `next_token = ...`."""
