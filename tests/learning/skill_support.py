"""Skills in real files, with a catalog and a library over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.definitions import AgentSources
from retinue.learning import SkillCatalog, SkillLibrary
from retinue.redaction import SecretRedactor
from retinue.store import ApprovedSkills


def write_skill_file(
    folder: Path,
    name: str,
    description: str = "Does it.",
    body: str = "1. Do it.",
    header: Sequence[str] = (),
) -> Path:
    """Write `NAME/SKILL.md` below a folder of skills."""
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ["---", f"name: {name}", f"description: {description}", *header, "---", body, ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@dataclass
class Place:
    """A home and a project, with the skills of both."""

    folder: Path
    trusted: bool = True

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.project = self.folder / "project"
        for each in (self.home, self.project):
            each.mkdir(exist_ok=True)
        self.approved = ApprovedSkills(self.folder / "data")

    @property
    def own(self) -> Path:
        """The user's own folder of skills."""
        return self.home / ".config" / "retinue" / "skills"

    @property
    def shared(self) -> Path:
        """The project's folder of skills."""
        return self.project / ".retinue" / "skills"

    def catalog(self) -> SkillCatalog:
        sources = AgentSources(
            projects=(self.project,),
            config=self.home / ".config" / "retinue",
            home=self.home,
            is_trusted=lambda project: self.trusted,
        )
        return SkillCatalog(sources, self.approved)

    def library(self, tokens: int = 2_000) -> SkillLibrary:
        return SkillLibrary(self.catalog(), SecretRedactor(), tokens)
