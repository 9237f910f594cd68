"""The MCP surface. Translates between the protocol and the service; holds no logic."""
