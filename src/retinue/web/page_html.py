"""Extracts the main text of HTML as Markdown, without hidden text and without what surrounds it.

Runs in the process of `page_worker.py`. Knows nothing of the network and of other kinds of pages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

from retinue.web.page_styles import (
    MAX_RULES,
    WHITE,
    Declarations,
    Paint,
    can_hide,
    hides,
    read_declarations,
    read_sheet,
)

MAX_DEPTH = 300
"""How deep elements may be nested. Pages of honest people have at most about 100 levels."""

_NO_CONTENT = frozenset(
    (
        *("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "video"),
        *("audio", "form", "button", "select", "dialog", "input", "textarea", "map", "head", "title"),
        *("datalist", "option", "noframes", "rp", "meter", "progress", "annotation", "annotation-xml"),
    )
)
_AROUND_TAGS = frozenset(("nav", "header", "footer", "aside"))
_AROUND_ROLES = frozenset(
    (
        *("navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu"),
        "menubar",
    )
)
_AROUND_NAME = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|banner|side-?bar|sphinxsidebar|adverts?|ads?|sponsor\w*|promo|newsletter"
    r"|subscribe|share|social|comments|related|recommend\w*|breadcrumbs?|menu|navbar|navigation|nav|footer"
    r"|pagination|pager|popup|modal|skip-?link|user-info|vote\w*|file-navigation|bordergrid|headerlink|toc)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
"""Words in the class or the id of an element that surrounds the main text."""
_MAIN = "main,[role=main],article,[itemprop=articleBody],.markdown-body,.post-content,.entry-content"
_HIDDEN_CLASSES = re.compile(
    r"(?:^|[\s_-])(?:sr-?only|visually-?hidden|screen-?reader(?:-text)?|assistive-text|a11y-hidden|element-invisible"
    r"|off-?screen)(?:$|[\s_-])|(?:^|\s)(?:[a-z]+-)?(?:hidden|hide|d-none|invisible|opacity-0|text-transparent)(?:$|\s)",
    re.IGNORECASE,
)
_SHOWN_CLASSES = re.compile(r"(?:^|\s)(?:sm|md|lg|xl|2xl):(?:block|flex|grid|inline|table|contents)")
"""Classes that show on wide screens what another class hides on narrow ones."""
_HIDDEN_ATTRIBUTES = frozenset(("hidden", "popover", "x-cloak", "v-cloak"))
_BLOCKS = frozenset(
    (
        *(
            "p",
            "div",
            "section",
            "article",
            "main",
            "blockquote",
            "table",
            "tr",
            "ul",
            "ol",
            "dl",
            "dt",
            "dd",
        ),
        *("li", "figure", "figcaption", "address", "hr", "body", "details", "summary", "center", "fieldset"),
        *("tbody", "thead", "tfoot", "caption"),
    )
)
_BACKGROUND = ("bgcolor", "background")
_OLD_STYLES = {
    "font": (("color", "color"),),
    "body": (("text", "color"), _BACKGROUND),
    **dict.fromkeys(("table", "tr", "td", "th"), (_BACKGROUND,)),
}
"""Attributes of old HTML, by element, with the properties that they stand for."""
_SPACED = frozenset(("p", "ul", "ol", "table", "pre", "dl", "dd", "blockquote"))
_INLINE = frozenset(
    ("a", "b", "code", "em", "i", "kbd", "samp", "small", "span", "strong", "sub", "sup", "tt", "var")
)
_TARGETS = frozenset(("section", "dt", "dd", "dl", "tr", "td", "th", "li", "p", "pre", "details", "figure"))
"""Elements whose id is a target for links rather than a name for their style."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DATE = re.compile(r"(?:19[89]\d|20\d\d)-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_DATED = re.compile(r'"date(?:Published|Modified)"\s*:\s*"([^"]{8,40})"')
_DATE_NAMES = (
    *("article:modified_time", "article:published_time", "og:updated_time", "datepublished", "datemodified"),
    *("date", "dc.date", "dcterms.modified", "dc.date.issued", "last-modified", "pubdate"),
)


