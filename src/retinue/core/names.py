"""Names that configuration chooses from: the groups of tools, and the executors."""

from __future__ import annotations

TOOL_GROUPS = ("core", "research", "agents", "runs", "workflows")
"""Every group there is, in the order hosts see them."""

DEFAULT_TOOL_GROUPS = ("core", "research", "agents", "runs")
"""What a host sees if nothing else is said: every group costs each of its conversations tokens."""

EXECUTOR_NAMES = ("local", "claude", "codex", "gemini", "opencode", "acp", "command", "deterministic")
"""Every way to perform a task that an agent may name, whether it is there or not."""
