"""An answer points at the definitions that answer, and at the line inside them (P3)."""

from __future__ import annotations

from pathlib import Path

from retinue.codebase import Codebase, Located, Locator, Place, best_definitions
from retinue.codebase.index import FileDetail
from retinue.codebase.rank.definitions import rank_definitions
from retinue.core import Root, Stop

GSON = """public class GsonBuilder {
    private boolean lenient;

    /** Makes the parser lenient. */
    public GsonBuilder setLenient() {
        return this;
    }

    /** Configures Gson to write fields that have no value. */
    public GsonBuilder serializeNulls() {
        this.serializeNulls = true;
        return this;
    }
}
"""
LONG = (
    "def parse_args(context):\n"
    + "".join(f"    step_{number}(context)\n" for number in range(30))
    + "    if context.leftover:\n"
    + "        raise UsageError('Got unexpected extra argument')\n"
)


def ask(root: Path, question: str) -> Located:
    return Locator(Codebase([Root.at(root)])).locate(question, 10, Stop())


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def lines_of(place: Place) -> list[int]:
    return [one.line for one in place.definitions]


def test_a_name_made_of_neighbouring_words_sets_the_line(tmp_path: Path) -> None:
    write(tmp_path, {"GsonBuilder.java": GSON})
    best = ask(tmp_path, "how do I serialize nulls with the builder?").places[0]
    assert (best.line, best.symbol) == (10, "serializeNulls")


def test_a_file_names_at_most_three_definitions(tmp_path: Path) -> None:
    write(tmp_path, {"many.py": "".join(f"def retry_{n}():\n    pass\n\n" for n in range(9))})
    places = ask(tmp_path, "where is retry done?").places
    assert len(best_definitions(places)) == 3 and len(places[0].definitions) == 8


def test_the_line_inside_a_long_definition_is_its_focus(tmp_path: Path) -> None:
    write(tmp_path, {"core.py": LONG})
    [first, *_] = ask(tmp_path, "Error: Got unexpected extra argument").places[0].definitions
    assert (first.line, first.focus) == (1, 33)


def test_definitions_of_all_places_have_one_order_and_tests_come_later(tmp_path: Path) -> None:
    code = "def evict_oldest(cache):\n    return cache.pop()\n"
    write(
        tmp_path, {"cache.py": code, "tests/test_cache.py": "def test_evict_oldest_cache():\n    evict()\n"}
    )
    found = best_definitions(ask(tmp_path, "how is the oldest cache entry evicted?").places)
    assert [place.path for place, _ in found][:2] == ["cache.py", "tests/test_cache.py"]


def test_an_identifier_leads_to_its_definition_its_prototype_and_its_uses(tmp_path: Path) -> None:
    head = "CURLcode Curl_http_follow(struct Curl_easy *data,\n                          const char *url)"
    prototype, body = head + ";\n", head + "\n{\n}\n"
    filler = "".join(f"static int other_{n}(void)\n{{\n  return {n};\n}}\n\n" for n in range(80))
    write(
        tmp_path,
        {
            "lib/http.h": prototype,
            "lib/http.c": filler + body,
            "lib/multi.c": "static int step(void)\n{\n  return Curl_http_follow(data, url);\n}\n",
            "lib/follow.c": "int http_follow_defined(void)\n{\n  return 0;\n}\n",
        },
    )
    found = ask(tmp_path, "Curl_http_follow")
    assert {place.path for place in found.places[:3]} == {"lib/http.c", "lib/http.h", "lib/multi.c"}


def test_everyday_words_find_the_words_of_code(tmp_path: Path) -> None:
    files = {f"app/part_{n}.py": f"def part_{n}(request):\n    return request\n" for n in range(20)}
    code = "class Middleware:\n    def compare(self, request):\n        return request.password\n"
    write(tmp_path, {**files, "app/middleware.py": code})
    best = ask(tmp_path, "what looks at the credentials of requests?").places[0]
    assert best.path == "app/middleware.py"


class CountingNames(list[str]):
    """Names that count how often one of them is read."""

    reads = 0

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        self.reads += 1
        return super().__getitem__(index)


def test_many_definitions_of_one_name_take_time_in_proportion_to_their_number() -> None:
    """P2: a file with thousands of them must not keep the server busy."""
    count = 2_000
    names = CountingNames(["parser"] * count)
    starts = range(0, 10 * count + 10, 10)
    lines = range(1, count + 1)
    detail = FileDetail(starts, lines, names, {}, {"parser": "parser"})
    words = {0: dict.fromkeys(range(count), 1.0)}
    found = rank_definitions([0], {0: 1.0}, {0: detail}, words, {"parser": 1.0}, ["a.py"])
    assert [one.line for one in found[0]] == [1]
    assert names.reads < 10 * count


def test_part_of_a_file_that_defines_nothing_is_cited_at_the_line_with_the_words(tmp_path: Path) -> None:
    header = "# Copyright The Authors\n# All rights reserved\n\nimport os\n\n"
    write(tmp_path, {"setup_hooks.py": header + "os.register_at_fork(before=close_pool)\n"})
    (place,) = ask(tmp_path, "where is the pool closed at a fork?").places
    assert (place.symbol, place.line) == ("", 6)
