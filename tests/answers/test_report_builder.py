"""Outcomes of roles become one report: merged, ordered, bounded and cut to its budget (P4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from retinue.answers.report_builder import (
    MAX_FINDING_CHARS,
    MAX_FINDINGS,
    MAX_SNIPPET_CHARS,
    MIN_TOKENS,
    estimate_report_tokens,
    fit_report,
    merge_outcomes,
    summarize,
)
from retinue.core import Reference, Report, ReportId, RoleError, RoleOutcome, RoleResult, estimate_tokens

REST = "See all: ask again."


def outcome(
    summary: str = "s", references: Sequence[str] = (), findings: Sequence[str] = (), notes: str | None = None
) -> RoleOutcome:
    value = RoleResult(
        summary=summary,
        references=tuple(map(Reference.parse, references)),
        key_findings=tuple(findings),
        notes=notes,
    )
    return RoleOutcome(status="ok", value=value, started_at=1, elapsed_ms=2)


def failed(status: str) -> RoleOutcome:
    error = RoleError("deadline_exceeded", "the deadline passed")
    return RoleOutcome(status=status, error=error, started_at=1, elapsed_ms=2)  # pyright: ignore[reportArgumentType]


def report(roles: dict[str, RoleOutcome], question: str = "q") -> Report:
    merged = merge_outcomes(roles)
    return Report(
        id=ReportId("1k09mhp54ymrz78"),
        question=question,
        roots_searched=("/home/ann/shop",),
        roles=merged,
        summary=summarize(merged),
    )


def large() -> Report:
    names = [f"src/package/module_{number}.py:{number + 1}" for number in range(60)]
    return report(
        {
            "patterns": outcome(
                "Six.", names[50:], [f"{name}\n" + "x = compute(1, 2, 3)\n" * 11 for name in names[:6]]
            ),
            "analyzer": outcome("Traced.", names[40:], [f"{name}: `f` uses `g`" for name in names[:12]]),
            "locator": outcome("Found.", names[:40], [f"{name}: 3 of 4 terms" for name in names[:12]]),
            "thoughtsLocator": outcome("Old.", ["notes/old.md:1"]),
        }
    )


def test_same_outcomes_give_the_same_report_in_the_same_order() -> None:
    """Phase 3, synthesizer ordering determinism; phase 4, pipeline orchestrator with given role results."""
    roles = {"analyzer": outcome("a", ["b.py:2"]), "locator": outcome("l", ["a.py:1"])}
    shuffled = dict(reversed(roles.items()))
    assert json.dumps(report(roles).as_dict()) == json.dumps(report(shuffled).as_dict())
    assert list(report(roles).roles) == ["locator", "analyzer"]


def test_identical_references_are_merged_and_findings_stay_with_their_role() -> None:
    """Phase 4, dedupe correctness."""
    merged = merge_outcomes(
        {
            "locator": outcome("l", ["a.py:1", "b.py:2", "a.py:1"], ["a.py:1: defines f"]),
            "analyzer": outcome("a", ["b.py:2", "c.py:3"], ["b.py:2: f uses g"]),
        }
    )
    locator, analyzer = merged["locator"].value, merged["analyzer"].value
    assert locator and analyzer
    assert [str(one) for one in locator.references] == ["a.py:1", "b.py:2"]
    assert [str(one) for one in analyzer.references] == ["c.py:3"]
    assert (locator.key_findings, analyzer.key_findings) == (("a.py:1: defines f",), ("b.py:2: f uses g",))


def test_lists_and_texts_are_bounded() -> None:
    """Phase 3, compaction budget: number of bullets, length of bullets and snippets."""
    value = merge_outcomes({"locator": outcome("x" * 9_999, (), [f"{n} " + "y" * 9_999 for n in range(99)])})
    (locator,) = (one.value for one in value.values() if one.value)
    assert len(locator.summary) <= 400
    assert len(locator.key_findings) == MAX_FINDINGS
    assert all(len(finding) <= MAX_FINDING_CHARS for finding in locator.key_findings)
    (snippet,) = (
        merge_outcomes({"locator": outcome("", (), ["a\n" * 9_999])})["locator"].value
        or RoleResult(summary="")
    ).key_findings
    assert len(snippet) <= MAX_SNIPPET_CHARS


@pytest.mark.parametrize("status", ["timeout", "error", "canceled"])
def test_report_says_which_role_failed(status: str) -> None:
    """Phase 4, partial results."""
    partial = report({"locator": outcome("Found it.", ["a.py:1"]), "analyzer": failed(status)})
    assert "Found it." in partial.summary
    assert f"The analyzer ended with {status}: the deadline passed." in partial.summary
    assert partial.as_dict()["analyzer"] == failed(status).as_dict()


def test_summary_begins_with_what_was_traced_and_ends_with_history() -> None:
    """The order of the five priorities."""
    summary = report(
        {
            "thoughtsLocator": outcome("Old notes.", ["notes.md:1"]),
            "patterns": outcome("Two examples."),
            "locator": outcome("Places.", ["a.py:1"]),
            "analyzer": outcome("Traced."),
        }
    ).summary
    assert summary == "Traced. Two examples. Old notes."


def test_summary_of_what_was_found_does_not_tell_that_no_document_fits() -> None:
    """P8: "Not found" after an answer would be read as being about the code."""
    roles = {"locator": outcome("Places.", ["a.py:1"]), "thoughtsLocator": outcome("Not found: x.")}
    assert report(roles).summary == "Places."


def test_summary_is_the_locators_if_nothing_was_found() -> None:
    assert report({"locator": outcome("Not found: x.")}).summary == "Not found: x."


@pytest.mark.parametrize("tokens", [MIN_TOKENS, 500, 700, 1_000, 1_500, 2_000])
def test_report_fits_its_budget_and_says_what_was_cut(tokens: int) -> None:
    """Phase 3, compaction budget: truncated with explicit notes."""
    fitted = fit_report(large(), tokens, REST)
    assert estimate_tokens(json.dumps(fitted.as_dict(), indent=2)) <= tokens
    assert fitted.notes[-1].startswith("Cut to fit: ")
    assert fitted.notes[-1].endswith(REST)
    value = fitted.roles["locator"].value
    assert value is not None
    assert str(value.references[0]) == "src/package/module_0.py:1"


def test_what_is_cut_depends_on_neither_times_nor_ids() -> None:
    """Phase 3, determinism: the same findings give the same answer, whatever the time."""

    def kept(identity: str, elapsed_ms: int, tokens: int) -> list[RoleResult | None]:
        whole = large()
        roles = {role: replace(one, elapsed_ms=elapsed_ms) for role, one in whole.roles.items()}
        fitted = replace(whole, id=ReportId(identity), roles=roles)
        return [one.value for one in fit_report(fitted, tokens, f"previous={identity}").roles.values()]

    for tokens in range(MIN_TOKENS, 2_000, 25):
        assert kept("1k09mhp54ymrz78", 12_345, tokens) == kept("1kkkkkkkkkkkkkk", 7, tokens)


def test_budget_is_used_and_a_larger_one_shows_more() -> None:
    sizes = [
        estimate_report_tokens(fit_report(large(), tokens, REST)) for tokens in (500, 1_000, 2_000, 3_000)
    ]
    assert sizes == sorted(sizes)
    assert sizes[2] > 1_600


def test_what_matters_most_survives_a_small_budget() -> None:
    fitted = fit_report(large(), 1_000, REST)
    assert fitted.roles["analyzer"].value is not None
    assert len(fitted.roles["analyzer"].value.key_findings) >= 4
    assert fitted.roles["thoughtsLocator"].value is not None
    assert fitted.roles["thoughtsLocator"].value.references == ()


def test_small_report_is_unchanged() -> None:
    small = report({"locator": outcome("Found.", ["a.py:1"])})
    assert fit_report(small, 2_000, REST) == small


def test_long_question_leaves_room_for_the_answer() -> None:
    long = report({"locator": outcome("Found.", ["a.py:1"])}, question="why " * 20_000)
    fitted = fit_report(long, 2_000, REST)
    assert estimate_report_tokens(fitted) <= 2_000
    assert fitted.question.endswith("…")
    assert fitted.roles["locator"].value is not None
    assert fitted.roles["locator"].value.references


def test_cut_counts_add_up() -> None:
    """P8: the note says exactly how much is missing."""
    whole, fitted = large(), fit_report(large(), 1_000, REST)
    missing = {"references": 0, "key_findings": 0}
    for role, outcome_ in whole.roles.items():
        before, after = outcome_.value, fitted.roles[role].value
        assert before and after
        missing["references"] += len(before.references) - len(after.references)
        missing["key_findings"] += len(before.key_findings) - len(after.key_findings)
    assert f"{missing['references']} references and {missing['key_findings']} findings" in fitted.notes[-1]


def test_examples_that_do_not_fit_keep_their_place_and_one_line_of_code() -> None:
    """P4: a list of examples stays whole, and the first ones keep their code."""
    findings = [
        f"src/a_{number}.py:3 in `f`\n# A comment.\n@decorated\ndef f_{number}():\n"
        + "    work(with_some, rather_long, arguments_of_it)\n" * 9
        for number in range(6)
    ]
    names = [finding.split(" ")[0] for finding in findings]
    whole = replace(report({"patterns": outcome("Six.", names, findings)}), intent="examples")
    fitted = fit_report(whole, 900, REST).roles["patterns"].value
    assert fitted is not None
    assert all("work(" in finding for finding in fitted.key_findings[:2])
    assert fitted.key_findings[2:] == tuple(
        f"src/a_{number}.py:3 in `f`\ndef f_{number}():" for number in range(2, 6)
    )


def test_flow_keeps_its_code_unless_the_budget_is_small() -> None:
    """P4: with few tokens, further places are worth more than the lines of one function."""
    flow = "a.py:3: `f`\ndef f():\n" + "    work(with_some, arguments)\n" * 9
    names = [f"src/package/module_{number}.py:{number + 1}" for number in range(60)]
    roles = {"locator": outcome("Found.", names), "analyzer": outcome("Traced.", ["a.py:3"], [flow])}

    def code(tokens: int) -> str:
        fitted = fit_report(replace(report(roles), intent="how"), tokens, REST).roles["analyzer"].value
        assert fitted is not None
        return fitted.key_findings[0]

    assert "work(" in code(1_400)
    assert code(800) == "a.py:3: `f`\ndef f():"


def test_summary_of_examples_tells_no_flow() -> None:
    roles = {"patterns": outcome("Two examples."), "analyzer": outcome("`f` is where to start.")}
    assert summarize(merge_outcomes(roles, "examples"), "examples") == "Two examples."


def test_role_whose_findings_are_kept_keeps_a_reference() -> None:
    """The seed's contract: the findings of a role come with their evidence."""
    steps = [f"b.py:{number}: `go` calls `step_{number}`: `step_{number}()`" for number in range(1, 40)]
    whole = report(
        {
            "locator": outcome("Places.", [f"a.py:{number}" for number in range(1, 30)]),
            "analyzer": outcome("Traced.", [f"b.py:{number}" for number in range(1, 40)], steps),
        }
    )
    for tokens in (500, 700, 1_000, 1_400):
        value = fit_report(whole, tokens, "More.").roles["analyzer"].value
        assert value is not None and (value.references or not value.key_findings)
