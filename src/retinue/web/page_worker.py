"""A program that takes the text out of pages. It runs outside the server, because pages are hostile.

A page of one megabyte can keep any parser busy for minutes, or blow up to gigabytes. The program limits its
own memory and CPU time; `page_reader.py` starts it, feeds it pages and kills it if a page takes too long. It
reads requests from standard input, each a line of JSON and the bytes of a page, and answers each with a line
of JSON. It ends with its input.

`page_html.py` and `page_styles.py` say what of HTML is main text and what is hidden. Invisible characters are
dropped from every kind of page. Knows nothing of the network.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
"""The CPU time of one worker, after which the system ends it. `page_reader.py` starts another one."""
MAX_PDF_PAGES = 60
MAX_TEXT_CHARS = 400_000

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
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
        found = _html_reader()(_decode(body, charset))
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


def _html_reader() -> Callable[[str], dict[str, Any]]:
    """Import the reader of HTML. This program starts without the path that Retinue was found on."""
    package = str(Path(__file__).parents[2])
    if package not in sys.path:
        sys.path.append(package)
    from retinue.web.page_html import read_html

    return read_html


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
