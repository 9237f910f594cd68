"""A question for something that does not exist gets an honest no (P8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.answers.intents import recognise_intent
from retinue.service import ResearchRequest, research_codebase
from tests.answers.conftest import service_for, write

pytestmark = pytest.mark.anyio

FILES = {
    "src/json_reader.py": "class JsonReader:\n    '''Reads JSON.'''\n\n"
    "    def read(self, text):\n        return loads(text)\n",
    "src/http_cache.go": "package shop\n\n// Cache keeps pages.\n"
    "func Cache(page string) string {\n\treturn page\n}\n",
    "tests/test_yaml.py": "def test_yaml_is_refused():\n    assert not can_read('a.yaml')\n",
    "README.md": "# Shop\n\nThere is no YAML.\n",
}


async def ask(tmp_path: Path, own_folders: Path, question: str) -> dict[str, Any]:
    root = write(tmp_path / "shop", FILES).resolve()
    return await research_codebase(
        service_for(root, data_dir=own_folders), ResearchRequest(question=question)
    )


async def test_word_that_only_tests_and_docs_have_is_absent(tmp_path: Path, own_folders: Path) -> None:
    report = await ask(tmp_path, own_folders, "Is there a YAML reader?")
    assert report["intent"] == "exists"
    assert report["summary"].startswith("No: `YAML` occurs nowhere in the project's own code.")
    assert "The documentation has `YAML`." in report["summary"]
    nearest = report["locator"]["value"]["references"]
    assert "README.md:3" in nearest and nearest[0].startswith("src/json_reader.py:")
    assert not any(one.startswith("tests/") for one in nearest)
    assert report["locator"]["value"]["confidence"] == "low"
    assert "analyzer" not in report


async def test_words_that_occur_apart_are_probably_not_there(tmp_path: Path, own_folders: Path) -> None:
    report = await ask(tmp_path, own_folders, "is there a cache reader?")
    assert "no definition holds `cache` and `reader` together" in report["summary"]


async def test_thing_that_exists_is_shown(tmp_path: Path, own_folders: Path) -> None:
    report = await ask(tmp_path, own_folders, "Is there a JSON reader?")
    assert "`JSON` and `reader` occur together" in report["summary"]
    assert report["locator"]["value"]["references"][0] == "src/json_reader.py:1"


async def test_word_that_the_code_calls_something_else_is_no_plain_no(
    tmp_path: Path, own_folders: Path
) -> None:
    """P8: "No" is said only if the words that code uses for it are absent too."""
    text = "def compute_gzip(page):\n    return page\n"
    root = write(tmp_path / "shop", {"src/pages.py": text}).resolve()
    request = ResearchRequest(question="Is there a way to get compressed pages?")
    report: dict[str, Any] = await research_codebase(service_for(root, data_dir=own_folders), request)
    assert report["intent"] == "exists"
    assert (
        "`compressed` occurs nowhere in the project's own code, but `gzip` may mean the same"
        in (report["summary"])
    )
    assert "src/pages.py:1" in report["locator"]["value"]["references"]


TESTED = {
    "src/devtools.ts": "export const devtools = (middleware) => middleware\n",
    "tests/devtools.test.ts": "describe('devtools middleware', () => {\n  it('connects', () => {})\n})\n",
    ".gitignore": "nosetests.xml\n",
    "README.md": "# Tools\n\n## Support\n\nProfessional support is available.\n",
    "src/feed.py": "def load(text):\n    return text  # xml later\n",
}


async def ask_tools(tmp_path: Path, own_folders: Path, question: str) -> dict[str, Any]:
    root = write(tmp_path / "tools", TESTED).resolve()
    return await research_codebase(
        service_for(root, data_dir=own_folders), ResearchRequest(question=question)
    )


async def test_question_for_tests_is_answered_from_the_tests(tmp_path: Path, own_folders: Path) -> None:
    report = await ask_tools(tmp_path, own_folders, "Are there tests for the devtools middleware?")
    assert report["summary"].startswith("Yes: `devtools` and `middleware` are in 1 file of tests.")
    assert report["locator"]["value"]["references"][0] == "tests/devtools.test.ts:1"
    report = await ask_tools(tmp_path, own_folders, "Are there tests for the feed?")
    assert report["summary"].startswith("Probably not: no test has `feed`.")


async def test_answer_perhaps_shows_only_places_that_have_the_word(tmp_path: Path, own_folders: Path) -> None:
    """P8: a list of ignored files is no code, and a page with another word of the question no evidence."""
    report = await ask_tools(tmp_path, own_folders, "Is there support for XML?")
    assert report["summary"].startswith("Perhaps: `XML` occurs in `load`, but")
    assert {one.partition(":")[0] for one in report["locator"]["value"]["references"]} == {"src/feed.py"}


async def test_no_to_plain_words_admits_that_the_thing_may_have_another_name(
    tmp_path: Path, own_folders: Path
) -> None:
    """P8: that a name occurs nowhere shows that the thing is absent; that everyday words do, does not."""
    report = await ask_tools(tmp_path, own_folders, "Is there support for hot reload?")
    assert (
        "`hot` and `reload` occur nowhere in the project's own code. It may have another" in report["summary"]
    )
    report = await ask_tools(tmp_path, own_folders, "Is there support for GraphQL?")
    assert "another name" not in report["summary"]


ANSWERS = {
    "Is there support for HTTP/3?": "No: `HTTP/3` occurs nowhere in the project's own code. The nearest",
    "Is HTTP/2 supported?": "Perhaps: `HTTP/2` occurs in `Client.__init__`, but",
    "Does it support C++?": "No: `C++` occurs nowhere",
    "Can it read XML?": "No: `read` and `XML` occur nowhere",
    "Can I use websockets?": "No: `websockets` occurs nowhere",
    "Does shop have progress bars?": "Probably: `progress` and `bars` occur together in `ProgressBar`.",
    "Is there a rate limiter?": "No: `rate` and `limiter` occur nowhere",
    "Does it support IPv6?": "Perhaps: `IPv6` occurs in `Client.__init__`",
    "Does it support TLS?": "Probably: `TLS` names `open_tls`.",
    "Is there GraphQL support?": "No: `GraphQL` occurs nowhere",
}
"""What a newcomer asks, and how the answer begins."""


@pytest.mark.parametrize("question", ANSWERS)
async def test_question_for_something_gets_a_verdict(
    tmp_path: Path, own_folders: Path, question: str
) -> None:
    """P8: yes, no and perhaps are told apart, also for names that are no words and for short stems."""
    files = {
        "src/client.py": "class Client:\n    def __init__(self, http2=False):\n"
        "        self.http2 = http2  # over IPv6\n",
        "src/bars.py": "class ProgressBar:\n    def generate(self):\n        return separate()\n",
        "src/net.py": "def open_tls(host):\n    return host\n\n\ndef separate():\n    return 1\n",
        "src/pager.py": "def run_pager(text):\n    print(text)\n",
    }
    root = write(tmp_path / "tree", files).resolve()
    request = ResearchRequest(question=question)
    report: dict[str, Any] = await research_codebase(service_for(root, data_dir=own_folders), request)
    assert report["intent"] == "exists"
    assert report.get("clarification") is None
    assert report["summary"].startswith(ANSWERS[question])
    if "HTTP/3" in question:
        assert report["locator"]["value"]["references"] == ["src/client.py:2"]


RUNNER = {
    "src/runner.py": "def run_failed_test(task):\n    return task\n",
    "src/page.js": f"const spell = 1;\n{'x();' * 600}\n" + "y();\n" * 100 + "const checker = 2;\n",
    "go.sum": "example.com/a v1 h1:xYIrc=\n",
    "docs/arch.xml": "<svg>c6IrcRW</svg>\n",
    "tests/run_fail.spec.js": "it('runs and fails', () => {});\n",
}
VERDICTS = {
    # A test framework has tests in another sense.
    "Is there a way to run a test again when it fails?": "Probably: `run` and `test` and `fails` occur",
    # One file has both words, a hundred lines apart.
    "Is there a spell checker?": "Probably not: no definition holds `spell` and `checker`",
    # A checksum is no code.
    "Is there a way to reach IRC?": "No: `reach` and `IRC` occur nowhere",
    "Is there a way to break off a run and go on later?": "Not by that name: `break` occurs nowhere",
}


@pytest.mark.parametrize("question", VERDICTS)
async def test_verdict_rests_on_the_words_that_matter(
    tmp_path: Path, own_folders: Path, question: str
) -> None:
    root = write(tmp_path / "runner", RUNNER).resolve()
    request = ResearchRequest(question=question)
    report = await research_codebase(service_for(root, data_dir=own_folders), request)
    summary = str(report["summary"])
    assert summary.startswith(VERDICTS[question])
    assert "of tests" not in summary and "The documentation has" not in summary


def test_request_of_a_person_is_no_question_for_something() -> None:
    assert recognise_intent("Can you show me where the pager is started?") == "where"
    assert recognise_intent("Can someone explain how redirects work?") == "how"
    assert recognise_intent("Can I change the timeout?") == "options"
