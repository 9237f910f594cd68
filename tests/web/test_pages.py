"""Pages of twelve kinds become text without what surrounds or hides in them; robots and the cache count."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from retinue import web
from retinue.core import AddressDenied, FetchFailed
from retinue.web import FetchLimits, Page, PageCache, PageReader, RobotRules, WebRules
from tests.conftest import ChildProcesses
from tests.web.pages import PAGES, PageCase
from tests.web.site import Answer, Site, SiteRequest, answer, reading, redirect

pytestmark = pytest.mark.anyio


def flat(text: str) -> str:
    return " ".join(re.sub(r"[|`*_#\\]", " ", text).split()).lower()


@pytest.fixture(scope="module")
async def reader() -> AsyncIterator[PageReader]:
    async with PageReader() as shared:
        yield shared


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def test_pages_of_twelve_kinds_say_what_they_say_and_nothing_around_it(tmp_path: Path) -> None:
    assert len({page.kind for page in PAGES}) == 12
    site = Site()
    async with site.serve(), reading(site, tmp_path) as reader:
        for case in PAGES:
            page: Page = await reader.read(f"http://site.example{case.path}")
            _check(case, page)


def _check(case: PageCase, page: Page) -> None:
    text = flat(page.text)
    assert [says for says in case.says if flat(says) not in text] == [], case.kind
    assert [around for around in case.around if flat(around) in text] == [], case.kind
    assert case.title in page.title
    assert page.date == case.date


HIDDEN = {
    "style": "<p style='display: none'>{}</p>",
    "visibility": "<div style='visibility:hidden'><p>{}</p></div>",
    "size": "<span style='font-size:0px'>{}</span>",
    "opacity": "<p style='opacity:0'>{}</p>",
    "off screen": "<p style='position:absolute;left:-9999px'>{}</p>",
    "white on white": "<p style='color:#fff;background:#fff'>{}</p>",
    "attribute": "<p hidden>{}</p>",
    "aria": "<p aria-hidden=true>{}</p>",
    "class": "<p class='sr-only'>{}</p>",
    "sheet": "<style>.q7{{display:none}}</style><p class=q7>{}</p>",
    "comment": "<!-- {} -->",
    "script": "<script>'{}'</script>",
    "template": "<template><p>{}</p></template>",
    "noscript": "<noscript>{}</noscript>",
    "textarea": "<textarea>{}</textarea>",
    "clipped": "<p style='clip-path: inset(100%)'>{}</p>",
    "title attribute": "<p title='{}'>seen</p>",
    "alt": "<img alt='{}'>",
    "meta": "<meta name=description content='{}'>",
    "pre": "<pre>a<span style='display:none'>{}</span></pre>",
    "style with a comment": "<p style='display:/**/none'>{}</p>",
    "style with an escape": "<p style='d\\69splay:none'>{}</p>",
    "nested sheet": "<style>.a{{x:y; & .q{{display:none}} }}</style><div class=a><p class=q>{}</p></div>",
    "sheet for screens": "<style>@media screen{{.q{{display:none}}}}</style><p class=q>{}</p>",
    "sheet with long declarations": "<style>.q{{" + "x:y;" * 600 + "display:none}}</style><p class=q>{}</p>",
    "sheet for many": "<style>" + ".c," * 120 + ".q{{display:none}}</style><p class=q>{}</p>",
    "sheet in a comment": "<style><!-- .q{{display:none}} --></style><p class=q>{}</p>",
    "white": "<p style='color:white'>{}</p>",
    "nearly white": "<p style='color:#fefefe'>{}</p>",
    "white by sheet": "<style>body{{background:#fff}}.q{{color:rgb(255,255,255)}}</style><p class=q>{}</p>",
    "white by attribute": "<font color=white>{}</font>",
    "white in code": "<pre>a<span style='color:hsl(0,0%,100%)'>{}</span></pre>",
    "color of the element around it": "<div style='background:#123456'><p style='color:#123457'>{}</p></div>",
    "inherited color": "<div style='background:#fff;color:#fff'><p>{}</p></div>",
    "no color": "<p style='color:rgba(0,0,0,0)'>{}</p>",
    "no fill": "<p style='-webkit-text-fill-color:transparent'>{}</p>",
    "tiny": "<p style='font-size:2px'>{}</p>",
    "short form of a font": "<p style='font:0/0 a'>{}</p>",
    "box of one pixel": "<div style='width:1px;height:1px;overflow:hidden'>{}</div>",
    "moved": "<p style='transform:translateX(-9999px)'>{}</p>",
    "below the screen": "<p style='position:fixed;top:200vh'>{}</p>",
    "scaled": "<p style='scale:0'>{}</p>",
    "faint": "<p style='opacity:0.01'>{}</p>",
    "filter": "<p style='filter:opacity(0)'>{}</p>",
    "behind": "<p style='position:absolute;z-index:-1'>{}</p>",
    "popover": "<div popover>{}</div>",
    "datalist": "<datalist><option>{}</datalist>",
    "formula": "<math><semantics><mi>x</mi><annotation>{}</annotation></semantics></math>",
    "class of another framework": "<p class='visuallyHidden_a1'>{}</p>",
}
SHOWN = {
    "section about cookies": "<section id=cookies><h2>Cookies</h2><p>{}</p></section>",
    "old section": "<div class=section id=related><h2>Related</h2><p>{}</p></div>",
    "heading with a name": "<h2 id=navigation>{}</h2><p>How to go on.</p>",
    "heading with a link": "<h2><a class=toc-backref href='#id1'>{}</a></h2><p>More.</p>",
    "definition": "<dl><dt id=set_cookie><code>{}</code></dt><dd>Sets it.</dd></dl>",
    "row": "<table><tr id=popup_width><td>{}</td></tr></table>",
    "white on black": "<div style='background:#000'><p style='color:#fff'>{}</p></div>",
    "white on a picture": "<div style='background:url(x.png)'><p style='color:#fff'>{}</p></div>",
    "theme for code": "<div style='--prism-background-color:#282A36'><pre style='color:#fff'>{}</pre></div>",
    "hidden in print": "<style>@media print{{.q{{display:none}}}}</style><p class=q>{}</p>",
    "dark theme": "<style>@media (prefers-color-scheme: dark){{.q{{color:#fff}}}}</style><p class=q>{}</p>",
    "rule that is overruled": "<style>.q{{color:#fff}} .q{{color:#000}}</style><p class=q>{}</p>",
    "hidden on telephones": "<p class='hidden md:block'>{}</p>",
    "moved a little": "<p style='position:relative;left:-12px;top:2px'>{}</p>",
}


@pytest.mark.parametrize("how", HIDDEN)
async def test_hidden_text_is_dropped(how: str, reader: PageReader) -> None:
    page = f"<html><body><main><p>Seen by everybody.</p>{HIDDEN[how].format('PLANTED')}</main></body></html>"
    text = (await reader.read("html", page.encode())).text
    assert "Seen by everybody" in text
    assert "PLANTED" not in text


@pytest.mark.parametrize("how", SHOWN)
async def test_text_that_readers_see_is_kept(how: str, reader: PageReader) -> None:
    page = f"<html><body><main><p>Seen by everybody.</p>{SHOWN[how].format('WANTED')}</main></body></html>"
    assert "WANTED" in (await reader.read("html", page.encode())).text


async def test_page_in_white_letters_is_kept_because_a_sheet_elsewhere_has_its_background(
    reader: PageReader,
) -> None:
    page = "<html><head><link rel=stylesheet href=a.css></head><body style='color:#fff'><p>WANTED</p></body>"
    assert "WANTED" in (await reader.read("html", page.encode())).text


async def test_sheet_whose_selectors_double_is_given_up(reader: PageReader) -> None:
    page = f"<style>.a{{{'&&{' * 60}display:none</style><main><p>Seen by everybody.</p></main>"
    assert "Seen by everybody" in (await reader.read("html", page.encode())).text


async def test_fence_inside_code_does_not_end_the_code(reader: PageReader) -> None:
    page = "<main><pre>````\n```sh\nmake\n  ```\n````</pre><p>```</p><p>After the code.</p></main>"
    text = (await reader.read("html", page.encode())).text
    assert len(re.findall(r"^ {0,3}```", text, re.MULTILINE)) == 2
    assert text.endswith("```\n\n    ```\n\nAfter the code.\n")


async def test_invisible_characters_are_dropped(reader: PageReader) -> None:
    tagged = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
    found = await reader.read("text", f"a\u200bb\u202e{tagged}c\x07".encode())
    assert found.text == "abc"


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 30_000,
        b"".join(b"<b id=%d>" % number for number in range(3_000)) + b"<p>x" * 60_000,
        b"<table>" * 5_000 + b"<tr><td>" * 5_000,
        b"%PDF-1.4\n" + b"1 0 obj <<" * 50_000,
    ],
    ids=["deep", "formatting elements that multiply", "nested tables", "pdf"],
)
async def test_page_that_attacks_the_parser_fails_alone_and_soon(body: bytes) -> None:
    async with PageReader(seconds=2.0) as own, asyncio.timeout(30):
        with suppress(FetchFailed):
            await own.read("pdf" if body.startswith(b"%PDF") else "html", body)
        await read_until_it_works(own)


async def read_until_it_works(reader: PageReader) -> None:
    """Read a plain text. On a busy machine, a new worker may start too late for a short limit."""
    while True:
        with suppress(FetchFailed):
            assert (await reader.read("text", b"still reads")).text == "still reads"
            return


async def test_worker_that_dies_between_pages_is_replaced(children: ChildProcesses) -> None:
    async with PageReader() as own:
        await own.read("text", b"first")
        (worker,) = children.list()
        worker.kill()
        assert (await own.read("text", b"second")).text == "second"


def test_missing_library_is_named_and_text_is_read_without_it() -> None:
    """Without the extra `web`, the worker still reads text and says what HTML and PDF need."""
    requests = [("html", b"<p>x"), ("pdf", b"%PDF-1.4"), ("markdown", b"# T\n\nwords")]
    sent = b"".join(
        json.dumps({"kind": kind, "bytes": len(body), "charset": ""}).encode() + b"\n" + body
        for kind, body in requests
    )
    worker = Path(web.__file__).with_name("page_worker.py")
    done = subprocess.run([sys.executable, "-I", "-S", worker], input=sent, capture_output=True, check=True)
    html, pdf, markdown = map(json.loads, done.stdout.splitlines())
    assert (html["missing"], pdf["missing"]) == ("resiliparse", "pypdf")
    assert (markdown["title"], markdown["text"]) == ("T", "# T\n\nwords")


async def test_worker_ends_with_its_reader(children: ChildProcesses) -> None:
    async with PageReader() as own:
        await own.read("text", b"x")
        (worker,) = children.list()
        assert "page_worker.py" in " ".join(worker.cmdline())
        assert "HOME" not in worker.environ()
    assert not worker.is_running()


async def test_robots_txt_is_obeyed_by_name(tmp_path: Path) -> None:
    robots = "User-agent: *\nDisallow: /\n\nUser-agent: retinue\nDisallow: /private\nAllow: /private/open$\n"
    site = Site({"/robots.txt": answer(robots, "text/plain")})
    site.answers |= {path: answer("words", "text/plain") for path in ("/a", "/private/x", "/private/open")}
    site.answers["/to"] = redirect("/private/x")
    async with site.serve(), reading(site, tmp_path) as reader:
        assert (await reader.read("http://a.example/a")).text == "words"
        assert (await reader.read("http://a.example/private/open")).text == "words"
        for path in ("/private/x", "/to"):
            with pytest.raises(AddressDenied, match=r"robots\.txt|did not answer"):
                await reader.read(f"http://a.example{path}")
    assert site.paths() == ["/a", "/private/open", "/to"]
    assert [each.path for each in site.requests].count("/robots.txt") == 1


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("User-agent: *\nDisallow: /a", "/abc", False),
        ("User-agent: *\nDisallow: /a\nAllow: /ab", "/abc", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("User-agent: a\nUser-agent: *\nDisallow: /", "/x", False),
        ("Disallow: /", "/x", True),
        ("User-agent: *\nDisallow:", "/x", True),
        ("# User-agent: *\n\x00\xff\nUser-agent", "/x", True),
    ],
)
def test_robots_rules_are_read_as_the_standard_says(rules: str, path: str, allowed: bool) -> None:
    assert RobotRules.parse(rules, "Retinue").allows(f"http://a.example{path}") is allowed


def test_robots_pattern_of_many_stars_takes_no_time() -> None:
    rules = RobotRules.parse("User-agent: *\nDisallow: /" + "*a" * 500 + "b$", "Retinue")
    began = time.process_time()
    assert rules.allows("http://a.example/" + "a" * 1_900)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(("status", "is_read"), [(404, True), (401, True), (500, False), (503, False)])
async def test_host_whose_robots_txt_fails_is_left_alone(tmp_path: Path, status: int, is_read: bool) -> None:
    site = Site({"/robots.txt": answer("", status=status), "/a": answer("words", "text/plain")})
    async with site.serve(), reading(site, tmp_path) as reader:
        if is_read:
            assert (await reader.read("http://a.example/a")).text == "words"
        else:
            with pytest.raises(AddressDenied):
                await reader.read("http://a.example/a")


async def test_second_question_fetches_nothing_and_knows_the_age(tmp_path: Path) -> None:
    site = Site({"/a": answer("words", "text/plain")})
    async with site.serve():
        async with reading(site, tmp_path) as reader:
            first: Page = await reader.read("http://a.example/a")
        async with reading(site, tmp_path) as reader:
            again: Page = await reader.read("http://a.example/a")
            assert reader.notes.notes == []
            assert (again.text, again.cached, first.cached) == ("words", True, False)
            assert again.age_s(again.fetched_at + 60) == 60
            await reader.read("http://a.example/a", fresh=True)
        async with reading(site, tmp_path, rules=WebRules(deny_hosts=("a.example",))) as reader:
            with pytest.raises(AddressDenied):
                await reader.read("http://a.example/a")
    assert site.paths() == ["/a", "/a"]


def page(number: int, at: float = 0.0) -> Page:
    url = f"http://a.example/{number}"
    return Page(address=url, final=url, title="", date="", text="x" * 1_000, fetched_at=at)


def test_cache_is_bounded_and_forgets_and_is_cleared(tmp_path: Path) -> None:
    now = [100.0]
    cache = PageCache(tmp_path / "web", 60.0, max_files=5, clock=lambda: now[0])
    for number in range(9):
        cache.put(page(number, 100.0))
    assert len(list((tmp_path / "web").iterdir())) == 5
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "web").iterdir())
    assert cache.get("http://a.example/8") is not None
    now[0] = 161.0
    assert cache.get("http://a.example/8") is None
    assert cache.clear()[0] == 5
    assert cache.clear() == (0, 0)


def test_damaged_file_of_the_cache_is_no_page(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, 1e12)
    cache.put(page(1, 1.0))
    (file,) = tmp_path.iterdir()
    whole = json.loads(file.read_bytes())
    wrong: list[dict[str, object]] = [
        *({"fetched_at": "x"}, {"text": None}, {"title": 3}, {"final": ["a"]}, {"date": {"a": 1}}),
        *({"cut": "yes"}, {"more": 1}, {"cached": True}, {"address": "http://b.example/1"}),
        {"fetched_at": float("nan")},
    ]
    damages = [json.dumps(whole | each).encode() for each in wrong]
    for damage in (b"", b"{", b"[]", b'{"address": 1}', b"\xff", b"[" * 100_000, *damages):
        file.write_bytes(damage)
        assert cache.get("http://a.example/1") is None


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\xef\xbb\xbf" + "caf\u00e9 \u201cwords\u201d".encode(), "text/plain; charset=iso-8859-1"),
        ("\ufeffcaf\u00e9 \u201cwords\u201d".encode("utf-16-le"), "text/plain"),
        ("\ufeffcaf\u00e9 \u201cwords\u201d".encode("utf-16-be"), "text/plain; charset=utf-8"),
        ("caf\u00e9 \u201cwords\u201d".encode("cp1252"), "text/plain; charset=iso-8859-1"),
        ("caf\u00e9 \u201cwords\u201d".encode("cp1252"), "text/plain; charset=us-ascii"),
        ("caf\u00e9 \u201cwords\u201d".encode("cp1252"), "text/plain"),
        ("caf\u00e9 \u201cwords\u201d".encode(), "text/plain; charset=no-such-charset"),
        ("caf\u00e9 \u201cwords\u201d".encode(), "text/plain; charset=base64"),
        ("caf\u00e9 \u201cwords\u201d".encode(), "text/plain; charset=unicode_escape"),
    ],
)
async def test_letters_are_read_as_browsers_read_them(tmp_path: Path, body: bytes, content_type: str) -> None:
    site = Site({"/a": answer(body, content_type)})
    async with site.serve(), reading(site, tmp_path) as reader:
        assert (await reader.read("http://a.example/a")).text == "caf\u00e9 \u201cwords\u201d"


async def endless_robots(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /secret\n")
    while True:
        writer.write(b"# a comment without end\n" * 1_000)
        await writer.drain()


async def silent_robots(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("robots", "is_read"),
    [
        (answer("User-agent: *\nDisallow: /secret\n" + "# long\n" * 200_000, "text/plain"), True),
        (endless_robots, False),
        (silent_robots, False),
        (redirect("/elsewhere.txt"), True),
        (redirect("/robots.txt"), False),
        (redirect("file:///etc/passwd"), False),
        (redirect("http://127.0.0.1/robots.txt"), False),
        (answer("", status=204), True),
        (answer(b"\x00\xff\xfe" * 1_000, "image/png"), True),
    ],
)
async def test_robots_txt_that_cannot_be_read_closes_its_host_and_is_named_P7(
    tmp_path: Path, robots: Answer, is_read: bool
) -> None:
    site = Site({"/robots.txt": robots, "/a": answer("words", "text/plain")})
    limits = FetchLimits(seconds=1.0, max_bytes=2_000_000)
    async with site.serve(), reading(site, tmp_path, limits=limits) as reader:
        if is_read:
            assert (await reader.read("http://a.example/a")).text == "words"
        else:
            with pytest.raises((AddressDenied, FetchFailed), match=r"robots\.txt|did not answer"):
                await reader.read("http://a.example/a")
            assert site.paths() == []


def test_processes_that_share_a_cache_never_read_half_a_page(tmp_path: Path) -> None:
    """Three processes write, clear and read the same few pages."""
    code = (
        "import sys; from pathlib import Path; from retinue.web import Page, PageCache\n"
        "cache = PageCache(Path(sys.argv[1]), 1e12, max_files=3)\n"
        "for number in range(300):\n"
        "    url = f'http://a.example/{number % 5}'\n"
        "    text = f'{number % 5}' * 20_000\n"
        "    cache.put(Page(address=url, final=url, title='', date='', text=text, fetched_at=1.0))\n"
        "    found = cache.get(url)\n"
        "    assert found is None or found.text == text\n"
        "    if number % 50 == 0: cache.clear()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert PageCache(tmp_path, 1e12).size()[0] <= 3 + 2
