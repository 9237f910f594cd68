"""Writes, copies and removes the files of skills: each as a whole, and only inside its folder of skills.

Knows nothing of approvals.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from retinue.core import Conflict, InvalidInput, Unavailable
from retinue.definitions import (
    DRAFTS,
    SKILL_FILE,
    MalformedDefinition,
    SkillFile,
    SkillFolder,
    read_skill_bundle,
)

NEW_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME_CHARS = 64
_PLAIN = re.compile(r"[A-Za-z](?:[ !-\"$-9;-~]++|:(?=[!-~]))*+")
_POINT = re.compile(r"^(\d{1,3})[.)][ \t]+(\S.*)$")

TEMPLATE = """\
# {title}

Say how it is done here, in numbered points: one fact or one step each, short enough to check.

1. What to do first.
2. What is different here from what everybody expects.
3. How to see that it is right: a command and its result.
"""


def check_skill_name(name: str) -> str:
    """Return the name if a new skill may have it. Raises `InvalidInput`."""
    if len(name) > MAX_NAME_CHARS or not NEW_NAME.fullmatch(name) or name == DRAFTS:
        raise InvalidInput(
            f"{name[:80]!r} is not a valid name for a skill",
            hint="use at most 64 lower-case letters, digits and single hyphens, such as api-errors",
        )
    return name


def skill_document(name: str, description: str, triggers: Sequence[str] = (), body: str = "") -> str:
    """Return the text of a `SKILL.md`. Values are quoted where YAML needs it."""
    header = [f"name: {check_skill_name(name)}", f"description: {_quoted(description)}"]
    if triggers:
        header += ["metadata:", f"  triggers: {_quoted(', '.join(triggers))}"]
    title = name.replace("-", " ").capitalize()
    return "\n".join(["---", *header, "---", body or TEMPLATE.format(title=title)])


def write_skill(folder: SkillFolder, name: str, text: str) -> Path:
    """Write `NAME/SKILL.md` in a folder of skills. Returns the file.

    Raises `Conflict` if the skill exists. A reader never sees half a file.
    """
    place = _own_folder(folder, check_skill_name(name))
    file = place / SKILL_FILE
    _refuse_existing(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        _check_inside(place, folder)
        _replace_file(file, text.encode("utf-8", "replace"))
    except OSError as error:
        with suppress(OSError):
            place.rmdir()  # an empty folder would take the name
        raise _not_writable(file, error) from None
    return file


def copy_skill(source: Path, folder: SkillFolder, name: str) -> Path:
    """Copy a skill's folder, or its single file, into a folder of skills. Returns the new file.

    Copies plain files only, without hidden ones. Raises `Conflict` if the skill exists.
    """
    place = _own_folder(folder, check_skill_name(name))
    _refuse_existing(place)
    draft = place.with_name(f".{name}-{secrets.token_hex(4)}")
    try:
        if not source.is_dir():
            folder.path.mkdir(parents=True, exist_ok=True)
            _check_inside(folder.path, folder)
            file = place.with_name(f"{name}.md")
            _replace_file(file, source.read_bytes())
            return file
        for path, data in read_skill_bundle(source).items():
            target = draft / path
            target.parent.mkdir(parents=True, exist_ok=True)
            _check_inside(target.parent, folder)
            target.write_bytes(data)
        draft.rename(place)
    except MalformedDefinition as error:
        raise InvalidInput(f"{source}: {error.problem.message}", hint=error.problem.hint) from None
    except OSError as error:
        raise _not_writable(place, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place / SKILL_FILE


def remove_skill(skill: SkillFile, removed: Path) -> Path:
    """Move a skill out of its folder, into a new place in the folder `removed`. Returns that place.

    If the skill is a symbolic link, moves only the link.
    """
    own = Path(skill.path)
    target = removed / f"{own.stem}-{secrets.token_hex(4)}{own.suffix}"
    try:
        removed.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(own, target)
    except OSError as error:
        raise _not_writable(own, error) from None
    return target


class SkillPoint(NamedTuple):
    """A numbered point of a skill's instructions."""

    number: int
    line: int
    """The line of the body in which it begins, from 1."""
    text: str
    last: int
    """The last line that belongs to it."""


def find_points(body: str) -> tuple[SkillPoint, ...]:
    """Return the numbered points of a skill's instructions. Indented lines below a point belong to it.

    Lines inside a block of code are no points.
    """
    points: list[SkillPoint] = []
    in_code = in_point = False
    for number, line in enumerate(body.split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if not in_code and (match := _POINT.match(line)):
            points.append(SkillPoint(int(match[1]), number, match[2].rstrip(), number))
            in_point = True
        elif line.strip() and line[:1] not in (" ", "\t"):
            in_point = False
        elif line.strip() and in_point:
            point = points[-1]
            points[-1] = point._replace(text=f"{point.text}\n{line.strip()}", last=number)
    return tuple(points)


def _own_folder(folder: SkillFolder, name: str) -> Path:
    place = folder.path / name
    _check_inside(place, folder)
    return place


def _refuse_existing(place: Path) -> None:
    """Raise `Conflict` if a skill has this folder, or is a single file of this name."""
    if os.path.lexists(place) or os.path.lexists(place.with_name(f"{place.name}.md")):
        raise Conflict(
            f"the skill {place.name} exists already", hint="choose another name, or remove it first"
        )


def _check_inside(place: Path, folder: SkillFolder) -> None:
    """Raise `Conflict` if a link leads from the folder of skills, or from its project, to another place."""
    base = os.path.realpath(folder.path)
    project = base if folder.base is None else os.path.realpath(folder.base)
    for inner, outer in ((os.path.realpath(place), base), (base, project)):
        if inner != outer and not inner.startswith(outer + os.sep):
            raise Conflict(f"{folder.shown} leads out of its folder", hint="replace the link by a folder")


def _replace_file(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as opened:
            opened.write(data)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _not_writable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"{path} cannot be written: {error.strerror}",
        hint="check the folder's permissions and the free space",
    )


def _quoted(text: str) -> str:
    """Return a text as a YAML value on one line."""
    line = " ".join(text.split())
    return line if _PLAIN.fullmatch(line) and line[-1] != ":" else json.dumps(line, ensure_ascii=False)
