"""Drafts wait in quarantine, are promoted by people, and every step can be undone (P6, P7)."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Conflict, InvalidInput, NewMemory, RunId, Unavailable
from retinue.definitions import AgentSources
from retinue.learning.draft_audit import AUDIT_FILE
from retinue.learning.drafts import Drafts, EvolverRun
from retinue.learning.friction import Friction, FrictionKind
from retinue.learning.in_use import InUse
from retinue.learning.memory import Memories, MemoryAuthor
from retinue.learning.proposals import DraftKind, Proposal
from retinue.learning.skill_catalog import SkillCatalog
from retinue.redaction import SecretRedactor
from retinue.store import ApprovedSkills, RememberedPermissions, TrustedProjects

FRICTION = Friction(
    kind=FrictionKind.TASK, agent="writer", what="add a docstring", runs=(RunId("run1"),), times=3
)
SKILL = Proposal(
    kind=DraftKind.SKILL,
    name="docstrings",
    description="How docstrings are written here",
    triggers=("docstring",),
    points=("Begin with a verb.",),
)


@pytest.fixture
def live(tmp_path: Path) -> InUse:
    """What is in use in a trusted project."""
    data = tmp_path / "data"
    TrustedProjects(data).add(tmp_path)
    sources = AgentSources(projects=(tmp_path,), is_trusted=TrustedProjects(data).__contains__)
    return InUse(
        tmp_path,
        SkillCatalog(sources, ApprovedSkills(data)),
        RememberedPermissions(data / "permissions.toml"),
        Memories(data_dir=data, project=tmp_path, redactor=SecretRedactor()),
    )


@pytest.fixture
def drafts(tmp_path: Path) -> Drafts:
    return Drafts(tmp_path)


def audit(project: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / AUDIT_FILE).read_text(encoding="utf-8").splitlines()]


def test_second_draft_in_one_run_raises(drafts: Drafts) -> None:
    run = EvolverRun(drafts, "strong")
    run.create(SKILL, FRICTION)
    with pytest.raises(Conflict, match="one draft"):
        run.create(Proposal(kind=DraftKind.MEMORY, name="other", description="x", memory="y"), FRICTION)
    assert drafts.names() == {"docstrings"}


def test_first_draft_that_fails_uses_the_run_up(drafts: Drafts, tmp_path: Path) -> None:
    (tmp_path / ".retinue/skills/drafts").mkdir(parents=True)
    (tmp_path / ".retinue/skills/drafts/docstrings.md").write_text("mine", encoding="utf-8")
    run = EvolverRun(drafts, "strong")
    for _ in range(2):
        with pytest.raises(Conflict):
            run.create(SKILL, FRICTION)


def test_draft_is_a_file_in_quarantine_with_its_evidence_in_the_audit(drafts: Drafts, tmp_path: Path) -> None:
    draft = EvolverRun(drafts, "qwen").create(SKILL, FRICTION)
    assert draft.path == ".retinue/skills/drafts/docstrings.md"
    [line] = audit(tmp_path)
    assert (line["action"], line["by"], line["runs"]) == ("create", "qwen", ["run1"])
    assert line["friction"]["what"] == "add a docstring"


def test_promotion_moves_the_draft_and_rollback_removes_it(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    assert "+1. Begin with a verb." in drafts.diff("docstrings", live)
    promoted = drafts.promote("docstrings", live, forced=True, figures=None)
    assert promoted["place"] == ".retinue/skills/docstrings.md"
    assert "docstrings" in live.skills.live(), "a promotion is an approval"
    assert drafts.pending() == []
    assert audit(tmp_path)[-1]["forced"] is True
    drafts.rollback("docstrings", live)
    assert not (tmp_path / ".retinue/skills/docstrings.md").exists()
    with pytest.raises(InvalidInput, match="no promotion"):
        drafts.rollback("docstrings", live)


def test_promoted_file_that_somebody_changed_is_not_removed(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    drafts.promote("docstrings", live, forced=False, figures=None)
    (tmp_path / ".retinue/skills/docstrings.md").write_text("better", encoding="utf-8")
    with pytest.raises(Conflict, match="changed after"):
        drafts.rollback("docstrings", live)


def test_promotion_replaces_no_file(drafts: Drafts, live: InUse, tmp_path: Path) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    (tmp_path / ".retinue/skills/docstrings.md").write_text("mine", encoding="utf-8")
    with pytest.raises(Conflict, match="exists already"):
        drafts.promote("docstrings", live, forced=False, figures=None)
    assert drafts.names() == {"docstrings"}, "the draft is still there"


def test_edit_changes_points_and_rollback_restores_the_text_of_before(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    file = tmp_path / ".retinue/skills/release.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: How we release\n---\n1. one\n2. two\n", encoding="utf-8")
    before = file.read_bytes()
    live.approve_skill(file)
    edit = Proposal(kind=DraftKind.EDIT, name="release-2", description="x", skill="release", edits={2: "TWO"})
    drafts.create(edit, FRICTION, "strong")
    assert drafts.diff("release-2", live).splitlines()[-2:] == ["-2. two", "+2. TWO"]
    drafts.promote("release-2", live, forced=False, figures=None)
    assert file.read_bytes() == before.replace(b"two", b"TWO")
    assert live.skill_points("release") == ["one", "TWO"], "it is still approved"
    drafts.rollback("release-2", live)
    assert file.read_bytes() == before
    assert live.skill_points("release") == ["one", "two"]


def test_rule_and_memory_go_to_their_places_and_back(drafts: Drafts, live: InUse) -> None:
    rule = Proposal(kind=DraftKind.RULE, name="r", description="x", agent="writer", rule="Bash(make test)")
    drafts.create(rule, FRICTION, "strong")
    drafts.create(Proposal(kind=DraftKind.MEMORY, name="m", description="x", memory="y"), FRICTION, "strong")
    for name in ("r", "m"):
        drafts.promote(name, live, forced=False, figures=None)
    assert live.rules.rules_for("writer") == ("Bash(make test)",)
    assert [(each.memory.text, each.memory.state) for each in live.memories.all()] == [("y", "tentative")]
    for name in ("r", "m"):
        drafts.rollback(name, live)
    assert (live.rules.rules_for("writer"), live.memories.all()) == ((), [])


def test_rejected_draft_is_gone_and_its_friction_is_remembered(drafts: Drafts) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    drafts.reject("docstrings", "we have a linter")
    assert drafts.pending() == []
    assert drafts.rejected_friction() == [("repeated task", "writer", "add a docstring")]


def test_unknown_draft_is_answered_with_the_known_ones(drafts: Drafts) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    with pytest.raises(InvalidInput) as caught:
        drafts.get("doc")
    assert caught.value.hint == "drafts: docstrings"


@pytest.mark.parametrize("link", [".retinue", ".retinue/skills", ".retinue/skills/drafts"])
def test_link_in_the_project_leads_no_draft_out_of_it(link: str, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    (project / link).parent.mkdir(parents=True)
    (project / link).symlink_to(outside)
    with pytest.raises(Conflict, match="link"):
        Drafts(project).create(SKILL, FRICTION, "strong")
    assert list(outside.iterdir()) == []


def test_audit_with_broken_lines_still_tells_the_rest(drafts: Drafts, tmp_path: Path) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    with (tmp_path / AUDIT_FILE).open("ab") as file:
        file.write(b'{"action": \xff\n[]\nnull\n')
    drafts.reject("docstrings")
    assert len(drafts.rejected_friction()) == 1


FIGURES = {
    "verdict": "helps",
    "tasks": 6,
    "attempts": 6,
    "better": 6,
    "worse": 0,
    "same": 0,
    "chance": 0.03,
    "without": {"passed": 0, "steps": 2.0, "tokens": 5, "seconds": 0.1},
    "with": {"passed": 6, "steps": 2.0, "tokens": 6, "seconds": 0.1},
}


@pytest.mark.parametrize(
    "key", ["at", "by", "friction", "runs", "text", "files", "figures", "reason", "undo"]
)
@pytest.mark.parametrize("value", [None, 5, "x", [1, {}], {"verdict": "helps"}, {"kind": [], "with": 1}])
def test_line_of_the_audit_with_other_types_than_expected_is_read_as_far_as_it_goes(
    key: str, value: Any, drafts: Drafts
) -> None:
    """The audit file is a file of the project, so a clone may bring one."""
    whole: dict[str, Any] = {"at": "2026-01-01T00:00:00Z", "by": "strong", "text": "t", "reason": "r"}
    whole |= {"runs": ["r1"], "friction": {"kind": "limit reached", "agent": "a", "what": "w"}}
    whole |= {"figures": FIGURES, "files": {}, "undo": {}}
    drafts.audit.record("try", "forged", **(whole | {key: value}))
    [entry] = drafts.audit.history()
    assert isinstance(entry.at + entry.by + entry.text + entry.reason + "".join(entry.runs), str)
    assert "".join((*entry.files, *entry.files.values(), *(entry.friction or ()))).isprintable()
    assert entry.figures == (None if key == "figures" else FIGURES)
    assert entry.undo == (value if key == "undo" and isinstance(value, dict) else {})


def test_line_separators_of_unicode_in_a_draft_lose_no_line_of_the_audit(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    folder_draft(tmp_path, **{"words.md": "one\u2028two\x85three\x0cfour"})
    shown = "+one\u2028two\x85three\x0cfour\n\\ No newline at end of file\n--- /dev/null\n"
    assert shown in drafts.diff("docstrings", live)
    drafts.promote("docstrings", live, forced=True, figures=None)
    drafts.rollback("docstrings", live)
    assert live.skills.all_skills() == []


@pytest.mark.parametrize("make", [os.mkdir, *([os.mkfifo] if hasattr(os, "mkfifo") else [])])
def test_audit_that_is_no_file_is_told_and_never_waited_for(
    make: Callable[[Path], None], drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    (tmp_path / ".retinue").mkdir()
    make(tmp_path / AUDIT_FILE)
    for use in (
        lambda: list(drafts.audit.history()),
        lambda: drafts.reject("docstrings"),
        lambda: drafts.rollback("docstrings", live),
        lambda: drafts.create(SKILL, FRICTION, "strong"),
    ):
        with pytest.raises(Unavailable, match="is not a file that can be read"):
            use()
    assert drafts.names() == set()


class KilledInUse(InUse):
    """What is in use, for a process that is killed when it approves a skill."""

    def approve_skill(self, file: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", ["docstrings", "release-2"])
def test_promotion_that_was_killed_is_repeated_or_undone_P5(
    name: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    """The file is in its place then, and nobody has approved it, so no agent has seen it."""
    file = tmp_path / ".retinue/skills/release.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: How we release\n---\n1. one\n2. two\n", encoding="utf-8")
    live.approve_skill(file)
    drafts.create(SKILL, FRICTION, "strong")
    edit = Proposal(kind=DraftKind.EDIT, name="release-2", description="x", skill="release", edits={2: "TWO"})
    drafts.create(edit, FRICTION, "strong")
    if (child := os.fork()) == 0:
        killed = KilledInUse(live.project, live.skills, live.rules, live.memories)
        drafts.promote(name, killed, forced=False, figures=None)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert name in drafts.names(), "the draft is deleted last"
    promoted = file.with_name("docstrings.md") if name == "docstrings" else file
    assert promoted.exists()
    if name == "docstrings":
        drafts.promote(name, live, forced=False, figures=None)
        assert name in live.skills.live() and drafts.names() == {"release-2"}
        drafts.rollback(name, live)
        assert not promoted.exists()
    else:
        drafts.rollback(name, live)
        assert live.skill_points("release") == ["one", "two"]
        drafts.promote(name, live, forced=False, figures=None)
        assert live.skill_points("release") == ["one", "TWO"]


class KilledAfterApproval(InUse):
    """The last step before the draft is deleted."""

    def approve_skill(self, file: Path) -> None:
        super().approve_skill(file)
        os.kill(os.getpid(), signal.SIGKILL)


class SlowInUse(InUse):
    """Waits between the change of a skill and the end of its promotion."""

    def __init__(self, live: InUse) -> None:
        super().__init__(live.project, live.skills, live.rules, live.memories)
        for name in ("has_changed", "may_end"):
            object.__setattr__(self, name, threading.Event())

    has_changed: threading.Event
    may_end: threading.Event

    def approve_skill(self, file: Path) -> None:
        super().approve_skill(file)
        self.has_changed.set()
        assert self.may_end.wait(20)


def draft_that_removes_a_point(drafts: Drafts, live: InUse, project: Path) -> None:
    file = project / ".retinue/skills/release.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: How we release\n---\n1. one\n2. two\n3. three\n", encoding="utf-8")
    live.approve_skill(file)
    edit = Proposal(kind=DraftKind.EDIT, name="release-2", description="x", skill="release", edits={2: ""})
    drafts.create(edit, FRICTION, "strong")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_edit_whose_promotion_was_killed_at_its_end_is_not_made_twice_P5(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    draft_that_removes_a_point(drafts, live, tmp_path)
    if (child := os.fork()) == 0:
        killed = KilledAfterApproval(live.project, live.skills, live.rules, live.memories)
        drafts.promote("release-2", killed, forced=False, figures=None)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    drafts.promote("release-2", live, forced=False, figures=None)
    assert live.skill_points("release") == ["one", "three"]
    assert drafts.pending() == []
    drafts.rollback("release-2", live)
    assert live.skill_points("release") == ["one", "two", "three"]


@pytest.mark.parametrize("second", ["promote", "reject", "rollback"])
def test_one_process_at_a_time_decides_about_a_draft(
    second: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    """An edit that two people promote at the same time changes a skill once."""
    draft_that_removes_a_point(drafts, live, tmp_path)
    slow = SlowInUse(live)
    calls: dict[str, Callable[[], object]] = {
        "promote": lambda: Drafts(tmp_path).promote("release-2", live, forced=False, figures=None),
        "reject": lambda: Drafts(tmp_path).reject("release-2"),
        "rollback": lambda: Drafts(tmp_path).rollback("release-2", live),
    }
    with ThreadPoolExecutor() as threads:
        first = threads.submit(drafts.promote, "release-2", slow, forced=False, figures=None)
        assert slow.has_changed.wait(20)
        other = threads.submit(calls[second])
        done, _ = wait([other], timeout=0.3)
        slow.may_end.set()
        assert not done, "it does not wait for the first one"
        assert first.result(20)["promoted"] == "release-2"
        if second == "rollback":
            other.result(20)
        else:
            with pytest.raises(InvalidInput, match="there is no draft"):
                other.result(20)
    assert live.skill_points("release") == ["one", *(["two"] if second == "rollback" else []), "three"]
    assert [line["action"] for line in audit(tmp_path)][:2] == ["create", "promote"]


def test_promotion_that_cannot_write_says_so_and_leaves_the_draft_P8(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    agent = Proposal(kind=DraftKind.AGENT, name="reader", description="Reads", points=("Read it.",))
    drafts.create(agent, FRICTION, "strong")
    (tmp_path / ".retinue/agents/reader.md").mkdir()
    with pytest.raises(Unavailable, match=r"reader\.md cannot be used"):
        drafts.promote("reader", live, forced=False, figures=None)
    assert drafts.names() == {"reader"}
    assert [line["action"] for line in audit(tmp_path)] == ["create"]


@pytest.mark.parametrize("path", [".git/config", "src/app.py", "../a.md", "/a.md", ".retinue/skills/../a"])
def test_forged_audit_file_leads_a_rollback_to_no_other_file_P6(
    path: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    """The audit file is a file of the project, so a clone may bring one."""
    drafts.audit.record(
        "promote", "forged", kind="skill", undo={"file": path, "hash": "x", "before": "planted"}
    )
    with pytest.raises(Conflict):
        drafts.rollback("forged", live)
    written = [file for file in tmp_path.rglob("*") if file.is_file() and b"planted" in file.read_bytes()]
    assert written == [tmp_path / AUDIT_FILE]


def test_line_that_a_full_disk_has_cut_does_not_take_the_next_one_along(
    drafts: Drafts, tmp_path: Path
) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    with (tmp_path / AUDIT_FILE).open("ab") as file:
        file.write(b'{"action": "promote", "draft": "docst')
    drafts.reject("docstrings")
    assert len(drafts.rejected_friction()) == 1


def test_rollback_keeps_a_memory_that_somebody_else_wrote_or_confirmed(drafts: Drafts, live: InUse) -> None:
    fact = Proposal(kind=DraftKind.MEMORY, name="fact", description="d", memory="Orders start at 7000")
    person = MemoryAuthor("person")
    live.memories.remember(NewMemory(text="Orders start at 7000"), person)
    EvolverRun(drafts, "strong").create(fact, FRICTION)
    drafts.promote("fact", live, forced=True, figures=None)
    assert drafts.rollback("fact", live)["place"] == "nothing: the memory is not the evolver's alone"
    [kept] = live.memories.all()
    live.memories.forget([kept.memory.id], person)
    EvolverRun(drafts, "strong").create(fact, FRICTION)
    drafts.promote("fact", live, forced=True, figures=None)
    [promoted] = live.memories.all()
    assert promoted.memory.author == "evolver"
    live.memories.edit(promoted.memory.id, state="confirmed")
    drafts.rollback("fact", live)
    assert len(live.memories.all()) == 1


def test_edit_keeps_the_line_ends_of_the_file(drafts: Drafts, live: InUse, tmp_path: Path) -> None:
    file = tmp_path / ".retinue/skills/style.md"
    file.parent.mkdir(parents=True)
    before = b"---\r\nname: style\r\ndescription: d\r\n---\r\n1. One.\r\n2. Two.\r\n"
    file.write_bytes(before)
    live.approve_skill(file)
    edit = Proposal(kind=DraftKind.EDIT, name="better", description="d", skill="style", edits={2: "Three."})
    EvolverRun(drafts, "strong").create(edit, FRICTION)
    assert drafts.diff("better", live).count("\n+") == 2, "its name and one line"
    drafts.promote("better", live, forced=True, figures=None)
    assert file.read_bytes() == before.replace(b"Two.", b"Three.")
    drafts.rollback("better", live)
    assert file.read_bytes() == before


@pytest.mark.parametrize("folder", [".smallcode/skills", ".claude/skills"])
def test_drafts_of_skills_in_other_folders_are_promoted_where_they_are(
    folder: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    """Other programs keep their drafts in quarantine in the same way."""
    file = tmp_path / folder / "drafts" / "docstrings.md"
    file.parent.mkdir(parents=True)
    file.write_text(SKILL.text(), encoding="utf-8")
    assert drafts.promote("docstrings", live, forced=True, figures=None)["place"] == f"{folder}/docstrings.md"
    assert not file.exists() and "docstrings" in live.skills.live()
    drafts.rollback("docstrings", live)
    assert "docstrings" not in live.skills.live()


def folder_draft(project: Path, folder: str = ".retinue/skills", **more: str) -> Path:
    """Write a draft that is a folder, as other programs do."""
    place = project / folder / "drafts" / "docstrings"
    files = {
        "SKILL.md": SKILL.text(),
        "reference.md": "# Words\r\nUse these.\r\n",
        "scripts/run.py": "print(1)\n",
    }
    for path, text in (files | more).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(text.encode())
    return place


@pytest.mark.parametrize("folder", [".retinue/skills", ".claude/skills"])
def test_folder_that_is_a_draft_is_promoted_with_all_its_files_and_taken_back(
    folder: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    place = folder_draft(tmp_path, folder)
    draft = drafts.get("docstrings")
    assert (draft.kind, draft.path) == (DraftKind.SKILL, f"{folder}/drafts/docstrings/SKILL.md")
    assert "Begin with a verb." in draft.body and "print(1)" in draft.body, (
        "a trial has no other way to see it"
    )
    shown = drafts.diff("docstrings", live)
    assert f"+++ b/{folder}/docstrings/scripts/run.py" in shown and "+print(1)" in shown
    target = tmp_path / folder / "docstrings"
    assert (
        drafts.promote("docstrings", live, forced=True, figures=None)["place"]
        == f"{folder}/docstrings/SKILL.md"
    )
    assert not place.exists() and drafts.names() == set()
    assert (target / "reference.md").read_bytes() == b"# Words\r\nUse these.\r\n"
    text = live.skills.read(live.skills.live()["docstrings"])
    assert text.files == ("reference.md", "scripts/run.py"), "approved as a whole"
    with pytest.raises(InvalidInput, match="no draft"):
        drafts.promote("docstrings", live, forced=True, figures=None)
    drafts.rollback("docstrings", live)
    assert not target.exists() and live.skills.all_skills() == []
    with pytest.raises(InvalidInput, match="no promotion to undo"):
        drafts.rollback("docstrings", live)


def test_rejected_folder_is_gone_and_the_audit_keeps_its_files(drafts: Drafts, tmp_path: Path) -> None:
    place = folder_draft(tmp_path)
    (place / ".hidden").write_text("mine", encoding="utf-8")
    drafts.reject("docstrings")
    assert drafts.names() == set()
    assert [file.name for file in place.iterdir()] == [".hidden"], "what nobody has seen is not deleted"
    [rejected] = audit(tmp_path)
    assert rejected["files"]["scripts/run.py"] == "print(1)\n"


@pytest.mark.parametrize("changed", ["reference.md", "scripts/new.py"])
def test_promoted_folder_that_somebody_changed_is_not_removed(
    changed: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    folder_draft(tmp_path)
    drafts.promote("docstrings", live, forced=True, figures=None)
    target = tmp_path / ".retinue/skills/docstrings"
    (target / changed).write_text("mine", encoding="utf-8")
    with pytest.raises(Conflict, match="was changed after its promotion"):
        drafts.rollback("docstrings", live)
    assert (target / "SKILL.md").exists() and (target / "scripts/run.py").exists()


@pytest.mark.parametrize("taken", ["docstrings.md", "docstrings/SKILL.md", "docstrings/other.md"])
def test_folder_that_is_promoted_mixes_with_no_other_skill(
    taken: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    folder_draft(tmp_path)
    file = tmp_path / ".retinue/skills" / taken
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(Conflict, match="exists already"):
        drafts.promote("docstrings", live, forced=True, figures=None)
    assert "docstrings" in drafts.names() and file.read_text(encoding="utf-8") == "mine"


def test_single_file_is_not_promoted_beside_a_folder_of_its_name(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    drafts.create(SKILL, FRICTION, "strong")
    (tmp_path / ".retinue/skills/docstrings").mkdir()
    (tmp_path / ".retinue/skills/docstrings/SKILL.md").write_text("mine", encoding="utf-8")
    with pytest.raises(Conflict, match="exists already"):
        drafts.promote("docstrings", live, forced=True, figures=None)


SPOILED: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.symlink_to("/etc/hostname"), "more.md is a link"),
    (lambda file: file.write_bytes(b"x" * 70_000), "more than 64 KiB"),
    (lambda file: file.write_bytes(b"\xff\x00"), "more.md is not a text file"),
    (lambda file: file.with_name("SKILL.md").unlink(), "no SKILL.md"),
]


@pytest.mark.parametrize(("spoil", "reason"), SPOILED)
def test_folder_that_cannot_be_a_draft_says_why(
    spoil: Callable[[Path], object], reason: str, drafts: Drafts, tmp_path: Path
) -> None:
    spoil(folder_draft(tmp_path) / "more.md")
    assert drafts.names() == set()
    with pytest.raises(InvalidInput, match=f"docstrings cannot be used: .*{reason}"):
        drafts.get("docstrings")


def test_link_to_a_folder_is_no_draft(drafts: Drafts, tmp_path: Path) -> None:
    folder_draft(tmp_path / "elsewhere")
    (tmp_path / ".retinue/skills/drafts").mkdir(parents=True)
    link = tmp_path / ".retinue/skills/drafts/docstrings"
    link.symlink_to(tmp_path / "elsewhere/.retinue/skills/drafts/docstrings")
    with pytest.raises(InvalidInput, match="docstrings cannot be used: it is a link"):
        drafts.get("docstrings")


def test_skill_that_breaks_the_format_is_not_promoted(drafts: Drafts, live: InUse, tmp_path: Path) -> None:
    folder_draft(tmp_path, **{"SKILL.md": "---\nname: other\ndescription: x\n---\n1. one\n"})
    with pytest.raises(InvalidInput, match=r"drafts/docstrings/SKILL.md:2: "):
        drafts.promote("docstrings", live, forced=True, figures=None)
    assert not (tmp_path / ".retinue/skills/docstrings").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_promotion_of_a_folder_that_was_killed_is_repeated_P5(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    folder_draft(tmp_path)
    if (child := os.fork()) == 0:
        killed = KilledInUse(live.project, live.skills, live.rules, live.memories)
        try:
            drafts.promote("docstrings", killed, forced=True, figures=None)
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert live.skills.live() == {} and drafts.names() == {"docstrings"}
    drafts.promote("docstrings", live, forced=True, figures=None)
    assert list(live.skills.live()) == ["docstrings"] and drafts.names() == set()


def test_forged_undo_removes_only_files_of_one_skill_P6(drafts: Drafts, live: InUse, tmp_path: Path) -> None:
    other = tmp_path / ".retinue/skills/other/SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("mine", encoding="utf-8")
    folder_draft(tmp_path)
    drafts.promote("docstrings", live, forced=True, figures=None)
    lines = (tmp_path / AUDIT_FILE).read_text(encoding="utf-8")
    forged = json.loads(lines.splitlines()[-1])
    forged["undo"]["more"] = {".retinue/skills/other/SKILL.md": hashlib.sha256(b"mine").hexdigest()}
    (tmp_path / AUDIT_FILE).write_text(f"{lines}{json.dumps(forged)}\n", encoding="utf-8")
    with pytest.raises(Conflict, match="no place of promoted drafts"):
        drafts.rollback("docstrings", live)
    assert other.exists()


def test_draft_takes_no_name_of_a_skill_elsewhere(drafts: Drafts, live: InUse, tmp_path: Path) -> None:
    """A draft that came with a clone has passed no gate. Its header, and not its file, names the skill."""
    other = tmp_path / ".agents/skills/release.md"
    other.parent.mkdir(parents=True)
    other.write_text("---\nname: Docstrings\ndescription: mine\n---\n1. one\n", encoding="utf-8")
    place = tmp_path / ".retinue/skills/drafts/harmless.md"
    place.parent.mkdir(parents=True)
    place.write_text(SKILL.text(), encoding="utf-8")
    with pytest.raises(Conflict, match=r"\.agents/skills/release\.md has the name Docstrings already"):
        drafts.promote("harmless", live, forced=True, figures=None)
    other.unlink()
    drafts.promote("harmless", live, forced=True, figures=None)


def test_trial_says_what_it_does_not_show_of_a_folder(drafts: Drafts, tmp_path: Path) -> None:
    folder_draft(tmp_path, **{"zlong.md": "x" * 20_000})
    assert drafts.get("docstrings").body.endswith("characters of the other files are not shown]")


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("rules/drafts/bad.json", "[1, 2", "it names no agent"),
        ("rules/drafts/bad.json", '{"agent": "writer"}', "not a permission rule"),
        ("rules/drafts/bad.json", '{"agent": "writer", "rule": "Bash("}', "not a permission rule"),
        ("memory/drafts/bad.json", '{"memory": 5}', "it has no memory"),
        ("skills/drafts/bad.edit.json", '{"skill": "release", "points": {}}', "it changes no point"),
        ("teams/drafts/bad.yaml", "name: bad\nagents: []\n", "drafts/bad.yaml:2"),
    ],
)
def test_draft_without_a_content_is_not_promoted(
    path: str, text: str, reason: str, drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    """A person may have written it, or a clone may have brought it."""
    file = tmp_path / ".retinue" / path
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=reason):
        drafts.promote("bad", live, forced=True, figures=None)
    assert drafts.names() == {"bad"}
    assert live.rules.rules_for("") == live.rules.rules_for("writer") == ()


class FailingInUse(InUse):
    """Cannot approve a skill, such as on a full disk."""

    def approve_skill(self, file: Path) -> None:
        raise Unavailable("the disk is full")


def test_promotion_that_fails_leaves_nothing_but_the_draft(
    drafts: Drafts, live: InUse, tmp_path: Path
) -> None:
    folder_draft(tmp_path)
    failing = FailingInUse(live.project, live.skills, live.rules, live.memories)
    with pytest.raises(Unavailable, match="the disk is full"):
        drafts.promote("docstrings", failing, forced=True, figures=None)
    assert not (tmp_path / ".retinue/skills/docstrings").exists()
    assert drafts.names() == {"docstrings"}
    drafts.promote("docstrings", live, forced=True, figures=None)
    assert list(live.skills.live()) == ["docstrings"]
