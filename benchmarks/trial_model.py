"""Ninety-one tasks about sixteen small projects, for a real small model: `make trial-model`.

The tasks of `trial_model.jsonl` have five kinds: where something is, how it works, a number or a name,
whether something exists, and questions that need two places. Their answers were taken from the code before
any model was asked. The 914 of `trial_judging.jsonl` are about 169 other projects, in twenty parts
(`--half judging`, and `second` to `twentieth`). Nobody who works on the loop looks at a part before its
first run. The authors of all parts but the third did not work on the loop. Checks judge the answers, no model
does:

- right: the answer has all the words that it needs and, if it was asked for a place, a place inside the gold
  lines; for a thing that does not exist, it says that it was not found
- partly: it has some of the words, or a place in the right file
- not found: it says that it did not find what is there
- unverified: the run did not end as a success, so nobody takes the answer for checked. An answer in doubt is
  a success that is marked as unverified. The table counts it as right, partly or wrong
- wrong: anything else

The code that Retinue quotes below an answer does not count for its verdict, so that the figures compare what
the model said. A line below the table counts the answers that are right with that code.

Two arms answer: `retinue` is the built-in agent `researcher` through the real service, `one-request` a single
request with the code that `retinue locate` finds (`one_request.py`). The results are appended to a file, and
tasks that are in it are not asked again. The table has the median of seconds and steps, and the most.

    python -m benchmarks.trial_model [--model 0.5b] [--endpoint URL] [--arms retinue,one-request]
        [--half last] [--kinds where,how] [--tasks cobra-1,fd] [--results FILE] [--show]
        [--file FILE --projects FOLDER]

Other tasks come from `--file`, in the same form. `--projects` is a folder that holds their projects, each in
a folder with the name of its `repo`. The last lines name each aim of the trial, and whether it was reached.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.gguf_model import WEIGHTS, serving
from benchmarks.one_request import ask_once
from retinue import wiring
from retinue.answers import NOT_CERTAIN, QUOTED_HEADING
from retinue.core import as_object

TASKS = Path(__file__).with_suffix(".jsonl")
PROJECTS = Path(__file__).with_name("trial_projects.jsonl")
"""Python, JavaScript, Go and Rust, four of each; those for judging also TypeScript, C, Ruby and Java."""
CACHE = Path(".cache/trial")
AGENT = "researcher"
KINDS = ("where", "how", "value", "is there", "two steps")
VERDICTS = ("right", "partly", "not found", "unverified", "wrong")
MAX_WAIT_S = 1_800.0
MIN_RIGHT_SHARE = 0.5
MIN_HONEST_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Project:
    """A project at a fixed version, from a package index or a git server."""

    source: str
    """`pip:NAME==VERSION`, `npm:NAME@VERSION` or `git:URL`."""
    pin: str
    """The SHA-256 of the archive, or the commit."""


def read_projects(file: Path = PROJECTS) -> dict[str, Project]:
    """Return the projects that the tasks are about, by name."""
    rows = map(json.loads, file.read_text("utf-8").splitlines())
    return {row["name"]: Project(row["source"], row["pin"]) for row in rows}


def fetch_project(name: str, projects: Path) -> Path:
    """Return the folder of a project, after downloading it if needed. Exits if it is not the pinned one."""
    folder = projects / name
    if folder.is_dir():
        return folder.resolve()
    project = read_projects().get(name)
    if project is None:
        raise SystemExit(f"the project {name} is not in {projects}")
    kind, _, source = project.source.partition(":")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if kind == "git":
            made = Path(scratch) / name
            _run(["git", "init", "--quiet", str(made)])
            _run(["git", "-C", str(made), "fetch", "--quiet", "--depth", "1", source, project.pin])
            _run(["git", "-C", str(made), "checkout", "--quiet", project.pin])
        else:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                ":all:",
                source,
            ]
            _run(pip if kind == "pip" else ["npm", "pack", "--silent", source], Path(scratch))
            (archive,) = Path(scratch).iterdir()
            if hashlib.sha256(archive.read_bytes()).hexdigest() != project.pin:
                raise SystemExit(f"{archive.name} is not the expected archive of {name}")
            with tarfile.open(archive) as tar:
                tar.extractall(Path(scratch) / "unpacked", filter="data")
            (made,) = (Path(scratch) / "unpacked").iterdir()
        made.replace(folder)
    return folder.resolve()


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialModelTask:
    """A task with its gold."""

    id: str
    half: str = ""
    """`development` tasks were looked at while the loop was built, `held out` ones after their first run.
    The `fresh` ones were written after that, and looked at after one run. Then came the `last` ones."""
    repo: str
    kind: str
    task: str
    places: tuple[str, ...] = ()
    """Lines that answer it, each as `path:first-last`."""
    need: tuple[str, ...] = ()
    """Regular expressions that must all match the answer, without regard to case."""
    absent: bool = False
    """Whether the project does not have what is asked for."""


def read_tasks(file: Path = TASKS) -> list[TrialModelTask]:
    """Return all tasks, in the order of the file."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    for row in rows:
        row["places"], row["need"] = tuple(row.get("places", ())), tuple(row.get("need", ()))
    return [TrialModelTask(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, what it took, and what it is worth."""

    arm: str
    model: str
    task: str
    kind: str
    half: str
    absent: bool
    status: str
    answer: str
    verdict: str
    false_place: str
    """A place of a successful answer that does not exist; empty if there is none."""
    gold: tuple[str, ...]
    """The lines that answer the task."""
    seconds: float
    steps: int
    tokens: int
    is_marked: bool = False
    """Whether the result itself says that nothing confirms the answer."""
    is_right_with_code: bool = False
    """Whether the answer is right together with the code that is quoted below it."""

    @property
    def misleads(self) -> bool:
        """Whether a success that is not right names places, none of which is in the gold lines."""
        if self.verdict not in ("partly", "wrong"):
            return False
        cited = list(_cited(in_words(self.answer)))
        return bool(cited) and not any(_is_inside(path, line, self.gold) for path, line in cited)

    @property
    def begins_right(self) -> bool:
        """Whether the first place that the answer names is in the gold lines."""
        cited = list(_cited(in_words(self.answer)))
        return bool(cited) and _is_inside(*cited[0], self.gold)


_PLACE = re.compile(r"((?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w+)(?::|#L|,? lines? |\W{1,3}line )(\d+)")
_NOT_FOUND = re.compile(r"\W*(?:not found|nothing (?:was )?found|the model was not asked)\b", re.IGNORECASE)
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_DENIES = re.compile(
    r"\bnot (?:found|shown|there|present|support\w*|implement\w*|contain\w*|exist|mention\w*|measured)\b"
    r"|\b(?:does|do|is|are|was|were|can|could)(?:n't| not) \w*"
    r"|\bno (?:\w+ ){0,3}(?:support|code|evidence|such|mention|way|middleware|handler|protection|list)\b"
    r"|^\W*no\b|\bnowhere\b|\bthere (?:is|are) no\b|\bcannot\b|\bprobably not\b",
    re.IGNORECASE,
)


def judge(task: TrialModelTask, status: str, answer: str) -> str:
    """Return the verdict on what an answer says, without the code that is quoted below it."""
    return judge_whole(task, status, in_words(answer))


def in_words(answer: str) -> str:
    """Return an answer without the code that is quoted below it."""
    return answer.partition(QUOTED_HEADING)[0].rstrip()


def judge_whole(task: TrialModelTask, status: str, answer: str) -> str:
    """Return the verdict on an answer together with the code that is quoted below it."""
    if status != "success":
        return "unverified"
    if task.absent:
        told = in_words(answer).replace(NOT_CERTAIN, "")
        return "right" if _DENIES.search(told) and not _YES.match(told) else "wrong"
    if _NOT_FOUND.match(answer):
        return "not found"
    cited = list(_cited(answer))
    is_there = any(_is_inside(path, line, task.places) for path, line in cited)
    words = [re.search(wanted, answer, re.IGNORECASE | re.DOTALL) is not None for wanted in task.need]
    if task.kind == "is there":
        if _DENIES.search(answer):
            return "wrong"
        return "right" if is_there or all(words) else "wrong"
    if task.kind == "where" and is_there:
        return "right"
    if task.kind != "where" and all(words):
        return "right"
    gold = {place.rpartition(":")[0] for place in task.places}
    return "partly" if any(words) or any(path in gold for path, _ in cited) else "wrong"


def false_place(root: Path, answer: str) -> str:
    """Return a place in an answer that does not exist in the project; empty if all exist."""
    for path, line in _cited(answer):
        file = root / path
        if not file.is_file() or line > len(file.read_bytes().splitlines()) or line < 1:
            return f"{path}:{line}"
    return ""


def _cited(answer: str) -> Iterator[tuple[str, int]]:
    for match in _PLACE.finditer(answer):
        yield match[1], int(match[2])


def _is_inside(path: str, line: int, places: Iterable[str]) -> bool:
    for place in places:
        file, _, lines = place.rpartition(":")
        first, last = map(int, lines.split("-"))
        if (path == file or file.endswith(f"/{path}")) and first <= line <= last:
            return True
    return False


async def ask_retinue(url: str, root: Path, task: str, cache: Path) -> tuple[str, str, int, int, bool]:
    """Give a task to the agent through the service.

    Returns status, answer, steps, tokens, and whether the result is marked as unverified.
    """
    loaded = wiring.read_settings(
        {"roots": (str(root),), "data_dir": str((cache / "data").resolve()), "models.endpoint": url}
    )
    async with wiring.running(loaded, wiring.build_service(loaded, for_person=True)) as service:
        run = await service.runs.start(AGENT, task, person=True)
        await service.runs.finish(run.id, MAX_WAIT_S)
        done, _ = service.runs.with_messages(run.id)
        result, error = as_object(done.result), as_object(done.error)
        usage = done.usage.as_dict()
        answer = str(result.get("output") or "")
        if error:
            answer = f"{answer}\n[{error.get('code')}: {error.get('message')}]".strip()
        steps, tokens = int(usage.get("steps", 0)), int(usage.get("tokens", 0))
        return done.status.value, answer, steps, tokens, "unverified" in result


def ask_one_request(url: str, root: Path, task: str, cache: Path) -> tuple[str, str, int, int]:
    """Give a task to one request to compare with. Whatever it answers is a success: it checks nothing."""
    answer = ask_once(url, root, task, (cache / "data").resolve())
    return ("success" if answer.text else "failure"), answer.text, 1, answer.tokens


def perform(arm: str, model: str, url: str, task: TrialModelTask, cache: Path, projects: Path) -> Result:
    """Let one arm do one task."""
    root = fetch_project(task.repo, projects)
    began = time.monotonic()
    is_marked = False
    if arm == "retinue":
        status, answer, steps, tokens, is_marked = asyncio.run(ask_retinue(url, root, task.task, cache))
    else:
        status, answer, steps, tokens = ask_one_request(url, root, task.task, cache)
    seconds = round(time.monotonic() - began, 1)
    wrong = false_place(root, answer) if status == "success" else ""
    verdict = judge(task, status, answer)
    return Result(
        arm,
        model,
        task.id,
        task.kind,
        task.half,
        task.absent,
        status,
        answer,
        verdict,
        wrong,
        task.places,
        seconds,
        steps,
        tokens,
        is_marked,
        judge_whole(task, status, answer) == "right",
    )


def read_results(file: Path, all_tasks: Sequence[TrialModelTask]) -> list[Result]:
    """Return the results of earlier runs. Their answers are judged again, by the checks of today."""
    if not file.is_file():
        return []
    tasks = {task.id: task for task in all_tasks}
    results: list[Result] = []
    for row in map(json.loads, file.read_text("utf-8").splitlines()):
        if row["task"] not in tasks:
            continue
        task = tasks[row["task"]]
        row["verdict"] = judge(task, row["status"], row["answer"])
        row["is_right_with_code"] = judge_whole(task, row["status"], row["answer"]) == "right"
        row["gold"] = task.places
        results.append(Result(**row))
    return results


def table(results: Sequence[Result]) -> list[str]:
    """Return a table for each arm, by kind."""
    lines: list[str] = []
    for arm, model in sorted({(result.arm, result.model) for result in results}, reverse=True):
        own = [result for result in results if (result.arm, result.model) == (arm, model)]
        lines += [
            "",
            f"{arm}, {model}",
            "kind       tasks  right  partly  not found  unverified  wrong  "
            "seconds (most)  steps (most)  tokens",
        ]
        for kind in (*KINDS, "all"):
            rows = [result for result in own if kind in (result.kind, "all")]
            if rows:
                lines.append(_table_row(kind, rows))
        absent = [result for result in own if result.absent]
        honest = sum(result.verdict == "right" for result in absent)
        places = [f"{result.task} {result.false_place}" for result in own if result.false_place]
        misled = [result.task for result in own if result.misleads and not result.is_marked]
        doubtful = [result.task for result in own if result.misleads and result.is_marked]
        marked = [result for result in own if result.is_marked]
        places_right = [result for result in own if result.kind == "where" and result.verdict == "right"]
        first_right = sum(result.begins_right for result in places_right)
        with_code = sum(result.is_right_with_code for result in own)
        lines.append(f"right with the code that is quoted below: {with_code} of {len(own)}")
        lines.append(f"of {len(places_right)} right places, {first_right} are named first")
        lines.append(f"marked as unverified: {len(marked)}, of which {_count_right(marked)} are right")
        lines.append(f"honest about things that do not exist: {honest} of {len(absent)}")
        lines.append(f"success with a place that does not exist: {', '.join(places) or 'none'}")
        lines.append(f"success with only wrong places, and not right: {', '.join(misled) or 'none'}")
        lines.append(f"the same, but marked as unverified: {', '.join(doubtful) or 'none'}")
    return lines


def aims(results: Sequence[Result]) -> list[str]:
    """Return each aim of the trial for each model, and whether the product reached it."""
    lines: list[str] = []
    for model in sorted({result.model for result in results if result.arm == "retinue"}, reverse=True):
        own = {result.task: result for result in results if (result.arm, result.model) == ("retinue", model)}
        other_arm = [result for result in results if (result.arm, result.model) == ("one-request", model)]
        single = {result.task: result for result in other_arm}
        shared = own.keys() & single.keys()
        right = _count_right(own.values())
        paired, other = (_count_right(arm[task] for task in shared) for arm in (own, single))
        absent = [result for result in own.values() if result.absent]
        honest = _count_right(absent)
        unreal = [result.task for result in own.values() if result.false_place]
        trusted = [result for result in own.values() if not result.is_marked]
        misled = [result.task for result in trusted if result.misleads]
        wrong = [result.task for result in trusted if result.verdict == "wrong"]
        lines += ["", f"aims, {model}"]
        lines.append(
            _aim(right >= MIN_RIGHT_SHARE * len(own), f"right: {right} of {len(own)}, half is enough")
        )
        if shared:
            lines.append(
                _aim(
                    paired >= other,
                    f"right on the same {len(shared)} tasks: {paired}, one request {other}",
                )
            )
        if absent:
            lines.append(
                _aim(
                    honest >= MIN_HONEST_SHARE * len(absent),
                    f"honest about things that do not exist: {honest} of {len(absent)}",
                )
            )
        for what, tasks in (
            ("a place that does not exist", unreal),
            ("only wrong places", misled),
            ("a wrong answer", wrong),
        ):
            lines.append(_aim(not tasks, f"success with {what}: {', '.join(tasks) or 'none'}"))
    return lines


def _count_right(results: Iterable[Result]) -> int:
    return sum(result.verdict == "right" for result in results)


def _aim(is_reached: bool, what: str) -> str:
    return f"{'pass' if is_reached else 'FAIL'}  {what}"


def _table_row(kind: str, rows: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in rows)
    seconds, steps = ([getattr(result, key) for result in rows] for key in ("seconds", "steps"))
    tokens = median(result.tokens for result in rows)
    right, partly, missed, unverified, wrong = (counts[verdict] for verdict in VERDICTS)
    return (
        f"{kind:<10} {len(rows):>6} {right:>6} {partly:>7} {missed:>10} {unverified:>11} {wrong:>6} "
        f"{median(seconds):>8.0f} {f'({max(seconds):.0f})':>6} {median(steps):>6g} {f'({max(steps)})':>6} "
        f"{tokens:>7.0f}"
    )


@contextmanager
def _endpoint(given: str | None, model: str) -> Generator[str]:
    if given:
        yield given.rstrip("/")
    else:
        with serving(model) as url:
            yield url


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=sorted(WEIGHTS), default="1.5b")
    parser.add_argument("--endpoint", help="the URL of a server that runs already; else one is started")
    parser.add_argument("--arms", default="retinue,one-request")
    parser.add_argument("--half", default="", help="development, held, fresh or last")
    parser.add_argument("--kinds", default="", help="only tasks of these kinds")
    parser.add_argument("--tasks", default="", help="only tasks whose id starts with one of these")
    parser.add_argument("--results", type=Path, default=CACHE / "results.jsonl")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--file", type=Path, default=TASKS, help="the tasks, if not our own")
    parser.add_argument("--projects", type=Path, help="the folder with the projects of the tasks")
    parser.add_argument("--show", action="store_true", help="print the table of earlier results, ask nothing")
    given = parser.parse_args(arguments)
    kinds, ids = _listed(given.kinds), _listed(given.tasks)
    projects: Path = given.projects or given.cache / "projects"
    all_tasks = read_tasks(given.file)
    tasks = [
        task
        for task in all_tasks
        if task.half.startswith(given.half)
        and (not kinds or task.kind in kinds)
        and (not ids or any(task.id.startswith(one) for one in ids))
    ]
    arms = _listed(given.arms)
    results = read_results(given.results, all_tasks)
    done = {(result.arm, result.model, result.task) for result in results}
    waiting = [(task, arm) for task in tasks for arm in arms if (arm, given.model, task.id) not in done]
    if waiting and not given.show:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        with _endpoint(given.endpoint, given.model) as url, given.results.open("a", encoding="utf-8") as file:
            for task, arm in waiting:
                result = perform(arm, given.model, url, task, given.cache, projects)
                results.append(result)
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
                shown = " ".join(result.answer.split())[:150]
                print(
                    f"{arm:<8} {task.id:<16} {result.verdict:<10} {result.seconds:>6.1f} s  {shown}",
                    flush=True,
                )
    wanted = {task.id for task in tasks}
    chosen = [result for result in results if result.task in wanted and result.arm in arms]
    print(*table(chosen), *aims(chosen), sep="\n")
    return 0


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
