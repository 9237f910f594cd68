"""Learns from past runs."""
