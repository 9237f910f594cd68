"""Markdown and YAML files become values. Knows nothing of how agents are performed or who asks for them."""
