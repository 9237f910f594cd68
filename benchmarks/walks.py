"""Follows three requests through the code: `python -m benchmarks.walks [research] [claude] [workflow]`.

- research: `research_codebase` on a small project that is indexed already.
- claude: `run_subagent` of an agent on the executor `claude` that needs one permission; `reply_subagent`
  gives it, and `wait_for_runs` fetches the result. Claude Code is a small script.
- workflow: `run_workflow` with a step that says CLARIFY; the server is stopped and another one started;
  `answer_question` there takes the workflow to its end.

Prints for each request the path, the functions and files that ran, the write transactions of the store, and
for research the types that carry the question.

**The path** is the union of the stacks at the landmarks: moments such as "run is recorded" or "program is
started". LANDMARKS below lists them, by what can be seen from outside (an SQL statement, a file, a
function of the standard library) where possible. A stack goes on across the start of a task or a thread, to
the function that started it. Functions of libraries are left out of it.

**A hop** is a call on the path from one of our modules into another one, directly or through a library
(middleware, an executor behind a port, the start of a task). Calls inside a module are no hops. The first
function of ours that a library calls with the request is a hop too. Each call counts once, however many
landmarks lie behind it, and returns do not count. The same two modules may account for several hops. A run
goes on between the calls of a walk: what an earlier call went through is shown after `...` and not counted.

**A write transaction** is a BEGIN on the database of the store, or a statement that writes outside of one.

Functions, files and transactions count if they ran while a call of the client was waited for, whether on the
path or not, background tasks included; so they vary a little. Code that runs at import is left out. The
programs that a run starts are other processes: what they do is not seen.

`--page docs/requests.md` puts the pictures into that page.

Ends non-zero if a landmark was not reached: then code was renamed, and LANDMARKS needs the new name.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import os
import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import retinue
from benchmarks.call_tracer import CallTracer, Entered, Handover, Landmark, Stack, Stage, Transaction

PACKAGE = Path(retinue.__file__).parent
STORE = "retinue.db"
PICTURE_END = "<!-- end of walk -->"
WRITER_THREAD = Handover(
    "retinue.store.database:Database._enqueue", "retinue.store.database:Database._write_job"
)
"""A write that has to wait for the store's lock happens in a thread: its stack goes on with whoever asked for
the write."""
THREAD_STARTER = "retinue.core.stop:run_in_thread"
"""Starts a thread and waits for it, as `anyio.to_thread.run_sync` does. A walk leaves out both."""
QUESTION = "how is a failed payment retried by the gateway?"

RECORDED = Landmark("run is recorded", sql=r"^INSERT INTO runs\b")
RANKED = Landmark("files are ranked", called=r"retinue\..*:(.*\.)?rank\w*")
READ = Landmark("file is read", opened=r"^r .*gateway_client")
KEPT = Landmark("report is written", opened=r"^\S*[wx].*/reports/")
STARTED = Landmark("program is started", called=r"socket:send_fds|subprocess:Popen\._execute_child")
ASKED = Landmark("question is recorded", sql=r"^INSERT INTO messages\b")
REPLIED = Landmark("answer is recorded", sql=r"^UPDATE messages\b")
TOLD = Landmark("program is answered", called=r"(asyncio|anyio)\S*:\w+\.(write|send)", given="behavior")
TAKEN_OVER = Landmark("run is taken up again", sql=r"^UPDATE runs\b.*\bowner\b")
CHECKPOINT = Landmark("step's end is recorded", sql=r"^(INSERT INTO|UPDATE) checkpoints\b", pick=-1)
ENDED = Landmark("run's end is recorded", sql=r"^UPDATE runs\b.*\bended_at = [\d.]+", pick=-1)
VIEWED = Landmark("result is read", sql=r"^SELECT\b.*\bFROM runs\b", directly=True, pick=-1)
REDACTED = Landmark(
    "answer is redacted", called=r"retinue\..*redact\w*:.*\bredact\w*", directly=True, pick=-1
)

LANDMARKS: Mapping[str, Sequence[Landmark]] = {
    "research_codebase": (RECORDED, RANKED, READ, KEPT, ENDED, REDACTED),
    "run_subagent": (RECORDED, STARTED, ASKED, VIEWED, REDACTED),
    "reply_subagent": (REPLIED, TOLD, REDACTED),
    "wait_for_runs": (TOLD, ENDED, VIEWED, REDACTED),
    "run_workflow": (RECORDED, STARTED, CHECKPOINT, ASKED, VIEWED, REDACTED),
    "answer_question": (REPLIED, TAKEN_OVER, RECORDED, STARTED, CHECKPOINT, ENDED, VIEWED, REDACTED),
}
"""Where the path of each call leads to. What a run does beside a call may fall into this call or the next."""

CLAUDE = """\
import json, sys
json.loads(sys.stdin.readline())
def say(**event):
    print(json.dumps(event), flush=True)
