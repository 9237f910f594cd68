"""Rules for values whose names mark them as secret, in code, configuration files and command lines."""

from __future__ import annotations

from retinue.redaction.secret_rule import (
    ASSIGNMENT,
    BARE_VALUE,
    CODE,
    NO_DIGIT,
    NUMBERED_WORDS,
    PATH_OR_URL,
    PLACEHOLDER,
    QUOTE,
    QUOTED_VALUE,
    SECRET_METADATA,
    TYPE_ANNOTATION,
    WORDS,
    Allowlist,
    SecretRule,
)

LOGIN_NAME = r"(?:passw(?:or)?d|passwd|passphrase|passcode|pwd|(?:(?:\b|_)pass|(?-i:[a-z]Pass))\b)"
"""Names of passwords. People choose passwords, so any value that is not a plain word may be one."""
PASSWORD_KEYWORDS = (
    *("password", "passwd", "passphrase", "passcode", "pwd"),
    # Not "pass" alone, which occurs in half of all Python files.
    *(f"pass{end}" for end in ("=", ":", '"', "'", "\\", "]", " =", " :", " is ", "  ")),
)

KEY_KINDS = (
    "api",
    "access",
    "auth",
    "account",
    "private",
    "encryption",
    "signing",
    "master",
    "service",
    "license",
)
CREDENTIAL_NAME = rf"(?:secret|token|credentials?|_auth\b|(?:{'|'.join(KEY_KINDS)})[ _.-]?key)"
"""Names of credentials. Machines generate credentials, so the values are long and contain digits."""
CREDENTIAL_KEYWORDS = (
    "secret",
    "token",
    "credential",
    "_auth",
    *(f"{kind}{joint}key" for kind in KEY_KINDS for joint in ("", " ", "_", ".", "-")),
)
NAME_SUFFIX = r"[\w-]{0,24}"

CODE_RULES = (
    SecretRule(
        id="password",
        regex=rf"(?i){LOGIN_NAME}{NAME_SUFFIX}{TYPE_ANNOTATION}{ASSIGNMENT}{QUOTED_VALUE}",
        keywords=PASSWORD_KEYWORDS,
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, SECRET_METADATA),
    ),
    SecretRule(
        id="password",
        regex=rf"(?i){LOGIN_NAME}{NAME_SUFFIX}{ASSIGNMENT}{BARE_VALUE}",
        keywords=PASSWORD_KEYWORDS,
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, CODE, SECRET_METADATA),
    ),
    SecretRule(
        id="secret",
        regex=rf"(?i){CREDENTIAL_NAME}{NAME_SUFFIX}{TYPE_ANNOTATION}{ASSIGNMENT}{QUOTED_VALUE}",
        keywords=CREDENTIAL_KEYWORDS,
        entropy=2.2,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, PATH_OR_URL, SECRET_METADATA),
    ),
    SecretRule(
        id="secret",
        regex=rf"(?i){CREDENTIAL_NAME}{NAME_SUFFIX}{ASSIGNMENT}{BARE_VALUE}",
        keywords=CREDENTIAL_KEYWORDS,
        entropy=2.9,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, PATH_OR_URL, CODE, SECRET_METADATA),
    ),
)

SETTER_FUNCTIONS = r"(?:define|setenv|putenv|setdefault|set|put|setProperty|setItem)"

