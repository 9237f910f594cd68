"""A git repository whose configuration, attributes and hooks start a program wherever git allows it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOOKS = (
    *("post-checkout", "post-index-change", "pre-commit", "post-commit", "reference-transaction"),
    *("pre-auto-gc", "post-rewrite", "fsmonitor-watchman", "commit-msg", "prepare-commit-msg"),
)
ALIASED = ("log", "diff-tree", "rev-parse", "add", "worktree", "branch", "commit-tree", "ls-files")


def git(folder: Path, *arguments: str, stdin: str = "") -> str:
    """Run git as a user would."""
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always")
    run = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True, input=stdin
    )
    return run.stdout.strip()


@dataclass(frozen=True)
class HostileRepository:
    """Every program that this repository starts leaves a file in `marks`, named after what started it."""

    folder: Path
    marks: Path

    @classmethod
    def create(cls, folder: Path) -> HostileRepository:
        found = cls(folder / "project", folder / "marks")
        found.marks.mkdir(parents=True)
        found.folder.mkdir()
        git(found.folder, "init", "--quiet", "--initial-branch=main")
        found._commit_files()
        found.arm(found.folder / ".git")
        return found

    def fired(self) -> set[str]:
        """What started a program so far."""
        return {path.name for path in self.marks.iterdir()}

    def command(self, name: str) -> str:
        """A shell command that leaves a mark."""
        return f"touch {self.marks / name}"

    def arm(self, git_dir: Path) -> None:
        """Add every setting, hook and included file that can start a program."""
        hooks = git_dir / "planted-hooks"
        for folder in (hooks, git_dir / "hooks"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in HOOKS:
                hook = folder / name
                hook.write_text(f"#!/bin/sh\n{self.command(f'hook-{name}')}\n", encoding="utf-8")
                hook.chmod(0o755)
        gpg = git_dir / "gpg"
        gpg.write_text(f"#!/bin/sh\n{self.command('gpg')}\n", encoding="utf-8")
        gpg.chmod(0o755)
        attributes = git_dir / "planted-attributes"
        attributes.write_text("*.txt filter=evil diff=evil\n", encoding="utf-8")
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info" / "attributes").write_text("*.txt filter=evil diff=evil\n", encoding="utf-8")
        included = git_dir / "included"
        included.write_text(self._settings("included-", hooks, attributes), encoding="utf-8")
        (git_dir / "config.worktree").write_text(
            f"[core]\n\tfsmonitor = {self.command('worktree-fsmonitor')}\n", encoding="utf-8"
        )
        with (git_dir / "config").open("a", encoding="utf-8") as config:
            config.write(self._settings("", hooks, attributes))
            config.write(f"[include]\n\tpath = {included}\n")
            config.write(f'[includeIf "gitdir:**"]\n\tpath = {included}\n')

    def forget_an_old_tree(self) -> None:
        """Remove an object that the history needs, so that git tries to fetch it from the remote."""
        tree = git(self.folder, "-c", "core.fsmonitor=false", "rev-parse", "HEAD~1^{tree}")
        (self.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

    def _settings(self, prefix: str, hooks: Path, attributes: Path) -> str:
        def mark(name: str) -> str:
            return self.command(prefix + name).replace("\\", "\\\\")

        aliases = "".join(f'\t{name} = "!{mark("alias-" + name)}"\n' for name in ALIASED)
        # The name of a filter may contain `=`, which no `-c` option can express.
        filters = "".join(
            f'[filter "{name}"]\n\tclean = {mark("clean")}; cat\n\tsmudge = {mark("smudge")}; cat\n'
            for name in ("evil", "a=b", "lfs")
        )
        return f"""
[core]
\tfsmonitor = {mark("fsmonitor")}
\thooksPath = {hooks}
\tpager = {mark("pager")}
\teditor = {mark("editor")}
\tsshCommand = {mark("ssh")}
\tgitProxy = {mark("proxy")}
\taskPass = {mark("askpass")}
\talternateRefsCommand = {mark("alternates")}
\tattributesFile = {attributes}
\trepositoryformatversion = 1
[extensions]
\tpartialClone = origin
\tworktreeConfig = true
[remote "origin"]
\turl = "ext::sh -c touch% {self.marks / (prefix + "fetch")}"
\tpromisor = true
\tuploadpack = {mark("uploadpack")}
[protocol]
\tallow = always
[protocol "ext"]
\tallow = always
{filters}
[filter "process"]
\tprocess = {mark("process")}
[diff]
\texternal = {mark("external-diff")}
[diff "evil"]
\ttextconv = {mark("textconv")}; cat
\tcommand = {mark("diff-command")}
[merge "evil"]
\tdriver = {mark("merge")}
[hook "evil"]
\tcommand = {mark("configured-hook")}
\tevent = post-checkout
\tevent = reference-transaction
\tevent = post-index-change
[credential]
\thelper = "!{mark("credential")}"
[gpg]
\tprogram = {hooks.parent / "gpg"}
[commit]
\tgpgSign = true
[log]
\tshowSignature = true
[interactive]
\tdiffFilter = {mark("diff-filter")}
[uploadpack]
\tpackObjectsHook = {mark("pack-hook")}
[submodule]
\trecurse = true
[gc]
\tauto = 1
[pager]
\tlog = true
\tdiff-tree = true
[alias]
{aliases}"""

    def _commit_files(self) -> None:
        (self.folder / ".gitattributes").write_text(
            "*.txt filter=evil diff=evil\n*.md filter=a=b\n*.bin filter=process\n*.dat filter=lfs\n",
            encoding="utf-8",
        )
        for number, name in enumerate(("a.txt", "b.md", "c.bin", "d.dat")):
            (self.folder / name).write_text(f"retry_later() {number}\n", encoding="utf-8")
        git(self.folder, "add", ".")
        git(self.folder, "commit", "--quiet", "-m", "Retry later when the queue is full")
        (self.folder / "a.txt").write_text("retry_later() again\n", encoding="utf-8")
        git(self.folder, "commit", "--quiet", "-a", "-m", "Retry the queue twice")
        self._commit_signed()

    def _commit_signed(self) -> None:
        """Add a commit with a signature, which git would check with the configured program."""
        tree, parent = git(self.folder, "rev-parse", "HEAD^{tree}", "HEAD").split()
        commit = (
            f"tree {tree}\nparent {parent}\nauthor T <t@localhost> 1700000000 +0000\n"
            "committer T <t@localhost> 1700000000 +0000\n"
            "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\n"
            "Sign the queue\n"
        )
        signed = git(self.folder, "hash-object", "-t", "commit", "-w", "--stdin", stdin=commit)
        git(self.folder, "update-ref", "HEAD", signed)


def available_gits() -> list[Path]:
    """The git on PATH, and those that the variable RETINUE_TEST_GITS lists."""
    installed = shutil.which("git")
    listed = os.environ.get("RETINUE_TEST_GITS", "").split(os.pathsep)
    return [Path(path) for path in dict.fromkeys((installed, *listed)) if path]
