"""What skills cost at the start, and how often the ranker finds the right one.

    python -m benchmarks.skills [--rounds 9]

The first part writes 300 skills and measures the CPU time of the first list of a process, which reads their
headers: half of them are the user's, half belong to a trusted project. Then it lists them again and counts
the files that are opened. The second part ranks 40 skills for each of the 60 prompts of skill_prompts.json,
without a model, and prints the prompts whose skill does not come first. The prompts were written before the
ranker saw them. They share words with the descriptions, as tasks do if a description says when to use it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Checks
from retinue.definitions import AgentSources
from retinue.learning import SkillCatalog, rank_skills
from retinue.store import ApprovedSkills

SKILLS = 300
MAX_CPU_MS = 10.0
MIN_SHARE = 0.9
PROMPTS = Path(__file__).parent / "skill_prompts.json"

FIRST_LIST = """
import json, sys, time
from pathlib import Path
from retinue.definitions import AgentSources
from retinue.learning import SkillCatalog
from retinue.store import ApprovedSkills
base = Path(sys.argv[1])
sources = AgentSources(projects=(base / "project",), config=base / "config", home=base / "home",
                       is_trusted=lambda project: True)
before = time.process_time()
catalog = SkillCatalog(sources, ApprovedSkills(base / "data"))
live = catalog.live()
spent = time.process_time() - before
opened = 0
def count(event, arguments):
    global opened
    opened += event == "open" and str(arguments[0]).endswith("SKILL.md")
sys.addaudithook(count)
SkillCatalog(sources, ApprovedSkills(base / "data")).live()
print(json.dumps({"ms": spent * 1000, "skills": len(live), "opened": opened, "bodies": catalog.bodies_read}))
"""


def write_skills(base: Path) -> None:
    """Write the skills, and approve those of the project."""
    for number in range(SKILLS):
        folder = base / ("config/skills" if number % 2 else "project/.retinue/skills")
        file = folder / f"skill-{number:03}" / "SKILL.md"
        file.parent.mkdir(parents=True)
        description = f"How we do thing {number}: steps, commands, checks. Use it when a task is about it."
        header = f"---\nname: skill-{number:03}\ndescription: {json.dumps(description)}\n---\n"
        if number % 3:
            header = header.replace('"', "").replace(f"thing {number}:", f"thing {number},")
        file.write_text(header + f"{number}. Do it.\n" * 1_000, encoding="utf-8")
    catalog = catalog_of(base)
    catalog.approve([each for each in catalog.all_skills() if each.needs_approval])


def catalog_of(base: Path) -> SkillCatalog:
    sources = AgentSources(
        projects=(base / "project",),
        config=base / "config",
        home=base / "home",
        is_trusted=lambda project: True,
    )
    return SkillCatalog(sources, ApprovedSkills(base / "data"))


def measure_start(checks: Checks, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="skills-") as folder:
        write_skills(Path(folder))
        command = [sys.executable, "-c", FIRST_LIST, folder]
        results = [
            json.loads(subprocess.run(command, check=True, capture_output=True, env=os.environ).stdout)
            for _ in range(rounds)
        ]
    figures = {(each["skills"], each["opened"], each["bodies"]) for each in results}
    checks.say(f"(skills, files opened, bodies read): {sorted(figures)}")
    checks.figure("bodies read", max(each["bodies"] for each in results), 0)
    milliseconds = statistics.median(each["ms"] for each in results)
    checks.say(f"CPU of the first list: {milliseconds:.1f} ms, the median of {rounds}")
    checks.ratio("CPU of the first list against its limit", milliseconds / MAX_CPU_MS, 1.0)


def measure_choice(checks: Checks) -> None:
    data = json.loads(PROMPTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="skills-") as folder:
        for name, description in data["skills"].items():
            file = Path(folder) / "config" / "skills" / name / "SKILL.md"
            file.parent.mkdir(parents=True)
            file.write_text(f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n1. Do it.\n")
        skills = list(catalog_of(Path(folder)).live().values())
        right = 0
        for prompt, expected in data["prompts"]:
            best = rank_skills(skills, prompt)[0][0].name
            right += best == expected
            if best != expected:
                checks.say(f"  {prompt!r}: {best}, not {expected}")
    total = len(data["prompts"])
    checks.say(f"right skill first: {right} of {total} prompts, {len(skills)} skills")
    checks.ratio("prompts with another skill first", (total - right) / total, 1 - MIN_SHARE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure skills.")
    parser.add_argument("--rounds", type=int, default=9)
    checks = Checks()
    measure_start(checks, parser.parse_args().rounds)
    measure_choice(checks)
    sys.exit(checks.verdict())


if __name__ == "__main__":
    main()
