"""`retinue config`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from retinue.cli.output import json_option, print_json, print_table


@click.command()
@click.option("--check", "file", type=click.Path(path_type=Path), metavar="FILE", help="Only try this file.")
@json_option
def config(file: Path | None, as_json: bool) -> None:
    """Show every setting in force and where it came from.

    Later wins: retinue.toml of the project, the user's own file, RETINUE_* variables, flags.

    \b
    Examples:
      retinue config
      retinue config --check retinue.toml
      RETINUE_LIMITS__MAX_FILES_READ=100 retinue config --json
    """
    from retinue.service import check_settings_file, describe_settings, user_settings_location
    from retinue.wiring import read_settings

    if file is not None:
        check_settings_file(file)
        if as_json:
            print_json({"file": str(file), "valid": True})
        else:
            click.echo(f"{file}: every setting is valid")
        return
    settings = describe_settings(read_settings({}))
    if as_json:
        print_json([dataclasses.asdict(setting) for setting in settings])
    else:
        print_table([(setting.key, json.dumps(setting.value), setting.origin) for setting in settings])
        own, is_there = user_settings_location()
        click.echo(f"your own file: {own}{'' if is_there else ' (not there yet)'}", err=True)
