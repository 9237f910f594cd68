"""What stands where a secret could, and is none: placeholders, words, code."""

from __future__ import annotations

from retinue.redaction.rule import Allowlist, either

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
