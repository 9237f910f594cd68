"""How names, values and quotes are written, as parts of expressions for RE2."""

from __future__ import annotations

QUOTE = r"""(?:\\{0,3}["'\x60]|&quot;|&#39;)"""
"""Also as JSON inside JSON and HTML write it."""

QUOTED = (
    r"""(?:\\{1,3}"([^"\\\s]{4,})\\{1,3}"|"([^"\s]{4,})"|'([^'\s]{4,})'|\x60([^\x60\s]{4,})\x60"""
    r"""|&quot;([^&\s]{4,})&quot;)"""
)
"""Without blanks: what has blanks is a sentence."""

BARE = r"""([^\s"'\x60<>(){}\[\],;&\\]{4,})(?:[\s,;&)}\]"'<\\]|$)"""
EQUALS = rf"{QUOTE}?\]?[ \t]{{0,8}}(?:=>|:=|\?=|={{1,3}}|:|[ \t]is:?[ \t])[ \t]{{0,8}}"
ANNOTATION = r"(?:[ \t]{0,2}:[ \t]{0,2}[\w.\[\]| ?]{1,40})?"
"""The type between a name and its value, as in Python and TypeScript."""
