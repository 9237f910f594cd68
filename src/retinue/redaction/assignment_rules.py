"""Values whose name says that they are secret: in code, configuration, environments, command lines."""

from __future__ import annotations

from retinue.redaction.ordinary import (
    ABOUT_A_SECRET,
    ADDRESS,
    CODE,
    NO_DIGIT,
    NUMBERED_WORDS,
    PLACEHOLDER,
    WORDS,
)
from retinue.redaction.rule import Allowlist, Rule
from retinue.redaction.syntax import ANNOTATION, BARE, CLOSE, EQUALS, OPEN, QUOTED

PASSWORD = r"(?:passw(?:or)?d|passwd|passphrase|passcode|pwd)"
PASSWORD_WORDS = ("password", "passwd", "passphrase", "passcode", "pwd")
SECRET = (
    r"(?:secret|token|api[_-]?key|access[_-]?key|auth[_-]?key|account[_-]?key|private[_-]?key|encryption[_-]?key|"
    r"signing[_-]?key|master[_-]?key|service[_-]?key|license[_-]?key|credentials?|_auth\b)"
)
SECRET_WORDS = (
    "secret", "token", "apikey", "api_key", "api-key", "access_key", "access-key", "accesskey", "auth_key",
    "auth-key", "authkey", "account_key", "account-key", "accountkey", "private_key", "private-key", "privatekey",
    "encryption_key", "encryption-key", "encryptionkey", "signing_key", "signing-key", "signingkey", "master_key",
    "master-key", "masterkey", "service_key", "service-key", "servicekey", "license_key", "license-key",
    "licensekey", "credential", "_auth",
)  # fmt: skip
SUFFIX = r"[\w-]{0,24}"
ASSIGNMENT_RULES = (
    Rule(
        id="password",
        regex=rf"(?i){PASSWORD}{SUFFIX}{ANNOTATION}{EQUALS}{QUOTED}",
        keywords=PASSWORD_WORDS,
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, ABOUT_A_SECRET),
    ),
    Rule(
        id="password",
        regex=rf"(?i){PASSWORD}{SUFFIX}{EQUALS}{BARE}",
        keywords=PASSWORD_WORDS,
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    Rule(
        id="secret",
        regex=rf"(?i){SECRET}{SUFFIX}{ANNOTATION}{EQUALS}{QUOTED}",
        keywords=SECRET_WORDS,
        entropy=2.9,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, ADDRESS, ABOUT_A_SECRET),
    ),
    Rule(
        id="secret",
        regex=rf"(?i){SECRET}{SUFFIX}{EQUALS}{BARE}",
        keywords=SECRET_WORDS,
        entropy=2.9,
        allowlists=(PLACEHOLDER, NO_DIGIT, NUMBERED_WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    # Environment files and shells: no blanks, capitals, one to a line. Here a plain word is a password as well.
    Rule(
        id="environment-secret",
        regex=r"(?:^|\n)[ \t]*(?:(?:export|set|ENV|-e|-|\+)[ \t]+)?[A-Z0-9_]*"
        r"(?:PASSWORD|PASSWD|PWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)"
        r"""(?:_[A-Z0-9]{1,12})?=["']?([^\s"']{4,})["']?[ \t]*(?:[\r\n]|$)""",
        keywords=PASSWORD_WORDS + SECRET_WORDS,
        allowlists=(
            PLACEHOLDER,
            ADDRESS,
            ABOUT_A_SECRET,
            Allowlist(regex=r"\(|^\d{1,6}$"),
        ),
    ),
    Rule(
        id="command-line-secret",
        regex=r"(?i)(?:^|[\s\"'\x60\[,(])--?(?:[a-z]{1,20}-)?(?:password|passwd|passphrase|pwd|token|secret|api-?key)"
        rf"(?:=|[ \t]+|{CLOSE},[ \t]*{OPEN}|{CLOSE}:[ \t]*{OPEN})(?:{QUOTED}|{BARE})",
        keywords=("-password", "-passwd", "-passphrase", "-pwd", "-token", "-secret", "-api-key", "-apikey"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    Rule(
        id="command-line-secret",
        regex=r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\r\n]{0,200}?[ \t]-p[ \t]?(?:'([^'\r\n]{4,})'|\"([^\"\r\n]{4,})\"|([^\s'\"-][^\s'\"]{3,}))",
        keywords=("mysql", "mariadb", "sshpass"),
        allowlists=(PLACEHOLDER,),
    ),
    Rule(
        id="xml-secret",
        regex=r"(?i)<(?:\w{1,20}:)?[\w.-]{0,30}(?:password|passwd|passphrase|secret|token|api-?key)[\w.-]{0,20}>"
        r"\s{0,4}([^<>\s]{4,})\s{0,4}</",
        keywords=("password>", "passwd>", "passphrase>", "secret>", "token>", "key>"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    # A name and its value as two members: container specifications, recorded headers, .NET settings.
    Rule(
        id="secret",
        regex=rf"(?i)\b(?:name|key){EQUALS}{OPEN}?[\w.-]{{0,40}}(?:{PASSWORD}|{SECRET}|authorization|cookie)[\w.-]{{0,20}}"
        rf"{CLOSE}?[,\s]{{1,40}}{OPEN}?value{EQUALS}(?:{QUOTED}|{BARE})",
        keywords=PASSWORD_WORDS + SECRET_WORDS + ("authorization", "cookie"),
        allowlists=(PLACEHOLDER, WORDS, ADDRESS, CODE, ABOUT_A_SECRET),
    ),
    Rule(
        id="netrc-password",
        regex=r"(?i)\blogin\s{1,10}\S{1,80}\s{1,10}password\s{1,10}(\S{4,})",
        keywords=("login",),
        allowlists=(PLACEHOLDER,),
    ),
    Rule(
        id="pgpass-password",
        regex=r"(?:^|\n)[^\s:]{1,100}:(?:5432|\*):[^\s:]{1,64}:[^\s:]{1,64}:(\S{4,})",
        keywords=(":5432:", ":*:"),
        allowlists=(PLACEHOLDER,),
    ),
    Rule(
        id="docker-registry-auth",
        regex=r"""\\{0,3}"auth\\{0,3}"[ \t]{0,4}:[ \t]{0,4}\\{0,3}"([A-Za-z0-9+/]{12,}={0,2})\\{0,3}\"""",
        keywords=('"auth',),
        allowlists=(WORDS,),
    ),
)
