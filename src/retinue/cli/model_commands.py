"""`retinue models`: tries a local model on ten small tasks, and shows what it gets right."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from retinue.cli.output import json_option, print_json
from retinue.cli.person_only import person_only
from retinue.core import clip, counted

COLORS = {"right": "green", "not found": "yellow", "unverified": "yellow", "wrong": "red", "failed": "red"}
MAX_ANSWER_CHARS = 100


@click.group()
def models() -> None:
    """Find out what your local models can do.

    \b
    Example:
      retinue models try
    """


@models.command("try")
@click.argument("name", default="default")
@json_option
@person_only("try models, because nobody would count the tokens")
def try_model(name: str, as_json: bool) -> None:
    """Let a model do ten small tasks, and show what it got right.

    NAME is a model or a tier. First the model is asked whether it calls tools; agents use what it can. The
    tasks are about a small project with known answers, so nothing of yours is read. On a slow machine this
    takes some minutes. The exit code is 1 if the model got fewer than half of the tasks right.

    \b
    Examples:
      retinue models try
      retinue models try strong --json
    """
    import asyncio

    from retinue.wiring import read_settings, try_model as run

    shown: dict[str, object] = {}
    results = asyncio.run(
        run(
            read_settings({}),
            name,
            shown.update if as_json else _print_skills,
            (lambda _: None) if as_json else _print_result,
        )
    )
    right = sum(result["verdict"] == "right" for result in results)
    if as_json:
        print_json({**shown, "right": right, "results": results})
    else:
        _print_total(results, right)
    sys.exit(0 if 2 * right >= len(results) else 1)


def _print_skills(skills: dict[str, Any]) -> None:
    """Print what the probe of the model found out."""
    click.echo(f"{skills['model']}: {skills['summary']}\n")


def _print_result(result: dict[str, Any]) -> None:
    """Print one task with its verdict and the answer."""
    verdict = click.style(f"{result['verdict']:10}", fg=COLORS[result["verdict"]])
    click.echo(f"{verdict} {result['seconds']:6.1f} s  {result['kind']:9} {result['task']}")
    answer = clip(" ".join(result["answer"].split()), MAX_ANSWER_CHARS)
    click.echo(f"{'':22}{answer or '(no answer)'}")


def _print_total(results: Sequence[dict[str, Any]], right: int) -> None:
    """Print how many answers were right, and what they cost."""
    seconds, tokens = sum(each["seconds"] for each in results), sum(each["tokens"] for each in results)
    tasks = counted(len(results), "task")
    click.echo(f"\n{right} of {tasks} right, in {seconds:.0f} s and {counted(tokens, 'token')}")
