"""Prints results as JSON or as tables, and detects what the terminal can display."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from retinue.core import strip_control_characters

T = TypeVar("T", bound=Callable[..., Any])
JSON_WANTED = "retinue.json"
"""Key in click's `ctx.meta`. Its value is whether `--json` was used."""


def json_option(command: T) -> T:
    """Add `--json`, which prints the result, or the error, as JSON on stdout."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
        ctx.meta[JSON_WANTED] = value
        return value

    return click.option("--json", "as_json", is_flag=True, callback=remember, help="Print JSON.")(command)


def print_json(value: object) -> None:
    """Print a value as indented JSON. Lone surrogates, which no terminal takes, become question marks."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode())


class LiveTable:
    """A table that is redrawn in place on a terminal. Elsewhere, each version is printed below the last."""

    def __init__(self) -> None:
        self._lines = 0

    def draw(self, rows: Sequence[Sequence[str]]) -> None:
        """Print the table, over its previous version on a terminal."""
        if self._lines and sys.stdout.isatty():
            click.echo(f"\x1b[{self._lines}A\x1b[J", nl=False)
        print_table(rows, cut=True)
        self._lines = len(rows)


MIN_WRAPPED_COLUMN = 20
"""A narrower last column is not wrapped: the terminal breaks its lines."""


def print_table(
    rows: Sequence[Sequence[str]], *, cut: bool = False, style: Callable[[int, str], str] | None = None
) -> None:
    """Print aligned columns. On a terminal, the last column is wrapped, or lines are cut at its width.

    `style` colours a cell; it gets the number of the column.
    """
    if not rows:
        return
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in strip_control_characters(rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    for row in rows:
        lines = [row[-1]]
        if room is not None and cut:
            lines = [row[-1][: max(0, room - before)]]
        elif room is not None and len(row[-1]) > room - before >= MIN_WRAPPED_COLUMN:
            lines = textwrap.wrap(row[-1], room - before)
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        if style is not None:
            cells = [style(column, cell) for column, cell in enumerate(cells)]
        click.echo("  ".join([*cells, lines[0]]).rstrip())
        for line in lines[1:]:
            click.echo(" " * before + line)


PIPE_COLUMNS = 100
"""The width of text that is wrapped for something else than a terminal."""
MIN_COLUMNS = 40
"""Text is not wrapped more narrowly."""


def print_wrapped(text: str, indent: int, first: str = "") -> None:
    """Print a text behind `first`, wrapped at the width of the terminal. Further lines are indented."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_COLUMNS
    room = max(room - indent, MIN_COLUMNS)
    lines = [
        part
        for line in text.splitlines() or [""]
        for part in textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    click.echo("\n".join((first + lines[0], *(" " * indent + line for line in lines[1:]))))


HYPERLINK_PROGRAMS = frozenset(("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby"))
"""Values of TERM_PROGRAM for terminals that support hyperlinks."""
HYPERLINK_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID")
"""Variables set only by terminals that support hyperlinks."""
HYPERLINK_TERMS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty", "wezterm", "contour")
MIN_VTE_VERSION = 5000
"""The first version of VTE, the library of GNOME's terminals, that supports hyperlinks."""


def is_plain_terminal(environ: Mapping[str, str], *, is_tty: bool) -> bool:
    """Return whether to print text without colours or control codes."""
    return not is_tty or bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"


def supports_hyperlinks(environ: Mapping[str, str], *, is_tty: bool) -> bool:
    """Return whether the environment variables show that the terminal supports hyperlinks (OSC 8)."""
    if forced := environ.get("FORCE_HYPERLINK"):
        return forced != "0"
    if is_plain_terminal(environ, is_tty=is_tty):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        environ.get("TERM_PROGRAM") in HYPERLINK_PROGRAMS
        or any(name in environ for name in HYPERLINK_VARIABLES)
        or environ.get("TERM", "").startswith(HYPERLINK_TERMS)
        or (vte.isdigit() and int(vte) >= MIN_VTE_VERSION)
    )
