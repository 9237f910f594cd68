"""Keys, signed tokens and hashes that show by their own form what they are, whole or cut."""

from __future__ import annotations

from retinue.redaction.rule import SecretRule

LINE_BREAK = r"(?:\\{1,4}[nr]|[\r\n])"
KEY_NAME = r"-----{}[ A-Z0-9_-]{{0,60}}PRIVATE KEY(?: BLOCK)?-----"
KEY_BEGIN, KEY_END = KEY_NAME.format("BEGIN"), KEY_NAME.format("END")
KEY_CHARACTERS, NO_KEY_CHARACTERS = "[A-Za-z0-9+/=]", "[^A-Za-z0-9+/=-]"
INSIDE = "(?:[^-]|-[^-])"
"""Never two dashes: a block that was cut must not reach to the end of the next."""
MANIFEST_LINE = r"(?:[^\n-][^\n]*\n|\r?\n)"
MANIFEST_ENTRIES = r"[ \t]+\S[^\n]*(?:\n[ \t]+\S[^\n]*)*"
KEY_WORDS = ("private key-----", "private key block-----")
CRYPT_METHODS = (
    *("1", "2a", "2b", "2x", "2y", "5", "6", "7", "y", "apr1", "scrypt"),
    *("argon2i", "argon2d", "argon2id", "pbkdf2", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512"),
)

KEY_RULES = (
    SecretRule(
        id="private-key",
        regex=rf"{KEY_BEGIN}([ \t]*{LINE_BREAK}{INSIDE}+|{INSIDE}*?{KEY_CHARACTERS}{{16,}}{INSIDE}*)-----END",
        keywords=KEY_WORDS,
    ),
    # Cut before its end: every line that has a long run of key in it, whatever stands before it, such as
    # blanks, a comment sign or `path:line:`, and one shorter that is nothing else.
    SecretRule(
        id="private-key",
        regex=rf"{KEY_BEGIN}((?:{LINE_BREAK}+[A-Za-z-]+: [^\r\n\\]*)*"
        rf"(?:[^A-Za-z0-9\r\n]*{KEY_CHARACTERS}{{32,}}|[\r\n]+[^\r\n]*?{KEY_CHARACTERS}{{32,}})+"
        rf"(?:{LINE_BREAK}+[ \t\"'>#*|]*{KEY_CHARACTERS}+)?)(?:[\"',+ \t\\]*[\r\n]|[^A-Za-z0-9+/=]|$)",
        keywords=KEY_WORDS,
    ),
    # Cut after its beginning.
    SecretRule(
        id="private-key",
        regex=rf"((?:{KEY_CHARACTERS}{{32,}}{NO_KEY_CHARACTERS}+n?)+"
        rf"(?:{KEY_CHARACTERS}+{NO_KEY_CHARACTERS}+n?)?){KEY_END}",
        keywords=KEY_WORDS,
    ),
    SecretRule(
        id="private-key",
        regex=rf"(?i)\bprivate-lines:[ \t]*\d+((?:{LINE_BREAK}+{KEY_CHARACTERS}{{16,}})+)",
        keywords=("private-lines:",),
    ),
    # The same in base64, as kubeconfig files have it; certificates and public keys begin otherwise.
    SecretRule(
        id="private-key",
        regex=r"\bLS0tLS1CRUdJTiB(?:QUklW|QR1Ag|[SFPE])[A-Za-z0-9+/]{40,}={0,2}",
        keywords=("ls0tls1crudjtib",),
    ),
    # Every entry of the manifest, whatever its name; `---` begins another document.
    SecretRule(
        id="kubernetes-secret",
        regex=rf"(?i)\bkind:[ \t]*[\"']?secret\b[^\n]*\n{MANIFEST_LINE}{{0,40}}?"
        r"[ \t]*(?:string)?data:[ \t]*\r?\n"
        rf"({MANIFEST_ENTRIES})",
        keywords=("kind:",),
    ),
    SecretRule(
        id="kubernetes-secret",
        regex=r"(?i)(?:^|\n)[ \t]*(?:string)?data:[ \t]*\r?\n"
        rf"({MANIFEST_ENTRIES})\n{MANIFEST_LINE}{{0,40}}?[ \t]*kind:[ \t]*[\"']?secret\b",
        keywords=("kind:",),
    ),
    SecretRule(
        id="jwt",
        regex=r"\b(eyJ[\w-]{8,}(?:\.[\w-]*){1,4}|ey[A-Za-z][\w-]{8,}\.ey[\w-]{8,}(?:\.[\w-]*)?)",
        keywords=(".ey", "eyj"),
        entropy=3.0,
    ),
    SecretRule(
        id="password-hash",
        regex=rf"(\$(?:{'|'.join(CRYPT_METHODS)})\$[./A-Za-z0-9=$,+-]{{20,}})",
        keywords=tuple(f"${method}$" for method in CRYPT_METHODS),
    ),
)