say(type="system", subtype="init", session_id="s1", model="m", tools=[])
wants = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t"}
say(type="control_request", request_id="r1", request=wants)
behavior = json.loads(sys.stdin.readline())["response"]["response"]["behavior"]
say(type="result", subtype="success", result=behavior, session_id="s1", num_turns=1)
assert sys.stdin.read() == ""
"""
PHASE = """\
import json, sys
prompt = sys.stdin.read()
findings = {"complexity": "simple"}
decision = "PROCEED"
if "clarify" in sys.argv and "Answered:" not in prompt:
    decision, findings["questions"] = "CLARIFY", ["Which provider?"]
print(json.dumps({"decision": decision, "context_summary": "done", "findings": findings}))
"""


class Carriers:
    """Finds the types of ours that carry the question, among the arguments of functions."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._beginnings = tuple({word[:5] for word in re.findall(r"\w{5,}", question.lower())})
        self.by_text: set[str] = set()
        """Types with a field that is its text."""
        self.by_words: set[str] = set()
        """Types with a field that is made of its words."""
        self.by_parts: set[str] = set()
        """Values that hold one of the others, in a field or in a field of a field."""

    def look_at(self, value: object) -> None:
        kind = type(value)
        if not _is_ours(kind):
            return
        name = f"{kind.__module__.removeprefix('retinue.')}.{kind.__qualname__}"
        if name in self.by_text:
            return
        if self._has_text(value):
            self.by_text.add(name)
        elif self._has_words(value):
            self.by_words.add(name)
        elif self._has_part(value, 3):
            self.by_parts.add(name)

    def _has_text(self, value: object) -> bool:
        return any(isinstance(part, str) and self._question in part for part in _fields(value))

    def _has_words(self, value: object) -> bool:
        for part in (value, *_fields(value)):
            if not isinstance(part, Mapping | tuple | list | set | frozenset):
                continue
            words = [_text(one) for one in list(cast("Iterable[object]", part))[:200]]
            known = [word for word in words if word.startswith(self._beginnings)]
            if len(known) >= 2 and len(known) * 2 >= len(words):
                return True
        return False

    def _has_part(self, value: object, depth: int) -> bool:
        if not dataclasses.is_dataclass(value) or depth == 0:
            return False
        parts = [part for part in _fields(value) if _is_ours(type(part))]
        return any(self._has_text(part) or self._has_part(part, depth - 1) for part in parts)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("retinue.")


def _fields(value: object) -> list[object]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(value, "__dict__", {}), *slots]
    return [getattr(value, name, None) for name in names]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").lower()
    return value.lower() if isinstance(value, str) else ""


@dataclass
class Node:
    """One activation of a function on the path."""

    entered: Entered
    is_new: bool
    """Whether no earlier call of the walk went through it."""
    children: list[Node] = field(default_factory=list["Node"])
    landmarks: list[str] = field(default_factory=list[str])


