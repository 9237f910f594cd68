"""The names of the tool groups that configuration switches and the server registers."""

from __future__ import annotations

GROUPS = ("core", "research", "agents", "runs")
"""Every group there is, in the order hosts see them."""
