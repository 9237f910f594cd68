"""The policy hides secrets in every spelling (P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Policy
from retinue.codebase.access.policy import PolicyRules, fold_name, is_unsafe_on_windows
from retinue.core import ConfigInvalid, Root
from tests.codebase.file_support import create_root, visible_files


@pytest.fixture
def rules(tmp_path: Path) -> PolicyRules:
    return Policy().rules_for(Root.at(tmp_path))


@pytest.mark.parametrize(
    "path",
    [
        *(".env", ".env.local", ".env.production", ".envrc", "prod.env", "deep/er/.env"),
        *(".ssh/config", "home/.ssh/known_hosts", ".aws/credentials", ".gnupg/trustdb", ".kube/config"),
        *("id_rsa", "id_ed25519.pub", "keys/server.key", "tls.pem", "store.p12", "app.keystore", "a.kdbx"),
        *(".netrc", "_netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".htpasswd"),
        *("credentials", "credentials.json", ".credentials.json", "secrets.yaml", "config/secret.toml"),
        *("client_secret_1.json", "service-account-prod.json", "terraform.tfstate", "prod.tfvars"),
        *(".config/gh/hosts.yml", "x/.config/gcloud/a", ".docker/config.json", "rootfs/etc/shadow"),
        *(".git/config", "sub/.git", ".hg/hgrc", ".bash_history", ".psql_history"),
        *(
            "secrets/prod.txt",
            "secrets/db_password",
            "deploy/Secrets/app.yaml",
            ".secrets/token",
            "a/secret/x",
        ),
    ],
)
def test_secrets_are_hidden_by_default(rules: PolicyRules, path: str) -> None:
    """P6"""
    assert rules.hides(path)


@pytest.mark.parametrize(
    "path",
    [
        *("environment.py", "env.py", "src/env/config.ts", "credentials/aws.ts", "src/credentials.py"),
        *("secrets.py", "secret_santa.md", "docs/ssh.md", ".github/workflows/ci.yml", ".gitignore"),
        *("keyboard.py", "monkey.txt", "cookies/jar.py", ".docker/Dockerfile", "tests/test_netrc.py"),
        *("secrets/vault.go", "src/airline/secrets/backend.py", "src/secret/Reader.java"),
        *(".env.example", ".env.sample", ".env.template", ".env.dist", ".env.production.example"),
    ],
)
def test_source_code_and_examples_are_not_mistaken_for_secrets(rules: PolicyRules, path: str) -> None:
    """P10: files that are hidden by mistake cannot be found."""
    assert not rules.hides(path)


@pytest.mark.parametrize(
    "spelling",
    [
        *(".ENV", ".Env.Local", ".env.", ".env ", ".env. .", ".SSH/config", ".Aws/x", "ID_RSA"),
        *(".ｅｎｖ", "․env", ".\u200benv", ".e\u200cnv", ".ſſh/config", ".git\u200d/config", ".ENV\u00ad"),
    ],
)
def test_case_unicode_and_trailing_dots_do_not_reveal_a_secret(rules: PolicyRules, spelling: str) -> None:
    """P6"""
    assert rules.hides(spelling)


def test_a_folder_named_like_a_secret_file_is_shown(tmp_path: Path) -> None:
    """P10"""
    root = create_root(tmp_path, {"credentials/a.py": "", "src/credentials": ""})
    assert visible_files(root) == ["credentials/a.py"]


def test_allow_makes_exceptions_and_deny_wins_over_it(tmp_path: Path) -> None:
    """P6, P8"""
    names = [".env", ".env.test", "a.sql", "b.sql", "data/private/x.txt", "lib/data/private/y.txt"]
    root = create_root(tmp_path, dict.fromkeys([*names, ".kube/config"], ""))
    policy = Policy(deny=("*.SQL", "data/private", ".env.test"), allow=(".env*", "a.sql", ".kube"))
    assert visible_files(root, policy) == [".env", ".kube/config", "lib/data/private/y.txt"]


def test_deny_and_allow_must_be_globs(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid):
        Policy(deny=("{a",)).rules_for(Root.at(tmp_path))


def test_a_size_limit_below_one_is_refused() -> None:
    with pytest.raises(ConfigInvalid):
        Policy(max_file_bytes=0)


@pytest.mark.parametrize("system", ["/proc", "/proc/self", "/sys", "/dev", "/etc"])
def test_a_system_folder_cannot_be_a_root(system: str) -> None:
    """P6"""
    if not Path(system).is_dir():
        pytest.skip(f"this system has no {system}")
    with pytest.raises(ConfigInvalid) as refused:
        Policy().rules_for(Root(Path(system).resolve()))
    assert system not in str(refused.value.as_dict())


def test_a_system_folder_inside_a_root_is_hidden_whatever_is_allowed() -> None:
    """P6"""
    rules = Policy(allow=("**", "*")).rules_for(Root(Path("/run")))
    assert rules.hides("secrets/token")
    assert rules.hides("credentials/unit/password")
    assert not rules.hides("media/disk/a.py")


def test_a_closed_folder_inside_a_root_is_hidden_whatever_is_allowed(tmp_path: Path) -> None:
    """P6: its name may contain characters that are special in globs."""
    root = create_root(
        tmp_path, {"a.py": "", "x/[own] data/runs.db": "", "x/[own] data/b/c.md": "", "own/d.py": ""}
    )
    policy = Policy(allow=("**", "*"), closed=(tmp_path.resolve() / "x/[own] data",))
    assert visible_files(root, policy) == ["a.py", "own/d.py"]
    rules = policy.rules_for(Root.at(tmp_path))
    assert rules.hides("x/[own] data", folder=True)
    assert rules.hides("X/[OWN] Data/b/c.md")


def test_a_closed_folder_cannot_be_a_root(tmp_path: Path) -> None:
    """P6"""
    with pytest.raises(ConfigInvalid) as refused:
        Policy(closed=(tmp_path.resolve(),)).rules_for(Root.at(tmp_path))
    assert str(tmp_path) not in str(refused.value.as_dict())


@pytest.mark.parametrize(
    "name", ["con", "aux.txt", "nul", "com1", "lpt9.log", "file.txt:stream", "a:b", "envfil~1", "env~1.loc"]
)
def test_names_with_another_meaning_on_windows_are_unsafe_only_there(name: str) -> None:
    """P6: on other systems `aux.c` is an ordinary source file."""
    assert is_unsafe_on_windows(name, windows=True)
    assert not is_unsafe_on_windows(name, windows=False)


def test_ordinary_names_are_safe_on_windows() -> None:
    for name in ("console.py", "auxiliary", "a~b", "x.con"):
        assert not is_unsafe_on_windows(name, windows=True)


def test_folding_a_name_twice_changes_nothing() -> None:
    for name in (".ENV", "Ｅnv", "ﬀ", "ẞ", "İ", "...", ". ", "a.b."):
        assert fold_name(fold_name(name)) == fold_name(name)
