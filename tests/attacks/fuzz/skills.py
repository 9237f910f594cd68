"""Random skills: read, checked, approved, written and removed without an exception or a file outside (P6)."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from retinue.core import Agent, RetinueError
from retinue.definitions import AgentSources, MalformedDefinition, SkillFolder, check_skill, read_skill
from retinue.learning import SkillCatalog, SkillLibrary, copy_skill, find_points, skill_document, write_skill
from retinue.redaction import SecretRedactor
from retinue.store import ApprovedSkills
from tests.attacks.fuzz.frontmatter import SCALARS

NAME = "skills"

BASE = Path(tempfile.mkdtemp(prefix="fuzz-skills-")).resolve()
atexit.register(shutil.rmtree, BASE, ignore_errors=True)
PROJECT, OUTSIDE = BASE / "project", BASE / "outside"
SECRET = "the text of a file outside"
SKILLS = PROJECT / ".retinue" / "skills"
FOLDER = SkillFolder(SKILLS, "project", ".retinue/skills", PROJECT)
APPROVED = ApprovedSkills(BASE / "data")
AGENT = Agent(name="worker", description="d", executor="local", source="fuzz")
KEYS = ("name", "description", "triggers", "metadata", "license", "allowed-tools", "compatibility", "x", "<<")
NAMES = (
    "mine",
    "a-b",
    "../up",
    "drafts",
    "README",
    ".",
    "..",
    "a/b",
    "Ünï",
    "x" * 300,
    "con",
    "-",
    "a\nb",
    "\0",
)
FILES = (
    "SKILL.md",
    "skill.md",
    "run.py",
    "../../../outside/new.md",
    "sub/deep.txt",
    ".hidden",
    "drafts/x.md",
)


def run_case(random: Random) -> None:
    """Check a random skill. Now and then, use a folder of random skills in every way."""
    data = _document(random)
    lines = data.count(b"\n") + data.count(b"\r") + 2
    for problem in check_skill(data, random.choice(NAMES), is_folder=random.random() < 0.8):
        assert 1 <= problem.line <= lines, f"line {problem.line} of {lines}"
    find_points(data.decode("utf-8", "replace"))
    if random.random() < 0.05:
        _use_folder(random)


def _use_folder(random: Random) -> None:
    """Write a few skills, then list, approve, read, write and copy them."""
    _reset()
    for _ in range(random.randrange(1, 4)):
        _plant(random)
    before = _outside()
    catalog = _catalog(trusted=random.random() < 0.8)
    library = SkillLibrary(catalog, SecretRedactor(), 500)
    found = catalog.all_skills()
    for skill in found:
        assert skill.file.problem is None or skill.refusal is not None
        assert SECRET not in skill.file.description, "a header of a file outside was read"
        _allowed(partial(read_skill, skill.file))
    if random.random() < 0.7:
        _allowed(partial(catalog.approve, [each for each in found if each.needs_approval]))
    notes = library.open("run", AGENT, random.choice(("do it", "mine, please", "\0", "a" * 3_000)))
    shown = "" if notes is None else notes.text(random.choice((0, 100, 20_000)))
    for name in (*catalog.live(), random.choice(NAMES)):
        for file in (None, random.choice(FILES)):
            shown += _allowed(partial(library.read, name, file, random.randrange(-1, 9))) or ""
    assert SECRET not in shown, "a file outside was read"
    name, text = random.choice(NAMES), _document(random).decode("utf-8", "replace")
    _allowed(partial(write_skill, FOLDER, name, text))
    _allowed(partial(skill_document, name, random.choice(SCALARS), [random.choice(SCALARS)]))
    _allowed(partial(copy_skill, SKILLS / "mine", FOLDER, random.choice(NAMES)))
    assert _outside() == before, "a file outside the folder was written"
    catalog.taken_names()


def _catalog(*, trusted: bool) -> SkillCatalog:
    return SkillCatalog(AgentSources(projects=(PROJECT,), is_trusted=lambda project: trusted), APPROVED)


def _allowed(act: Callable[[], object]) -> str | None:
    """Call something that may fail only with an error that people understand."""
    try:
        done = act()
    except (RetinueError, MalformedDefinition) as error:
        message = error.problem.message if isinstance(error, MalformedDefinition) else error.message
        assert message and SECRET not in message
        return None
    return done if isinstance(done, str) else None


def _reset() -> None:
    shutil.rmtree(PROJECT, ignore_errors=True)
    shutil.rmtree(OUTSIDE, ignore_errors=True)
    SKILLS.mkdir(parents=True)
    OUTSIDE.mkdir()
    (OUTSIDE / "SKILL.md").write_text(f"---\nname: outside\ndescription: {SECRET}\n---\n{SECRET}\n")


def _outside() -> dict[str, bytes]:
    found = [file for file in BASE.rglob("*") if file.is_file() and not file.is_relative_to(SKILLS)]
    return {str(file): file.read_bytes() for file in found if "data" not in file.parts}


def _plant(random: Random) -> None:
    """Put one random skill, or a link to somewhere else, into the folder."""
    folder = SKILLS / random.choice(("mine", "a-b", "README", "Ünï", "drafts", "two words"))
    try:
        match random.randrange(6):
            case 0:
                folder.with_suffix(".md").write_bytes(_document(random))
            case 1:
                folder.symlink_to(OUTSIDE)
            case 2:
                folder.with_suffix(".md").symlink_to(OUTSIDE / "SKILL.md")
            case 3:
                folder.mkdir(exist_ok=True)
                (folder / random.choice(("SKILL.md", "run.py"))).symlink_to(OUTSIDE / "SKILL.md")
            case _:
                folder.mkdir(exist_ok=True)
                (folder / "SKILL.md").write_bytes(_document(random))
                (folder / "run.py").write_bytes(random.randbytes(random.randrange(50)))
    except FileExistsError:
        pass


def _document(random: Random) -> bytes:
    if random.random() < 0.05:
        return random.randbytes(random.randrange(300))
    lines = [f"name: {random.choice(NAMES)}"] if random.random() < 0.5 else ["name: mine"]
    lines += [f"description: {random.choice(SCALARS)}"] if random.random() < 0.5 else ["description: d"]
    for _ in range(random.randrange(3)):
        key, value = random.choice(KEYS), random.choice(SCALARS)
        lines.append(
            random.choice((f"{key}: {value}", f"{key}:\n  - {value}", f"{key}:\n  triggers: {value}"))
        )
    body = random.choice(("", "1. Do it.\n2. Go.", "---", "\u200b", "a" * 5_000, "```\n1. x"))
    text = "\n".join(("---", *lines, random.choice(("---", "---", "---", "")), body))
    if random.random() < 0.3:
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8", "surrogatepass")
