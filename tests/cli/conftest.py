"""Shared by the tests of the command line."""

from __future__ import annotations

from click.testing import CliRunner, Result

from retinue.cli.main import main


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run `retinue` with these arguments in this process."""
    return CliRunner().invoke(main, list(arguments), input=stdin)
