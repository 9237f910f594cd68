"""A question about a codebase becomes a small checked report. Knows nothing of MCP, terminals or models."""
