"""Retinue: a retinue of subagents for any MCP host."""

__version__ = "0.1.0"
