"""Ordinary strings that look like secrets to a careless rule and must come through unchanged."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ordinary:
    kind: str
    text: str


FIXED: dict[str, tuple[str, ...]] = {
    "code about passwords": (
        "password = get_password()",
        "password = getpass.getpass('Password: ')",
        "self.password = password",
        "user.set_password(form.cleaned_data['password1'])",
        "if password != password2: raise ValueError('passwords differ')",
        "def login(username: str, password: str) -> None: ...",
        "token: str | None = None",
        "api_key=os.environ['OPENAI_API_KEY']",
        'api_key = os.getenv("API_KEY", "")',
        "const token = await fetchToken(config.auth.url);",
        "let secret = process.env.CLIENT_SECRET;",
        "return jwt.decode(token, key, algorithms=['HS256'])",
        "PASSWORD_FIELD = 'password'",
        "PASSWORD_MIN_LENGTH = 12",
        'TOKEN_TYPE = "bearer"',
        "password: SecretStr = Field(min_length=8)",
        "  password: string;",
        "  passwordHash: string | null;",
        "private String password;",
        "var password string",
        "type Secret struct { Name string; Token []byte }",
        "token := scanner.Next()",
        "tokens = tokenizer.encode(text, add_special_tokens=False)",
        "max_tokens=4096, token_budget=2000",
        "for token in doc: print(token.text, token.pos_)",
        "key = f'{namespace}:{user_id}:{version}'",
        "cache_key = hashlib.sha256(payload).hexdigest()",
        "sorted(items, key=lambda item: item.created_at)",
        "primary_key=True, foreign_key='users.id'",
        "assert response.json()['access_token'] is not None",
        "headers = {'Authorization': f'Bearer {token}'}",
        'req.Header.Set("Authorization", "Bearer "+token)',
        'curl -H "Authorization: Bearer $TOKEN" https://api.host.test/v1/items',
        "auth=(username, password)",
        "new Password({ required: true, minlength: 8 })",
        "password_validators = ['django.contrib.auth.password_validation.MinimumLengthValidator']",
        "secret_name = 'db-credentials-v2'",
        "SecretKeySelector(name='api', key='token')",
        "credentials = service_account.Credentials.from_service_account_file(path)",
        "export const selectToken = (state) => state.auth.token;",
        "case TokenKind.Identifier2: return parseIdentifier();",
        "if (password.length < 8 || !/[0-9]/.test(password)) return 'weak';",
        "password = Column(String(128), nullable=False)",
        "#define TOKEN_STRING 258",
        "%token <str> IDENTIFIER STRING_LITERAL",
        "access_token_url='https://auth.host.test/oauth/v2/token'",
    ),
    "calls, defaults and joined literals": (
        'user.set_password("password")',
        "client.setToken(token);",
        'builder.withPassword("${db.password}")',
        'const token = process.env.TOKEN ?? "";',
        "const secret = config.secret || 'development';",
        'password = os.getenv("DB_PASSWORD", "")',
        'os.environ.get("TOKEN_FILE", "/run/secrets/token")',
        '"${DB_PASSWORD:-changeme}"',
        'message = "The password " + "is missing"',
        'url = "https://host.test/" + "reset/token"',
        "password: >-\n  Enter the password of the account",
        'variable "db_password" {\n  type      = string\n  sensitive = true\n}',
        "$secure = ConvertTo-SecureString $plain -AsPlainText -Force",
        "the mnemonic of the instruction names what the processor does with both of its operands here",
        "Passwort: ********",
        "Contraseña incorrecta",
        'msgstr "Пароль: %s"',
        "kind: ConfigMap\ndata:\n  mode: production",
        '{"kind": "ConfigMap", "data": {"mode": "production"}}',
        "pw_hash = bcrypt.hashpw(pw, salt)",
        "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==",
    ),
    "placeholder": (
        "api_key = '<your-api-key>'",
        "token: YOUR_TOKEN_HERE",
        "password=changeme",
        'password: "********"',
        "TOKEN=xxxxxxxxxxxxxxxx",
        "secret: ${SECRET}",
        "password: {{ vault_db_password }}",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "DB_PASSWORD=$(cat /run/secrets/db)",
        "password = %(db_password)s",
        "Authorization: Bearer <token>",
        "Authorization: Bearer {access_token}",
        "https://user:${PASSWORD}@host.test/path",
        "postgres://{user}:{password}@{host}/{name}",
        "export GITHUB_TOKEN=...",
        "--token <TOKEN>",
        "password: null",
        'client_secret: "your-client-secret"',
        "API_KEY=example-api-key",
        "sk-...",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    "i18n": (
        '"password": "Passwort"',
        '"password": "Mot de passe"',
        '"password": "contraseña"',
        '"password": "パスワード"',
        '"enterPassword": "Enter your password"',
        '"token_expired": "Your token has expired, sign in again."',
        'msgid "Password"\nmsgstr "Hasło"',
        '"secret": "Geheimnis"',
        '"forgot_password": "Forgot password?"',
    ),
    "css and markup": (
        ".token.keyword { color: #07a; }",
        ".sk-circle-fade-dot { animation-delay: -1.1s; }",
        '<input type="password" name="password" autocomplete="current-password">',
        '<label for="api-key">API key</label>',
        ".btn-secret:hover{background:#1a2b3c4d;transition:all .15s ease-in-out}",
        '<a href="/password/reset?step=2">Reset your password</a>',
        '<svg viewBox="0 0 24 24"><path d="M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10z"/></svg>',
        "<password>${db.password}</password>",
        "@media (min-width:768px){.col-md-6{flex:0 0 50%;max-width:50%}}",
    ),
    "url": (
        "https://host.test/path?id=42&page=2#section",
        "https://github.com/owner/repo/blob/9fceb02d0ae598e95dc970b74767f19372d61af8/src/main.py#L10-L20",
        "git@github.com:owner/repo.git",
        "ssh://git@host.test:2222/team/repo.git",
        "git+ssh://git@github.com/owner/repo.git#v1.2.3",
        "mailto:first.last@host.test",
        "Contact: Jane Doe <jane.doe@host.test>",
        "http://localhost:8080/health",
        "https://host.test:8443/a@b/c",
        "redis://localhost:6379/0",
        "postgresql://localhost/test_db",
        "s3://bucket-name/path/to/object-2024-01-01.parquet",
        "https://cdn.host.test/npm/package@1.2.3/dist/index.min.js",
        "https://www.host.test/watch?v=dQw4w9WgXcQ&list=PL9tY0BWXOZFu",
        "arn:aws:iam::123456789012:role/service-role/my-role-1a2b3c",
        "https://host.test/reset?token={token}",
        "file:///home/user/project/config.yaml",
    ),
    "prose": (
        "The bearer token is sent in the Authorization header.",
        "Basic authentication is not supported; use bearer tokens.",
        "Set the password with --password or the PASSWORD variable.",
        "A private key is generated on first start.",
        "Rotate your API keys every 90 days.",
        "The secret of good tests: name them by their outcome.",
        "See src/retinue/core/errors.py:42 for the tree of errors.",
        "Token usage: 1234 prompt, 567 completion.",
        "The key is to keep functions small.",
        "Error: invalid token at line 12, column 8",
        "access denied: user has no permission api:write",
        "cookies are small pieces of data; see Set-Cookie",
        "login failed: password incorrect for user root",
    ),
    "public key material": (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPl0Zg1cKk5yUq0Vg5z0XbZ7c8x2m1n4v6b8a9s0d1f2 user@host",
        "SHA256:uNiVztksCsDhcc0u9e8BrqhLYHiVSp2kXgb4Vp0Wm7E",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQ\n-----END CERTIFICATE-----",
        "Public key fingerprint: 43:51:43:a1:b5:fc:8b:b7:0a:3a:a9:b1:0f:66:73:a8",
        'if line.startswith("-----BEGIN RSA PRIVATE' + ' KEY-----"):',
    ),
    "test identifier": (
        "def test_token_is_refreshed_after_401_response(client): ...",
        "it('rejects password shorter than 8 characters', async () => {",
        "TestLoginWithPasswordAndToken2FA/valid_token_1",
        "@pytest.mark.parametrize('password', ['short', 'nodigits'])",
        "expect(wrapper.find('[data-testid=password-input]').exists()).toBe(true)",
        "fixture_token_v2 = load('token_v2.json')",
        "token1, token2 = make_token(), make_token()",
    ),
    "configuration": (
        "token_file: /var/run/secrets/kubernetes.io/serviceaccount/token",
        "secretName: web-tls-2024",
        "password_policy: strict-v2",
        "key: app.kubernetes.io/name",
        "access_log: /var/log/nginx/access.log",
        "ssl_certificate_key /etc/ssl/private/host.key;",
        "auth_type: oauth2",
        "TOKEN_LIFETIME_SECONDS=86400",
        "API_KEY_HEADER=X-Api-Key",
        "PWD=/home/user/project2",
        "keyboard_layout: en-US-2",
        "authors = [{name = 'Jane Doe', email = 'jane@host.test'}]",
        "  - name: checkout\n    uses: actions/checkout@b4ffde65f46336ab88eb53be808477a3936bae11",
        "image: host.test/app@sha256:9b2a5c3c1f0e6d7b8a9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f1a",
        "cache-key: node-modules-v3-linux",
        "keytool -list -keystore release.jks",
        "X-Request-Id: 7f3c2d10-3a55-4a9e-9f51-0a8f6d2b7c11",
        'ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
        "Cookie: theme=dark; lang=en",
    ),
}


def sha(length: int) -> Callable[[random.Random], str]:
    return lambda chance: hashlib.sha512(chance.randbytes(16)).hexdigest()[:length]


def b64(size: int) -> Callable[[random.Random], str]:
    return lambda chance: base64.b64encode(chance.randbytes(size)).decode()


def new_uuid(chance: random.Random) -> str:
    return str(uuid.UUID(bytes=chance.randbytes(16), version=4))


def minified(chance: random.Random) -> str:
    names = [chr(97 + chance.randrange(26)) + chance.choice(["", "e", "n", "_", "1"]) for _ in range(8)]
    a, b, c, d, e, f, g, h = names
    return (
        f"!function({a},{b}){{var {c}={{token:{d},key:{e}.key}},{f}=Object.create(null);"
        f"for(var {g}=0;{g}<{a}.length;{g}++)if({a}[{g}].type==={b}.secret&&!{f}[{a}[{g}].id])"
        f'{f}[{a}[{g}].id]={c}.token?{h}({a}[{g}],"{chance.randrange(10**6)}"):void 0;return {f}}}(this,{h});'
    )


TEMPLATES: dict[str, tuple[tuple[str, ...], Callable[[random.Random], str]]] = {
    "git sha": (
        (
            "commit {}",
            "Merge: {} into main",
            "index {}..0000000 100644",
            "HEAD is now at {} Fix the parser",
            '"gitHead": "{}"',
            "rev: {}",
            "github.com/owner/repo@{}",
            "Fixes regression introduced in {}.",
            "{} refs/tags/v1.0.0",
        ),
        sha(40),
    ),
    "short sha": (("{} Add the tests", "build-{}.log", "app.{}.js", "main-{}.css", "image: app:{}"), sha(8)),
    "uuid": (
        (
            "id: {}",
            '{{"run_id": "{}", "status": "done"}}',
            "/api/items/{}/comments",
            "request {} took 12 ms",
            "urn:uuid:{}",
            "INSERT INTO runs VALUES ('{}', 3);",
            "<ProjectGuid>{{{}}}</ProjectGuid>",
        ),
        new_uuid,
    ),
    "lock file hash": (
        (
            'checksum = "{}"',
            '{{file = "pkg-1.0.tar.gz", hash = "sha256:{}"}}',
            "    --hash=sha256:{} \\",
            "{}  package.tar.gz",
            'sha256 = "{}"',
            "digest: sha256:{}",
            "resolution: {{integrity: sha256-{}}}",
        ),
        sha(64),
    ),
    "integrity": (
        (
            '"integrity": "sha512-{}"',
            "      integrity: sha512-{}",
            '<script src="/a.js" integrity="sha512-{}" crossorigin="anonymous"></script>',
            "github.com/pkg/errors v0.9.1 h1:{}",
            'outputHash = "sha512-{}";',
        ),
        b64(64),
    ),
    "base64 image": (
        (
            "data:image/png;base64,{}",
            '<img alt="" src="data:image/gif;base64,{}">',
            "background-image:url(data:image/svg+xml;base64,{})",
            "![logo](data:image/jpeg;base64,{})",
            '@font-face{{src:url("data:font/woff2;base64,{}")}}',
            '{{"type": "image", "mimeType": "image/png", "data": "{}"}}',
        ),
        b64(600),
    ),
    "minified code": (("{}", "/*! lib v1.2.3 */{}", "(()=>{{{}}})();"), minified),
    "hex": (("color: #{};", "0x{}", "\\x{}", "trace_id={}", "span {} ended"), sha(16)),
    "md5": (("MD5 ({}) ok", "{}  file.iso", 'ETag: W/"{}"', "gravatar.com/avatar/{}?s=80"), sha(32)),
    "number": (
        ("1760000{}", "ISBN 978-3-16-{}", "offset={}&limit=50", "{} bytes"),
        lambda c: str(c.randrange(10**6, 10**8)),
    ),
}


def ordinary(seed: int = 1, per_template: int = 4) -> Iterator[Ordinary]:
    """The whole set, the same for the same seed."""
    chance = random.Random(seed)
    for kind, texts in FIXED.items():
        yield from (Ordinary(kind, text) for text in texts)
    for kind, (templates, value) in TEMPLATES.items():
        for template in templates:
            for _ in range(per_template):
                yield Ordinary(kind, template.format(value(chance)))
