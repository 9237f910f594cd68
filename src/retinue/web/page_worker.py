"""A program that takes the text out of pages. It runs outside the server, because pages are hostile.

A page of one megabyte can keep any parser busy for minutes, or blow up to gigabytes. The program limits its
own memory and CPU time; `page_reader.py` starts it, feeds it pages and kills it if a page takes too long. It
reads requests from standard input, each a line of JSON and the bytes of a page, and answers each with a line
of JSON. It ends with its input.

Text that a reader would not see is dropped: hidden elements, comments, scripts, and what invisible characters
spell. So is what surrounds the main text. Knows nothing of the network, and imports nothing of Retinue.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
"""The CPU time of one worker, after which the system ends it. `page_reader.py` starts another one."""
MAX_DEPTH = 300
"""How deep elements may be nested. Pages of honest people have at most about 100 levels."""
MAX_PDF_PAGES = 60
MAX_TEXT_CHARS = 400_000

_NO_CONTENT = frozenset(
    (
        *("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "video"),
        *("audio", "form", "button", "select", "dialog", "input", "textarea", "map", "head", "title"),
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
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*(?:\.0+)?(?:\s*[;!]|\s*$)"
    r"|font-size\s*:\s*0*(?:\.\d+)?(?:px|em|rem|pt|%)?(?:\s*[;!]|\s*$)|font-size\s*:\s*[01](?:\.\d+)?px"
    r"|(?:text-indent|left|top|right|bottom|margin-left|margin-top)\s*:\s*-\s*\d{3,}"
    r"|clip(?:-path)?\s*:\s*(?:rect\(\s*[01](?:px)?[\s,]+[01]|inset\(\s*(?:50|100)%|circle\(\s*0)"
    r"|transform\s*:\s*scale\(\s*0(?:\.0+)?\s*\)|content-visibility\s*:\s*hidden"
    r"|(?:max-)?(?:height|width)\s*:\s*0(?:px)?\s*(?:[;!]|$)|color\s*:\s*transparent",
    re.IGNORECASE,
)
_COLOR = re.compile(r"(?:^|[;\s])(background(?:-color)?|color)\s*:\s*([^;!]+)", re.IGNORECASE)
_RULE = re.compile(r"([^{}@;]{1,300})\{([^{}]{0,2000})\}")
_HIDDEN_CLASSES = re.compile(
    r"(?:^|\s)(?:sr-only|visually-hidden|visuallyhidden|screen-reader-text|hidden|d-none|is-hidden|invisible)(?:$|\s)"
)
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
_SPACED = frozenset(("p", "ul", "ol", "table", "pre", "dl", "blockquote"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_DATE = re.compile(r"(?:19[89]\d|20\d\d)-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_DATED = re.compile(r'"date(?:Published|Modified)"\s*:\s*"([^"]{8,40})"')
_DATE_NAMES = (
    *("article:modified_time", "article:published_time", "og:updated_time", "datepublished", "datemodified"),
    *("date", "dc.date", "dcterms.modified", "dc.date.issued", "last-modified", "pubdate"),
)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]{2,40})""", re.IGNORECASE)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_PAGE_ENCODING = re.compile(
    r"utf-(?:8|16|16-le|16-be)|cp(?:866|874|949|125\d)|iso8859-\d+|koi8-[ru]|mac-(?:roman|cyrillic)"
    r"|gbk|gb2312|gb18030|big5(?:hkscs)?|euc_(?:jp|kr)|iso2022_jp|shift_jis|cp932"
)
"""The encodings that browsers know. Python knows others that decode to something else, or take long."""
_MARKDOWN_COMMENT = re.compile(
    r"<!--.*?(?:-->|\Z)|^\[[^\]\n]*\]:\s*#\s*\([^\n]*\)\s*$", re.DOTALL | re.MULTILINE
)
_MARKDOWN_TITLE = re.compile(r"^#\s+(.{1,200})$", re.MULTILINE)


def read_page(kind: str, body: bytes, charset: str) -> dict[str, Any]:
    """Return the title, the date and the text of a page. The text is Markdown: headings, lists and code."""
    if kind == "pdf":
        found = _read_pdf(body)
    elif kind == "html":
        found = _read_html(_decode(body, charset))
    else:
        text = _decode(body, charset).replace("\r\n", "\n")
        found = {"text": text}
        if kind == "markdown":
            text = _MARKDOWN_COMMENT.sub("", text)
            title = _MARKDOWN_TITLE.search(text)
            found = {"text": text, "title": title[1] if title else ""}
    cut = len(found["text"]) > MAX_TEXT_CHARS
    return {
        "title": " ".join(_visible(found.get("title", "")).split())[:300],
        "date": found.get("date", ""),
        "text": _visible(found["text"][:MAX_TEXT_CHARS]),
        "cut": cut or found.get("cut", False),
    }


