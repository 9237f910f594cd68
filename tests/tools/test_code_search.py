"""Our own search shows the code that answers a question, and knows what occurs nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.codebase import Codebase, Located, Locator, ParsedQuestion
from retinue.core import Stop
from retinue.redaction import SecretRedactor
from retinue.tools import (
    CodeExcerpt,
    CodeSearch,
    first_inline_test,
)
from tests.codebase.file_support import create_root

pytestmark = pytest.mark.anyio

BODY = "\n".join(f"    step_{number}(job)" for number in range(60))
FILES = {
    "src/worker.py": f"def process_job(job):\n{BODY}\n    publish_receipt(job)\n    return job\n",
    "src/limits.py": "# How long a job may stay in the queue.\nQUEUE_TIMEOUT = 45\nOTHER = 3\n",
    "src/codes.py": "class Ending:\n    DONE = 'done'\n\n\nNUMBERS = {Ending.DONE: 7}\n",
    "docs/guide.md": "# Jobs\n\nA job can be printed with Gutenberg.\n",
    "tests/test_worker.py": "def test_process_job():\n    assert process_job(1)\n",
}


def search_in(folder: Path, files: Mapping[str, str] = FILES) -> CodeSearch:
    codebase = Codebase([create_root(folder, files)])
    return CodeSearch(codebase=codebase, locator=Locator(codebase), redactor=SecretRedactor())


async def found(folder: Path, question: str) -> str:
    return "\n".join(map(str, await search_in(folder).find(question, [20, 14, 14])))


async def test_long_definition_is_shown_with_its_head_and_its_best_line(tmp_path: Path) -> None:
    shown = await found(tmp_path, "Where does process_job publish the receipt?")
    assert "1: def process_job(job):" in shown and "62:     publish_receipt(job)" in shown
    assert "\n...\n" in shown and "step_30" not in shown


async def test_question_for_a_value_gets_the_line_that_holds_it(tmp_path: Path) -> None:
    assert "2: QUEUE_TIMEOUT = 45" in await found(tmp_path, "How long may a job wait in the queue?")


async def test_line_with_a_value_has_its_own_place_though_another_one_was_shown_before(
    tmp_path: Path,
) -> None:
    definition = (
        "def retry_attempted(times=3):\n    for n in range(times):\n        retry_attempt(n, times)\n"
    )
    other = "def zebra():\n    x = 1\n    y = 2\n    set_retry(times=5)\n"
    search = search_in(tmp_path, {"src/retry.py": f"{definition}{'#' * 30}\n{other}", "src/b.py": "B = 1\n"})
    question = "How many times is a retry attempted?"
    shown = await search.find(question, [3, 3])
    assert "set_retry(times=5)" in "\n".join(map(str, shown))
    assert all(excerpt.line in dict(excerpt.lines) for excerpt in shown)
    assert len({excerpt.place for excerpt in shown}) == len(shown)


async def test_short_definition_is_shown_with_what_follows(tmp_path: Path) -> None:
    assert "NUMBERS = {Ending.DONE: 7}" in await found(tmp_path, "Where is the class Ending?")


WEIGHED = {
    "queue/queue_pass.py": "def queue_pass(queue):\n    return queue\n\n\ndef passes():\n    return 2\n",
    "lib/drain.py": (
        "def drain(queue):\n    # Before the second pass, what is too old goes out of the queue after all.\n"
        "    return [one for one in queue if one.age < 9]\n"
    ),
}


async def test_definition_with_most_words_of_the_question_comes_first(tmp_path: Path) -> None:
    """Words such as "before" and "second" count too: they tell two definitions of one subject apart."""
    search = search_in(tmp_path, WEIGHED)
    shown = await search.find("What goes out of the queue before its second pass?", [9, 9, 9])
    assert shown[0].path == "lib/drain.py"


async def test_page_that_a_program_made_comes_after_the_code(tmp_path: Path) -> None:
    page = "<p>A job is frozen by freezing the job.</p>\n<script>\nfunction frozen(job) {}\n</script>\n"
    files = {"_site/jobs/frozen_job.html": page, "src/state.py": "def freeze(job):\n    return tuple(job)\n"}
    question = "Where is a job frozen?"
    assert (await search_in(tmp_path, files).find(question, [9, 9]))[0].path == "src/state.py"
    asked = await search_in(tmp_path / "again", files).find("Which page says how a job is frozen?", [9, 9])
    assert asked[0].path == "_site/jobs/frozen_job.html"


async def test_shown_places_are_not_found_again(tmp_path: Path) -> None:
    search, question = search_in(tmp_path), "Where is a job processed?"
    first = await search.find(question, [20])
    again = await search.find(question, [20], skip={first[0].place})
    assert first[0].place not in {excerpt.place for excerpt in again}


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("Is there code that encrypts a job?", ("encrypts",)),
        ("Does it run on HTTP/2?", ("HTTP/2",)),
        ("Is there code that publishes an e-mail?", ("e-mail",)),
        ("Can a job be kept in Redis?", ("Redis",)),
        ("Is a job printed with Gutenberg?", ("Gutenberg",)),  # only a document says so
        ("Is a receipt published for each job of the voucher queue?", ("voucher",)),
        ("Where are gift vouchers redeemed?", ("gift", "vouchers", "redeemed")),
        ("How is a job processed in the worker by magic?", ()),
        ("How does a job survive a crash and a reboot?", ()),  # in other words, it may be there
        ("Is there a receipt helper for users?", ()),
        ("Can it publish a receipt inside a different job?", ()),  # everyday words decide nothing
        ("Can it publish a receipt for jobs that aren\N{RIGHT SINGLE QUOTATION MARK}t processed?", ()),
        ("In my queue, is a job encrypted?", ("encrypted",)),
        ("Is a re-processed job published?", ()),
        ("Where is Kafka used for a job?", ("Kafka",)),
        ("What happens to a receipt with a name like X_User?", ()),  # an example decides nothing
        ("Does it publish a receipt with a name like X_User?", ("X_User",)),
        ("How does process_job run a job on macOS?", ()),  # another name is there
        ("I have a queue. Zebras block it. How is a job processed?", ()),  # a sentence begins there
        ("I have a queue. Jobs wait in it. Where is Kafka used for them?", ("Kafka",)),
        ("I have a queue. Zebras block it. Is a job processed?", ()),
        ("In production, Kubernetes restarts it. Where is a job processed?", ()),  # only told before
        ("Can it publish a receipt without touching Redis?", ()),
        ("Where is a job ended after Ctrl-C?", ()),
        ("Does a job have an Alt-Svc header?", ("Alt-Svc",)),
        (
            "My team imports nightly batches from a warehouse through our gateway and sends printed reports. "
            "Does it use SQLite?",
            ("SQLite",),
        ),
    ],
)
async def test_words_that_occur_nowhere_decide(
    tmp_path: Path, question: str, absent: tuple[str, ...]
) -> None:
    assert await search_in(tmp_path).absent_words(question) == absent


@pytest.mark.parametrize("name", ["Acme", "acme", "Acme-Client", "ACME_client", "AcmeClient"])
async def test_name_of_the_project_is_not_absent_from_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / ("acme-client" if "lient" in name else "acme")
    search = search_in(folder)
    assert await search.absent_words(f"How does {name} process a job?") == ()
    assert await search.absent_words(f"Does {name} process a job?") == ()
    assert await search.absent_words(f"Where does {name} redeem gift vouchers?") == (
        "redeem",
        "gift",
        "vouchers",
    )
    assert await search.absent_words(f"Where does {name} use Kafka?") == ("Kafka",)
    assert await search.missing_words(f"How does {name} encrypt it?") == ("encrypt",)


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("Is there a switch for jobs?", ()),
        ("Can I see which answers are wrong?", ()),
        ("Does a job hold back after it was pressed on?", ()),
        ("I typed it months ago. Whenever I do, can a job still survive deep down?", ()),
        ("I run a job. Suppose it ends up wrong, is a receipt published?", ()),
        ("Unless it turns out well, is a job processed?", ()),
        ("Shouldn\N{RIGHT SINGLE QUOTATION MARK}t it publish a receipt?", ()),
        ("Can it publish a receipt in a built-in way?", ()),
        ("Can a job be switched and encrypted?", ("encrypted",)),
        ("Can I send answers to a Switch?", ("Switch",)),  # a name
        ("Is a job processed monthly?", ("monthly",)),
        ("Where are wrong gift vouchers held?", ("gift", "vouchers")),
        ("Where are gifts held?", ()),  # one word alone
        ("Which gift vouchers does a job already survive?", ()),  # a word is there
        ("Which gift vouchers has a step turned back?", ()),
    ],
)
async def test_everyday_words_never_decide_that_something_is_absent(
    tmp_path: Path, question: str, absent: tuple[str, ...]
) -> None:
    assert await search_in(tmp_path).absent_words(question) == absent


async def test_everyday_word_that_occurs_speaks_for_what_is_asked(tmp_path: Path) -> None:
    """Only if the code contains none of its words, it lacks what a question asks for."""
    search = search_in(tmp_path, {"src/a.py": "def put_back(job):\n    return job\n"})
    assert await search.absent_words("Where are gift vouchers put?") == ()


async def test_all_words_that_occur_nowhere_are_told(tmp_path: Path) -> None:
    search = search_in(tmp_path)
    assert await search.missing_words("How does a job wrongly survive a crash?") == ("crash",)
    assert await search.missing_words("How is a job encrypted in a crash?") == ("encrypted", "crash")
    assert await search.missing_words("How is a job processed?") == ()


def test_excerpt_knows_which_lines_belong_to_its_definition() -> None:
    excerpt = CodeExcerpt("a.py", 4, ((3, "@cached"), (4, "def f():"), (5, "    pass"), (7, "X = 1")), "f", 5)
    assert [excerpt.symbol_at(line) for line in (3, 4, 5, 7)] == ["", "f", "f", ""]
    assert str(excerpt) == "a.py:\n3: @cached\n4: def f():\n5:     pass\n...\n7: X = 1"


RUST = (
    "fn parse_size(text: &str) -> Size {\n    Size::from(text)\n}\n\n#[cfg(test)]\nmod tests {\n"
    "    fn parse_size_twice() {\n        parse_size(1);\n        parse_size(2);\n    }\n}\n"
)


async def test_tests_inside_a_file_of_code_come_after_code(tmp_path: Path) -> None:
    files = {"src/size.rs": RUST, "src/other.rs": "fn print_size(size: Size) {\n    println!(size);\n}\n"}
    excerpts = await search_in(tmp_path, files).find("How is a size parsed by parse_size_twice?", [3, 3, 3])
    assert [one.symbol for one in excerpts] == ["parse_size", "print_size", "parse_size_twice"]


def test_line_where_inline_tests_begin_is_found() -> None:
    assert first_inline_test("a.rs", RUST.splitlines()) == 5
    assert first_inline_test("a.py", RUST.splitlines()) == math.inf
    assert first_inline_test("a.rs", ["#[cfg(test)]", "use x;"]) == math.inf


async def test_function_for_tests_comes_after_code(tmp_path: Path) -> None:
    code = (
        "#[cfg(test)]\npub fn count_outliers(xs: &[f64]) -> usize {\n    outlier_scores(xs).len()\n}\n\n"
        "pub fn outlier_scores(xs: &[f64]) -> Vec<f64> {\n    xs.to_vec()\n}\n"
    )
    found = await search_in(tmp_path, {"src/a.rs": code}).find("Where do we count outliers?", [3, 3])
    assert [one.symbol for one in found] == ["outlier_scores", "count_outliers"]


async def test_declarations_and_package_metadata_come_after_code(tmp_path: Path) -> None:
    files = {
        "index.d.ts": "export function parseSize(text: string): number\n",
        "PKG-INFO": "parse a size: parseSize parses a size\n",
        "lib/size.js": "function parseSize (text) {\n  return Number(text)\n}\n",
    }
    excerpts = await search_in(tmp_path, files).find("How does parseSize parse a size?", [3, 3, 3])
    assert excerpts[0].path == "lib/size.js"


async def test_code_of_others_comes_after_the_own(tmp_path: Path) -> None:
    files = {
        "vendor/ids/request_id.go": "package ids\n\n//\nfunc RequestID() string {\n\treturn id()\n}\n",
        "request.go": "package app\n\nfunc NewID(prefix string) string {\n\treturn prefix\n}\n",
    }
    excerpts = await search_in(tmp_path, files).find("Where is a request ID made?", [4, 4])
    assert [one.path for one in excerpts] == ["request.go", "vendor/ids/request_id.go"]


async def test_hidden_files_are_shown_only_if_there_are_no_others(tmp_path: Path) -> None:
    files = {".github/workflows/main.yml": "jobs:\n  queue:\n    runs-on: linux\n    steps: []\n"}
    question = "Where is the queue of jobs?"
    (hidden,) = await search_in(tmp_path / "hidden", files).find(question, [6] * 8)
    assert hidden.path == ".github/workflows/main.yml"
    both = await search_in(
        tmp_path / "both", {**files, "src/queue.py": "class Queue:\n    jobs = []\n"}
    ).find(question, [6] * 8)
    assert [one.path for one in both] == ["src/queue.py"]


async def test_files_that_only_export_are_left_out(tmp_path: Path) -> None:
    files = {
        "index.js": "const parseSize = require('./lib/size')\nmodule.exports = {\n  parseSize,\n}\n",
        "lib/size.js": "function parseSize (text) {\n  return Number(text)\n}\n",
    }
    excerpts = await search_in(tmp_path, files).find("How does parseSize parse a size?", [4, 4, 4])
    assert [one.path for one in excerpts] == ["lib/size.js"]


async def test_each_excerpt_is_whole_though_another_one_shows_some_of_its_lines(tmp_path: Path) -> None:
    """A model that looks at one excerpt at a time sees nothing of the others."""
    code = (
        "def open_queue(path):\n    return path\n\n\n"
        "def close_queue(queue):\n    queue.flush()\n    queue.stop()\n    queue.path.unlink()\n"
    )
    filler = "".join(f"A_{number} = {number}\n" for number in range(20))
    search = search_in(tmp_path, {"src/queue.py": f"{code}{filler}"})
    first, second = await search.find("How is a queue opened, and the queue closed?", [6, 9])
    assert set(dict(first.lines)) & set(dict(second.lines))
    for excerpt in (first, second):
        assert excerpt.line in dict(excerpt.lines)


async def test_line_with_a_value_is_shown_with_those_beside_it(tmp_path: Path) -> None:
    filler = "".join(f"def step_{number}(job):\n    return job\n\n\n" for number in range(9))
    code = "def wait_in_queue(job):\n    job.wait()\n\n\n"
    files = {"src/queue.py": f"{code}{filler}# At most so long.\nLIMIT = queue(45)\nOTHER = 3\n"}
    question = "How long may a job wait in the queue?"
    _, values = await search_in(tmp_path, files).find(question, [4])
    assert [line for _, line in values.lines] == ["# At most so long.", "LIMIT = queue(45)", "OTHER = 3"]
    assert values.first_line[1] == "LIMIT = queue(45)"


async def test_definition_that_does_more_comes_before_one_that_passes_the_call_on(tmp_path: Path) -> None:
    steps = "".join(f"    job.field_{number} = {number}\n" for number in range(30))
    short = "def push_record(job):\n    return job.record_push()\n"
    code = f"{short}\n\ndef record_push(job):\n{steps}    push_record(job)\n"
    first, _ = await search_in(tmp_path, {"src/a.py": code}).find("Where is the push of a record?", [9, 9])
    assert first.symbol == "record_push"


async def test_blocks_inside_a_long_definition_have_its_head_and_no_line_that_was_seen(
    tmp_path: Path,
) -> None:
    """P2: a block counts as read, like any other code."""
    search = search_in(tmp_path)
    [head] = await search.find("Where is process_job?", [10])
    search.seen.add_lines(head.path, head.lines)
    [block, *_] = await search.blocks_inside([head], "Where is the receipt published?", 3)
    assert (block.definition, block.symbol) == ("src/worker.py:1", "process_job")
    assert block.lines[0] == (1, "def process_job(job):") and "publish_receipt(job)" in str(block)
    assert not {number for number, _ in block.lines[1:]} & {number for number, _ in head.lines}
    assert block.line == block.lines[1][0] and block.symbol_at(62) == "process_job"


async def test_no_block_is_returned_without_words_of_the_question_or_of_seen_definitions(
    tmp_path: Path,
) -> None:
    search = search_in(tmp_path)
    [head] = await search.find("Where is process_job?", [10])
    assert await search.blocks_inside([head], "Which colour has a zebra?", 3) == ()
    search.seen.add_lines(head.path, [(number, "") for number in range(1, 70)])
    assert await search.blocks_inside([head], "Where is the receipt published?", 3) == ()


async def test_block_is_widened_on_both_sides_within_its_definition(tmp_path: Path) -> None:
    search = search_in(tmp_path)
    [head] = await search.find("Where is process_job?", [10])
    search.seen.add_lines(head.path, head.lines)
    [block, *_] = await search.blocks_inside([head], "Where is the receipt published?", 3)
    wide = await search.widened(block, 40)
    numbers = [number for number, _ in wide.lines]
    assert wide.place == block.place and len(block.lines) < len(numbers) <= 41
    assert min(numbers[1:]) < block.line and max(numbers) <= block.end


async def test_blocks_come_once_though_several_excerpts_are_of_one_definition(tmp_path: Path) -> None:
    search = search_in(tmp_path)
    [head] = await search.find("Where is process_job?", [10])
    search.seen.add_lines(head.path, head.lines)
    blocks = await search.blocks_inside([head], "Which step has a job?", 2)
    again = await search.blocks_inside([head, *blocks], "Which step has a job?", 9)
    assert len(again) == len({block.place for block in again}) > 0


@pytest.mark.parametrize("text", ["def process_job(job):\n    return job\n", "x = 1\n" * 4_000_000])
async def test_file_that_changed_has_no_blocks(tmp_path: Path, text: str) -> None:
    """It may be shorter than before, or larger than what may be read."""
    search = search_in(tmp_path)
    [head] = await search.find("Where is process_job?", [10])
    search.seen.add_lines(head.path, head.lines)
    (search.codebase.roots[0].path / "src/worker.py").write_text(text)
    assert await search.blocks_inside([head], "Where is the receipt of a job published?", 3) == ()


async def test_block_begins_with_code(tmp_path: Path) -> None:
    body = "".join("\n" if number % 3 else f"    step_{number}(job)\n" for number in range(60))
    search = search_in(tmp_path, {"src/worker.py": f"def process_job(job):\n{body}"})
    [head] = await search.find("Where is process_job?", [10])
    search.seen.add_lines(head.path, head.lines)
    blocks = await search.blocks_inside([head], "Which step has a job?", 9)
    assert blocks and all(block.first_line[0] == block.line for block in blocks)


class ChangingFiles(Locator):
    """Has some files change after it has located them, as by another program."""

    def __init__(self, codebase: Codebase, change: Callable[[], None]) -> None:
        super().__init__(codebase)
        self._change = change

    def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
        located = super().locate(question, limit, stop)
        self._change()
        return located


PADDING = "\n" * 40
RETRIED = "How is a job retried when it fails?"


@pytest.mark.parametrize("left", ["# Retry\n", "", None], ids=["shorter", "empty", "deleted"])
async def test_file_that_shrinks_during_a_search_does_not_end_it(tmp_path: Path, left: str | None) -> None:
    """Another program may edit files at any time. Each place that is found is told with a line."""
    files = {
        "src/retry.py": f"import os\n{PADDING}def retry_job(job):\n    # when a job fails\n    return job\n",
        "src/other.py": "def fail_job(job):\n    retry(job)\n    return job\n",
    }
    search = search_in(tmp_path, files)
    assert "src/retry.py" in {one.path for one in await search.find(RETRIED, [9, 9])}

    def change() -> None:
        if left is None:
            (tmp_path / "src/retry.py").unlink(missing_ok=True)
        else:
            (tmp_path / "src/retry.py").write_text(left, encoding="utf-8")

    search = replace(search, locator=ChangingFiles(search.codebase, change))
    found = await search.find(RETRIED, [9, 9])
    assert found and all(excerpt.first_line[1] for excerpt in found)
