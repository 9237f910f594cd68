"""A unified diff of one small change in a text of any size. Knows nothing of formats."""

from __future__ import annotations

CONTEXT = 3
MAX_LINE = 300


def unified(name: str, before: str, after: str) -> str:
    """One hunk from the first line that differs to the last; empty when nothing does."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if old == new:
        return ""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = max(0, head - CONTEXT)
    old_end, new_end = len(old) - tail, len(new) - tail
    context_after = old[old_end : old_end + CONTEXT]
    beyond = len(context_after)
    lines = [f"--- {name}\n", f"+++ {name}\n"]
    lines.append(f"@@ -{_range(start, old_end + beyond)} +{_range(start, new_end + beyond)} @@\n")
    lines += [_line(" ", line) for line in old[start:head]]
    lines += [_line("-", line) for line in old[head:old_end]]
    lines += [_line("+", line) for line in new[head:new_end]]
    lines += [_line(" ", line) for line in context_after]
    return "".join(lines)


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    body = line.rstrip("\r\n")
    cut = body if len(body) <= MAX_LINE else f"{body[:MAX_LINE]}…"
    ending = "\n" if body != line else "\n\\ No newline at end of file\n"
    return f"{sign}{cut}{ending}"
