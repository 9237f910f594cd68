"""Keys, signed tokens and hashes that show by their own form what they are, whole or cut."""

from __future__ import annotations

from retinue.redaction.secret_rule import Allowlist, SecretRule, either

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


# MERGED provider_rules: Tokens that name their provider by a prefix, which the vendored rules do not know or know too narrowly.
#
# Each is found wherever it stands, in prose as in code. What follows without a break is hidden with it.

NO_TOKEN = Allowlist(
    regex=either(
        r"^[A-Za-z_-]+$",  # the name of a style sheet's class
        r"(?i)x{6}|your[_-]|-example",  # a placeholder
        r"(?i)^sk-(?:[a-z]+|\d{1,3})(?:[_-]+(?:[a-z]+\d{0,3}|\d{1,3}))*$",  # sk-spinner-2
    )
)


def token(kind: str, regex: str, *keywords: str) -> SecretRule:
    return SecretRule(
        id=kind,
        regex=rf"\b({regex})",
        keywords=keywords,
        entropy=2.5,
        open_ended=True,
        allowlists=(NO_TOKEN,),
    )


PROVIDER_RULES = (
    # Language models
    token("anthropic-api-key", r"sk-ant-[a-z0-9]{3,12}-[\w-]{20,}", "sk-ant-"),
    token("openai-api-key", r"sk-[\w-]{16,}", "sk-"),
    token("openrouter-api-key", r"sk-or-v\d-[a-f0-9]{32,}", "sk-or-v"),
    token("langfuse-secret-key", r"sk-lf-[a-f0-9-]{30,}", "sk-lf-"),
    token("langsmith-api-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{8,}", "lsv2_"),
    token("groq-api-key", r"gsk_[A-Za-z0-9]{32,}", "gsk_"),
    token("xai-api-key", r"xai-[A-Za-z0-9]{32,}", "xai-"),
    token("replicate-api-token", r"r8_[A-Za-z0-9]{30,}", "r8_"),
    token("huggingface-access-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    token("pinecone-api-key", r"pcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{30,}", "pcsk_"),
    token("tavily-api-key", r"tvly-[A-Za-z0-9-]{20,}", "tvly-"),
    # Clouds
    token("aws-bedrock-api-key", r"ABSK[A-Za-z0-9+/]{80,}={0,2}", "absk"),
    token("aws-bedrock-api-key", r"bedrock-api-key-[A-Za-z0-9+/=]{20,}", "bedrock-api-key-"),
    SecretRule(
        id="aws-secret-access-key",
        regex=r"\bA[KS]IA[A-Z2-7]{16}[\s,;:|\"']{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        keywords=("akia", "asia"),
        entropy=3.5,
    ),
    token("gcp-api-key", r"AIza[\w-]{30,}", "aiza"),
    token("google-oauth-access-token", r"ya29\.[\w-]{20,}", "ya29."),
    token("google-oauth-client-secret", r"GOCSPX-[\w-]{20,}", "gocspx-"),
    token("google-oauth-refresh-token", r"1//0[\w-]{30,}", "1//0"),
    token("tencent-secret-id", r"AKID[A-Za-z0-9]{32}", "akid"),
    token("supabase-secret", r"sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,}", "sbp_", "sb_secret_"),
    token("neon-api-key", r"napi_[a-z0-9]{40,}", "napi_"),
    token("render-api-key", r"rnd_[A-Za-z0-9]{28,}", "rnd_"),
    token("tailscale-key", r"tskey-[a-z]{3,10}-[\w-]{10,}", "tskey-"),
    token("vault-token", r"hv[sbr]\.[\w-]{24,}", "hvs.", "hvb.", "hvr."),
    token("doppler-token", r"dp\.(?:st|sa|ct|scim|audit)\.[\w.-]{30,}", "dp."),
    token("aws-access-token", r"A[KS]IA[A-Z0-9]{16}\b", "akia", "asia"),
    # Building and publishing
    token(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    token(
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
    token("docker-access-token", r"dckr_(?:pat|oat)_[\w-]{20,}", "dckr_"),
    token("artifactory-token", r"AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{50,}", "akcp", "cmvmd"),
    token("nuget-api-key", r"oy2[a-z0-9]{43}\b", "oy2"),
    token("circleci-token", r"CCIPAT_[A-Za-z0-9]{10,}_[a-f0-9]{30,}", "ccipat_"),
    token("buildkite-token", r"bk(?:ua|at)_[a-f0-9]{40}", "bkua_", "bkat_"),
    token("sourcegraph-access-token", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}", "sgp_"),
    token("atlassian-api-token", r"AT(?:ATT|CTT|BB)[\w+/=-]{20,}", "atatt", "atctt", "atbb"),
    # Services
    token("airtable-access-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", "airtable"),
    token("discord-bot-token", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    token("figma-access-token", r"fig[dour]_[\w-]{30,}", "figd_", "figo_", "figu_", "figr_"),
    token("mailgun-private-api-token", r"key-[a-f0-9]{32}\b", "key-"),
    token("notion-api-token", r"secret_[A-Za-z0-9]{43}\b", "secret_"),
    token("posthog-api-key", r"phx_[A-Za-z0-9]{40,}", "phx_"),
    token("square-secret", r"sq0csp-[\w-]{40,}", "sq0csp-"),
    token("stripe-webhook-secret", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    token("slack-token", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox"),
    token("telegram-bot-api-token", r"\d{8,10}:AA[\w-]{32,33}", ":aa"),
)
