"""`retinue web` answers on a terminal and as JSON, says how to allow the web, and clears its cache."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.server.test_web_tools import Connections
from tests.web.pages import BLOG
from tests.web.site import Site
from tests.web.stubs import searxng


@pytest.fixture
def site() -> Generator[Site]:
    """A site in a thread of its own: commands run their own event loop."""
    served, ready, done = Site(), threading.Event(), threading.Event()

    async def serve() -> None:
        async with served.serve():
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(5)
    yield served
    done.set()
    thread.join(5)


def allow_web(text: str) -> None:
    file = Path.home() / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[network]\nweb = true\n{text}")


def test_closed_door_says_how_to_open_it() -> None:
    done = run("web", "what is new in httpx?")
    assert done.exit_code == 1
    assert "the web is off, so nothing was sent" in done.stderr
    assert "`web = true` under `[network]`" in done.stderr and "retinue.toml" in done.stderr


def test_no_command_sends_a_packet_while_the_door_is_closed_P6_P7(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that names packages and asks for the web itself, and commands that could ask about them."""
    (tmp_path / "requirements.txt").write_text("httpx==0.27\n")
    (tmp_path / "package.json").write_text('{"dependencies": {"left-pad": "1"}}')
    (tmp_path / "retinue.toml").write_text("[network]\nweb = true\n")
    (tmp_path / "pool.py").write_text("import httpx\n\ndef limits():\n    return httpx.Limits()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETINUE_NETWORK__WEB", "true")
    made = Connections(monkeypatch)
    root = ("--root", str(tmp_path))
    assert run("web", "how does httpx limit connections?", *root).exit_code == 1
    assert run("web", "what is this?", "--url", "https://docs.example.org/", *root).exit_code == 1
    assert run("research", "how does httpx limit connections?", *root).exit_code == 0
    assert run("research", "how does httpx limit connections?", "--web", *root).exit_code == 1
    assert "closed: nothing is read" in run("doctor").stdout
    assert run("web", "--clear-cache").exit_code == 0
    outside = [
        each for each in made.made if not str(each).startswith(("('127.0.0.1'", "('::1'", "127.0.0.1"))
    ]
    assert outside == []


def test_question_is_answered_and_shown_in_logs_and_as_json(site: Site) -> None:
    site.answers["/search"] = searxng(f"{site.root}/blog/retry-budget")
    allow_web(
        f'allow_private = ["127.0.0.1:{site.port}"]\nsearch = "searxng"\nsearch_url = "{site.root}/search"\n'
    )
    asked = run("web", "how many requests are spent on retries?")
    assert asked.exit_code == 0, asked.output
    assert BLOG[1] in asked.stdout
    assert f"{site.root}/blog/retry-budget#:~:text=" in asked.stdout
    assert "never instructions" in asked.stdout
    again = json.loads(run("web", "how many requests are spent on retries?", "--json").stdout)
    assert again["web"]["status"] == "ok" and "from the cache" in again["web"]["value"]["notes"]
    assert "web: GET 127.0.0.1 for search with searxng" in run("logs", again["run_id"]).stdout
    assert run("web", "--clear-cache").stdout == "1 page removed\n"
    assert json.loads(run("web", "--clear-cache", "--json").stdout)["removed"] == 0


def test_named_page_is_read_and_research_looks_outside_if_asked(site: Site, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text("def idle_timeout():\n    return 5\n")
    allow_web(f'allow_private = ["127.0.0.1:{site.port}"]\n')
    done = run("web", "what is idle_timeout?", "--url", f"{site.root}/settings.html", "--root", str(tmp_path))
    assert "Seconds until an idle connection is closed." in done.stdout
    question = f"where is idle_timeout? see {site.root}/settings.html"
    both = json.loads(run("research", question, "--web", "--root", str(tmp_path), "--json").stdout)
    assert both["locator"]["value"]["references"][0].startswith("pool.py")
    assert "settings.html" in both["web"]["value"]["references"][0]
    refused = run("web", "what is it?", "--url", "http://169.254.169.254/", "--json")
    assert "private network" in refused.stdout + refused.stderr


@pytest.mark.parametrize("arguments", [(), ("",), ("   ",)])
def test_empty_question_is_an_error(arguments: tuple[str, ...]) -> None:
    done = run("web", *arguments)
    assert done.exit_code == 2
    assert "the question is empty" in done.stderr
