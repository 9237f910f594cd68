"""The `retinue` command."""

from __future__ import annotations

import click

from retinue import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="retinue")
def main() -> None:
    """A retinue of subagents for any MCP host."""
