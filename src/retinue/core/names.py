"""The groups of tools that configuration chooses from."""

from __future__ import annotations

TOOL_GROUPS = ("core", "research", "agents", "runs", "workflows")
"""Every group there is, in the order hosts see them."""

DEFAULT_TOOL_GROUPS = ("core", "research", "agents", "runs")
"""What a host sees if nothing else is said: every group costs each of its conversations tokens."""
