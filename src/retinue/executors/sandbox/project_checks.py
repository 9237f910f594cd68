"""Where a project's own checks run: its folder may be changed, the rest of the machine may be read at most.

Unlike an agent, a check is the user's own command and needs the user's own tools, which often lie in the
home; so the home is there to read, without its keys.
"""

from __future__ import annotations

from pathlib import Path

from retinue.executors.process import Program
from retinue.executors.sandbox.sandbox import Sandbox, SandboxPlace

KEYS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"),
    *(".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/gh", ".config/gcloud"),
)
"""In a home: what opens other doors. A check that needs one is run without the sandbox."""
CACHES = (".cache",)


def sandboxed_check(sandbox: Sandbox, home: Path, hidden: Path, program: Program) -> Program:
    """`hidden` is our own folder, with what other runs said."""
    place = SandboxPlace(
        workspace=program.cwd,
        visible=(home,),
        changeable=tuple(home / name for name in CACHES),
        emptied=(hidden, *(home / name for name in KEYS)),
    )
    return sandbox.enclose(program, place)
