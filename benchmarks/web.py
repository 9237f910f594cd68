"""Measures how pages become text: what is found, what should not be, time, memory, and what is sent.

`python -m benchmarks.web` measures Retinue's own extraction in its worker. `--rivals` also measures
trafilatura, readability-lxml and resiliparse's own extraction, if they are installed. The pages are those of
the tests: twelve kinds, written for this measurement, so they favour the rules that were written with them.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from retinue.web import PageReader
from tests.web.pages import PAGES, PageCase
from tests.web.site import Site, reading

KINDS = {"text/html": "html", "application/pdf": "pdf", "text/markdown": "markdown", "text/plain": "text"}
LONG_PAGE = (
    b"<html><body><main>" + b"<div><p>The quick <b>brown</b> fox jumps over the dog.</p></div>" * 16_000
)
RIVALS = ("trafilatura", "readability", "resiliparse")
ROUNDS = 5


def flat(text: str) -> str:
    return " ".join(re.sub(r"[|`*_#\\]", " ", text).split()).lower()


def score(cases: list[PageCase], texts: list[str]) -> tuple[str, str]:
    """Return how many sentences were found, and how much of what surrounds them."""
    pairs = [(case, flat(text)) for case, text in zip(cases, texts, strict=True)]
    says = [flat(each) in text for case, text in pairs for each in case.says]
    around = [flat(each) in text for case, text in pairs for each in case.around]
    return f"{sum(says)}/{len(says)}", f"{sum(around)}/{len(around)}"


async def measure_own() -> None:
    """Print what Retinue's worker finds, with its time and memory."""
    async with PageReader(seconds=60) as reader:
        began = time.perf_counter()
        await reader.read("html", b"<p>first")
        start = time.perf_counter() - began
        kinds = [KINDS[case.content_type.partition(";")[0]] for case in PAGES]
        charsets = [case.content_type.partition("charset=")[2] for case in PAGES]
        texts: list[str] = []
        began = time.perf_counter()
        for _ in range(ROUNDS):
            read = [
                await reader.read(*each)
                for each in zip(kinds, (c.body for c in PAGES), charsets, strict=True)
            ]
            texts = [each.text for each in read]
        each_ms = (time.perf_counter() - began) / ROUNDS / len(PAGES) * 1000
        began = time.perf_counter()
        await reader.read("html", LONG_PAGE)
        long_s = time.perf_counter() - began
        (worker,) = (
            each for each in psutil.Process().children() if "page_worker" in " ".join(each.cmdline())
        )
        memory = worker.memory_info().rss >> 20
    found, noise = score(list(PAGES), texts)
    print(
        f"{'retinue, all 12 kinds':24} found {found:>6}, noise {noise:>6}, start {start * 1000:4.0f} ms, "
        f"{each_ms:5.2f} ms a page, 1 MB page {long_s:5.2f} s, worker {memory} MB"
    )


def rival(name: str) -> Callable[[bytes], str]:
    """Return the extraction of another library."""
    if name == "trafilatura":
        trafilatura: Any = import_module("trafilatura")
        return lambda body: trafilatura.extract(body, favor_recall=True, include_comments=False) or ""
    if name == "readability":
        readability, html = import_module("readability"), import_module("lxml.html")
        return lambda body: html.fromstring(readability.Document(body.decode()).summary()).text_content()
    parse, extract = import_module("resiliparse.parse.html"), import_module("resiliparse.extract.html2text")
    return lambda body: extract.extract_plain_text(parse.HTMLTree.parse(body.decode()), main_content=True)


def measure_rival(name: str) -> None:
    """Print what another library finds on the pages in HTML."""
    cases = [case for case in PAGES if "html" in case.content_type and "8859" not in case.content_type]
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    extract = rival(name)
    start = time.perf_counter() - began
    texts = [extract(case.body) for case in cases]
    began = time.perf_counter()
    for _ in range(ROUNDS):
        texts = [extract(case.body) for case in cases]
    each_ms = (time.perf_counter() - began) / ROUNDS / len(cases) * 1000
    began = time.perf_counter()
    extract(LONG_PAGE)
    long_s = time.perf_counter() - began
    found, noise = score(cases, texts)
    memory = (psutil.Process().memory_info().rss - before) >> 20
    print(
        f"{name:24} found {found:>6}, noise {noise:>6}, start {start * 1000:4.0f} ms, "
        f"{each_ms:5.2f} ms a page, 1 MB page {long_s:5.2f} s, +{memory} MB"
    )


async def measure_requests() -> None:
    """Print what leaves for reading each page once, and again from the cache."""
    site = Site()
    with tempfile.TemporaryDirectory() as folder:
        async with site.serve(), reading(site, Path(folder)) as reader:
            for case in PAGES:
                await reader.read(f"http://site.example{case.path}")
            first = list(reader.notes.notes)
            for case in PAGES:
                await reader.read(f"http://site.example{case.path}")
    sent, received = sum(note.sent for note in first), sum(note.received for note in first)
    print(
        f"reading 12 pages: {len(first)} requests, {sent} bytes out ({sent // len(first)} each), "
        f"{received} in; again: {len(reader.notes.notes) - len(first)} requests"
    )


def main() -> None:
    """Run the measurements."""
    options = argparse.ArgumentParser()
    options.add_argument("--rivals", action="store_true")
    options.add_argument("--rival", choices=RIVALS)
    chosen = options.parse_args()
    if chosen.rival:
        measure_rival(chosen.rival)
        return
    asyncio.run(measure_own())
    asyncio.run(measure_requests())
    for name in RIVALS if chosen.rivals else ():
        subprocess.run([sys.executable, "-m", "benchmarks.web", "--rival", name], check=False)


if __name__ == "__main__":
    main()
