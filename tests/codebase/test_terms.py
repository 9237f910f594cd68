"""Words of code and words of questions have the same terms."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from retinue.codebase import parse_question, split_identifier, stem
from retinue.codebase.parse import QueryTerms, Vocabulary, separate_words


@pytest.mark.parametrize(
    "family",
    [
        ["retry", "retries", "retried"],
        ["query", "queries", "queried"],
        ["copy", "copied"],
        ["apply", "applies", "applied"],
        ["verify", "verified"],
        ["valid", "validate", "validator", "validation", "validated"],
        ["serialize", "serializer", "serialization"],
        ["cache", "cached", "caching", "caches"],
        ["run", "running", "runs"],
        ["configure", "configuration", "configured"],
        ["delete", "deletion", "deleted"],
    ],
)
def test_inflections_of_a_word_share_a_stem(family: list[str]) -> None:
    assert len({stem(word) for word in family}) == 1


@given(st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_a_stem_is_a_prefix_so_that_a_substring_search_finds_the_word(word: str) -> None:
    assert word.startswith(stem(word))
    assert stem(word)


def test_identifiers_are_split_at_case_underscores_and_digits() -> None:
    assert split_identifier("getHTTPResponse_code2") == ["get", "http", "response", "code", "2"]


def test_an_identifier_is_found_by_its_parts_and_as_a_whole_in_either_style() -> None:
    vocabulary = Vocabulary()
    snake, camel = vocabulary[b"language_prefix"].split(), vocabulary[b"LanguagePrefix"].split()
    assert snake == camel == ["languag", "prefix", "languageprefix"]


def test_letters_beyond_ascii_stay_in_their_word() -> None:
    assert split_identifier("Häkli") == ["häkli"]
    vocabulary = Vocabulary()
    assert vocabulary["größe".encode()] == vocabulary["Größe".encode()] == "größe"


@pytest.mark.parametrize(
    ("word", "like"),
    [
        ("worker", "working"),
        ("workers", "works"),
        ("exception", "except"),
        ("theme", "them"),
        ("seed", "see"),
    ],
)
def test_word_that_only_has_the_stem_of_a_stop_word_is_searched_for(word: str, like: str) -> None:
    vocabulary = Vocabulary()
    assert vocabulary[word.encode()]
    assert not vocabulary[like.encode()]
    assert parse_question(f"where is the {word} stored?").terms.keys() > {"stor"}


@pytest.mark.parametrize(
    ("question", "related"),
    [("what runs in the background?", "thread"), ("where is the minimum kept?", "min")],
)
def test_everyday_words_have_related_words(question: str, related: str) -> None:
    assert stem(related) in parse_question(question).related


def test_stop_words_and_hashes_have_no_terms() -> None:
    vocabulary = Vocabulary()
    assert vocabulary[b"the"] == vocabulary[b"self"] == vocabulary[b"x"] == vocabulary[b"a" * 100] == ""


@given(st.text(max_size=60), st.sets(st.sampled_from(["cach", "languageprefix", "prefix", "größe"])))
def test_query_terms_agree_with_the_vocabulary(text: str, terms: set[str]) -> None:
    vocabulary, asked = Vocabulary(), QueryTerms(terms)
    for word in separate_words((text + " language_prefix CACHING").encode(errors="replace")).split():
        assert set(asked[word]) == set(vocabulary[word].split()) & terms


WORDS = (
    "cache",
    "RetryPolicy",
    "retry_policy",
    "retries",
    "unretryable",
    "größe",
    "GRÖSSE",
    "to\u212aen",
    "x",
)
SPACES = (" ", "\n", "_", "\u2014", "\xa0", "9", "")


@given(
    st.lists(st.lists(st.sampled_from([*WORDS, *SPACES]), max_size=12), min_size=1, max_size=6),
    st.sets(st.sampled_from(["cach", "retri", "retry", "retrypolicy", "größ", "token", "cachex"])),
    st.integers(0, 1),
)
def test_counts_are_the_same_whether_terms_or_words_are_searched(
    sections: list[list[str]], terms: set[str], dense: int
) -> None:
    """P8: a scan counts every word that an index would store, also if it searches for the terms only."""
    texts = ["".join(section).encode() + b"\n" for section in sections]
    starts = [sum(map(len, texts[:number])) for number in range(len(texts))]
    query = QueryTerms(terms)
    if dense:
        query.count_terms(" ".join(["cache retry größe"] * 300).encode())  # from now on, it looks up words
    expected: dict[str, dict[int, int]] = {}
    for section, text in enumerate(texts):
        for word in separate_words(text).split():
            for term in Vocabulary()[word].split():
                if term in terms:
                    of_term = expected.setdefault(term, {})
                    of_term[section] = of_term.get(section, 0) + 1
    data = b"".join(texts)
    assert query.count_terms(data, starts) == expected
    assert query.count_terms(data, starts, QueryTerms(terms).find_words(data)) == expected


@example(["cache\ncache"])
@given(st.lists(st.lists(st.sampled_from([*WORDS, *SPACES]), max_size=4).map("".join), max_size=8))
def test_names_with_a_term_of_the_question_have_all_their_terms(names: list[str]) -> None:
    names = [name.strip() for name in names]
    terms = {"cach", "retri", "größ", "token"}
    vocabulary = Vocabulary()
    for name, found in QueryTerms(terms).terms_of_names(names).items():
        whole = vocabulary.distinct_terms(name)
        assert found == whole or (not found and terms.isdisjoint(whole.split()))


def test_no_terms_are_found_nowhere() -> None:
    assert QueryTerms(()).count_terms(b"retry the cache", [0, 6]) == {}


def test_a_report_weighs_its_title_over_its_text_and_its_text_over_its_code() -> None:
    question = parse_question("Widget breaks\n\nThe gadget fails.\n\n```\ncall_gizmo()\n```\n")
    assert question.is_report
    assert question.terms["widget"] > question.terms["gadget"] > question.terms["gizmo"]


def test_comments_of_an_issue_template_are_not_part_of_the_report() -> None:
    question = parse_question(
        "Widget breaks\n<!-- Please search the gadgets\nfirst -->\nThe gizmo fails.\n<!-- open"
    )
    assert {"widget", "gizmo"} <= question.terms.keys()
    assert not {"gadget", "search", "open"} & question.terms.keys()


def test_names_paths_modules_and_frames_are_found_in_a_report() -> None:
    question = parse_question(
        "Crash in `RetryPolicy`\n\nsee src/net/retry.py and app.net.client\n"
        'Traceback:\n  File "/usr/lib/app/net/pool.py", line 42, in get_conn\n'
    )
    assert {"RetryPolicy", "get_conn"} <= question.names.keys()
    assert "src/net/retry.py" in question.paths
    assert "app.net.client" in question.dotted
    assert [(frame.path, frame.line, frame.function) for frame in question.frames] == [
        ("/usr/lib/app/net/pool.py", 42, "get_conn")
    ]


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text: str) -> None:
    question = parse_question(text)
    assert question.terms.keys() == question.word_by_term.keys()
