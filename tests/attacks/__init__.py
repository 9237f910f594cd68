"""Attacks on Retinue, by repositories, models, web pages, child runs and other users. Each must fail."""

"""Attacks on Retinue, each as a test: what a repository, a model, a run or another process may try."""
