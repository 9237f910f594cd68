"""The policy: what inside a root may be read. Decides by names and sizes alone; opens nothing.

Names are compared as the most lenient file system would: regardless of case, Unicode variants, and trailing
dots and spaces. So a spelling that reaches a hidden file on one system is refused on every system.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.codebase.access.globs import glob_matcher
from retinue.core import ConfigInvalid, InvalidInput, Root

SYSTEM_FOLDERS = tuple(
    Path(path)
    for path in (
        *("/proc", "/sys", "/dev", "/etc", "/boot", "/run/secrets", "/run/credentials"),
        *("/private/etc", "/System", "/Library/Keychains", "C:/Windows"),
    )
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The user's rules. `deny` wins over `allow`, and `allow` wins over the built-in list of secrets."""

    deny: tuple[str, ...] = ()
    """Globs of more files to hide: a name at any depth (`*.sql`) or a path from the root (`data/private`)."""
    allow: tuple[str, ...] = ()
    """Globs of built-in secrets that may be read. Allowing a folder allows everything in it."""
    max_file_bytes: int = 1_048_576
    """Larger files are not opened: they are generated code or data."""
    closed: tuple[Path, ...] = ()
    """Folders that are never read, whatever `allow` says. Absolute paths without links."""

    def __post_init__(self) -> None:
        if self.max_file_bytes < 1:
            raise ConfigInvalid(f"max_file_bytes must be at least 1, not {self.max_file_bytes}")

    def rules_for(self, root: Root) -> PolicyRules:
        """Prepare the policy for one root. Raises ConfigInvalid."""
        try:
            return PolicyRules(self, root)
        except InvalidInput as error:
            raise ConfigInvalid(f"deny or allow: {error.message}", hint=error.hint) from None


class _Globs(Protocol):
    @property
    def deny(self) -> tuple[str, ...]: ...
    @property
    def allow(self) -> tuple[str, ...]: ...


class _Limits(Protocol):
    @property
    def max_file_bytes(self) -> int: ...


class ReadingSettings(Protocol):
    """The settings that decide which files may be read. `config.Settings` has them."""

    @property
    def policy(self) -> _Globs: ...
    @property
    def limits(self) -> _Limits: ...
    @property
    def data_dir(self) -> Path: ...


def reading_policy(settings: ReadingSettings) -> Policy:
    """Return the policy of the settings. The data folder is closed, because its logs quote tasks."""
    globs = settings.policy
    closed = (settings.data_dir.resolve(),)
    return Policy(globs.deny, globs.allow, settings.limits.max_file_bytes, closed=closed)


class PolicyRules:
    """A policy prepared for one root. A walk checks tens of thousands of paths with it."""

    def __init__(self, policy: Policy, root: Root) -> None:
        if any(root.path == system or system in root.path.parents for system in SYSTEM_FOLDERS):
            raise ConfigInvalid(
                "a folder of the operating system cannot be a root", hint="name a project directory"
            )
        if root.path in policy.closed:
            raise ConfigInvalid(
                "a root cannot be the data folder",
                hint="name a project directory, or set another data_dir",
            )
        self.max_file_bytes = policy.max_file_bytes
        inside = [
            folder.relative_to(root.path)
            for folder in (*SYSTEM_FOLDERS, *policy.closed)
            if root.path in folder.parents
        ]
        self._closed = frozenset("/".join(map(fold_name, path.parts)) for path in inside)
        self._closed_names = frozenset(fold_name(path.name) for path in inside)
        self._deny = _FoldedGlobs(policy.deny)
        self._allow = _FoldedGlobs((*policy.allow, *EXAMPLE_ENV_FILES))
        self._secret = _FoldedGlobs(SECRET_NAMES)
        self._secret_file = _FoldedGlobs(FILE_ONLY_SECRETS)
        self._is_code = glob_matcher(CODE_FILES)
        # Names repeat (every package has an __init__.py) and few rules apply, so each name is checked once.
        self.may_apply_to = functools.lru_cache(maxsize=65_536)(self._may_apply_to)
        """Return whether a rule may apply to a path that contains this name. Cheaper than `hides`."""

    def hides(self, path: str, *, folder: bool = False) -> bool:
        """Return whether a root-relative path, or a folder above it, is hidden."""
        names = path.split("/")
        if not any(map(self.may_apply_to, names)):
            return False
        names = [fold_name(name) for name in names]
        hidden = allowed = False
        for count, name in enumerate(names, 1):
            so_far = "/".join(names[:count])
            if is_unsafe_on_windows(name) or so_far in self._closed or self._deny.match(so_far, name):
                return True
            allowed = allowed or self._allow.match(so_far, name)
            hidden = hidden or self._secret.match(so_far, name)
        if not folder:
            hidden = hidden or self._secret_file.match("/".join(names), names[-1])
            in_secrets = not SECRETS_FOLDERS.isdisjoint(names[:-1])
            hidden = hidden or (in_secrets and not self._is_code(names[-1]))
        return hidden and not allowed

    def _may_apply_to(self, name: str) -> bool:
        folded = fold_name(name)
        rules = (self._deny, self._secret, self._secret_file)
        if is_unsafe_on_windows(folded) or folded in self._closed_names or folded in SECRETS_FOLDERS:
            return True
        return any(globs.could_match(folded) for globs in rules)