FILE_RULES = (
    SecretRule(
        id="secret",
        regex=rf"(?i)\b{SETTER_FUNCTIONS}\(\s{{0,8}}{QUOTE}[\w.-]{{0,40}}(?:{LOGIN_NAME}|{CREDENTIAL_NAME}){NAME_SUFFIX}{QUOTE},\s{{0,8}}{QUOTED_VALUE}",
        keywords=PASSWORD_KEYWORDS + CREDENTIAL_KEYWORDS,
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, SECRET_METADATA),
    ),
    # Environment files and shells: upper-case names, one per line. Here even a plain word may be a password.
    SecretRule(
        id="environment-secret",
        regex=r"(?:^|\n)[ \t]*(?:(?:export|set|ENV|-e|-|\+)[ \t]+)?[A-Z0-9_]*"
        r"(?:PASSWORD|PASSWD|PWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)"
        r"""(?:_[A-Z0-9]{1,12})?=["']?([^\s"']{4,})["']?[ \t]*(?:[\r\n]|$)""",
        keywords=PASSWORD_KEYWORDS + CREDENTIAL_KEYWORDS,
        allowlists=(PLACEHOLDER, PATH_OR_URL, SECRET_METADATA, Allowlist(regex=r"\(|^\d{1,6}$")),
    ),
    SecretRule(
        id="xml-secret",
        regex=r"(?i)<(?:\w{1,20}:)?[\w.-]{0,30}(?:password|passwd|passphrase|secret|token|api-?key)[\w.-]{0,20}>"
        r"\s{0,4}([^<>\s]{4,})\s{0,4}</",
        keywords=("password>", "passwd>", "passphrase>", "secret>", "token>", "key>"),
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, CODE, SECRET_METADATA),
    ),
    SecretRule(
        id="xml-secret",
        regex=r"""(?i)type=["']?password["']?[^<>]*?\bvalue=["']([^"'<>]{4,})["']""",
        keywords=("type=password", 'type="password', "type='password"),
        allowlists=(PLACEHOLDER, WORDS),
    ),
    # Name and value as two members, as in container specifications, HTTP recordings and .NET settings.
    SecretRule(
        id="secret",
        regex=rf"(?i)\b(?:name|key){ASSIGNMENT}{QUOTE}?[\w.-]{{0,40}}"
        rf"(?:{LOGIN_NAME}|{CREDENTIAL_NAME}|authorization|cookie)[\w.-]{{0,20}}"
        rf"{QUOTE}?[,\s]{{1,40}}{QUOTE}?value{ASSIGNMENT}(?:{QUOTED_VALUE}|{BARE_VALUE})",
        keywords=(*PASSWORD_KEYWORDS, *CREDENTIAL_KEYWORDS, "authorization", "cookie"),
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, CODE),
    ),
    SecretRule(
        id="netrc-password",
        regex=r"(?i)\b(?:machine\s+\S+|default)\s+(?:login\s+\S+\s+)?password\s+(\S{4,})",
        keywords=("machine ", "default login", "default password"),
        allowlists=(PLACEHOLDER,),
    ),
    SecretRule(
        id="pgpass-password",
        regex=r"(?:^|\n)[^\s:]{1,100}:(?:5432|\*):[^\s:]{1,64}:[^\s:]{1,64}:(\S{4,})",
        keywords=(":5432:", ":*:"),
        allowlists=(PLACEHOLDER,),
    ),
    SecretRule(
        id="docker-registry-auth",
        regex=r"""\\{0,3}"auth\\{0,3}"[ \t]{0,4}:[ \t]{0,4}\\{0,3}"([A-Za-z0-9+/]{12,}={0,2})\\{0,3}\"""",
        keywords=('"auth',),
        allowlists=(WORDS,),
    ),
)

COMMAND_LINE_RULES = (
    SecretRule(
        id="command-line-secret",
        regex=r"(?i)(?:^|[\s\"'\x60\[,(])--?(?:[a-z]{1,20}-)?"
        r"(?:password|passwd|passphrase|pwd|token|secret|api-?key)"
        rf"(?:=|[ \t]+|{QUOTE}[,:][ \t]*{QUOTE})(?:{QUOTED_VALUE}|{BARE_VALUE})",
        keywords=("-password", "-passwd", "-passphrase", "-pwd", "-token", "-secret", "-api-key", "-apikey"),
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, CODE, SECRET_METADATA),
    ),
    SecretRule(
        id="command-line-secret",
        regex=r"\b(?:(?:mysql|mariadb)\w*\b.*?[ \t]-p|sshpass[ \t]+-p[ \t]?)"
        r"(?:'([^'\r\n]{4,})'|\"([^\"\r\n]{4,})\"|([^\s'\"-][^\s'\"]{3,}))",
        keywords=("mysql", "mariadb", "sshpass"),
        allowlists=(PLACEHOLDER,),
    ),
)

ASSIGNMENT_RULES = CODE_RULES + FILE_RULES + COMMAND_LINE_RULES
