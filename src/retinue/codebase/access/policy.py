"""What inside a root may be read. Decides by names and sizes alone; opens nothing.

Names are compared as the most lenient file system would: without case, without Unicode variants, without
trailing dots and spaces. So a trick that reaches a hidden file somewhere is refused everywhere."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access.globs import glob_matcher
from retinue.core import ConfigInvalid, InvalidInput, Root

# MERGED secret_names: The names under which secrets are kept. Data; how it is matched is the policy's business.
#
# A name without `/` is hidden at any depth, as a file or as a folder with all it holds.

VERSION_CONTROL_FOLDERS = (".git", ".hg", ".svn", ".bzr", ".jj")
"""Their internals keep remotes' credentials, and in a worktree the path of another folder."""

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
"""What was typed at a prompt, passwords among it."""

SECRET_NAMES = (
    *VERSION_CONTROL_FOLDERS,
    *SECRET_FOLDERS,
    *ENV_FILES,
    *KEY_FILES,
    *CREDENTIAL_FILES,
    *HISTORY_FILES,
)

FILE_ONLY_SECRETS = ("credentials", "credentials.bak", "cookies", "login data")
"""Hidden as files only: folders of source code bear these names too."""

EXAMPLE_ENV_FILES = (".env.{example,sample,template,dist}", ".env.*.{example,sample,template,dist}")
"""Settings without values, kept in the repository to be read. Redaction still looks at what they hold."""


SYSTEM_FOLDERS = tuple(
    Path(path)
    for path in (
        *("/proc", "/sys", "/dev", "/etc", "/boot", "/run/secrets", "/run/credentials"),
        *("/private/etc", "/System", "/Library/Keychains", "C:/Windows"),
    )
)


@dataclass(frozen=True, slots=True)
class Policy:
    """`deny` wins over `allow`, and `allow` over the built-in list of secrets."""

    deny: tuple[str, ...] = ()
    """Globs of more to hide: a name anywhere (`*.sql`), or a path from the root (`data/private`)."""
    allow: tuple[str, ...] = ()
    """Globs of built-in secrets that may be read after all. Allowing a folder allows what is in it."""
    max_file_bytes: int = 1_048_576
    """Larger files are not opened: source code is smaller, and what is larger is generated or data."""
    closed: tuple[Path, ...] = ()
    """Folders that nobody reads, whatever is allowed; absolute, without links."""

    def __post_init__(self) -> None:
        if self.max_file_bytes < 1:
            raise ConfigInvalid(f"max_file_bytes must be at least 1, not {self.max_file_bytes}")

    def rules_for(self, root: Root) -> PolicyRules:
        try:
            return PolicyRules(self, root)
        except InvalidInput as error:
            raise ConfigInvalid(f"deny or allow: {error.message}", hint=error.hint) from None


class PolicyRules:
    """A policy made ready for one root: a walk puts tens of thousands of paths to it."""

    def __init__(self, policy: Policy, root: Root) -> None:
        if any(root.path == system or system in root.path.parents for system in SYSTEM_FOLDERS):
            raise ConfigInvalid(
                "a folder of the operating system cannot be a root", hint="name a project's own directory"
            )
        if root.path in policy.closed:
            raise ConfigInvalid(
                "a root is the data folder, whose contents are nobody's to search",
                hint="name a project's own directory, or set another data_dir",
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
        # Names repeat (every package has its __init__.py) and nearly all are harmless: each is judged once.
        self.concern = functools.lru_cache(maxsize=65_536)(self._concern)
        """Whether any rule could speak of a path with this name in it. Cheap: walks ask it of every name."""

    def hides(self, path: str, *, folder: bool = False) -> bool:
        """Whether a root-relative path, or a folder on the way to it, is hidden."""
        names = path.split("/")
        if not any(map(self.concern, names)):
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
        return hidden and not allowed

    def _concern(self, name: str) -> bool:
        folded = fold_name(name)
        rules = (self._deny, self._secret, self._secret_file)
        if is_unsafe_on_windows(folded) or folded in self._closed_names:
            return True
        return any(globs.could_match(folded) for globs in rules)


class _FoldedGlobs:
    """Globs over folded paths. Those without a `/` fit a name anywhere, the others the path from the root."""

    def __init__(self, globs: Iterable[str]) -> None:
        folded = ["/".join(map(fold_name, glob.split("/"))).rstrip("/") for glob in globs]
        names = [glob for glob in folded if "/" not in glob]
        paths = [glob.removeprefix("/") for glob in folded if "/" in glob]
        self._fits_name = glob_matcher(*names)
        self._fits_path = glob_matcher(*paths)
        self.could_match = glob_matcher(*names, *(path.rpartition("/")[2] for path in paths))
        """Whether any of the globs could fit a path that ends in this name."""

    def match(self, path: str, name: str) -> bool:
        return self._fits_name(name) or self._fits_path(path)


def fold_name(name: str) -> str:
    """The spelling under which the most lenient file systems would know a name."""
    if name.isascii():
        folded = name.lower()
    else:
        # NFKC unites look-alikes such as full-width letters; format characters are invisible to HFS+.
        visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return folded.rstrip(". ") or folded


WINDOWS_DEVICES = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"}) | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}


def is_unsafe_on_windows(name: str, windows: bool = sys.platform == "win32") -> bool:
    """Names that on Windows open something else: a device, a stream of another file, a short 8.3 alias."""
    if not windows:
        return False
    stem, _, alias = name.partition(".")[0].partition("~")
    return ":" in name or stem.rstrip(" ") in WINDOWS_DEVICES or alias[:1].isdigit()
