"""Random proposals and drafts: no exception but a refusal, no file outside, no secret kept (P6, P7)."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from retinue.core import RetinueError, RunId
from retinue.definitions import AgentSources, split_skill
from retinue.learning import (
    DraftKind,
    Drafts,
    Friction,
    FrictionKind,
    Gates,
    InUse,
    Memories,
    SkillCatalog,
    find_points,
    read_proposal,
)
from retinue.learning.in_use import change_points
from retinue.redaction import SecretRedactor
from retinue.store import ApprovedSkills, RememberedPermissions
from tests.attacks.fuzz.frontmatter import SCALARS

NAME = "drafts"

BASE = Path(tempfile.mkdtemp(prefix="fuzz-drafts-")).resolve()
atexit.register(shutil.rmtree, BASE, ignore_errors=True)
PROJECT, OUTSIDE = BASE / "project", BASE / "outside"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REDACT = SecretRedactor().redact
FRICTION = Friction(kind=FrictionKind.TASK, agent="writer", what="x", runs=(RunId("r"),), times=3)
POINTS = ("Run the tests.", "Write a line.")
TEXTS: tuple[Any, ...] = (
    *SCALARS,
    *(
        "docstring",
        "Begin with a verb.",
        "---",
        "a\n---\nname: x",
        "```",
        "\0",
        "\u202e",
        "../up",
        "a/b",
        "x" * 900,
    ),
    *(
        SECRET,
        f"use {SECRET}",
        "release",
        "writer",
        "Bash(make test)",
        "Bash(*)",
        1,
        0,
        -3,
        True,
        None,
        [],
        {},
        1e9,
    ),
)
KEYS = (
    "kind",
    "name",
    "description",
    "triggers",
    "points",
    "skill",
    "edits",
    "members",
    "agent",
    "rule",
    "memory",
)
GATES = Gates(
    taken_names={"taken"},
    agents={"writer", "reviewer"},
    recent_tasks=["fix the docstring"] * 12,
    granted={"writer": {"Bash(make test)"}},
    skill_points=lambda name: POINTS if name == "release" else None,
    hides_secret=lambda text: REDACT(text) != text,
)


def run_case(random: Random) -> None:
    """Read a random proposal. What passes the gates becomes a draft now and then, as does a random folder."""
    if random.random() < 0.02:
        _decide_about_folder(random)
    body = "\n".join(str(random.choice(TEXTS)) for _ in range(random.randrange(5)))
    edits = {random.randrange(1, 5): random.choice(("", "A new point.")) for _ in range(2)}
    changed = find_points(change_points(body, edits))
    assert [point.number for point in changed][:1] in ([], [1]), "points are numbered anew"
    try:
        proposal = read_proposal(_proposal(random), GATES)
    except RetinueError:
        return
    text = proposal.text()
    assert SECRET not in text
    if proposal.kind is DraftKind.SKILL:
        header, _ = split_skill(text.encode())
        assert set(header) <= {"name", "description", "metadata"}, "a field became a key of the header"
    if random.random() < 0.05:
        _store(random, proposal)


def _proposal(random: Random) -> dict[str, Any]:
    """A proposal that is often right in most of its fields."""
    given: dict[str, Any] = {
        "kind": random.choice([*DraftKind]).value,
        "name": f"draft-{random.randrange(50)}",
        "description": "When it fits",
        "triggers": ["retry queue"],
        "points": ["Begin with a verb."],
        "skill": "release",
        "edits": [{"point": 1, "text": "Run all tests."}],
        "members": ["writer", "reviewer"],
        "agent": "writer",
        "rule": "Bash(make test)",
        "memory": "The tests need a database.",
    }
    for _ in range(random.randrange(3)):
        value = random.choice(TEXTS)
        given[random.choice(KEYS)] = random.choice(
            (value, [value], [{"point": value, "text": value}], [value] * 7)
        )
    return given


def _store(random: Random, proposal: Any) -> None:
    """Write a draft into a project in which links lead out, and reject it."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    OUTSIDE.mkdir(exist_ok=True)
    PROJECT.mkdir()
    link = PROJECT / random.choice((".retinue", ".retinue/skills", ".retinue/agents/drafts", "none/at/all"))
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(OUTSIDE)
    drafts = Drafts(PROJECT)
    try:
        drafts.start_run("fuzz").create(proposal, FRICTION)
        assert drafts.get(proposal.name).text == proposal.text()
        drafts.reject(proposal.name)
    except RetinueError:
        pass
    assert list(OUTSIDE.iterdir()) == [], "a draft was written outside the project"


def _decide_about_folder(random: Random) -> None:
    """Write a folder as a clone may bring one into `drafts`, and promote, take back or reject it."""
    for folder in (PROJECT, BASE / "data"):
        shutil.rmtree(folder, ignore_errors=True)
    OUTSIDE.mkdir(exist_ok=True)
    home = PROJECT / random.choice((".retinue", ".claude", ".smallcode")) / "skills"
    folder = home / "drafts" / random.choice((*["mine"] * 6, "a.md", "My Skill", "drafts", "x" * 80))
    _add(random, folder / "SKILL.md")
    for _ in range(random.randrange(3)):
        name = random.choice(("SKILL.md", "skill.md", "a.md", "sub/a.md", "sub", ".hidden", "b\n.md", "-rf"))
        _add(random, folder / name)
    if random.random() < 0.3:
        _add(random, home / random.choice(("mine", "mine.md", "mine/SKILL.md", "mine/a.md")))
    drafts, name = Drafts(PROJECT), folder.name
    action = random.choice(("create", "try", "reject", "rollback"))
    forged = {key: random.choice(TEXTS) for key in ("friction", "runs", "text", "files", "figures", "undo")}
    with suppress(RetinueError):
        drafts.audit.record(action, name, **forged)
    in_use = _in_use()
    for decide in random.choices(
        (
            lambda: drafts.get(name).body,
            lambda: drafts.diff(name, in_use),
            lambda: drafts.promote(name, in_use, forced=True, figures=None),
            lambda: drafts.rollback(name, in_use),
            lambda: drafts.reject(name),
            drafts.rejected_friction,
        ),
        k=4,
    ):
        with suppress(RetinueError):
            decide()
    assert list(OUTSIDE.iterdir()) == [], "a file was written outside the project"
    loaded = [each.name for each in in_use.skills.all_skills() if each.refusal is None]
    promoted = [each for each in drafts.audit.history() if each.action == "promote"]
    assert promoted or not loaded, "something is in use that nobody promoted"


def _add(random: Random, file: Path) -> None:
    """Write a file, or a link that leads out, if there is room for it."""
    header = "---\nname: mine\ndescription: When it fits\n---\n"
    text = f"{header}1. {random.choice(TEXTS)}\n".encode("utf-8", "replace")
    if not Path(os.path.realpath(file)).is_relative_to(PROJECT):
        return  # a link leads out already
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        if random.random() < 0.15:
            file.symlink_to(random.choice((OUTSIDE, OUTSIDE / "a.md", "SKILL.md", ".")))
        else:
            file.write_bytes(random.choice((text, text, text, b"\xff\0", b"", b"x" * 70_000)))


def _in_use() -> InUse:
    data = BASE / "data"
    return InUse(
        PROJECT,
        SkillCatalog(
            AgentSources(projects=(PROJECT,), is_trusted=lambda project: True), ApprovedSkills(data / "none")
        ),
        RememberedPermissions(data / "permissions.toml"),
        Memories(data_dir=data, project=PROJECT, redactor=SecretRedactor()),
    )
