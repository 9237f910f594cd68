"""Secrets in text, lines and values are replaced and everything else is kept."""

from __future__ import annotations

import json

import pytest

from benchmarks.redaction_secrets import ALNUM, Maker
from retinue.redaction import SecretRedactor

MADE = Maker(11)
PAT = "ghp_" + MADE.of(ALNUM, 36)
PASSWORD = MADE.password()
KEY_BLOCK, KEY_BODY = MADE.key_block()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"src/app.py:42: token is {PAT} here", "src/app.py:42: token is [redacted:github-pat] here"),
        ("https://bob:" + PASSWORD + "@host.test/a?b=1", "https://[redacted:url-credentials]@host.test/a?b=1"),
        ("https://user:pass@host.test/", "https://[redacted:url-credentials]@host.test/"),
        (f"Authorization: Basic {PAT[4:]}\n", "Authorization: Basic [redacted:authorization-header]\n"),
        (f'db_password = "{PASSWORD}"  # prod', 'db_password = "[redacted:password]"  # prod'),
        (f"GET /x?access_token={PAT[4:]}&page=2", "GET /x?access_token=[redacted:url-parameter]&page=2"),
        (
            f"https://hooks.slack.com/services/T0{PAT[4:12].upper()}/B1/{PAT[4:28]} ok",
            "https://hooks.slack.com/services/[redacted:webhook-url] ok",
        ),
    ],
)  # fmt: skip
def test_only_the_secret_is_replaced(redactor: SecretRedactor, text: str, expected: str) -> None:
    """P6: readers need the reference, the host, and the names of headers and variables."""
    assert redactor.redact(text) == expected


@pytest.mark.parametrize(
    "template",
    [
        "password: {}",
        "--password={}",
        "SMTP_PASS={}",
        "ansible_ssh_pass: {}",
        'dbPass = "{}"',
        "pass: '{}'",
        "spring.datasource.password={}",
        "the password is {}.",
        "define('DB_PASSWORD', '{}');",
        'os.environ["PASSWORD"] = "{}"',
        '<input type="password" value="{}">',
        "<password>{}</password>",
        "Authorization: Bearer {}",
        "Server=db;Password={};",
        "password: str = '{}'",
        "password=&quot;{}&quot;",
        "curl -u admin:{} https://host.test/",
    ],
)
def test_weak_password_is_found_by_its_name(redactor: SecretRedactor, template: str) -> None:
    """P6: passwords are short, so their names identify them."""
    assert "hunter2" not in redactor.redact(template.format("hunter2"))


@pytest.mark.parametrize(
    "text",
    [
        KEY_BLOCK,
        KEY_BLOCK.replace("\n", "\r\n"),
        json.dumps({"private_key": KEY_BLOCK}),
        json.dumps(json.dumps({"private_key": KEY_BLOCK})),
        KEY_BLOCK[:400],
        json.dumps(KEY_BLOCK)[:400],
        KEY_BLOCK[300:],
        json.dumps(KEY_BLOCK)[300:],
        "\n".join(f"  {line}" for line in KEY_BLOCK.splitlines()),
        "\n".join(f"# {line}" for line in KEY_BLOCK.splitlines()[:7]),
        "\n".join(f"keys/id_rsa:{number}:{line}" for number, line in enumerate(KEY_BLOCK.splitlines()[:7])),
        KEY_BLOCK.replace("-----\nM", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\nM")[:500],
    ],
)
def test_private_key_is_hidden_whole_cut_or_escaped(redactor: SecretRedactor, text: str) -> None:
    """P6: no part of the key is left, wherever the text was cut."""
    redacted = redactor.redact(text)
    assert "[redacted:private-key]" in redacted
    for line in KEY_BODY.splitlines():
        assert not any(line[at : at + 20] in redacted for at in range(len(line) - 19))


def test_text_after_a_cut_key_is_kept(redactor: SecretRedactor) -> None:
    """P6: hiding too much would hide the answer."""
    text = f"{KEY_BLOCK[:360]}\n\nThe key above is loaded by src/app/settings.py:12."
    assert redactor.redact(text).endswith("\n\nThe key above is loaded by src/app/settings.py:12.")


def test_every_entry_of_a_kubernetes_secret_is_hidden(redactor: SecretRedactor) -> None:
    """P6: entries are secret whatever their names; other documents in the file are not."""
    values = [MADE.base64(12) for _ in range(3)]
    manifest = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n" + "".join(
        f"  entry-{number}: {value}\n" for number, value in enumerate(values)
    )
    config = "---\nkind: ConfigMap\ndata:\n  mode: production\n"
    redacted = redactor.redact(manifest + config)
    assert not any(value in redacted for value in values)
    assert redacted.endswith(config)
    assert "name: db" in redacted


def test_longer_token_is_hidden_completely(redactor: SecretRedactor) -> None:
    """P6: rules have a minimum length, and providers make their tokens longer over time."""
    assert redactor.redact(f"use {PAT}XtraTail99 now") == "use [redacted:github-pat] now"


