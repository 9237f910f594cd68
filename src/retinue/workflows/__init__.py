"""Runs in order: chains, parallel work, branches and teams over a typed handoff.

Only `embedded.py` reaches the world. Everything else touches it through the `steps` port alone, because a
fleet of machines will run the same code on another engine.
"""
