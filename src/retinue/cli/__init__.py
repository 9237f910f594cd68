"""The terminal surface. Translates between a command line and the service; holds no logic."""
