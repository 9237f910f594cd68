"""Numbers and times as people read them. Knows nothing of markup or runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

STATUS = {"waiting_parent_reply": "waiting for an answer"}
"""Where the stored word is not one for people."""


def duration(seconds: float) -> str:
    """As `static/live.js` says it too."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes} min {whole % 60} s" if minutes < 60 else f"{hours} h {minutes % 60} min"


def spent(usage: Mapping[str, int]) -> str:
    """Tokens and money, as far as they are known."""
    parts = [f"{usage['tokens']:,} tokens"] if usage.get("tokens") else []
    if cost := usage.get("cost_micros"):
        parts.append(f"${cost / 1_000_000:.4f}")
    return ", ".join(parts)


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def status(word: str) -> str:
    return STATUS.get(word, word)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def cut(text: str, letters: int) -> tuple[str, int]:
    """The beginning of a text, and how many letters that leaves out."""
    return text[:letters], max(0, len(text) - letters)