@dataclass
class Hop:
    """Where the path enters a module, with the functions of it that lead on."""

    module: str
    is_new: bool
    functions: list[str] = field(default_factory=list[str])
    hops: list[Hop] = field(default_factory=list["Hop"])
    landmarks: list[str] = field(default_factory=list[str])

    @property
    def count(self) -> int:
        """The calls from this module on into others. How the path came here is not counted."""
        return sum(hop.is_new + hop.count for hop in self.hops)


def hops_of(stage: Stage, known: set[int]) -> list[Hop]:
    """The path of a stage as a tree. Adds the activations that it goes through to those that are known."""
    nodes: dict[int, Node] = {}
    roots: list[Node] = []
    for _, stack, name in sorted(_picked(stage), key=lambda one: one[0]):
        siblings = roots
        node: Node | None = None
        for entered in stack:
            key = id(entered.frame)
            if key not in nodes:
                nodes[key] = Node(entered, key not in known)
                siblings.append(nodes[key])
            node = nodes[key]
            siblings = node.children
        if node is not None:
            node.landmarks.append(name)
    known.update(nodes)
    return _without_repetition([_hop(root) for root in roots])


def _picked(stage: Stage) -> Iterable[tuple[int, Stack, str]]:
    for landmark in LANDMARKS[stage.name]:
        if moments := stage.moments.get(landmark.name):
            yield *moments[landmark.pick], landmark.name


def _hop(node: Node) -> Hop:
    hop = Hop(node.entered.module, node.is_new)
    _gather(node, hop)
    return hop


def _gather(node: Node, hop: Hop) -> None:
    entered = node.entered
    name = entered.name if hop.functions else entered.function.replace(".<locals>", "")
    name += f" ({entered.start})" if entered.start else ""
    if name not in hop.functions:
        hop.functions.append(name)
    hop.landmarks += node.landmarks
    for child in node.children:
        if child.entered.module == hop.module:
            _gather(child, hop)
        else:
            hop.hops.append(_hop(child))


def _without_repetition(hops: Sequence[Hop]) -> list[Hop]:
    """Start where the path leaves what an earlier call went through already."""
    shown: list[Hop] = []
    for hop in hops:
        while not (hop.is_new or hop.landmarks) and len(hop.hops) == 1 and not hop.hops[0].is_new:
            hop = hop.hops[0]
        shown.append(hop)
    return shown


def lines_of(hops: Sequence[Hop], indent: int = 0) -> list[str]:
    """One line a hop. Indented only where the path branches, or it would run off the page."""
    lines: list[str] = []
    for hop in hops:
        first, *others = hop.functions
        text = f"{'' if hop.is_new else '... '}{hop.module}.{first}"
        text += f" > {', '.join(others)}" if others else ""
        text += "".join(f"  [{name}]" for name in hop.landmarks)
        lines.append("  " * indent + text)
        lines += lines_of(hop.hops, indent + (len(hop.hops) > 1))
    return lines


def picture_of(hops: Sequence[Hop], indent: int = 0) -> list[str]:
    """The same for a page: modules in a row, and an indented line for each branch."""
    lines: list[str] = []
    for hop in hops:
        row = [hop.module if hop.is_new else f"... {hop.module}"]
        end = hop
        while len(end.hops) == 1 and not end.landmarks:
            end = end.hops[0]
            row.append(end.module)
        names = [f" [{name}]".replace(" ", "\N{NO-BREAK SPACE}") for name in end.landmarks]
        text = " → ".join(row) + " ".join(names)
        margin = "  " * indent
        wrapped = textwrap.wrap(text, 110, initial_indent=margin, subsequent_indent=margin + "    ")
        lines += [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]
        lines += picture_of(end.hops, indent + 1)
    return lines


