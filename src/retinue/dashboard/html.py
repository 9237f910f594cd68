"""Markup that is safe by its type: a plain text is always escaped, only `tag` makes what is not.

Knows no page. What runs say is hostile until it has passed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from retinue.core import strip_control_characters

VOID_ELEMENTS = frozenset({"input", "link", "meta"})


class Html(str):
    """Markup of our own making."""

    __slots__ = ()


HtmlContent: TypeAlias = "str | Iterable[Html] | None"
HtmlAttribute: TypeAlias = "str | float | bool | None"


def tag(name: str, /, *inside: HtmlContent, **attributes: HtmlAttribute) -> Html:
    """`tag("a", "here", href="/")`. Attributes that Python reserves end in `_`; false ones are left out."""
    opening = f"<{name}{''.join(map(_attribute, attributes, attributes.values()))}>"
    return Html(opening if name in VOID_ELEMENTS else f"{opening}{join_markup(*inside)}</{name}>")


def join_markup(*inside: HtmlContent) -> Html:
    return Html("".join(map(_markup, inside)))


def _markup(inside: HtmlContent) -> str:
    if inside is None:
        return ""
    if isinstance(inside, Html):
        return inside
    return _escaped(inside) if isinstance(inside, str) else "".join(inside)


def _attribute(name: str, value: HtmlAttribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    return escape(strip_control_characters(text), quote=True).encode("utf-8", "replace").decode("utf-8")
