"""How names, values and quotes are written, as parts of expressions for RE2."""

from __future__ import annotations

OPEN, CLOSE = r"""(?:\\{0,3}["'\x60]|&quot;|&#39;)""", r"""(?:\\{0,3}["'\x60]|&quot;|&#39;)"""
QUOTED = (
    r"""(?:\\{1,3}"([^"\\\s]{4,})\\{1,3}"|"([^"\s]{4,})"|'([^'\s]{4,})'|\x60([^\x60\s]{4,})\x60"""
    r"""|&quot;([^&\s]{4,})&quot;)"""
)
BARE = r"""([^\s"'\x60<>(){}\[\],;&\\]{4,})(?:[\s,;&)}\]"'<\\]|$)"""
EQUALS = rf"{OPEN}?\]?[ \t]{{0,8}}(?:=>|:=|\?=|={{1,3}}|:)[ \t]{{0,8}}"
ANNOTATION = r"(?:[ \t]{0,2}:[ \t]{0,2}[\w.\[\]| ?]{1,40})?"
