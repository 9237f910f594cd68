"""Writes examples into a project: agents, profiles, a team, a workflow, files of `.claude/sub-agents`.

Also writes a new agent for `retinue agents new`.

Never over another file, and never through a link that leads out of the project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from retinue.core import Conflict, InvalidInput, Unavailable

EXAMPLES = Path(__file__).parent / "examples"
TARGETS = {
    ".retinue/agents/reviewer.md": "reviewer.md",
    ".retinue/agents/summarizer.md": "summarizer.md",
    "agents/web-search/agent.md": "web-search.md",
    ".retinue/profiles/review.md": "review-profile.md",
    ".retinue/teams/review-and-sum-up.yaml": "review-team.yaml",
    ".retinue/workflows/careful.yaml": "careful.yaml",
    ".claude/sub-agents/templates/documenter.md": "documenter-template.md",
    ".claude/sub-agents/profiles/docs.md": "docs-profile.md",
    ".claude/sub-agents/protocols/handoff.md": "handoff-protocol.md",
}
"""The example for each file of a project."""


def write_examples(project: Path) -> list[str]:
    """Write all examples and return their paths. If one of the files exists, write nothing."""
    if not project.is_dir():
        raise InvalidInput(f"{project} is not a folder", hint="name the folder of a project")
    base = project.resolve()
    existing = [path for path in TARGETS if (base / path).exists() or (base / path).is_symlink()]
    if existing:
        raise Conflict(
            f"these files exist already: {', '.join(existing)}",
            hint="nothing was written; move them away to get the examples",
            files=existing,
        )
    for path, example in TARGETS.items():
        _write_new(base, path, (EXAMPLES / example).read_text(encoding="utf-8"))
    return list(TARGETS)


def write_agent(folder: Path, path: str, fields: Mapping[str, str | Sequence[str]], prompt: str) -> Path:
    """Write a new agent file below a folder and return its path. Fields without a value are left out."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder", hint="name the folder of a project")
    # JSON is YAML, and needs no decision when a text must be quoted.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value]
    text = "\n".join(["---", *lines, "---", prompt.strip(), ""])
    try:
        return _write_new(folder.resolve(), path, text)
    except FileExistsError:
        raise Conflict(f"{path} exists already", hint="choose another name, or edit the file") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}") from None


def _write_new(base: Path, path: str, text: str) -> Path:
    """Write a file that does not exist yet, and never through a link that leads out of the folder."""
    target = base / path
    outside = next((each for each in reversed(target.parents) if _leads_out(each, base)), None)
    if outside is not None:
        raise Conflict(
            f"{outside.relative_to(base)} leads out of the project", hint="replace the link by a folder"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as file:
        file.write(text)
    return target


def _leads_out(folder: Path, base: Path) -> bool:
    return folder.is_relative_to(base) and not folder.resolve().is_relative_to(base)