def test_redacting_twice_changes_nothing(redactor: SecretRedactor) -> None:
    """P6: text is redacted in more than one place."""
    text = f'{PAT} password="{PASSWORD}" {KEY_BLOCK} https://a:{PASSWORD}@h.test token={PAT}'
    once = redactor.redact(text)
    assert redactor.redact(once) == once


def test_marker_is_not_the_name_of_what_follows_it(redactor: SecretRedactor) -> None:
    """P6: in `[redacted:password-hash]:19000:0`, 19000 is a date. Only the secret is hidden."""
    crypt = f"$6${MADE.of(ALNUM, 8)}${MADE.of(ALNUM, 86)}"
    shown = redactor.redact(f"root:{crypt}:19000:0:99999:7:::")
    assert shown == "root:[redacted:password-hash]:19000:0:99999:7:::"
    assert redactor.redact(shown) == shown
    assert redactor.redact("[redacted:secret]=a1b2c3d4e5f6g7h8") == "[redacted:secret]=a1b2c3d4e5f6g7h8"


def test_imitated_marker_does_not_protect_a_secret(redactor: SecretRedactor) -> None:
    """P6: a token that looks like a marker is hidden too."""
    assert PAT not in redactor.redact(f"[redacted:{PAT}]")


def test_text_in_other_scripts_is_kept(redactor: SecretRedactor) -> None:
    """P6: characters are never split, and text that cannot be encoded does not fail."""
    assert redactor.redact(f"токен: «{PAT}» 終わり\ud800") == "токен: «[redacted:github-pat]» 終わり\ud800"


def test_hidden_values_are_replaced_in_every_encoding() -> None:
    """P6: the environment values of a child are hidden plain and escaped."""
    value = 'p&ss"wörd/1'
    redactor = SecretRedactor(hidden=[value])
    forms = [
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        "p%26ss%22w%C3%B6rd%2F1",
        "p&amp;ss&quot;wörd/1",
    ]
    assert [redactor.redact(form).strip('"') for form in forms] == ["[redacted:hidden-value]"] * len(forms)


def test_overlapping_hidden_values_leave_no_part() -> None:
    """P6: hiding one value must not leave the rest of another."""
    assert (
        SecretRedactor(hidden=["abcdef", "defghi"]).redact("x abcdefghi y") == "x [redacted:hidden-value] y"
    )


def test_short_hidden_values_are_ignored_and_more_can_be_added() -> None:
    """P6: "true" and "8080" occur by chance; a run adds the values it receives."""
    redactor = SecretRedactor(hidden=["true", "8080", ""])
    assert redactor.redact("true 8080") == "true 8080"
    assert redactor.redact("some plain words") == "some plain words"
    redactor.hide(["plain words"])
    assert redactor.redact("some plain words") == "some [redacted:hidden-value]"


def test_values_keep_their_shape(redactor: SecretRedactor) -> None:
    """P6: results are JSON; only strings change."""
    value = {
        "password": PASSWORD,
        "nested": [{"note": f"uses {PAT}"}, 1, 2.5, None, True],
        "tokens": 1200,
        PAT: "a key can be a secret too",
    }
    assert redactor.redact_value(value) == {
        "password": "[redacted:password]",
        "nested": [{"note": "uses [redacted:github-pat]"}, 1, 2.5, None, True],
        "tokens": 1200,
        "[redacted:github-pat]": "a key can be a secret too",
    }


def test_secret_keys_stay_separate_members(redactor: SecretRedactor) -> None:
    """P6: two hidden keys are still two members."""
    other = "ghp_" + MADE.of(ALNUM, 36)
    assert list(redactor.redact_value({PAT: 1, other: 2}).values()) == [1, 2]


@pytest.mark.parametrize(
    "value",
    [
        {"name": "DB_PASSWORD", "value": PASSWORD},
        {"headers": [{"name": "Authorization", "value": f"Bearer {PAT[4:]}"}]},
        ["tool", "--password", PASSWORD],
        ("tool", f"--password={PASSWORD}"),
        {"api_key": [PAT[4:]]},
        {"client_secret": PAT[4:]},
    ],
)
def test_value_is_secret_by_its_name(redactor: SecretRedactor, value: object) -> None:
    """P6: in structured results the name is separate from the value."""
    redacted = json.dumps(redactor.redact_value(value))
    assert PASSWORD not in redacted
    assert PAT[4:] not in redacted


KIND = "RSA PRIVATE" + " KEY"
KEY = [f"-----BEGIN {KIND}-----", "MIIEpAIBAAKCAQEAx" * 4, "q83vEjRWeJCrze8=", f"-----END {KIND}-----"]


def test_lines_stay_separate_and_all_lines_of_a_key_are_hidden(redactor: SecretRedactor) -> None:
    """P6: a reader of a file needs the numbers of its lines."""
    shown = redactor.redact_lines(["before", *KEY, "", "after"])
    marker = "[redacted:private-key]"
    assert shown == ["before", KEY[0], marker, marker, KEY[3], "", "after"]


def test_key_on_one_line_is_hidden_too(redactor: SecretRedactor) -> None:
    whole = "\\n".join(KEY)
    assert KEY[1] not in redactor.redact(f"key: {whole} and more")
