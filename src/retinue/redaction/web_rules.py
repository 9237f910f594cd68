"""Rules for credentials in HTTP headers and URLs. The header's name, the scheme and the host stay visible."""

from __future__ import annotations

from retinue.redaction.secret_rule import (
    ASSIGNMENT,
    CODE,
    NO_DIGIT,
    NUMBERED_WORDS,
    PATH_OR_URL,
    PLACEHOLDER,
    QUOTE,
    WORDS,
    Allowlist,
    SecretRule,
)

AUTH_SCHEME = r"(?:bearer|basic|token|apikey|api-key|negotiate|key|oauth|bot)(?:[ \t]{1,4}|%20)"

HEADER_RULES = (
    SecretRule(
        id="authorization-header",
        regex=rf"(?i)\bauthorization{ASSIGNMENT}{QUOTE}?{AUTH_SCHEME}([\w.~+/=%:|@!$^&*-]{{4,}})",
        keywords=("authorization",),
        allowlists=(PLACEHOLDER, WORDS),
    ),
    SecretRule(
        id="authorization-header",
        regex=rf"(?i)\bauthorization{ASSIGNMENT}{QUOTE}?([\w.~+/=%:|@!$^&*-]{{8,}})",
        keywords=("authorization",),
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, CODE),
    ),
    # Digest, AWS4-HMAC-SHA256 and similar: a list of parameters, one of which is the signature.
    SecretRule(
        id="authorization-header",
        regex=rf"(?i)\bauthorization{ASSIGNMENT}{QUOTE}?[\w-]{{4,30}}[ \t].*?"
        r"\b(?:signature|response|oauth_signature|mac)=\\{0,3}\"?([\w%+/=-]{16,})",
        keywords=("authorization",),
    ),
    SecretRule(
        id="bearer-token",
        regex=r"(?i)\b(?:bearer|basic)(?:[ \t]{1,4}|%20)([\w.~+/-]{16,}={0,2})",
        keywords=("bearer ", "basic ", "bearer%20", "basic%20", "bearer\t"),
        entropy=3.0,
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, CODE),
    ),
    SecretRule(
        id="cookie-header",
        regex=r"""(?i)\b(?:set-)?cookie2?\\{0,3}["']?[ \t]{0,2}:[ \t]{0,2}\\{0,3}["']?"""
        r"""([\w.-]{1,64}=[^\r\n"'\\]{8,})""",
        keywords=("cookie",),
        allowlists=(PLACEHOLDER, NO_DIGIT),
    ),
)

URL_RULES = (
    SecretRule(
        id="url-credentials",
        regex=r"""://([^\s/?#@:"'\x60<>\\]*:[^\s/@"'\x60<>\\]+)@[\w\[%]""",
        keywords=("://",),
        allowlists=(
            # A port or a template. `user:password` is not listed: it may be someone's password.
            Allowlist(regex=r"^[^:]*:\d{1,5}[?#]|:[$%@#]?[{<\[(]|\$\{|\{\{|\{\w*\}|:\$\w+$|%\(|:%s$|:[*.]+$"),
        ),
    ),
    SecretRule(
        id="url-credentials",
        regex=r"""://([\w.~%+-]{20,})@[\w\[]""",
        keywords=("://",),
        entropy=3.0,
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS),
    ),
    SecretRule(
        id="url-parameter",
        regex=r"(?i)(?:[?&]|&amp;)"
        r"(?:[\w.-]{0,20}(?:token|secret|api_?key|apikey|passw(?:or)?d|passwd|signature)|pwd|auth|sig)"
        r"""=([^&\s"'\x60<>#)\]}\\,;]{6,})""",
        keywords=("token=", "secret=", "key=", "password=", "passwd=", "pwd=", "auth=", "sig=", "signature="),
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, CODE),
    ),
    SecretRule(
        id="url-parameter",
        regex=r"""(?i)(?:[?&]|&amp;)(?:key|code|session(?:_?id)?|sid)=([\w%.~+/=-]{20,})""",
        keywords=tuple(
            f"{sign}{name}="
            for sign in "?&;"
            for name in ("key", "code", "session", "sessionid", "session_id", "sid")
        ),
        entropy=3.2,
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, CODE),
    ),
    SecretRule(
        id="webhook-url",
        regex=r"(?i)\b(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)"
        r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks"
        r"|webhook\.office\.com/webhookb2|outlook\.office\.com/webhook)/([\w/@+-]{20,})",
        keywords=("hooks.slack", "/webhooks/", "webhook.office", "office.com/webhook"),
        allowlists=(PLACEHOLDER,),
    ),
)

WEB_RULES = HEADER_RULES + URL_RULES