@dataclass
class Walk:
    """A walk under way: what its calls recorded."""

    tracer: CallTracer
    home: Path
    stages: list[Stage] = field(default_factory=list[Stage])
    carriers: Carriers = field(default_factory=lambda: Carriers(QUESTION))

    async def call(self, client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
        """A traced call of a tool."""
        with self.tracer.stage(tool, LANDMARKS[tool], self.carriers.look_at) as stage:
            told = await _called(client, tool, arguments)
        self.stages.append(stage)
        return told

    @asynccontextmanager
    async def server(self) -> AsyncGenerator[Any]:
        """A client of a new server of the project. The one place that names functions of ours."""
        from mcp import Client

        from retinue.server.surface import build_server
        from retinue.wiring import build_service, lifetime, read_settings

        loaded = read_settings({"roots": (str(self.home / "project"),)})
        async with Client(build_server(build_service(loaded), ("all",), lifetime(loaded))) as client:
            yield client


async def _called(client: Any, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, dict(arguments))
    told = cast("dict[str, Any]", result.structured_content)
    assert not result.is_error and "error" not in told, told
    return told


async def research(walk: Walk) -> None:
    project = walk.home / "project"
    (project / "gateway_client.py").write_text(
        "class GatewayClient:\n    def retry_payment(self):\n        '''Retries a failed payment.'''\n"
        "        return charge()\n\n\ndef charge():\n    return 1\n"
    )
    (project / "shop.py").write_text(
        "from gateway_client import GatewayClient\n\n\n"
        "def pay():\n    return GatewayClient().retry_payment()\n"
    )
    async with walk.server() as client:
        for _ in range(50):  # until the index is made, which happens behind the first answer
            with walk.tracer.stage("earlier question", ()) as stage:
                await _called(client, "research_codebase", {"question": "where does the shop pay?"})
                await asyncio.sleep(0.2)
            if all(each.database == STORE for each in stage.transactions):
                break
        await walk.call(client, "research_codebase", question=QUESTION)


async def claude(walk: Walk) -> None:
    _agent(walk.home, "worker", "description: works\nexecutor: claude")
    _program(walk.home, "claude", CLAUDE)
    async with walk.server() as client:
        asked = await walk.call(client, "run_subagent", agent_name="worker", prompt="tidy up", wait_s=20)
        [question] = asked["questions"]
        await walk.call(
            client,
            "reply_subagent",
            runId=asked["run_id"],
            messageId=question["messageId"],
            answer="allow",
        )
        done = await walk.call(client, "wait_for_runs", run_ids=[asked["run_id"]], wait_s=20)
        assert done["runs"][0]["status"] == "success", done


async def workflow(walk: Walk) -> None:
    program = _program(walk.home, "phase", PHASE)
    _agent(walk.home, "unsure", f"description: asks\ncommand: [{program}, clarify]")
    _agent(walk.home, "summer", f"description: sums up\ncommand: [{program}]")
    spec = {"steps": [{"agent": "unsure"}, {"agent": "summer"}]}
    async with walk.server() as client:
        asked = await walk.call(client, "run_workflow", spec=spec, input="add login", wait_s=20)
        assert asked["questions"], asked
    async with walk.server() as client:
        done = await walk.call(client, "answer_question", run_id=asked["run_id"], answers=["Google"])
        assert (done["status"], done["decision"]) == ("success", "PROCEED"), done


def _agent(home: Path, name: str, header: str) -> None:
    file = home / ".config" / "retinue" / "agents" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{header}\n---\nDo it.\n")


def _program(home: Path, name: str, code: str) -> Path:
    """A Python script on the PATH."""
    file = home / "bin" / name
    file.write_text(f"#!{sys.executable} -IS\n{code}")
    file.chmod(0o755)
    return file


WALKS: Mapping[str, Callable[[Walk], Awaitable[None]]] = {
    "research": research,
    "claude": claude,
    "workflow": workflow,
}


def trace(name: str, home: Path) -> Walk:
    """One walk, in a home of its own."""
    for variable in [one for one in os.environ if one.startswith(("RETINUE_", "XDG_"))]:
        del os.environ[variable]
    for folder in ("project", "bin"):
        (home / folder).mkdir(parents=True)
    os.environ.update(
        HOME=str(home),
        RETINUE_DATA_DIR=str(home / "data"),
        PATH=f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
    )
    os.chdir(home / "project")

    async def follow(walk: Walk) -> None:
        walk.tracer.follow_tasks()
        await WALKS[name](walk)

    with CallTracer(PACKAGE, (WRITER_THREAD,), (THREAD_STARTER,)) as tracer:
        walk = Walk(tracer, home)
        asyncio.run(follow(walk))
    return walk


def report(name: str, walk: Walk) -> list[str]:
    """Print a walk; the landmarks that were not reached."""
    known: set[int] = set()
    paths = {stage.name: hops_of(stage, known) for stage in walk.stages}
    print(f"\n== {name}")
    for stage in walk.stages:
        hops = paths[stage.name]
        print(f"\n-- {stage.name}: {_figures(sum(hop.count for hop in hops), [stage])}\n")
        print("\n".join(lines_of(hops)))
        for number, each in enumerate(_writes(stage), 1):
            print(f"  write {number:2}: {', '.join(dict.fromkeys(each.statements)) or '-'}  by {each.writer}")
    total = sum(hop.count for hops in paths.values() for hop in hops)
    print(f"\n{name} in all: {_figures(total, walk.stages)}")
    rooms = Counter(module.split("/")[0] for module, _ in _functions(walk.stages))
    print("functions by room: " + ", ".join(f"{room} {count}" for room, count in rooms.most_common()))
    if name == "research":
        carriers = walk.carriers
        print(f"types that carry the question's text: {_listed(carriers.by_text)}")
        print(f"types that hold one of these: {_listed(carriers.by_parts - carriers.by_text)}")
        print(f"types made of its words: {_listed(carriers.by_words - carriers.by_text - carriers.by_parts)}")
    print(f"\nAs a picture:\n\n{picture(walk)}")
    reached = {landmark for stage in walk.stages for landmark in stage.moments}
    wanted = [(stage.name, one.name) for stage in walk.stages for one in LANDMARKS[stage.name]]
    return [f"{stage}: {landmark}" for stage, landmark in wanted if landmark not in reached]


def picture(walk: Walk) -> str:
    """The compact picture of a walk: for each call its figures and its path."""
    known: set[int] = set()
    lines: list[str] = []
    for stage in walk.stages:
        hops = hops_of(stage, known)
        count = sum(hop.count for hop in hops)
        lines.append(f"{stage.name}: {count} hops, {len(_writes(stage))} writes")
        lines += picture_of(hops, 1)
    return "\n".join(lines)


def put_into_page(page: Path, name: str, walk: Walk) -> None:
    """Replace what is between the two comments of a walk in a Markdown page by its picture."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(f"<!-- walk {name} -->\n")
    _, end, after = rest.partition(PICTURE_END)
    assert end, f"{page} has no comments for the walk {name}"
    block = f"<!-- walk {name} -->\n```\n{picture(walk)}\n```\n{end}"
    page.write_text(before + block + after, encoding="utf-8")


def _figures(hops: int, stages: Sequence[Stage]) -> str:
    functions = _functions(stages)
    files = {module for module, _ in functions}
    writes = sum(len(_writes(stage)) for stage in stages)
    return f"{hops} hops; {len(functions)} functions in {len(files)} files; {writes} write transactions"


def _functions(stages: Sequence[Stage]) -> set[tuple[str, str]]:
    return {one for stage in stages for one in stage.functions}


def _writes(stage: Stage) -> list[Transaction]:
    return [one for one in stage.transactions if one.database == STORE]


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return f"{len(ordered)}: {', '.join(ordered)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("walks", nargs="*", metavar="walk", help=", ".join(WALKS))
    parser.add_argument("--page", type=Path, help="Markdown page whose pictures are replaced")
    given = parser.parse_args()
    wanted: list[str] = given.walks or list(WALKS)
    page: Path | None = given.page and given.page.resolve()
    logging.disable(logging.WARNING)
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            walk = trace(name, Path(folder).resolve() / name)
            missed += report(name, walk)
            if page is not None:
                put_into_page(page, name, walk)
        os.chdir("/")
    for each in missed:
        print(f"landmark not reached: {each}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
