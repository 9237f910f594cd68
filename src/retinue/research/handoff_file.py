"""Which file a handoff is in. Nothing outside the artifact folder is ever one."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from retinue.core import InvalidInput

HANDOFF_PREFIX = "handoff"
"""What the names of handoffs begin with; memos of research lie in the same folder."""
LARGEST = 1_048_576
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


def find_handoff(folder: Path, name: str | None) -> Path:
    """One that lies directly in the folder; neither a link nor anything else than a file."""
    files = sorted(
        (path for path in folder.glob("*.md") if path.is_file() and not path.is_symlink()),
        key=lambda path: (path.stat().st_mtime_ns, path.name),
    )
    if name is None:
        newest = [path for path in files if path.name.startswith(f"{HANDOFF_PREFIX}-")][-1:]
        if not newest:
            raise InvalidInput("there is no handoff yet", hint="create_handoff writes one")
        return newest[0]
    wanted = Path(name).name if Path(name).parent in (Path(), folder, folder.resolve()) else name
    found = [path for path in files if path.name in (wanted, f"{wanted}.md")]
    if not found or not _NAME.fullmatch(wanted) or found[0].stat().st_size > LARGEST:
        near = get_close_matches(wanted, [path.name for path in files], 1)
        hint = f"did you mean {near[0]}?" if near else "leave it out for the newest"
        raise InvalidInput(f"no handoff is named {name!r}", hint=hint)
    return found[0]
