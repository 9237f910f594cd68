"""Names that configuration chooses from: the groups of tools, and the executors."""

from __future__ import annotations

GROUPS = ("core", "research", "agents", "runs")
"""Every group there is, in the order hosts see them."""

EXECUTORS = ("local", "claude", "codex", "gemini", "opencode", "acp", "command", "deterministic")
"""Every way to perform a task that an agent may name, whether it is there or not."""