def read_html(text: str) -> dict[str, Any]:
    """Return the title, the date and the main text of a page."""
    html: Any = import_module("resiliparse.parse.html")  # the extra `web`, which has no types
    tree = html.HTMLTree.parse(text)
    title, date = _title(tree), _date(tree.document)
    body = tree.body
    if body is None:
        return {"text": "", "title": title, "date": date}
    _apply_sheets(tree.document, body)
    heading = next(iter(_select(body, "h1")), None)
    top = (
        ""
        if heading is None
        else " ".join(" ".join(_lines(heading, _is_no_main_text)).split()).strip("# ")[:300]
    )
    shown = "\n".join(_main_lines(body))
    if top and top not in shown:
        shown = f"# {top}\n\n{shown}"
    return {"text": shown, "title": top if top and top in title else title or top, "date": date}


def _main_lines(body: Any) -> list[str]:
    """Return the lines of the main text: of the element that is marked as such, or of the whole body."""
    everything = list(_lines(body, _is_hidden))
    within = list(_lines(body, _is_no_main_text))
    marked = [list(_lines(node, _is_no_main_text)) for node in _select(body, _MAIN)[:50]]
    sizes = [_size(lines) for lines in marked]
    if marked and sum(size > 200 for size in sizes) <= 3:  # not a list of many articles
        best = max(range(len(marked)), key=lambda one: sizes[one])
        if sizes[best] >= min(200, _size(within) // 4):
            within = marked[best]
    if _size(within) < 80 and _size(everything) > 4 * _size(within):  # the names of its elements misled us
        return everything
    return within


def _size(lines: list[str]) -> int:
    return sum(map(len, lines))


def _select(root: Any, selector: str) -> list[Any]:
    """Return the elements that match, none if the selector, which may be the page's, is not valid."""
    try:
        return list(root.query_selector_all(selector))
    except (ValueError, RuntimeError):  # the library raises RuntimeError if nothing matches
        return []


def _title(tree: Any) -> str:
    named = [
        str(meta.getattr("content") or "") for meta in _select(tree.document, "meta[property='og:title']")
    ]
    return next(filter(None, named), str(tree.title or ""))


def _date(root: Any) -> str:
    """Return when a page says that it was changed or published, as `2026-03-03`; empty if it does not."""
    found: dict[str, str] = {}
    for meta in _select(root, "meta")[:300]:
        name = str(meta.getattr("property") or meta.getattr("name") or meta.getattr("itemprop") or "").lower()
        found.setdefault(name, str(meta.getattr("content") or ""))
    written = [found[name] for name in _DATE_NAMES if name in found]
    for script in _select(root, "script[type='application/ld+json']")[:20]:
        written += _DATED.findall(script.text[:100_000])
    written += [str(each.getattr("datetime") or "") for each in _select(root, "time")[:20]]
    today = time.strftime("%Y-%m-%d")
    dates = (_DATE.match(each.strip()) for each in written)
    return next((date[0] for date in dates if date and date[0] <= today), "")


def _apply_sheets(root: Any, body: Any) -> None:
    """Write what the page's own style sheets declare about what is seen into the `style` of its elements."""
    rules = [rule for style in _select(root, "style")[:50] for rule in read_sheet(style.text)]
    for selector, declared in reversed(rules[:MAX_RULES]):  # each goes before those of later rules, which win
        if can_hide(declared):
            for node in (
                *_select(body, selector),
                *([body] if selector in ("html", "body", ":root") else ()),
            ):
                node.setattr("style", f"{declared};{node.getattr('style') or ''}")


def _declared(node: Any) -> Declarations:
    """Return what an element declares about how it looks, in its style or by attributes of old HTML."""
    style = node.getattr("style")
    declared: Declarations = read_declarations(str(style)) if style else {}
    for attribute, name in _OLD_STYLES.get(node.tag, ()):
        if value := str(node.getattr(attribute) or "").strip().lower():
            declared = {name: value, **declared}
    return declared


def _paint_within(paint: Paint, node: Any) -> Paint:
    declared = _declared(node)
    return paint.within(declared) if declared else paint


def _paint_of(node: Any) -> Paint:
    """Return the paint of an element. The elements around it contribute to it."""
    around: list[Any] = []
    while node is not None and node.type == 1:
        around.append(node)
        node = node.parent
    paint = Paint()
    for each in reversed(around):
        declared = _declared(each)
        paint = paint.within(declared)
        if each.tag in ("html", "body") and "color" in declared and paint.behind == WHITE:
            paint = replace(paint, behind=None)  # a style sheet elsewhere has the background for this color
    return paint


def _is_hidden(node: Any) -> bool:
    """Return whether nobody sees an element."""
    if node.tag in _NO_CONTENT:
        return True
    attributes = {name: str(node.getattr(name) or "") for name in node.attrs}
    if not _HIDDEN_ATTRIBUTES.isdisjoint(attributes) or attributes.get("aria-hidden", "").lower() == "true":
        return True
    if "style" in attributes and hides(attributes["style"]):
        return True
    if node.tag == "font" and attributes.get("size") == "0":
        return True
    named = attributes.get("class", "")
    return bool(_HIDDEN_CLASSES.search(named)) and not _SHOWN_CLASSES.search(named)


def _is_no_main_text(node: Any) -> bool:
    """Return whether an element is hidden, or surrounds the main text."""
    if node.tag in ("body", "main", "article"):
        return _is_hidden(node)
    if node.tag in _AROUND_TAGS or str(node.getattr("role") or "").lower() in _AROUND_ROLES:
        return True
    return bool(_AROUND_NAME.search(_names(node))) or _is_hidden(node)


def _names(node: Any) -> str:
    """Return the names by which an element may be known to surround the main text.

    A heading, a section or a definition has an id so that links lead there. The id consists of words of the
    text, such as `cookies`. Links in headings have classes for the table of contents.
    """
    named = str(node.getattr("class") or "")
    if node.tag in _INLINE or node.tag in _HEADINGS:
        return named if "headerlink" in named else ""
    is_target = node.tag in _TARGETS or "section" in named.split()
    return named if is_target else f"{named} {node.getattr('id') or ''}"


def _lines(root: Any, skips: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the text of an element as lines of Markdown, without recursion and without what `skips` names."""
    line: list[str] = []
    prefix = ""
    blank = True

    def flush() -> Iterator[str]:
        nonlocal prefix, blank
        text = " ".join("".join(line).split())
        line.clear()
        if text.strip("| "):
            blank = False
            yield _no_fence(f"{prefix}{text}")
            prefix = ""

    stack: list[tuple[Any, bool, int, Paint]] = [(root, False, 0, _paint_of(root))]
    while stack:
        node, left, depth, paint = stack.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"elements are nested more than {MAX_DEPTH} deep")
        tag = node.tag if node.type == 1 else ""
        if left:
            yield from flush()
            if tag in _HEADINGS or (tag in _SPACED and not blank):
                blank = True
                yield ""
            prefix = ""
            continue
        if node.type == 3:
            line.append((node.value or "") if paint.is_readable else " ")
            continue
        if node.type != 1:
            continue
        if node is not root:
            if skips(node):
                continue
            paint = _paint_within(paint, node)
        if tag == "br":
            yield from flush()
        elif tag == "pre":
            yield from flush()
            yield "```"
            for each in _code(node, skips, paint).strip("\n").split("\n"):
                yield _no_fence(each)
            yield "```"
            blank = False
            stack.append((node, True, depth, paint))
            continue
        elif tag in ("td", "th"):
            line.append(" | ")
        elif tag in _HEADINGS or tag in _BLOCKS:
            yield from flush()
            if tag in _HEADINGS:
                prefix = "#" * _HEADINGS[tag] + " "
            elif tag == "li":
                prefix = "- "
            stack.append((node, True, depth, paint))
        children = node.child_nodes
        stack.extend((child, False, depth + 1, paint) for child in reversed(children))
    yield from flush()


def _no_fence(line: str) -> str:
    """Indent a line that looks like a fence, because only our own fences enclose code."""
    return f"    {line}" if line.lstrip(" ").startswith("```") else line


def _code(pre: Any, skips: Callable[[Any], bool], paint: Paint) -> str:
    """Return the text of a `pre` element as it is, without what `skips` names."""
    parts: list[str] = []
    stack: list[tuple[Any, Paint]] = [(pre, paint)]
    while stack:
        node, paint = stack.pop()
        if node.type == 3 and paint.is_readable:
            parts.append(node.value or "")
        elif node.type == 1 and (node is pre or not skips(node)):
            parts.append("\n" if node.tag == "br" else "")
            inner = _paint_within(paint, node)
            stack.extend((child, inner) for child in reversed(node.child_nodes))
    return "".join(parts)
