"""Builds HTML that is safe by construction: plain strings are always escaped, only `tag` returns markup.

The output of runs is untrusted until it has been escaped here. Knows nothing of the pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from retinue.core import strip_control_characters

VOID_ELEMENTS = frozenset({"input", "link", "meta"})


class Html(str):
    """Trusted markup. Concatenating it with a string gives a plain string, which is escaped again."""

    __slots__ = ()


HtmlContent: TypeAlias = "str | Iterable[Html] | None"
HtmlAttribute: TypeAlias = "str | float | bool | None"


def tag(name: str, /, *content: HtmlContent, **attributes: HtmlAttribute) -> Html:
    """Build an element, such as `tag("a", "here", href="/")`.

    Append `_` to attribute names that Python reserves. Attributes that are False or None are left out.
    """
    opening = f"<{name}{''.join(map(_to_attribute, attributes, attributes.values()))}>"
    return Html(opening if name in VOID_ELEMENTS else f"{opening}{join_markup(*content)}</{name}>")


def join_markup(*content: HtmlContent) -> Html:
    """Join content to markup. Escapes plain strings."""
    return Html("".join(map(_to_markup, content)))


def _to_markup(content: HtmlContent) -> str:
    """Escape a plain string, and return markup as it is."""
    if content is None:
        return ""
    if isinstance(content, Html):
        return content
    return _escape(content) if isinstance(content, str) else "".join(content)


def _to_attribute(name: str, value: HtmlAttribute) -> str:
    """Format an attribute with its leading space."""
    if value is None or value is False:
        return ""
    html_name = name.rstrip("_").replace("_", "-")
    return f" {html_name}" if value is True else f' {html_name}="{_escape(str(value))}"'


def _escape(text: str) -> str:
    return escape(strip_control_characters(text), quote=True)
