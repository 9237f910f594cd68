"""What an agent's loop may call, each call checked, bounded and redacted. Knows nothing of models or runs."""
