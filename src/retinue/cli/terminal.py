"""What the terminal can show. Judged by its variables; nothing is asked of it."""

from __future__ import annotations

from collections.abc import Mapping

PROGRAMS = frozenset(("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby"))
"""Values of TERM_PROGRAM of terminals that show hyperlinks."""
OF_THEIR_OWN = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID")
"""Variables that only such terminals set."""
TERMS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty", "wezterm", "contour")
FIRST_VTE = 5000
"""The first version of the library behind GNOME's terminals that has them."""


def is_plain(environ: Mapping[str, str], *, is_tty: bool) -> bool:
    """Whether to write text alone: to a pipe, to a terminal that cannot do more, or by the user's wish."""
    return not is_tty or bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"


def has_links(environ: Mapping[str, str], *, is_tty: bool) -> bool:
    """Whether hyperlinks (OSC 8) are shown as such; elsewhere they might show as noise."""
    if forced := environ.get("FORCE_HYPERLINK"):
        return forced != "0"
    if is_plain(environ, is_tty=is_tty):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        environ.get("TERM_PROGRAM") in PROGRAMS
        or any(name in environ for name in OF_THEIR_OWN)
        or environ.get("TERM", "").startswith(TERMS)
        or (vte.isdigit() and int(vte) >= FIRST_VTE)
    )
