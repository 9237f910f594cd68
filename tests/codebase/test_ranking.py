"""The right file comes first, says why, and a wrong question is recognised (P3, P8, P10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase, Located, Locator, file_category, file_kind
from retinue.core import Canceled, InvalidInput, Root, Stop

PROJECT = {
    "app/net/retry.py": "class RetryPolicy:\n    '''Backs off between attempts.'''\n\n"
    "    def delay(self, attempt):\n"
    "        return 2 ** attempt\n",
    "app/net/client.py": "from app.net.retry import RetryPolicy\n\nclass Client:\n"
    "    def fetch(self, url):\n"
    "        policy = RetryPolicy()\n        return self.send(url, policy.delay(1))\n",
    "app/store/cache.py": "class Cache:\n    def evict_oldest(self):\n        self.entries.pop()\n",
    "app/store/__init__.py": "from app.store.cache import Cache\n",
    "tests/test_retry.py": "from app.net.retry import RetryPolicy\n\n"
    "def test_delay_doubles_between_attempts():\n"
    "    assert RetryPolicy().delay(2) == 4\n",
    "docs/retry.md": "# Retry\n\nThe client backs off between attempts.\n",
    "web/cart.ts": "export class ShoppingCart {\n  addItem(item: Item): void {\n"
    "    this.items.push(item)\n  }\n}\n",
    "svc/pool.go": "package svc\n\n// Acquire waits for a free connection.\n"
    "func (p *Pool) Acquire() *Conn {\n}\n",
    "core/lexer.rs": "/// Splits source into tokens.\npub fn tokenize(source: &str) -> Vec<Token> {\n}\n",
    "srv/OrderService.java": "public class OrderService {\n"
    "    public Order placeOrder(Basket basket) {\n    }\n}\n",
    "lib/matrix.c": "/* Multiplies two matrices. */\nint matrix_multiply(int *a, int *b)\n{\n}\n",
    "Api/UserController.cs": "public class UserController {\n"
    "    public async Task<User> GetUser(int id) {\n    }\n}\n",
    "lib/mailer.rb": "class Mailer\n  def deliver_later(message)\n  end\nend\n",
    "src/Router.php": "<?php\nclass Router {\n    public function matchRoute($path) {\n    }\n}\n",
    "pyproject.toml": "[project]\nname = 'app'\ndependencies = ['requests']\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in PROJECT.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def ask(root: Path, question: str, limit: int = 10) -> Located:
    return Locator(Codebase([Root.at(root)])).locate(question, limit, Stop())


@pytest.mark.parametrize(
    ("question", "path", "line"),
    [
        ("where is the delay between retries computed?", "app/net/retry.py", 4),
        ("how is the oldest cache entry evicted?", "app/store/cache.py", 2),
        ("where are items added to the shopping cart?", "web/cart.ts", 2),
        ("how does a pool acquire a free connection?", "svc/pool.go", 4),
        ("what splits source into tokens?", "core/lexer.rs", 2),
        ("where are orders placed from a basket?", "srv/OrderService.java", 2),
        ("multiplying matrices", "lib/matrix.c", 2),
        ("which controller gets a user by id?", "Api/UserController.cs", 2),
        ("where does the mailer deliver messages later?", "lib/mailer.rb", 2),
        ("how are routes matched to a path?", "src/Router.php", 3),
        ("project dependencies", "pyproject.toml", 1),
    ],
)
def test_the_file_that_answers_comes_first_with_its_line(
    project: Path, question: str, path: str, line: int
) -> None:
    """P10: without a model, in every language."""
    best = ask(project, question).places[0]
    assert (best.path, best.line) == (path, line)
    assert best.why


def test_code_comes_before_its_tests_and_its_documentation(project: Path) -> None:
    paths = [place.path for place in ask(project, "retry policy delay between attempts").places]
    assert paths.index("app/net/retry.py") < paths.index("tests/test_retry.py")
    assert paths.index("app/net/retry.py") < paths.index("docs/retry.md")


def test_a_requested_test_is_found(project: Path) -> None:
    paths = [place.path for place in ask(project, "which test checks that the delay doubles?").places]
    assert paths[0] == "tests/test_retry.py"


def test_a_definition_that_the_question_names_says_so(project: Path) -> None:
    best = ask(project, "what does `RetryPolicy` do?").places[0]
    assert best.path == "app/net/retry.py"
    assert "defines RetryPolicy" in best.why


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Version", 1),
        ("where is Version defined?", 1),
        ("how is `Result` made?", 5),
        ("the Result class", 5),
        ("explain()", 8),
        ("find", 11),
    ],
)
def test_a_definition_named_like_a_common_word_is_found(project: Path, question: str, line: int) -> None:
    """In most questions such words are noise; these questions are about them."""
    (project / "core/release.py").write_text(
        "class Version:\n    pass\n\n\nclass Result:\n    pass\n\n"
        "def explain(it):\n    pass\n\ndef find(it):\n    pass\n"
    )
    first = ask(project, question).places[0]
    assert (first.path, first.line) == ("core/release.py", line)


def test_a_common_word_among_others_is_not_a_name(project: Path) -> None:
    (project / "version.py").write_text("version = 'the version of this project'\n")
    paths = [place.path for place in ask(project, "in which version do retries have a delay?").places]
    assert paths[0] == "app/net/retry.py"
    assert "version.py" not in paths


def test_a_path_and_a_stack_trace_in_a_report_point_to_their_files(project: Path) -> None:
    frame = '  File "/site-packages/app/store/cache.py", line 3, in x'
    report = f"It fails\n\nTraceback (most recent call last):\n{frame}\n"
    best = ask(project, report).places[0]
    assert best.path == "app/store/cache.py"
    assert "named in the question" in best.why
    said = ask(project, "what is in svc/pool.go?").places[0]
    assert "named in the question" in said.why


def test_a_question_without_any_match_has_no_places(project: Path) -> None:
    located = ask(project, "xylophone zeppelin quokka")
    assert located.places == ()
    assert located.confidence == "low"
    assert located.files == len(PROJECT)


def test_the_answer_is_the_same_every_time(project: Path) -> None:
    question = "how does the client fetch with a retry policy?"
    assert len({repr(ask(project, question)) for _ in range(3)}) == 1


def test_the_limit_bounds_the_answer_and_keeps_its_order(project: Path) -> None:
    """P2"""
    question = "retry delay attempt"
    assert ask(project, question, 2).places == ask(project, question, 10).places[:2]


@pytest.mark.parametrize(("question", "limit"), [("", 5), ("  \n", 5), ("where?", 0)])
def test_bad_input_is_refused(project: Path, question: str, limit: int) -> None:
    with pytest.raises(InvalidInput):
        Locator(Codebase([Root.at(project)])).locate(question, limit, Stop())


def test_a_canceled_question_ends(project: Path) -> None:
    """P2"""
    stop = Stop()
    stop.cancel()
    with pytest.raises(Canceled):
        Locator(Codebase([Root.at(project)])).locate("retry", 5, stop)


def test_hidden_files_are_never_named(project: Path) -> None:
    """P6"""
    (project / ".env").write_text("RETRY_DELAY_SECRET=1\n")
    (project / ".gitignore").write_text("ignored.py\n")
    (project / "ignored.py").write_text("retry_delay_secret = 1\n")
    paths = {place.path for place in ask(project, "retry delay secret", 50).places}
    assert not paths & {".env", "ignored.py"}


def test_several_roots_are_searched_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "a.py").write_text("def parse_invoice(): pass\n")
    (tmp_path / "two" / "b.py").write_text("def send_invoice(): pass\n")
    codebase = Codebase([Root.at(tmp_path / "one"), Root.at(tmp_path / "two")])
    found = Locator(codebase).locate("invoice", 10, Stop()).places
    assert {(place.entry.root.path.name, place.path) for place in found} == {("one", "a.py"), ("two", "b.py")}


@pytest.mark.parametrize(
    ("path", "kind", "standing"),
    [
        ("src/app/run.py", "implementation", "own"),
        ("tests/test_run.py", "test", "test"),
        ("web/cart.spec.ts", "test", "test"),
        ("svc/pool_test.go", "test", "test"),
        ("src/PoolTest.java", "test", "test"),
        ("docs/guide.md", "docs", "docs"),
        ("pyproject.toml", "config", "config"),
        ("src/types.ts", "types", "own"),
        ("src/__main__.py", "entry point", "own"),
        ("vendor/lib/x.c", "implementation", "vendored"),
        ("examples/hello.py", "implementation", "example"),
        ("src/latest.py", "implementation", "own"),
        ("src/contest.py", "implementation", "own"),
    ],
)
def test_the_kind_of_a_file_follows_from_its_path(path: str, kind: str, standing: str) -> None:
    assert (file_kind(path), file_category(path)) == (kind, standing)


def test_a_request_ranks_tests_lower_than_a_question_does(project: Path) -> None:
    """`Delay doubles...` requests a change of the code; a test may only answer a question."""
    (project / "tests/test_retry.py").write_text(PROJECT["tests/test_retry.py"] * 3)
    paths = [place.path for place in ask(project, "Double the delay between attempts of RetryPolicy").places]
    assert paths[0] == "app/net/retry.py"


def test_the_deepest_frame_counts_more_than_the_outermost(tmp_path: Path) -> None:
    for name in ("entry", "middle", "zone"):
        (tmp_path / f"{name}.py").write_text("def step():\n    pass\n")
    trace = "".join(f'  File "/srv/{name}.py", line 1, in step\n' for name in ("entry", "middle", "zone"))

    places = ask(tmp_path, f"It fails\n\nTraceback:\n{trace}").places

    assert [place.path for place in places] == ["zone.py", "middle.py", "entry.py"]


@pytest.mark.parametrize(
    ("path", "standing"),
    [
        ("tests/a.py", "test"),
        ("Core.Tests/Pool.cs", "test"),
        ("src/PoolTests/Fake.java", "test"),
        ("test_data/big.json", "test"),
        ("integration-tests/run.go", "test"),
        ("pkg/e2e/login.ts", "test"),
        ("django/test/client.py", "own"),
        ("django/test/test_client.py", "test"),
        ("test/helper.py", "test"),
        ("src/latest/pool.py", "own"),
        ("src/contest.py", "own"),
        ("CHANGES", "docs"),
        ("LICENSE-MIT", "docs"),
        ("src/history.py", "own"),
        ("src/news/feed.ts", "own"),
        ("doc/usage.rst", "docs"),
        ("man/tool.toml.1", "docs"),
        ("tool.8", "docs"),
        ("lib/v1.2", "own"),
        ("packages/runtime-core/src/watch.ts", "own"),
        ("packages/client/main.py", "own"),
        ("requests/packages/urllib3/util.py", "vendored"),
        ("web/static/jquery-3.6.0.js", "vendored"),
        ("web/static/jquery.min.js", "vendored"),
        ("src/base-2.js", "own"),
        ("src/ShopSamples/Cart.cs", "example"),
        ("src/Shop/Shop.csproj", "config"),
        ("benches/pool.rs", "example"),
        ("api/events.pb.go", "vendored"),
        ("api/events_pb2.py", "vendored"),
        ("pkg/zz_generated.deepcopy.go", "vendored"),
        ("src/generated.py", "own"),
        ("PKG-INFO", "vendored"),
        ("src/regen.go", "own"),
    ],
)
def test_the_category_of_a_file_follows_from_its_path(path: str, standing: str) -> None:
    assert file_category(path) == standing
