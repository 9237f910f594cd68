"""Hints of the caller lead to the code's own words, and a wrong hint costs little."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase, Located, Locator, parse_question
from retinue.codebase.parse.question import MAX_HINTS, parse_hints
from retinue.core import Root, Stop

FILES = {
    "app/forms.py": "class ProtectedForm:\n    def submit(self, form, site):\n        return form\n",
    "app/csrf.py": "class CsrfViewMiddleware:\n    def process_view(self, token):\n        return token\n",
    "app/cache.py": "class Cache:\n    def get(self, key):\n        return key\n",
    "app/sites.py": "def current_site(request):\n    return request.site\n",
}


@pytest.fixture
def locator(tmp_path: Path) -> Locator:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Locator(Codebase([Root.at(tmp_path)]), tmp_path.parent / "index")


def paths(located: Located) -> list[str]:
    return [place.path for place in located.places]


def ask(locator: Locator, *hints: str) -> Located:
    return locator.locate(parse_question("How is a form submitted?", hints), 10, Stop())


def test_a_right_hint_brings_the_file_that_the_words_of_the_question_miss(locator: Locator) -> None:
    assert "app/csrf.py" not in paths(ask(locator))[:2]
    found = ask(locator, "CsrfViewMiddleware", "token", "gizmo")
    assert paths(found)[0] == "app/csrf.py"
    assert (found.present_hints, found.absent_hints) == (("CsrfViewMiddleware", "token"), ("gizmo",))
    assert next(place for place in found.places if place.path == "app/csrf.py").symbol.startswith(
        ("Csrf", "process")
    )


@pytest.mark.parametrize("hints", [("validatePaymentCard",), ("response_body_discard", "gizmo")])
def test_a_hint_that_no_file_contains_changes_nothing(locator: Locator, hints: tuple[str, ...]) -> None:
    found = ask(locator, *hints)
    assert found.places == ask(locator).places
    assert (found.present_hints, found.absent_hints) == ((), hints)


@pytest.mark.parametrize("hints", [("Cache",), ("cache", "key"), ("current_site", "Cache")])
def test_after_a_wrong_hint_the_best_place_is_still_among_the_first_two(
    locator: Locator, hints: tuple[str, ...]
) -> None:
    assert paths(ask(locator))[0] == "app/forms.py"
    assert "app/forms.py" in paths(ask(locator, *hints))[:2]


def test_hints_give_the_same_answer_with_and_without_an_index(locator: Locator) -> None:
    scanned = ask(locator, "csrf", "process_view")
    assert locator.update_index(Stop())
    assert ask(locator, "csrf", "process_view") == scanned


def test_hints_are_split_bounded_and_without_repetitions() -> None:
    assert [hint.flat for hint in parse_hints(["CsrfView, csrf_view", "", "the", "x" * 5_000])][:1] == [
        "csrfview"
    ]
    assert len(parse_hints([f"name_{n}" for n in "abcdefghijklmnop"])) == MAX_HINTS
