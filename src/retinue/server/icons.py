"""Small drawings that hosts show beside the server and its tools, prompts and resources."""

from __future__ import annotations

from functools import cache
from urllib.parse import quote

from mcp_types import Icon

_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='#718096' "
    "stroke-width='1.5'><path d='{path}'/></svg>"
)
_PATHS = {
    "core": "M8 2v4M8 6 3 11M8 6l5 5M8 6v5M2 12h2M7 12h2M12 12h2",
    "research": "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2M11 11l3 3",
    "agents": "M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6M2 14c1-6 11-6 12 0",
    "runs": "M2 3h12v10H2zM4 6l2 2-2 2M8 10h4",
    "workflows": "M2 4h4v3H2zM10 4h4v3h-4zM6 9h4v4H6zM6 5h4M12 7v4h-2",
}


@cache
def icons(group: str) -> list[Icon]:
    """The icon of a group of tools. That of `core` is also the server's."""
    drawing = quote(_SVG.format(path=_PATHS[group]), safe="/:='")
    return [Icon(src=f"data:image/svg+xml,{drawing}", mime_type="image/svg+xml", sizes=["any"])]