class _FoldedGlobs:
    """Globs over folded paths.

    A glob without `/` matches a name at any depth; any other glob matches a path from the root.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        folded = ["/".join(map(fold_name, glob.split("/"))).rstrip("/") for glob in globs]
        names = [glob for glob in folded if "/" not in glob]
        paths = [glob.removeprefix("/") for glob in folded if "/" in glob]
        self._matches_name = glob_matcher(*names)
        self._matches_path = glob_matcher(*paths)
        self.could_match = glob_matcher(*names, *(path.rpartition("/")[2] for path in paths))
        """Return whether a glob may match a path that ends in this name."""

    def match(self, path: str, name: str) -> bool:
        return self._matches_name(name) or self._matches_path(path)


def fold_name(name: str) -> str:
    """Return the same spelling for all names that the most lenient file systems treat as equal."""
    if name.isascii():
        folded = name.lower()
    else:
        # NFKC unifies look-alikes such as full-width letters. HFS+ ignores format characters.
        visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return folded.rstrip(". ") or folded


WINDOWS_DEVICES = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"}) | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}


def is_unsafe_on_windows(name: str, windows: bool = sys.platform == "win32") -> bool:
    """Return whether a name means something else on Windows: a device, a stream, or an 8.3 alias."""
    if not windows:
        return False
    stem, _, alias = name.partition(".")[0].partition("~")
    return ":" in name or stem.rstrip(" ") in WINDOWS_DEVICES or alias[:1].isdigit()


# The names under which secrets are stored. A name without `/` is hidden at any depth, as a file or as a
# folder with everything in it.

VERSION_CONTROL_FOLDERS = (".git", ".hg", ".svn", ".bzr", ".jj")
"""They contain the credentials of remotes and, in a worktree, the path of another folder."""

SECRET_FOLDERS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".gcloud", ".oci", ".password-store", ".terraform.d"),
    *(".vault", ".mozilla", ".thunderbird", ".bitcoin", ".ethereum", "**/library/keychains"),
    *("**/.config/gcloud", "**/.config/gh", "**/.config/op", "**/.config/hub", "**/.local/share/keyrings"),
    *("**/etc/ssl/private", ".direnv"),
)

ENV_FILES = (".env*", "*.env")

KEY_FILES = (
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.gpg"),
    *("*.kdb", "*.kdbx", "*.keychain", "*.keychain-db", "*.ovpn", "*.agekey", "*.keytab", "wallet.dat"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "ssh_host_*_key"),
)

CREDENTIAL_FILES = (
    *(".netrc", "_netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", "pgpass.conf", ".my.cnf"),
    *(".mylogin.cnf", ".htpasswd", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", ".databrickscfg"),
    *(".vault-token", ".vault_pass*", ".terraformrc", "terraform.rc", "*.tfstate", "*.tfstate.*", "*.tfvars"),
    *("credentials.{json,toml,yaml,yml,ini,xml,csv,db,properties}", ".credentials*"),
    *("{secret,secrets}.{json,toml,yaml,yml,ini,xml,properties}", "*.secret", "*.secrets"),
    *("client_secret*.json", "service-account*.json", "service_account*.json", "oauth_creds.json"),
    *("**/.codex/auth.json", "**/.composer/auth.json", "**/.docker/config.json", "**/.m2/settings.xml"),
    *("**/etc/shadow*", "**/etc/gshadow*", "**/etc/sudoers*", ".xauthority", ".iceauthority"),
    *("cookies.sqlite", "key4.db", "logins.json"),
)

HISTORY_FILES = (".*_history", ".lesshst", ".viminfo")
"""What was typed at a prompt, which may include passwords."""

SECRET_NAMES = (
    *VERSION_CONTROL_FOLDERS,
    *SECRET_FOLDERS,
    *ENV_FILES,
    *KEY_FILES,
    *CREDENTIAL_FILES,
    *HISTORY_FILES,
)

HOME_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".config/gcloud"),
    *(".config/gh", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".vault-token"),
    *(".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json"),
    *(".bash_history", ".zsh_history", ".python_history"),
)
"""Files and folders of the home directory that are not read through a hard link in a root either."""

FILE_ONLY_SECRETS = ("credentials", "credentials.bak", "cookies", "login data")
"""Hidden only as files, because folders of source code have these names too."""

SECRETS_FOLDERS = frozenset(("secret", "secrets", ".secret", ".secrets"))
"""Folders whose files are hidden, except source code: packages have these names too."""

CODE_FILES = (
    "*.{c,cc,cpp,cs,cxx,dart,ex,exs,go,h,hh,hpp,java,jl,js,jsx,kt,kts,lua,m,mjs,mm,php,pl,py,pyi,r,rb,rs,scala,"
    "sh,swift,ts,tsx,vue,zig}"
)

EXAMPLE_ENV_FILES = (".env.{example,sample,template,dist}", ".env.*.{example,sample,template,dist}")
"""Templates of settings without values, which may be read. Redaction still checks their contents."""