def _visible(text: str) -> str:
    """Return the text as a reader sees it: without invisible characters, letters in their usual form."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFC", text))


def _decode(body: bytes, charset: str) -> str:
    """Return the text as browsers read it: a mark at the beginning counts more than what the server says."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = _CHARSET.search(body[:4096])
    for name in (charset, declared[1].decode("ascii") if declared else ""):
        if encoding := _encoding(name):
            return body.decode(encoding, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        # One that is cut or damaged in places is still UTF-8; one without any of its letters is not.
        is_utf8 = any(letter > "\x7f" for letter in body[: error.start].decode())
        return body.decode("utf-8" if is_utf8 else "cp1252", "replace")


def _encoding(name: str) -> str:
    """Return Python's name of an encoding for pages; empty if it is none."""
    try:
        found = codecs.lookup(name.strip().lower()).name
    except (LookupError, ValueError):
        return ""
    if found in ("ascii", "iso8859-1"):
        return "cp1252"  # as all browsers do
    return found if _PAGE_ENCODING.fullmatch(found) else ""


def _read_html(text: str) -> dict[str, Any]:
    html: Any = import_module("resiliparse.parse.html")  # the extra `web`, which has no types
    tree = html.HTMLTree.parse(text)
    title, date = _title(tree), _date(tree.document)
    body = tree.body
    if body is None:
        return {"text": "", "title": title, "date": date}
    for selector in list(_selectors_that_hide(tree.document)):
        for node in _select(body, selector):
            node.setattr("hidden", "")
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


def _selectors_that_hide(root: Any) -> Iterator[str]:
    """Yield the selectors of the page's own style sheets whose elements nobody sees."""
    for style in _select(root, "style")[:50]:
        for selector, declared in _RULE.findall(style.text[:200_000]):
            if _HIDDEN_STYLE.search(declared) or _same_colors(declared):
                yield selector.strip()


def _same_colors(style: str) -> bool:
    """Return whether a style gives text the color of its background."""
    colors = {name.lower()[:10]: " ".join(value.lower().split()) for name, value in _COLOR.findall(style)}
    text = colors.get("color")
    return text is not None and text == colors.get("background")


def _is_hidden(node: Any) -> bool:
    """Return whether nobody sees an element."""
    if node.tag in _NO_CONTENT:
        return True
    attributes = {name: str(node.getattr(name) or "") for name in node.attrs}
    if "hidden" in attributes or attributes.get("aria-hidden", "").lower() == "true":
        return True
    style = attributes.get("style", "")
    if style and (_HIDDEN_STYLE.search(style) or _same_colors(style)):
        return True
    if node.tag == "font" and attributes.get("size") == "0":
        return True
    return bool(_HIDDEN_CLASSES.search(attributes.get("class", "")))


def _is_no_main_text(node: Any) -> bool:
    """Return whether an element is hidden, or surrounds the main text."""
    if node.tag in ("body", "main", "article"):
        return _is_hidden(node)
    if node.tag in _AROUND_TAGS or str(node.getattr("role") or "").lower() in _AROUND_ROLES:
        return True
    named = f"{node.getattr('class') or ''} {node.getattr('id') or ''}"
    return bool(_AROUND_NAME.search(named)) or _is_hidden(node)


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
            yield f"{prefix}{text}"
            prefix = ""

    stack: list[tuple[Any, bool, int]] = [(root, False, 0)]
    while stack:
        node, left, depth = stack.pop()
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
            line.append(node.value or "")
            continue
        if node.type != 1 or (node is not root and skips(node)):
            continue
        if tag == "br":
            yield from flush()
        elif tag == "pre":
            yield from flush()
            yield "```"
            yield from _code(node, skips).strip("\n").split("\n")
            yield "```"
            blank = False
            stack.append((node, True, depth))
            continue
        elif tag in ("td", "th"):
            line.append(" | ")
        elif tag in _HEADINGS or tag in _BLOCKS:
            yield from flush()
            if tag in _HEADINGS:
                prefix = "#" * _HEADINGS[tag] + " "
            elif tag == "li":
                prefix = "- "
            stack.append((node, True, depth))
        children = node.child_nodes
        stack.extend((child, False, depth + 1) for child in reversed(children))
    yield from flush()


def _code(pre: Any, skips: Callable[[Any], bool]) -> str:
    """Return the text of a `pre` element as it is, without what `skips` names."""
    parts: list[str] = []
    stack: list[Any] = [pre]
    while stack:
        node = stack.pop()
        if node.type == 3:
            parts.append(node.value or "")
        elif node.type == 1 and (node is pre or not skips(node)):
            parts.append("\n" if node.tag == "br" else "")
            stack.extend(reversed(node.child_nodes))
    return "".join(parts)


def _read_pdf(body: bytes) -> dict[str, Any]:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body), strict=False)
    texts: list[str] = []
    room = MAX_TEXT_CHARS
    for page in reader.pages[:MAX_PDF_PAGES]:
        text = page.extract_text()[:room]
        texts.append(text)
        room -= len(text)
        if room <= 0:
            break
    known = reader.metadata
    created = known.creation_date if known is not None else None
    return {
        "text": "\n\n".join(texts),
        "title": str(known.title or "") if known is not None else "",
        "date": created.strftime("%Y-%m-%d") if created is not None else "",
        "cut": len(reader.pages) > MAX_PDF_PAGES,
    }


def _limit_resources() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):  # macOS does not limit memory
            continue


def main() -> None:
    """Answer requests until the input ends."""
    import logging

    logging.disable(logging.CRITICAL)  # pypdf complains about every broken file
    _limit_resources()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while header := source.readline():
        wanted = json.loads(header)
        body = source.read(wanted["bytes"])
        try:
            answer = read_page(wanted["kind"], body, wanted["charset"])
        except ImportError as error:
            answer = {"missing": str(error.name or error)}
        except MemoryError:
            answer = {"error": "reading it takes too much memory"}
        except Exception as error:  # whatever a hostile page makes a parser raise
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    main()
