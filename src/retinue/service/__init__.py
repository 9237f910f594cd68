"""The verbs: one short function for each thing a user can ask. Knows nothing of MCP, terminals or pages."""
