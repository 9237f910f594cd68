"""Values whose name says that they are secret: in code, configuration, environments, command lines."""

from __future__ import annotations

from retinue.redaction.secret_rule import (
    ABOUT_A_SECRET,
    ADDRESS,
    ANNOTATION,
    BARE,
    CODE,
    EQUALS,
    NO_DIGIT,
    NUMBERED_WORDS,
    PLACEHOLDER,
    QUOTE,
    QUOTED,
    WORDS,
    Allowlist,
    SecretRule,
)

LOGIN = r"(?:passw(?:or)?d|passwd|passphrase|passcode|pwd|(?:(?:\b|_)pass|(?-i:[a-z]Pass))\b)"
"""Names of what people choose: anything but a word may be one."""
LOGIN_WORDS = (
    *("password", "passwd", "passphrase", "passcode", "pwd"),
    # Not "pass" alone, which half of all Python files have.
    *(f"pass{end}" for end in ("=", ":", '"', "'", "\\", "]", " =", " :", " is ", "  ")),
)

KINDS_OF_KEY = (
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
CREDENTIAL = rf"(?:secret|token|credentials?|_auth\b|(?:{'|'.join(KINDS_OF_KEY)})[ _.-]?key)"
"""Names of what machines make: long, and with digits."""
CREDENTIAL_WORDS = (
    "secret",
    "token",
    "credential",
    "_auth",
    *(f"{kind}{joint}key" for kind in KINDS_OF_KEY for joint in ("", " ", "_", ".", "-")),
)
SUFFIX = r"[\w-]{0,24}"

IN_CODE = (
    SecretRule(
        id="password",
        regex=rf"(?i){LOGIN}{SUFFIX}{ANNOTATION}{EQUALS}{QUOTED}",
        keywords=LOGIN_WORDS,
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, ABOUT_A_SECRET),
    ),
    SecretRule(
        id="password",
        regex=rf"(?i){LOGIN}{SUFFIX}{EQUALS}{BARE}",
        keywords=LOGIN_WORDS,
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    SecretRule(
        id="secret",
        regex=rf"(?i){CREDENTIAL}{SUFFIX}{ANNOTATION}{EQUALS}{QUOTED}",
        keywords=CREDENTIAL_WORDS,
        entropy=2.2,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, ADDRESS, ABOUT_A_SECRET),
    ),
    SecretRule(
        id="secret",
        regex=rf"(?i){CREDENTIAL}{SUFFIX}{EQUALS}{BARE}",
        keywords=CREDENTIAL_WORDS,
        entropy=2.9,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
)

SETTERS = r"(?:define|setenv|putenv|setdefault|set|put|setProperty|setItem)"

IN_FILES = (
    SecretRule(
        id="secret",
        regex=rf"(?i)\b{SETTERS}\(\s{{0,8}}{QUOTE}[\w.-]{{0,40}}(?:{LOGIN}|{CREDENTIAL}){SUFFIX}{QUOTE},\s{{0,8}}{QUOTED}",
        keywords=LOGIN_WORDS + CREDENTIAL_WORDS,
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, ABOUT_A_SECRET),
    ),
    # Environment files and shells: no blanks, capitals, one to a line. Here a plain word is a password too.
    SecretRule(
        id="environment-secret",
        regex=r"(?:^|\n)[ \t]*(?:(?:export|set|ENV|-e|-|\+)[ \t]+)?[A-Z0-9_]*"
        r"(?:PASSWORD|PASSWD|PWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)"
        r"""(?:_[A-Z0-9]{1,12})?=["']?([^\s"']{4,})["']?[ \t]*(?:[\r\n]|$)""",
        keywords=LOGIN_WORDS + CREDENTIAL_WORDS,
        allowlists=(PLACEHOLDER, ADDRESS, ABOUT_A_SECRET, Allowlist(regex=r"\(|^\d{1,6}$")),
    ),
    SecretRule(
        id="xml-secret",
        regex=r"(?i)<(?:\w{1,20}:)?[\w.-]{0,30}(?:password|passwd|passphrase|secret|token|api-?key)[\w.-]{0,20}>"
        r"\s{0,4}([^<>\s]{4,})\s{0,4}</",
        keywords=("password>", "passwd>", "passphrase>", "secret>", "token>", "key>"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    SecretRule(
        id="xml-secret",
        regex=r"""(?i)type=["']?password["']?[^<>]*?\bvalue=["']([^"'<>]{4,})["']""",
        keywords=("type=password", 'type="password', "type='password"),
        allowlists=(PLACEHOLDER, WORDS),
    ),
    # A name and its value as two members: container specifications, recorded headers, .NET settings.
    SecretRule(
        id="secret",
        regex=rf"(?i)\b(?:name|key){EQUALS}{QUOTE}?[\w.-]{{0,40}}"
        rf"(?:{LOGIN}|{CREDENTIAL}|authorization|cookie)[\w.-]{{0,20}}"
        rf"{QUOTE}?[,\s]{{1,40}}{QUOTE}?value{EQUALS}(?:{QUOTED}|{BARE})",
        keywords=(*LOGIN_WORDS, *CREDENTIAL_WORDS, "authorization", "cookie"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE),
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

ON_COMMAND_LINES = (
    SecretRule(
        id="command-line-secret",
        regex=r"(?i)(?:^|[\s\"'\x60\[,(])--?(?:[a-z]{1,20}-)?"
        r"(?:password|passwd|passphrase|pwd|token|secret|api-?key)"
        rf"(?:=|[ \t]+|{QUOTE}[,:][ \t]*{QUOTE})(?:{QUOTED}|{BARE})",
        keywords=("-password", "-passwd", "-passphrase", "-pwd", "-token", "-secret", "-api-key", "-apikey"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    SecretRule(
        id="command-line-secret",
        regex=r"\b(?:(?:mysql|mariadb)\w*\b.*?[ \t]-p|sshpass[ \t]+-p[ \t]?)"
        r"(?:'([^'\r\n]{4,})'|\"([^\"\r\n]{4,})\"|([^\s'\"-][^\s'\"]{3,}))",
        keywords=("mysql", "mariadb", "sshpass"),
        allowlists=(PLACEHOLDER,),
    ),
)

ASSIGNMENT_RULES = IN_CODE + IN_FILES + ON_COMMAND_LINES
