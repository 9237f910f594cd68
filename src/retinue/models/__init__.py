"""Talking to language models."""
