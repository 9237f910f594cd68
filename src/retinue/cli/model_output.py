"""Prints how a model did its ten small tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from retinue.core import clip, counted

COLORS = {"right": "green", "unverified": "yellow", "wrong": "red", "failed": "red"}
MAX_ANSWER_CHARS = 100


def print_skills(skills: dict[str, Any]) -> None:
    """Print what the probe of the model found out."""
    click.echo(f"{skills['model']}: {skills['summary']}\n")


def print_result(result: dict[str, Any]) -> None:
    """Print one task with its verdict and the answer."""
    verdict = click.style(f"{result['verdict']:10}", fg=COLORS[result["verdict"]])
    click.echo(f"{verdict} {result['seconds']:6.1f} s  {result['kind']:9} {result['task']}")
    answer = clip(" ".join(result["answer"].split()), MAX_ANSWER_CHARS)
    click.echo(f"{'':22}{answer or '(no answer)'}")


def print_total(results: Sequence[dict[str, Any]]) -> None:
    """Print how many answers were right, and what they cost."""
    right = sum(result["verdict"] == "right" for result in results)
    seconds, tokens = sum(each["seconds"] for each in results), sum(each["tokens"] for each in results)
    tasks = counted(len(results), "task")
    click.echo(f"\n{right} of {tasks} right, in {seconds:.0f} s and {counted(tokens, 'token')}")
