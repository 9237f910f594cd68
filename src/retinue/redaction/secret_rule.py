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


# MERGED syntax: How names, values and quotes are written, as parts of expressions for RE2.

QUOTE = r"""(?:\\{0,3}["'\x60]|&quot;|&#39;)"""
"""Also as JSON inside JSON and HTML write it."""

QUOTED = (
    r"""(?:\\{1,3}"([^"\\\s]{4,})\\{1,3}"|"([^"\s]{4,})"|'([^'\s]{4,})'|\x60([^\x60\s]{4,})\x60"""
    r"""|&quot;([^&\s]{4,})&quot;)"""
)
"""Without blanks: what has blanks is a sentence."""

BARE = r"""([^\s"'\x60<>(){}\[\],;&\\]{4,})(?:[\s,;&)}\]"'<\\]|$)"""
EQUALS = rf"{QUOTE}?\]?[ \t]{{0,8}}(?:=>|:=|\?=|={{1,3}}|:|[ \t]is:?[ \t])[ \t]{{0,8}}"
ANNOTATION = r"(?:[ \t]{0,2}:[ \t]{0,2}[\w.\[\]| ?]{1,40})?"
"""The type between a name and its value, as in Python and TypeScript."""


# MERGED ordinary: What stands where a secret could, and is none: placeholders, words, code.

PLACEHOLDER = Allowlist(
    regex=either(
        r"^\{.*\}$|^<.*>$|^\[.*\]$|^\(.*\)$|^[{<]\w+$",
        r"^[)\]}]*[,;]",  # what stands between two literals
        r"^\$[A-Za-z_][\w.-]*$|^%\w+%$|^(?:%[sdrv][:/@]?)+$|^@\w+@$",
        r"\$\{|\{\{|\{\w*\}|%\(\w+\)|\$\([^)]*\)|\$S?\d|<[\w -]+>",  # something is filled in later
        r"^[*.xX_#\x80-\xff-]+$|^(?:\*{3}|\.{3})|(?:\*{3}|\.{3})$|x{5}|X{5}",
        r"(?i)^(?:your|my|some|the|an?)[_-]|(?:change|replace)[_-]?(?:me|this|it)\b|\b_?example|placeholder|dummy|redacted",
        r"(?i)^(?:none|null|nil|true|false|undefined|string|required|optional|(?:password|secret|token)\d{0,3})$",
    )
)
WORD = r"(?:[A-Z]?[a-z\x80-\xff]+|[A-Z]+)"
CAMEL_CASE = r"(?:[a-z]+|[A-Z][a-z]+)\d{0,5}(?:[A-Z][a-z]{2,})+_?\d{0,3}"
WORDS = Allowlist(regex=rf"^[_.:/-]*{WORD}(?:[_.:/-]+{WORD})*[:*?.]{{0,3}}$|^{CAMEL_CASE}$")
"""Words are an identifier, a label or a translation far more often than a secret."""

NUMBERED_WORDS = Allowlist(
    regex=rf"^[_.:/-]*(?:{WORD}\d{{0,3}}|\d{{1,4}})(?:[_.:/ -]{{1,2}}(?:{WORD}\d{{0,3}}|\d{{1,4}}))*$",
)
"""`db-secret-v2`, `AWS4-HMAC-SHA256`, `urn:oauth:2.0`."""

NO_DIGIT = Allowlist(regex=r"^[^0-9]*$")
"""What servers hand out has digits."""

FOLDER = r"[A-Za-z_.@-]+\d{0,4}[A-Za-z.]{0,5}"
ADDRESS = Allowlist(
    regex=either(
        rf"^(?:[.~]{{0,2}}|[A-Za-z]:)[\\/](?:{FOLDER}[\\/])*{FOLDER}[\\/]?$",
        r"^(?:https?|file)://[^@]*$|^arn:",
    )
)
"""A path, or a URL without credentials."""

STEM = "pass|pwd|user|secret|token|key|str|val|arg|field|name|data|input|conf|param|env|test|hash|cred"
CODE = Allowlist(
    regex=either(
        r"^[A-Za-z_$]+\d{0,2}(?:(?:\.|->|::|\?\.)[A-Za-z_$]+\d{0,2})+$|^(?:this|self)\.",  # user.password1
        rf"^[a-z_]*(?:{STEM})[a-z_]*\d{{0,5}}[a-z_]*$|^[A-Z_]*(?:{STEM.upper()})[A-Z_]*\d{{0,5}}[A-Z_]*$",
        rf"^{CAMEL_CASE}$",
        r"^[\w.]*(?:Key|Password|Token|Secret|Credential)(?:s|Types?)?$",  # x509.Ed448PrivateKey
        r"^\^|\)$|^--?[a-z][a-z-]*$",  # a pattern, a call, an option
        r"^!+[A-Za-z_$][\w$.]*$|^=|\|\||&&|\?\.|^\d+\?|^!\d|^0x[0-9A-Fa-f]+:?$",  # an operation, a number
    )
)
ABOUT_A_SECRET = Allowlist(
    target="name",
    regex=either(
        r"(?i)^[^=:>]*(?:field|regex|pattern|file|path|dir|url|uri|id|name|label|hint|help|title|message|msg|error|"
        r"policy|length|len|min|max|input|selector|class|type|kind|usage|icon|column|prefix|suffix|format|count|limit|"
        r"size|ttl|expir\w*|endpoint|host|header|param|provider|store|manager|service|version|algorithm|alg|izers?|ized|ref|"
        r"arn|scope|source|expression|generation)s?[^\w=:>]*[=:>]",
        r"(?i)(?:public|cache|primary|foreign|sort|partition|object|bucket|csrf|next|page|max|num|cancel\w*|lock|"
        r"change|idempotency|continuation|sync|pagination)[ _-]?(?:key|token)",
        r"(?i)\barn:|::\w*(?:secret|token|key|credential)",
    ),
)
"""`password_field = ...` and `next_token = ...` name something else than a secret."""
