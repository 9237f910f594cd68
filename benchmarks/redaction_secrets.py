"""Made-up secrets in the places where secrets turn up. All are put together at run time from random parts,
so that no scanner of a code host takes this file for a leak."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

ALNUM = ascii_letters + digits
LOWER = ascii_lowercase + digits
UPPER = ascii_uppercase + digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"


WALLET_WORDS = (
    *("abandon", "garden", "olive", "pistol", "river", "satisfy", "tunnel", "velvet", "window", "yellow"),
    *("basket", "candy", "dolphin", "elder", "fabric", "hazard", "ivory", "jungle", "kitten", "lemon"),
)


@dataclass(frozen=True, slots=True)
class Planted:
    kind: str
    text: str
    secret: str
    """What must not be found in the redacted text."""


class Maker:
    """Random parts of secrets."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        """Random letters with at least one digit and one letter among them, as real tokens have."""
        while True:
            made = "".join(self.random.choices(letters, k=length))
            if (
                any(c.isdigit() for c in made)
                and any(c.isalpha() for c in made)
                and len(set(made)) > min(5, length - 2)
            ):
                return made

    def password(self) -> str:
        return self.of(ALNUM, self.random.randint(8, 14)) + self.random.choice("!#*?+=~^")

    def base64(self, length: int) -> str:
        return base64.b64encode(self.random.randbytes(length)).decode()

    def jwt(self) -> str:
        header, payload = (
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in (
                {"alg": "HS256", "typ": "JWT"},
                {"sub": self.of(digits + "ab", 10), "name": self.of(ALNUM, 8)},
            )
        )
        return f"{header}.{payload}.{self.of(URL_SAFE, 43)}"

    def mnemonic(self) -> str:
        return " ".join(self.random.choices(WALLET_WORDS, k=self.random.choice((12, 24))))

    def key_body(self, lines: int = 12) -> str:
        return "\n".join([*(self.of(BASE64, 64) for _ in range(lines)), self.of(BASE64, 22) + "=="])

    def key_block(self, name: str = "RSA ") -> tuple[str, str]:
        body = self.key_body()
        label = f"{name}PRIVATE" + " KEY"
        return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----", body


PREFIXED: dict[str, tuple[str, str, int]] = {
    "github-pat": ("ghp_", ALNUM, 36),
    "github-oauth": ("gho_", ALNUM, 36),
    "github-app": ("ghs_", ALNUM, 36),
    "github-fine-grained": ("github_pat_", ALNUM, 82),
    "gitlab-pat": ("glpat-", URL_SAFE, 20),
    "gitlab-runner": ("glrt-", URL_SAFE, 20),
    "npm": ("npm_", ALNUM, 36),
    "pypi": ("pypi-AgEIcHlwaS5vcmc", URL_SAFE, 120),
    "rubygems": ("rubygems_", HEX, 48),
    "docker-hub": ("dckr_pat_", URL_SAFE, 27),
    "slack-bot": ("xoxb-123456789012-1234567890123-", ALNUM, 24),
    "slack-legacy": ("xoxa-2-", ALNUM, 40),
    "stripe": ("sk_live_", ALNUM, 24),
    "stripe-webhook": ("whsec_", ALNUM, 32),
    "shopify": ("shpat_", HEX, 32),
    "square": ("sq0atp-", URL_SAFE, 22),
    "sendgrid": ("SG.", URL_SAFE, 66),
    "digitalocean": ("dop_v1_", HEX, 64),
    "databricks": ("dapi", HEX, 32),
    "doppler": ("dp.pt.", ALNUM, 43),
    "linear": ("lin_api_", ALNUM, 40),
    "figma": ("figd_", URL_SAFE, 40),
    "postman": ("PMAK-", HEX, 24),
    "aws-access-key": ("AKIA", ascii_uppercase + "234567", 16),
    "google-api-key": ("AIza", URL_SAFE, 35),
    "google-oauth-secret": ("GOCSPX-", URL_SAFE, 28),
    "google-oauth-token": ("ya29.a0", URL_SAFE, 60),
    "openai": ("sk-proj-", URL_SAFE, 90),
    "anthropic": ("sk-ant-api03-", URL_SAFE, 93),
    "openrouter": ("sk-or-v1-", HEX, 64),
    "groq": ("gsk_", ALNUM, 52),
    "hugging-face": ("hf_", ALNUM, 34),
    "replicate": ("r8_", ALNUM, 37),
    "tailscale": ("tskey-auth-", ALNUM, 30),
    "vault": ("hvs.", URL_SAFE, 95),
    "terraform": ("", ALNUM, 14),
    "age": ("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "sentry": ("sntryu_", HEX, 64),
    "pulumi": ("pul-", HEX, 40),
    "newrelic": ("NRAK-", UPPER, 27),
}
PLACES = (
    "the token is {} and it works",
    'token = "{}"',
    "({})",
    "<li>{}</li>",
    "curl -s https://api.service.test/v1 -d key={},mode=1",
    "2026-01-07 12:00:01 INFO using {}, retrying",
    "{}",
    '{{"error": "rejected {}", "code": 401}}',
    "- value: {}\n- other: 1",
)

Made = tuple[str, str]
"""A text, and the secret in it."""


def in_context(m: Maker) -> Iterator[tuple[str, Callable[[], Made]]]:
    """Secrets known by their surroundings, not by their own form."""

    def form(template: str, secret: Callable[[], str]) -> Callable[[], Made]:
        def make() -> Made:
            value = secret()
            return template.replace("{}", value), value

        return make

    yield "bearer-header", form("Authorization: Bearer {}", lambda: m.of(URL_SAFE, 40))
    yield "bearer-header", form('headers={"Authorization": "Bearer {}"}', lambda: m.of(ALNUM, 32))
    yield "bearer-header", form("> authorization: bearer {}\n> accept: */*", lambda: m.of(ALNUM + "._~", 48))
    yield "basic-header", form("Authorization: Basic {}", lambda: m.base64(18))
    yield "basic-header", form('{"authorization":"Basic {}"}', lambda: m.base64(21))
    yield "token-header", form("X-Api-Key: {}", lambda: m.of(ALNUM, 32))
    yield "token-header", form("PRIVATE-TOKEN: {}", lambda: m.of(ALNUM, 20))
    yield "cookie", form("Cookie: theme=dark; session={}", lambda: m.of(ALNUM, 32))
    yield "cookie", form("Set-Cookie: sid={}; Path=/; HttpOnly", lambda: m.of(URL_SAFE, 40))
    yield "url-credentials", form("https://alice:{}@git.host.test/team/repo.git", lambda: m.of(ALNUM, 14))
    yield "url-credentials", form("postgres://app:{}@db.internal:5432/main", m.password)
    yield "url-credentials", form("redis://:{}@10.0.0.5:6379/0", lambda: m.of(ALNUM, 20))
    yield "url-credentials", form("git clone https://{}@host.test/repo", lambda: m.of(ALNUM, 40))
    yield "url-parameter", form("GET /v1/items?access_token={}&page=2", lambda: m.of(ALNUM, 32))
    yield (
        "url-parameter",
        form("https://host.test/blob?sv=2024&sig={}&se=2026", lambda: m.of(ALNUM, 43) + "%3D"),
    )
    yield "jwt", form("token: {}", m.jwt)
    yield "jwt", form('{"id_token":"{}"}', m.jwt)
    yield "password-assignment", form('password = "{}"', m.password)
    yield "password-assignment", form("  DB_PASSWORD: '{}'", m.password)
    yield "password-assignment", form('const dbPassword: string = "{}";', m.password)
    yield "password-assignment", form('{\\"password\\": \\"{}\\"}', m.password)
    yield (
        "password-assignment",
        form("Server=db;User Id=sa;Password={};Encrypt=true", lambda: m.of(ALNUM, 12)),
    )
    yield "environment", form("export API_SECRET={}\nexport MODE=prod", lambda: m.of(ALNUM, 24))
    yield "environment", form("PGPASSWORD={}\n", m.password)
    yield "command-line", form("deploy --user bob --password {} --dry-run", m.password)
    yield "command-line", form("mysql -h db -u root -p{} shop", lambda: m.of(ALNUM, 12))
    yield "command-line", form('["tool", "--api-key", "{}"]', lambda: m.of(ALNUM, 28))
    yield "xml", form("<server><password>{}</password></server>", m.password)
    yield "secret-assignment", form('client_secret = "{}"', lambda: m.of(ALNUM, 32))
    yield "secret-assignment", form("aws_secret_access_key = {}", lambda: m.of(BASE64, 40))
    yield "secret-assignment", form("AccountName=x;AccountKey={};EndpointSuffix=y", lambda: m.base64(64))
    yield "secret-assignment", form("encryption_key: {}", lambda: m.of(HEX, 64))
    yield "name-and-value", form("- name: API_TOKEN\n  value: {}", lambda: m.of(ALNUM, 30))
    yield "npmrc", form("//registry.host.test/:_authToken={}", lambda: m.of(ALNUM, 36))
    yield "netrc", form("machine host.test login bob password {}", m.password)
    yield "docker-config", form('{"auths": {"host.test": {"auth": "{}"}}}', lambda: m.base64(24))
    yield (
        "terraform-default",
        form('variable "db_password" {\n  type    = string\n  default = "{}"\n}', m.password),
    )
    yield "secure-string", form('ConvertTo-SecureString "{}" -AsPlainText -Force', m.password)
    yield "secure-string", form("ConvertTo-SecureString -String '{}' -AsPlainText", m.password)
    yield "setter-call", form('source.setPassword("{}");', m.password)
    yield "setter-call", form("client.with_token('{}')", lambda: m.of(ALNUM, 20))
    yield "fernet", form("FERNET_KEY={}\n", lambda: m.of(URL_SAFE, 43) + "=")
    yield "fernet", form('Fernet(b"{}")', lambda: m.of(URL_SAFE, 43) + "=")
    yield "foreign-name", form("Passwort: {}", m.password)
    yield "foreign-name", form('"contraseña": "{}"', m.password)
    yield "foreign-name", form("пароль={}", m.password)
    yield "default-value", form("process.env.DB_PASSWORD ?? '{}'", m.password)
    yield "default-value", form('os.getenv("API_TOKEN", "{}")', lambda: m.of(ALNUM, 24))
    yield "default-value", form("${DB_PASSWORD:-{}}", lambda: m.of(ALNUM, 12))
    yield "short-name", form('pw = "{}"', m.password)
    yield "short-name", form("db_pw: {}", m.password)
    yield "folded", form("password: >-\n  {}\nuser: bob", m.password)
    yield "folded", form("api_key: |\n  {}\n", lambda: m.of(ALNUM, 32))
    yield (
        "kubernetes",
        form('{"apiVersion": "v1", "data": {"a": "{}"}, "kind": "Secret"}', lambda: m.base64(12)),
    )
    yield "kubernetes", form("kind: Secret\nmetadata:\n  name: x\ndata:\n  a: {}\n", lambda: m.base64(12))
    yield "mnemonic", form('MNEMONIC="{}"', m.mnemonic)
    yield "mnemonic", form("Your recovery phrase: {}\nKeep it safe.", m.mnemonic)
    yield (
        "slack-webhook",
        form(
            "https://hooks.slack.com/services/{}",
            lambda: f"T{m.of(UPPER, 8)}/B{m.of(UPPER, 8)}/{m.of(ALNUM, 24)}",
        ),
    )
    yield (
        "discord-webhook",
        form("https://discord.com/api/webhooks/123456789012345678/{}", lambda: m.of(URL_SAFE, 68)),
    )
    yield (
        "telegram",
        form(
            "bot {} started",
            lambda: (
                m.random.choice("123456789")
                + m.of(digits + "a", 8).replace("a", "1")
                + ":AA"
                + m.of(URL_SAFE, 33)
            ),
        ),
    )
    yield (
        "password-hash",
        form("root:{}:19000:0:99999:7:::", lambda: "$6$" + m.of(ALNUM, 8) + "$" + m.of(ALNUM + "./", 86)),
    )


def key_blocks(m: Maker) -> Iterator[tuple[str, Callable[[], Made]]]:
    """Whole and cut, plain and inside JSON."""

    def whole() -> Made:
        return m.key_block()

    def in_json() -> Made:
        block, body = m.key_block("")
        return json.dumps({"private_key": block + "\n", "type": "service_account"}), body.splitlines()[3]

    def cut_end() -> Made:
        block, body = m.key_block("OPENSSH ")
        return block[: len(block) // 2], body.splitlines()[2]

    def cut_start() -> Made:
        block, body = m.key_block("EC ")
        return block[300:], body.splitlines()[-2]

    def in_listing() -> Made:
        block, body = m.key_block()
        lines = enumerate(block.splitlines()[:8], 1)
        return "\n".join(f"keys/id_rsa:{number}: {line}" for number, line in lines), body.splitlines()[4]

    def in_base64() -> Made:
        encoded = base64.b64encode(m.key_block("")[0].encode()).decode()
        return f"    client-key-data: {encoded}\n", encoded

    yield from (("key-block", make) for make in (whole, in_json, cut_end, cut_start, in_listing, in_base64))


def disguised(m: Maker) -> Iterator[Planted]:
    """Secrets in two literals, and in base64. What must not be found is a part of the secret."""
    for first, joint, last in (
        ("'", "' + '", "'"),
        ('"', '" +\n    "', '"'),
        ('"', '" . "', '"'),
        ("`", "` + `", "`"),
    ):
        token = "ghp_" + m.of(ALNUM, 36)
        cut = m.random.randrange(1, 30)
        text = f"value = {first}{token[:cut]}{joint}{token[cut:]}{last}"
        yield Planted("joined-literals", text, token[cut:])
        password = m.of(ALNUM, 14)
        yield Planted(
            "joined-literals", f"password = {first}{password[:5]}{joint}{password[5:]}{last}", password[5:]
        )
    for text in (
        f"DB_PASSWORD={m.password()}",
        f"https://bob:{m.of(ALNUM, 14)}@host.test/",
        "ghp_" + m.of(ALNUM, 36),
    ):
        encoded = base64.b64encode(text.encode()).decode()
        yield Planted("base64", f"value: {encoded}", encoded.rstrip("="))


def planted(seed: int = 1) -> Iterator[Planted]:
    """The whole set, the same for the same seed."""
    m = Maker(seed)
    for kind, (prefix, letters, length) in PREFIXED.items():
        for place in m.random.sample(PLACES, 2):
            token = prefix + m.of(letters, length)
            if kind == "terraform":
                token += ".atlasv1." + m.of(ALNUM, 64)
            elif kind == "postman":
                token += "-" + m.of(HEX, 34)
            elif kind == "newrelic":
                place = "new_relic_key = {}"
            yield Planted(kind, place.format(token), token)
    for kind, make in (*in_context(m), *key_blocks(m)):
        for _ in range(2):
            yield Planted(kind, *make())
    yield from disguised(m)
