"""Random agent files: every one is an agent or a list of problems, and none replaces a built-in agent."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from random import Random

from retinue.definitions import AgentCatalog, AgentDefinition, AgentSources
from retinue.definitions.agent_fields import FIELDS, NAME_PATTERN
from retinue.definitions.agent_files import FileOrigin, read_definition
from retinue.definitions.definition_files import PROJECT_FOLDERS
from retinue.definitions.executor_support import permissions_beyond_reading

NAME = "frontmatter"

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-frontmatter-")).resolve()
FORMATS = tuple(dict.fromkeys(form for _, form in PROJECT_FOLDERS))
PLACES = (".retinue/agents/{}.md", "agents/{}/agent.md", ".claude/agents/{}.md", ".opencode/agents/{}.md")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

CATALOG = AgentCatalog(AgentSources(projects=(FOLDER,), reserved=frozenset({"main"})))
BUILTIN = {name: definition.source for name, definition in CATALOG.agents().items()}
KEYS = tuple(FIELDS)
NAMES = (*BUILTIN, "mine", "Validator", "main", "a b", "../x", "", "ünï", "validator\\n", "x" * 200)
SCALARS = (
    *(
        "true",
        "no",
        "1",
        "-1",
        "1e9",
        "0x10",
        "~",
        "''",
        '"',
        "'",
        "a: b",
        "- a",
        "[a",
        "{a: b",
        "[a, [b, [c]]]",
    ),
    *("&a [*a]", "*a", "!!python/object/apply:os.system ['true']", "!!binary aGk=", "|", ">-", "2024-01-01"),
    *(
        "claude",
        "local",
        "command",
        "deterministic",
        "Bash(rm:*)",
        "Read",
        "all",
        "${HOME}",
        "a" * 3_000,
        "\u2028",
    ),
)


def run_case(random: Random) -> None:
    """Read a random agent file. Now and then, put it into an untrusted project and read all agents."""
    name, data = random.choice(("mine", *BUILTIN)), _document(random)
    lines = data.count(b"\n") + data.count(b"\r") + 2
    origin = FileOrigin(name, "x.md", random.choice(FORMATS), "project", "x.md")
    _check_definition(read_definition(data, origin), lines)
    if random.random() < 0.02:
        file = FOLDER / random.choice(PLACES).format(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        try:
            _check_catalog(lines)
        finally:
            file.unlink()


def _check_catalog(lines: int) -> None:
    """Fail unless the built-in agents are in force."""
    agents = CATALOG.agents()
    for name, source in BUILTIN.items():
        assert agents[name].source == source, f"{agents[name].source} has replaced the built-in {name}"
    for definition in CATALOG.all_definitions():
        if definition.scope != "built in":
            assert not definition.trusted
            _check_definition(definition, lines)


def _check_definition(definition: AgentDefinition, lines: int) -> None:
    """Fail unless the definition is sound or tells what is wrong, and needs trust to do more than read."""
    for problem in definition.problems:
        assert 1 <= problem.line <= lines, f"line {problem.line} of {lines}"
    agent = definition.agent
    if agent is None:
        assert definition.problems or definition.excluded_because
        return
    assert NAME_PATTERN.fullmatch(agent.name), agent.name
    if agent.command or agent.mcp_servers or agent.env:
        assert list(permissions_beyond_reading(agent)), "it would run without trust"


def _document(random: Random) -> bytes:
    if random.random() < 0.03:
        return random.randbytes(random.randrange(400))
    header = "\n".join(_line(random) for _ in range(random.randrange(1, 9)))
    text = f"---\n{header}\n---\n{random.choice(('', 'Do it.', '---', '{prompt}'))}\n"
    for _ in range(random.choice((0, 0, 0, 1, 4))):  # damage it
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice((*SCALARS, "\n", "\r", "\t", "\0", "---\n", ":")) + text[at + 1 :]
    return text.encode("utf-8", "surrogatepass")


def _line(random: Random) -> str:
    if random.random() < 0.3:
        return f"name: {random.choice(NAMES)}"
    if random.random() < 0.3:
        return f"description: {random.choice(('d', 'does it', '', '[]'))}"
    if random.random() < 0.02:
        return "a: " + random.choice(("[", "{a: ", "- ")) * random.randrange(1, 2_000)
    key = random.choice(KEYS) if random.random() < 0.9 else random.choice(("x", "__class__", "<<", "? a"))
    match random.randrange(4):
        case 0:
            items = "".join(f"\n  - {random.choice(SCALARS)}" for _ in range(random.randrange(1, 4)))
            return f"{key}:{items}"
        case 1:
            items = "".join(f"\n  {random.choice(KEYS)}: {random.choice(SCALARS)}" for _ in range(2))
            return f"{key}:{items}"
        case _:
            return f"{key}: {random.choice(SCALARS)}"
