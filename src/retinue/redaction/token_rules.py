"""Rules for secrets with a recognisable form: private keys, JWTs, password hashes, provider tokens.

Private keys are found even if part of them is missing. The token rules cover providers that gitleaks does not
know or matches too narrowly, and find tokens anywhere, in prose as well as in code.
"""

from __future__ import annotations

import re

from retinue.redaction.secret_rule import Allowlist, SecretRule, any_of

LINE_BREAK = r"(?:\\{1,4}[nr]|[\r\n])"
KEY_NAME = r"-----{}[ A-Z0-9_-]{{0,60}}PRIVATE KEY(?: BLOCK)?-----"
KEY_BEGIN, KEY_END = KEY_NAME.format("BEGIN"), KEY_NAME.format("END")
KEY_CHARACTERS, KEY_GAP = "[A-Za-z0-9+/=]", r"[^A-Za-z0-9+/=\r\n-]"
KEY_PREFIX = r"(?:[A-Za-z]:)?[^\s:]{1,100}:\d{1,6}:"
KEY_BREAK = rf"{KEY_GAP}*{LINE_BREAK}(?:{KEY_GAP}|{LINE_BREAK}|{KEY_PREFIX})*"
"""What stands between two lines of a key: quotes, comment signs, the `path:line:` of a search."""
KEY_BODY = "(?:[^-]|-[^-])"
"""Excludes two dashes in a row, so that a match on an incomplete key stops before the next key."""
MAX_KEY_LINES = 200
"""A private key of 16,384 bits has as many."""
KEY_HEADERS = "(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|MessageID|X-[A-Za-z-]+): "
KEY_HEADER = re.compile(rb"\W*" + KEY_HEADERS.encode() + rb"?")
KEY_RUN = re.compile(rb"[A-Za-z0-9+/=]{16,}")
ONE_WORD = re.compile(rb"[^A-Za-z0-9]*[A-Za-z0-9+/=]*(?:\\{1,4}[nr])*[^A-Za-z0-9+/=]*", re.DOTALL)
MANIFEST_LINE = r"(?:[^\n-][^\n]*\n|\r?\n)"
MANIFEST_KEY_LINE = r"(?:[ \t]+\S[^\n]*\n|[\"']?[\w./-]+[\"']?:[^\n]*\n|#[^\n]*\n|[ \t]*\r?\n)"
MANIFEST_ENTRIES = r"[ \t]+(\S[^\n]*(?:\n[ \t]+\S[^\n]*)*)"
PRIVATE_KEY_KEYWORDS = ("private key-----", "private key block-----")
CRYPT_METHODS = (
    *("1", "2a", "2b", "2x", "2y", "5", "6", "7", "y", "apr1", "scrypt"),
    *("argon2i", "argon2d", "argon2id", "pbkdf2", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512"),
)
AFTER_KEY = re.compile(rb"(?:\s|[\"'<][^A-Za-z0-9/=]*)\Z|\s+\Z")
"""The end of the last line, a quote, and the sign that joins it with the next literal."""


def length_of_whole_key(found: bytes) -> int:
    """Return how much of the text between the beginning and the end of a key is the key.

    That is nothing if other text is among it. Streams rely on this: other text decides, whatever follows it.
    """
    lines = found.splitlines(keepends=True)
    return length_of_key(found) if len(lines) <= MAX_KEY_LINES and all(map(continues_key, lines)) else 0


def length_of_key(found: bytes) -> int:
    """Return how much of the text behind the beginning of a key is key material."""
    at = length = 0
    lines = found.splitlines(keepends=True)
    for line in lines[:MAX_KEY_LINES]:
        at += len(line)
        if _is_key_material(line) or (at == len(found) and ONE_WORD.fullmatch(line.rstrip())):
            length = at
        elif not continues_key(line):
            break
    behind = AFTER_KEY.search(found[:length])
    return behind.start() if behind else length


def continues_key(line: bytes) -> bool:
    """Whether a line can be between the beginning and the end of a key."""
    return bool(_is_key_material(line) or ONE_WORD.fullmatch(line.rstrip()) or KEY_HEADER.match(line))


def _is_key_material(line: bytes) -> bool:
    """Whether a line contains base64 of random bytes, as opposed to a path or a long word."""
    return any(
        re.search(rb"[a-z]", run) and re.search(rb"[A-Z]", run) and re.search(rb"\d", run)
        for run in KEY_RUN.findall(line)
    )


KEY_RULES = (
    SecretRule(
        id="private-key",
        regex=rf"{KEY_BEGIN}([ \t]*{LINE_BREAK}{KEY_BODY}+"
        rf"|{KEY_BODY}*?{KEY_CHARACTERS}{{16,}}{KEY_BODY}*)-----END",
        keywords=PRIVATE_KEY_KEYWORDS,
        length=length_of_whole_key,
    ),
    # A key without its end, in lines of nothing else.
    SecretRule(
        id="private-key",
        regex=rf"{KEY_BEGIN}((?:{KEY_GAP}*{LINE_BREAK}+{KEY_GAP}*{KEY_CHARACTERS}{{16,}})+)"
        rf"{KEY_GAP}*(?:{LINE_BREAK}|$)",
        keywords=PRIVATE_KEY_KEYWORDS,
        length=length_of_key,
    ),
    # A key without its end: all lines with a long run of key characters after any prefix (blanks, a comment
    # sign, `path:line:`), and a shorter last line without other text.
    SecretRule(
        id="private-key",
        regex=rf"{KEY_BEGIN}((?:{LINE_BREAK}+{KEY_HEADERS}[^\r\n\\]*)*"
        rf"(?:[^A-Za-z0-9\r\n]*{KEY_CHARACTERS}{{32,}}|[\r\n]+[^\r\n]*?{KEY_CHARACTERS}{{32,}})+"
        rf"(?:{LINE_BREAK}+[ \t\"'>#*|]*{KEY_CHARACTERS}+(?:[\"',+ \t\\]*[\r\n]|[\"'\\<]|$)"
        r"|[\"',+ \t\\]*[\r\n]|[^A-Za-z0-9+/=]|$))",
        keywords=PRIVATE_KEY_KEYWORDS,
        length=length_of_key,
    ),
    # A key without its beginning.
    SecretRule(
        id="private-key",
        regex=rf"(?:^|{LINE_BREAK}|:\d{{1,6}}:){KEY_GAP}*((?:{KEY_CHARACTERS}{{32,}}{KEY_BREAK})+"
        rf"(?:{KEY_CHARACTERS}+{KEY_BREAK})?){KEY_END}",
        keywords=PRIVATE_KEY_KEYWORDS,
    ),
    SecretRule(
        id="private-key",
        regex=rf"(?i)\bprivate-lines:[ \t]*\d+((?:{LINE_BREAK}+{KEY_CHARACTERS}{{16,}})+)",
        keywords=("private-lines:",),
    ),
    # A base64-encoded key, as in kubeconfig files. Certificates and public keys start differently.
    SecretRule(
        id="private-key",
        regex=r"\bLS0tLS1CRUdJTiB(?:QUklW|QR1Ag|[SFPE])[A-Za-z0-9+/]{40,}={0,2}",
        keywords=("ls0tls1crudjtib",),
    ),
    # All entries of a Secret manifest, whatever their names. `---` starts another document.
    SecretRule(
        id="kubernetes-secret",
        regex=rf"(?i)\bkind:[ \t]*[\"']?secret\b[^\n]*\n{MANIFEST_LINE}{{0,40}}?"
        r"[ \t]*(?:string)?data:[ \t]*\r?\n"
        rf"{MANIFEST_ENTRIES}",
        keywords=("kind:",),
    ),
    SecretRule(
        id="kubernetes-secret",
        regex=r"(?i)(?:^|\n)[ \t]*(?:string)?data:[ \t]*\r?\n"
        rf"{MANIFEST_ENTRIES}\n{MANIFEST_KEY_LINE}{{0,40}}?[ \t]*kind:[ \t]*[\"']?secret\b",
        keywords=("kind:",),
    ),
    # The same as JSON, in either order.
    SecretRule(
        id="kubernetes-secret",
        regex=r"(?i)\"kind\":\s{0,4}\"secret\"[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*?"
        r"\"(?:string)?data\":\s{0,4}\{([^{}]+)\}",
        keywords=('"kind": "secret', '"kind":"secret'),
    ),
    SecretRule(
        id="kubernetes-secret",
        regex=r"(?i)\"(?:string)?data\":\s{0,4}\{([^{}]+)\}"
        r"[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*?\"kind\":\s{0,4}\"secret\"",
        keywords=('"kind": "secret', '"kind":"secret'),
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


NOT_A_TOKEN = Allowlist(
    regex=any_of(
        r"^[A-Za-z_-]+$",  # a CSS class
        r"(?i)x{6}|your[_-]|-example",  # a placeholder
        r"(?i)^sk-(?:[a-z]+|\d{1,3})(?:[_-]+(?:[a-z]+\d{0,3}|\d{1,3}))*$",  # sk-spinner-2
    )
)


def token_rule(kind: str, regex: str, *keywords: str) -> SecretRule:
    """Make a rule for tokens that start with a known prefix."""
    return SecretRule(
        id=kind,
        regex=rf"\b({regex})",
        keywords=keywords,
        entropy=2.5,
        open_ended=True,
        allowlists=(NOT_A_TOKEN,),
    )


PROVIDER_RULES = (
    # Language models
    token_rule("anthropic-api-key", r"sk-ant-[a-z0-9]{3,12}-[\w-]{20,}", "sk-ant-"),
    token_rule("openai-api-key", r"sk-[\w-]{16,}", "sk-"),
    token_rule("openrouter-api-key", r"sk-or-v\d-[a-f0-9]{32,}", "sk-or-v"),
    token_rule("langfuse-secret-key", r"sk-lf-[a-f0-9-]{30,}", "sk-lf-"),
    token_rule("langsmith-api-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{8,}", "lsv2_"),
    token_rule("groq-api-key", r"gsk_[A-Za-z0-9]{32,}", "gsk_"),
    token_rule("xai-api-key", r"xai-[A-Za-z0-9]{32,}", "xai-"),
    token_rule("replicate-api-token", r"r8_[A-Za-z0-9]{30,}", "r8_"),
    token_rule("huggingface-access-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    token_rule("pinecone-api-key", r"pcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{30,}", "pcsk_"),
    token_rule("tavily-api-key", r"tvly-[A-Za-z0-9-]{20,}", "tvly-"),
    # Clouds
    token_rule("aws-bedrock-api-key", r"ABSK[A-Za-z0-9+/]{80,}={0,2}", "absk"),
    token_rule("aws-bedrock-api-key", r"bedrock-api-key-[A-Za-z0-9+/=]{20,}", "bedrock-api-key-"),
    SecretRule(
        id="aws-secret-access-key",
        regex=r"\bA[KS]IA[A-Z2-7]{16}[\s,;:|\"']{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        keywords=("akia", "asia"),
        entropy=3.5,
    ),
    token_rule("gcp-api-key", r"AIza[\w-]{30,}", "aiza"),
    token_rule("google-oauth-access-token", r"ya29\.[\w-]{20,}", "ya29."),
    token_rule("google-oauth-client-secret", r"GOCSPX-[\w-]{20,}", "gocspx-"),
    token_rule("google-oauth-refresh-token", r"1//0[\w-]{30,}", "1//0"),
    token_rule("tencent-secret-id", r"AKID[A-Za-z0-9]{32}", "akid"),
    token_rule("supabase-secret", r"sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,}", "sbp_", "sb_secret_"),
    token_rule("neon-api-key", r"napi_[a-z0-9]{40,}", "napi_"),
    token_rule("render-api-key", r"rnd_[A-Za-z0-9]{28,}", "rnd_"),
    token_rule("tailscale-key", r"tskey-[a-z]{3,10}-[\w-]{10,}", "tskey-"),
    SecretRule(
        id="vault-service-token",
        regex=r"\b(s\.[A-Za-z0-9]{24})(?:[^\w-]|$)",
        keywords=(),
        entropy=3.5,
        at_long_word=True,
    ),
    token_rule("vault-token", r"hv[sbr]\.[\w-]{24,}", "hvs.", "hvb.", "hvr."),
    token_rule("doppler-token", r"dp\.(?:st|sa|ct|scim|audit)\.[\w.-]{30,}", "dp."),
    token_rule("aws-access-token", r"A[KS]IA[A-Z0-9]{16}\b", "akia", "asia"),
    # Building and publishing
    token_rule(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    token_rule(
        "gitlab-token",
        r"gl[a-z]{2,6}-[\w-]{20,}",
        "glpat-",
        "gldt-",
        "glrt-",
        "glptt-",
        "glcbt-",
        "gloas-",
        "glft-",
    ),
    token_rule("docker-access-token", r"dckr_(?:pat|oat)_[\w-]{20,}", "dckr_"),
    token_rule("artifactory-token", r"AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{50,}", "akcp", "cmvmd"),
    token_rule("nuget-api-key", r"oy2[a-z0-9]{43}\b", "oy2"),
    token_rule("circleci-token", r"CCIPAT_[A-Za-z0-9]{10,}_[a-f0-9]{30,}", "ccipat_"),
    token_rule("buildkite-token", r"bk(?:ua|at)_[a-f0-9]{40}", "bkua_", "bkat_"),
    token_rule("sourcegraph-access-token", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}", "sgp_"),
    token_rule("atlassian-api-token", r"AT(?:ATT|CTT|BB)[\w+/=-]{20,}", "atatt", "atctt", "atbb"),
    # Services
    token_rule("airtable-access-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", "airtable"),
    SecretRule(
        id="discord-bot-token",
        regex=r"\b([MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,40})",
        keywords=(),
        entropy=2.5,
        at_long_word=True,
        open_ended=True,
        allowlists=(NOT_A_TOKEN,),
    ),
    token_rule("figma-access-token", r"fig[dour]_[\w-]{30,}", "figd_", "figo_", "figu_", "figr_"),
    token_rule("mailgun-private-api-token", r"key-[a-f0-9]{32}\b", "key-"),
    token_rule("notion-api-token", r"secret_[A-Za-z0-9]{43}\b", "secret_"),
    token_rule("posthog-api-key", r"phx_[A-Za-z0-9]{40,}", "phx_"),
    token_rule("square-secret", r"sq0csp-[\w-]{40,}", "sq0csp-"),
    token_rule("stripe-webhook-secret", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    token_rule("slack-token", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox"),
    token_rule("telegram-bot-api-token", r"\d{8,10}:AA[\w-]{32,33}", ":aa"),
)
