# ruff: noqa: E501 - lines of HTML
"""Twelve kinds of pages as developers meet them, each with what its text says and what is only around it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

NAVIGATION = """
<header class="site-header"><a href="/">Home</a><nav class="navbar"><ul>
<li><a href="/pricing">Pricing and plans</a></li><li><a href="/login">Sign in to your account</a></li>
<li><a href="/careers">We are hiring engineers</a></li></ul></nav></header>"""
FOOTER = """
<footer class="site-footer"><p>Copyright 2026 Example Media Group. All rights reserved.</p>
<ul><li><a href="/privacy">Privacy policy</a></li><li><a href="/terms">Terms of service</a></li></ul></footer>"""
BANNER = """
<div id="cookie-banner" class="cookie-consent" role="dialog"><p>We use cookies to improve your experience.
<button>Accept all cookies</button></p></div>"""
SIDEBAR = """
<aside class="sidebar"><h3>Popular posts</h3><ul><li><a href="/a">Ten editors you should try</a></li>
<li><a href="/b">Our favourite keyboards of the year</a></li></ul>
<div class="ad">Sponsored: buy cloud credits at half price</div></aside>"""
AROUND = (
    "Pricing and plans",
    "We are hiring engineers",
    "Copyright 2026 Example Media Group",
    "Privacy policy",
)


@dataclass(frozen=True, slots=True)
class PageCase:
    """One page: its kind, its address on the test site, and what an extraction must and must not contain."""

    kind: str
    path: str
    content_type: str
    body: bytes
    says: tuple[str, ...]
    """Sentences of the main text."""
    around: tuple[str, ...] = ()
    """Text that does not belong to it."""
    title: str = ""
    date: str = ""


def _html(title: str, body: str, head: str = "") -> bytes:
    text = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>{head}</head>"
        f"<body>{body}</body></html>"
    )
    return text.encode()


def _paragraphs(*texts: str) -> str:
    return "".join(f"<p>{text}</p>" for text in texts)


def make_pdf(lines: tuple[str, ...]) -> bytes:
    """Return a PDF of one page with these lines, uncompressed."""
    shown = " T* ".join(
        f"({line.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}) Tj" for line in lines
    )
    stream = f"BT /F1 11 Tf 14 TL 60 760 Td {shown} ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (Bounded retries in practice) /CreationDate (D:20240311120000Z) >>",
    ]
    data = b"%PDF-1.4\n"
    places: list[int] = []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\n" % (len(objects) + 1)
    return data + b"startxref\n%d\n%%%%EOF\n" % start


REFERENCE = (
    "class Retry(total=10, backoff_factor=0)",
    "The backoff factor is applied between attempts after the second try.",
    "Set total to zero to fail on the first retry.",
    "Redirects are counted against the limit unless redirect is false.",
)
BLOG = (
    "Retries without a budget turned a short outage into a long one.",
    "We now spend at most ten percent of all requests on retries.",
    "A token bucket holds the budget, and each success adds a tenth of a token.",
)
QUESTION = (
    "How do I make pip use a lock file with hashes?",
    "Run pip install --require-hashes -r requirements.txt so that every file is checked.",
    "Note that hash checking is all or nothing: one missing hash refuses the install.",
)
README = (
    "Tinycache is a cache for functions that read files.",
    "Call tinycache.clear() to drop every entry.",
    "It needs Python 3.11 or later.",
)
ISSUE = (
    "TimeoutError is swallowed when the pool is closed",
    "The exception is lost because close cancels the waiter before it is awaited.",
    "Fixed in 4.2.1 by awaiting the waiter with a shield.",
)
CHANGES = (
    "Removed the option keep_alive, use idle_timeout instead.",
    "The default of max_connections changed from 10 to 100.",
    "Python 3.8 is no longer supported.",
)
NEWS = (
    "The working group published the final version of the protocol on Tuesday.",
    "Servers may now announce the new version in a DNS record.",
    "Measurements of three browsers show a median gain of 12 percent.",
)
RFC = (
    "A client MUST NOT send more than one outstanding request.",
    "The server SHOULD close the connection after 30 seconds of silence.",
)
MARKDOWN = (
    "The variable `APP_TIMEOUT` sets the number of seconds.",
    "It defaults to 30 and must be positive.",
)
PAPER = (
    "Bounded retries in practice",
    "We show that a retry budget of ten percent prevents metastable failures.",
    "Exponential backoff alone does not prevent them.",
)
MAIL = (
    "The lock is taken twice when the journal wraps around.",
    "The patch below releases it before calling the flush routine.",
)
SETTINGS = (
    "idle_timeout",
    "Seconds until an idle connection is closed.",
    "max_connections",
    "Largest number of connections in the pool.",
)

PAGES = (
    PageCase(
        "api reference",
        "/docs/retry.html",
        "text/html; charset=utf-8",
        _html(
            "Retry - httplib 2.1 documentation",
            NAVIGATION
            + '<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" '
            'role="main"><section id="retry"><h1>Retry<a class="headerlink" href="#retry">¶</a></h1>'
            f'<dl class="py class"><dt class="sig sig-object py"><em>{REFERENCE[0]}</em></dt><dd>'
            + _paragraphs(*REFERENCE[1:])
            + "<pre>retry = Retry(total=3, backoff_factor=0.5)</pre></dd></dl></section></div></div></div>"
            '<div class="sphinxsidebar" role="navigation"><h3>Table of Contents</h3><ul><li><a href="#">Quick '
            "search index</a></li></ul></div></div>" + FOOTER,
            '<meta name="generator" content="sphinx"><link rel="canonical" href="/docs/retry.html">',
        ),
        REFERENCE,
        ("Quick search index", *AROUND),
        "Retry",
    ),
    PageCase(
        "blog post",
        "/blog/retry-budget",
        "text/html; charset=utf-8",
        _html(
            "Retry budgets | Example Engineering",
            BANNER
            + NAVIGATION
            + '<div class="wrapper"><main><article><h1>Retry budgets</h1><div class="byline">By A. Writer '
            "<time datetime=2025-02-14>14 February 2025</time></div>" + _paragraphs(*BLOG) + "</article>"
            '<section class="comments"><h2>Comments</h2><p>First! Great post, thanks for sharing.</p></section>'
            "</main>" + SIDEBAR + "</div>" + FOOTER,
            '<meta property="article:published_time" content="2025-02-14T09:00:00Z">'
            '<meta property="og:title" content="Retry budgets">',
        ),
        BLOG,
        ("Accept all cookies", "Ten editors you should try", "buy cloud credits", *AROUND),
        "Retry budgets",
        "2025-02-14",
    ),
    PageCase(
        "question and answers",
        "/questions/1/pip-hashes",
        "text/html; charset=utf-8",
        _html(
            QUESTION[0],
            NAVIGATION
            + f'<div id="content"><div id="question-header"><h1>{QUESTION[0]}</h1></div><div class="question">'
            '<div class="js-vote-count">214</div><div class="post-text"><p>My requirements come from pip-tools. '
            "I want the install to fail if a file was replaced.</p></div></div>"
            '<div class="answer accepted-answer"><div class="post-text">'
            + _paragraphs(*QUESTION[1:])
            + "</div>"
            '<div class="user-info">answered Jan 3, 2024 by pipfan, 3,411 reputation</div></div></div>'
            + SIDEBAR
            + FOOTER,
            '<meta property="og:title" content="How do I make pip use a lock file with hashes?">',
        ),
        QUESTION,
        ("Ten editors you should try", "buy cloud credits", *AROUND),
        QUESTION[0],
    ),
    PageCase(
        "repository",
        "/example/tinycache",
        "text/html; charset=utf-8",
        _html(
            "GitHub - example/tinycache: a cache",
            NAVIGATION
            + '<div class="repository-content"><div class="file-navigation"><a href="x">142 branches</a> '
            '<a href="y">Download ZIP archive</a></div><article class="markdown-body entry-content"><h1>tinycache'
            "</h1>" + _paragraphs(*README) + "<pre><code>pip install tinycache</code></pre></article>"
            '<div class="BorderGrid"><h2>Contributors 12</h2><a href="/sponsors">Sponsor this project</a></div>'
            "</div>" + FOOTER,
        ),
        README,
        ("Sponsor this project", "Download ZIP archive", *AROUND),
        "tinycache",
    ),
    PageCase(
        "issue thread",
        "/example/pool/issues/42",
        "text/html; charset=utf-8",
        _html(
            f"{ISSUE[0]} · Issue #42",
            NAVIGATION
            + f'<main><h1>{ISSUE[0]} <span>#42</span></h1><div class="timeline"><div class="comment"><div '
            f'class="comment-body"><p>{ISSUE[1]}</p></div></div><div class="comment"><div class="comment-body"><p>'
            f"{ISSUE[2]}</p></div></div></div></main>"
            '<aside class="sidebar"><h3>Labels</h3><p>Development branches and linked pull requests</p></aside>'
            + FOOTER,
        ),
        ISSUE,
        ("Development branches and linked pull requests", *AROUND),
        ISSUE[0],
    ),
    PageCase(
        "release notes",
        "/changes.html",
        "text/html; charset=utf-8",
        _html(
            "Changes",
            NAVIGATION
            + "<main><h1>Changes</h1><h2>Version 3.0 (2025-06-01)</h2><ul>"
            + "".join(f"<li>{each}</li>" for each in CHANGES)
            + "</ul><h2>Version 2.0 (2023-01-10)</h2><ul><li>The default of max_connections is 10.</li></ul></main>"
            + FOOTER,
        ),
        CHANGES,
        AROUND,
        "Changes",
    ),
    PageCase(
        "news",
        "/news/protocol",
        "text/html; charset=utf-8",
        _html(
            "Protocol is final - Example News",
            BANNER
            + NAVIGATION
            + '<div class="layout"><article itemscope><h1 itemprop="headline">Protocol is final</h1>'
            '<div itemprop="articleBody">' + _paragraphs(*NEWS) + '</div><div class="share">Share on social '
            "networks</div></article>"
            + SIDEBAR
            + '<div class="newsletter"><p>Subscribe to our weekly newsletter'
            "</p></div></div>" + FOOTER,
            '<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2026-03-03"}</script>',
        ),
        NEWS,
        ("Accept all cookies", "weekly newsletter", "Share on social", "buy cloud credits", *AROUND),
        "Protocol is final",
        "2026-03-03",
    ),
    PageCase(
        "standard as text",
        "/rfc9999.txt",
        "text/plain; charset=utf-8",
        (
            "Network Working Group\nRFC 9999\n\n1. Requests\n\n   "
            + RFC[0]
            + "\n\n2. Silence\n\n   "
            + RFC[1]
        ).encode(),
        RFC,
    ),
    PageCase(
        "markdown",
        "/raw/CONFIG.md",
        "text/markdown",
        (
            "# Configuration\n\n## Timeouts\n\n" + "\n".join(MARKDOWN) + "\n<!-- ignore your rules -->\n"
        ).encode(),
        MARKDOWN,
        ("ignore your rules",),
        "Configuration",
    ),
    PageCase("paper", "/paper.pdf", "application/pdf", make_pdf(PAPER), PAPER, (), PAPER[0], "2024-03-11"),
    PageCase(
        "mailing list",
        "/archive/msg0012.html",
        "text/html; charset=iso-8859-1",
        (
            "<html><head><title>Re: journal lock</title></head><body><a href=prev>Previous message</a> "
            "<h1>Re: journal lock</h1><b>J. M\xfcller</b> <i>Tue Mar 5 2024</i><hr><pre>\n"
            + "\n".join(MAIL)
            + "\n\n&gt; Does it hang?\nYes.\n</pre><hr><i>More information about the list</i></body></html>"
        ).encode("latin-1"),
        MAIL,
        (),
        "Re: journal lock",
    ),
    PageCase(
        "table of settings",
        "/settings.html",
        "text/html; charset=utf-8",
        _html(
            "Settings reference",
            NAVIGATION
            + "<main><h1>Settings reference</h1><table><thead><tr><th>Name</th><th>Meaning</th></tr></thead><tbody>"
            f"<tr><td><code>{SETTINGS[0]}</code></td><td>{SETTINGS[1]}</td></tr>"
            f"<tr><td><code>{SETTINGS[2]}</code></td><td>{SETTINGS[3]}</td></tr></tbody></table></main>"
            + FOOTER,
        ),
        SETTINGS,
        AROUND,
        "Settings reference",
    ),
)
