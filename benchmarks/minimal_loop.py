"""A small agent loop to compare with: JSON actions under a schema, temperature 0, nothing of Retinue.

The model searches first, reads next, and answers only after that. An action that it repeats is not offered in
the next step.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

MAX_STEPS = 8
SKIPPED = {".git", "node_modules", "Cargo.lock", "go.sum", "package-lock.json"}
SYSTEM = (
    "You answer a question about the code in a folder. Reply with one JSON object: "
    '{"action": "search", "pattern": WORDS} finds lines, {"action": "read", "path": FILE, "line": NUMBER} '
    'shows 40 lines, {"action": "answer", "text": TEXT} ends. Name the place as path:line. '
    "If the code does not have it, answer: not found."
)


@dataclass(frozen=True, slots=True)
class MinimalAnswer:
    """What the loop found, and what it took."""

    text: str
    steps: int
    tokens: int


def run_loop(url: str, root: Path, task: str) -> MinimalAnswer:
    """Let the model of a server answer a task about a folder."""
    turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    done: set[str] = set()
    has_read, repeated, tokens = False, "", 0
    for step in range(1, MAX_STEPS + 1):
        kinds = ["search", "read", "answer"] if has_read else ["search", "read"] if done else ["search"]
        kinds = ["answer"] if step == MAX_STEPS else [kind for kind in kinds if kind != repeated]
        reply, used = _ask(url, turns, kinds)
        repeated = ""
        tokens += used
        turns.append({"role": "assistant", "content": reply})
        try:
            action: dict[str, Any] = json.loads(reply)
        except ValueError:
            turns.append({"role": "user", "content": "That was not JSON. Reply with one short JSON object."})
            continue
        if action["action"] == "answer":
            return MinimalAnswer(str(action["text"]), step, tokens)
        if reply in done:
            repeated = action["action"]
            turns.append({"role": "user", "content": "You did that already. Do something else."})
            continue
        done.add(reply)
        found = _search(root, action["pattern"]) if action["action"] == "search" else _read(root, action)
        has_read = has_read or (action["action"] == "read" and not found.startswith("error"))
        turns.append({"role": "user", "content": found})
    return MinimalAnswer("", MAX_STEPS, tokens)


def _ask(url: str, turns: list[dict[str, str]], kinds: list[str]) -> tuple[str, int]:
    fields = {"search": {"pattern": "string"}, "read": {"path": "string", "line": "integer"}}
    fields["answer"] = {"text": "string"}
    choices = [
        {
            "type": "object",
            "properties": {
                "action": {"const": kind},
                **{key: {"type": fields[kind][key]} for key in fields[kind]},
            },
            "required": ["action", *fields[kind]],
        }
        for kind in kinds
    ]
    wanted = {"type": "json_schema", "json_schema": {"name": "action", "schema": {"anyOf": choices}}}
    body = {"messages": turns, "temperature": 0, "max_tokens": 300, "response_format": wanted}
    answer: dict[str, Any] = httpx2.post(f"{url}/chat/completions", json=body, timeout=600).json()
    return str(answer["choices"][0]["message"]["content"]), int(answer["usage"]["total_tokens"])


def _search(root: Path, pattern: str) -> str:
    """Return lines with the pattern, else with all its words, else with its longest word."""
    words = sorted(re.findall(r"\w{3,}", pattern.lower()), key=len, reverse=True)
    for wanted in ([pattern.lower()], words, words[:1]):
        hits = [
            f"{path.relative_to(root)}:{number}: {line.strip()[:120]}"
            for path in sorted(root.rglob("*"))
            if path.is_file() and not SKIPPED & set(path.parts) and path.stat().st_size < 300_000
            for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
            if wanted and all(word in line.lower() for word in wanted)
        ]
        if hits:
            return "\n".join(hits[:15])
    return "no line matches"


def _read(root: Path, action: dict[str, Any]) -> str:
    path = (root / str(action["path"])).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        return "error: there is no such file"
    first = max(1, int(action["line"]) - 10)
    lines = path.read_text("utf-8", "replace").splitlines()[first - 1 : first + 29]
    return "\n".join(f"{number}: {line[:160]}" for number, line in enumerate(lines, first))
