"""Attacks on Retinue, each as a test: what a repository, a model, a run or another process may try."""
