"""One request to a model with the code that `retinue locate` finds: what a reader of code has to beat.

Forty lines of code around the first three places, and "answer with file and line, or say not found". Nothing
is checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

PLACES, LINES, MAX_LINE_CHARS = 3, 40, 160
SYSTEM = "You answer questions about the code of a project. You see excerpts of its files with line numbers."
TASK = (
    "Answer the question in one or two sentences, only from these excerpts, with the file and the line as "
    'path:line. If they do not answer it, say "not found".'
)


@dataclass(frozen=True, slots=True)
class OneAnswer:
    """What the model said, and what it took."""

    text: str
    tokens: int


def ask_once(url: str, root: Path, task: str, data: Path) -> OneAnswer:
    """Let the model of a server answer a task about a folder."""
    shown = "\n\n".join(excerpt(root, place) for place in locate(root, task, data)[:PLACES])
    body = {
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{shown}\n\nQuestion: {task}\n\n{TASK}"},
        ],
        "temperature": 0,
        "max_tokens": 200,
    }
    answer: dict[str, Any] = httpx2.post(f"{url}/chat/completions", json=body, timeout=600).json()
    return OneAnswer(
        str(answer["choices"][0]["message"]["content"]).strip(), int(answer["usage"]["total_tokens"])
    )


def locate(root: Path, task: str, data: Path) -> list[str]:
    """Return the places that the command finds, best first, each as `path:line`."""
    command = [sys.executable, "-m", "retinue", "locate", task, "--root", str(root), "--json"]
    variables = {**os.environ, "RETINUE_DATA_DIR": str(data)}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    try:
        value: dict[str, Any] = json.loads(found.stdout)
    except ValueError:
        return []
    return [str(place) for place in value.get("references", ())]


def excerpt(root: Path, place: str) -> str:
    """Return forty numbered lines of a file around a place."""
    path, _, line = place.rpartition(":")
    lines = (root / path).read_text("utf-8", "replace").splitlines() if (root / path).is_file() else []
    first = max(1, int(line) - LINES // 4)
    numbered = enumerate(lines[first - 1 : first - 1 + LINES], first)
    return "\n".join([f"{path}:", *(f"{number}: {text[:MAX_LINE_CHARS]}" for number, text in numbered)])
