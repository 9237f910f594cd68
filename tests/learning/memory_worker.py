"""Writes memories until it is killed or done: `python -m tests.learning.memory_worker FOLDER NAME COUNT`.

Prints the id of each memory after it is stored. Every second memory corrects the one before it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from retinue.core import NewMemory
from retinue.learning import Memories, MemoryAuthor
from retinue.redaction import SecretRedactor


def main() -> None:
    folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    memories = Memories(data_dir=folder / "data", project=folder / "project", redactor=SecretRedactor())
    before = ""
    for number in range(count):
        corrects = before if number % 2 else ""
        new = NewMemory(text=f"Fact {number} of {name}", corrects=corrects, scope="project")
        before = memories.remember(new, MemoryAuthor(name))["id"]
        print(before, flush=True)
        memories.remember(NewMemory(text=f"Shared fact {number}"), MemoryAuthor(name))


if __name__ == "__main__":
    main()
