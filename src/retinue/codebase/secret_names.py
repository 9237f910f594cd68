"""The names under which secrets are kept. Data; how it is matched is the policy's business.

A name without `/` is hidden at any depth, as a file or as a folder with all it holds.
"""

from __future__ import annotations

VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr", ".jj")
"""Their internals keep remotes' credentials, and in a worktree the path of another folder."""

FOLDERS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".gcloud", ".oci", ".password-store", ".terraform.d"),
    *(".vault", ".mozilla", ".thunderbird", ".bitcoin", ".ethereum", "**/library/keychains"),
    *("**/.config/gcloud", "**/.config/gh", "**/.config/op", "**/.config/hub", "**/.local/share/keyrings"),
    *("**/etc/ssl/private", ".direnv"),
)

ENVIRONMENTS = (".env*", "*.env")

KEYS = (
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.gpg"),
    *("*.kdb", "*.kdbx", "*.keychain", "*.keychain-db", "*.ovpn", "*.agekey", "*.keytab", "wallet.dat"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "ssh_host_*_key"),
)

CREDENTIALS = (
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

HISTORIES = (".*_history", ".lesshst", ".viminfo")
"""What was typed at a prompt, passwords among it."""

SECRETS = (*VERSION_CONTROL, *FOLDERS, *ENVIRONMENTS, *KEYS, *CREDENTIALS, *HISTORIES)

SECRET_FILES = ("credentials", "credentials.bak", "cookies", "login data")
"""Hidden as files only: folders of source code bear these names too."""

EXAMPLES = (".env.{example,sample,template,dist}", ".env.*.{example,sample,template,dist}")
"""Settings without values, kept in the repository to be read. Redaction still looks at what they hold."""
