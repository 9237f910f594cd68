"""Rules for values whose names mark them as secret, in code, configuration files and command lines."""

from __future__ import annotations

import re

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

FOREIGN_PASSWORDS = (
    *("passwort", "kennwort", "mot de passe", "motdepasse", "mot_de_passe", "contraseña", "contrasena"),
    *("senha", "wachtwoord", "lösenord", "losenord", "hasło", "пароль", "şifre", "adgangskode", "salasana"),
    *("heslo", "パスワード", "密码", "密碼", "비밀번호"),
)
LOGIN_NAME = (
    rf"(?:passw(?:or)?d|passwd|passphrase|passcode|pwd|{'|'.join(FOREIGN_PASSWORDS)}"
    r"|(?:(?:\b|_)(?:pass|pw)|(?-i:[a-z](?:Pass|Pw)))\b)"
)
"""Names of passwords. People choose passwords, so any value that is not a plain word may be one."""
PASSWORD_KEYWORDS = (
    *("password", "passwd", "passphrase", "passcode", "pwd", *FOREIGN_PASSWORDS),
    # Not "pass" alone, which occurs in half of all Python files.
    *(f"pass{end}" for end in ("=", ":", '"', "'", "\\", "]", " =", " :", " is ", "  ")),
    *(f"{before}pw{end}" for before in ("", " ") for end in ("=", ":", '":', "':", '"]', "']", " =")),
)

KEY_KINDS = (
    "fernet",
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

SETTER_FUNCTIONS = (
    r"(?:define|setenv|putenv|setdefault|set|put|setProperty|setItem"
    r"|getenv|env|get|fetch|getOrDefault|getProperty|get_or|config|os_environ)"
)
"""Functions that take a name and its value, or its default."""

SET_BY_CALL_NAMES = ("password", "passwd", "passphrase", "secret", "token", "apikey", "api_key")
SET_BY_CALL = rf"(?:{'|'.join(SET_BY_CALL_NAMES)})"

MNEMONIC_LENGTHS = (24, 21, 18, 15, 12)
FUNCTION_WORDS = frozenset(
    b"and are been being but could did does for from had has her him his how its may must nor not our per "
    b"should than the their them these those was were which who whom whose why with would yes your".split()
)
"""Words that prose can hardly do without. No mnemonic contains them."""


def length_of_mnemonic(found: bytes) -> int:
    """Return the length of the words that can be a mnemonic: as many as a mnemonic has, without prose."""
    words = list(re.finditer(rb"[a-z]+", found))
    usable = next((number for number, word in enumerate(words) if word[0] in FUNCTION_WORDS), len(words))
    count = next((count for count in MNEMONIC_LENGTHS if count <= usable), 0)
    return words[count - 1].end() if count else 0


FILE_RULES = (
    SecretRule(
        id="secret",
        regex=rf"(?i)\b{SETTER_FUNCTIONS}\(\s{{0,8}}{QUOTE}[\w.-]{{0,40}}(?:{LOGIN_NAME}|{CREDENTIAL_NAME}){NAME_SUFFIX}{QUOTE},\s{{0,8}}{QUOTED_VALUE}",
        keywords=PASSWORD_KEYWORDS + CREDENTIAL_KEYWORDS,
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL, SECRET_METADATA),
    ),
    # The default of a variable: `process.env.DB_PASSWORD ?? "..."`, `ENV["TOKEN"] || "..."`, `${TOKEN:-...}`.
    SecretRule(
        id="secret",
        regex=rf"(?i)(?:{LOGIN_NAME}|{CREDENTIAL_NAME}){NAME_SUFFIX}{QUOTE}?[\])]{{0,2}}"
        rf"[ \t]{{0,4}}(?:\?\?|\|\||\bor)[ \t]{{0,4}}{QUOTED_VALUE}",
        keywords=tuple(
            f"{sign}{quote}" for sign in ("??", "?? ", "||", "|| ", ") or ", "] or ") for quote in "\"'`"
        ),
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, SECRET_METADATA),
    ),
    SecretRule(
        id="secret",
        regex=r"\$\{[A-Z0-9_]*(?:PASSWORD|PASSWD|PWD|PASS|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)"
        r"(?:_[A-Z0-9]{1,12})?:-([^\s\"'{}$]{4,})\}",
        keywords=(":-",),
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL),
    ),
    # A call that sets a secret: `builder.setPassword("...")`, `.with_token('...')`.
    SecretRule(
        id="secret",
        regex=rf"(?i)\b(?:set|with|use)_?(?:[a-z]{{2,20}}_?)??{SET_BY_CALL}"
        rf"\(\s{{0,8}}{QUOTED_VALUE}[ \t]{{0,4}}\)",
        keywords=tuple(f"{name}(" for name in SET_BY_CALL_NAMES),
        allowlists=(PLACEHOLDER, WORDS, NUMBERED_WORDS, PATH_OR_URL, CODE),
    ),
    SecretRule(
        id="secret",
        regex=r"(?i)\bConvertTo-SecureString\b(?:[ \t]+-\w+)*?[ \t]+(?:-String[ \t]+)?"
        rf"(?:{QUOTED_VALUE}|{BARE_VALUE})",
        keywords=("convertto-securestring",),
        allowlists=(PLACEHOLDER, Allowlist(regex=r"^[$-]")),
    ),
    # A variable of Terraform and its default, some lines below.
    SecretRule(
        id="secret",
        regex=rf"(?i)\bvariable[ \t]+\"[\w-]{{0,40}}(?:{LOGIN_NAME}|{CREDENTIAL_NAME})[\w-]{{0,24}}\""
        rf"\s{{0,8}}\{{[^{{}}]{{0,400}}?\bdefault[ \t]{{0,20}}=[ \t]{{0,8}}{QUOTED_VALUE}",
        keywords=('variable "',),
        allowlists=(PLACEHOLDER, WORDS, PATH_OR_URL),
    ),
    SecretRule(
        id="fernet-key",
        regex=r"""\bFernet\(\s{0,4}b?["']([\w-]{43}=)["']""",
        keywords=("fernet(",),
    ),
    # The words that restore a wallet. Unlike prose they are 12 to 24, none of them short.
    SecretRule(
        id="mnemonic",
        regex=r"(?i)(?:mnemonic|(?:seed|recovery|backup|wallet|secret)[ _-]?phrase|(?:seed|recovery) words?"
        r"|wallet seed|bip-?39)"
        r"[\w ]{0,20}[\s:=\"'(\x60>]{1,8}(?-i:([a-z]{3,8}(?:(?:[ \t,]{1,3}[a-z]{3,8}){11,}"
        r"|(?:\r?\n[ \t]{0,8}[a-z]{3,8}){11,})))",
        keywords=("mnemonic", "phrase", "bip39", "bip-39", "seed word", "recovery word", "wallet seed"),
        length=length_of_mnemonic,
    ),
    # Environment files and shells: upper-case names, one per line. Here even a plain word may be a password.
    SecretRule(
        id="environment-secret",
        regex=r"(?:^|\n)[ \t]*(?:(?:export|set|ENV|-e|-|\+)[ \t]+)?[A-Z0-9_]*"
        r"(?:PASSWORD|PASSWD|PWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|FERNET_KEY"
        r"|CREDENTIALS?)"
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
