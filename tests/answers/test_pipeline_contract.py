"""What the four phases of the design demand of tools, settings, schemas and caching."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError, validate

from retinue.config import Settings, load_settings
from retinue.core import ConfigInvalid
from retinue.server import start_logging
from retinue.service import (
    ResearchRequest,
    Service,
    analyze_component,
    find_patterns,
    locate_in_codebase,
    research_codebase,
)
from tests.answers.conftest import limited, service_for, write
from tests.answers.test_pipeline_surfaces import QUESTION, cli, connected

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
REFERENCES = {"type": "array", "items": {"type": "string", "pattern": r"^[^\n]+?(:[1-9]\d*(:[1-9]\d*)?)?$"}}
TIMING = {
    "type": "object",
    "properties": {"startedAt": {"type": "integer"}, "elapsedMs": {"type": "integer", "minimum": 0}},
    "required": ["startedAt", "elapsedMs"],
    "additionalProperties": False,
}
RESULT = {
    "summary": TEXT,
    "references": REFERENCES,
    "key_findings": TEXTS,
    "confidence": {"enum": ["low", "med", "high"]},
    "notes": {"type": ["string", "null"]},
}
ERROR = {
    "type": "object",
    "properties": {"name": TEXT, "message": TEXT},
    "required": ["name", "message"],
    "additionalProperties": False,
}


def exactly(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }


WRAPPER = {
    "oneOf": [
        exactly({"status": {"const": "ok"}, "value": exactly(RESULT), "timing": TIMING}),
        exactly({"status": {"enum": ["timeout", "canceled", "error"]}, "error": ERROR, "timing": TIMING}),
    ]
}
PROGRESS = exactly(
    {
        "spawnedTasks": {"type": "integer"},
        "elapsedMs": {"type": "integer"},
        "filesRead": {"type": "integer"},
        "bytesRead": {"type": "integer"},
        "keywords": TEXTS,
    }
)
NUMBER = {"type": "integer"}
CONSTRAINTS = exactly(
    dict.fromkeys(("tokens", "deadlineMs", "maxFilesRead", "maxBytesRead", "useIndex"), NUMBER)
)
CLARIFICATION = exactly({"question": TEXT, "roots": TEXTS, "components": TEXTS, "keywords": TEXTS})
EXPLANATION = exactly({"model": TEXT, "sentences": TEXTS})
INTENT = {
    "enum": ["where", "how", "callers", "options", "examples", "exists", "error", "changes"],
}
ADDED = {
    "intent": INTENT,
    "constraints": CONSTRAINTS,
    "clarification": CLARIFICATION,
    "explanation": EXPLANATION,
}
"""Optional fields that the contract did not have at first."""
ROOT_OF = {"type": "object", "additionalProperties": {"type": "integer"}}
REPORT = exactly(
    {"question": TEXT, "rootsSearched": TEXTS, "locator": WRAPPER, "summary": TEXT, "id": TEXT},
    {
        **dict.fromkeys(("analyzer", "patterns", "thoughtsLocator", "thoughtsAnalyzer"), WRAPPER),
        "progress": PROGRESS,
        "notes": TEXTS,
        "rootOf": ROOT_OF,
        "artifactPath": TEXT,
        **ADDED,
    },
)
ASKED = {"question": TEXT, "rootsSearched": TEXTS, "timing": TIMING}
SINGLE = {
    "oneOf": [
        exactly({**ASKED, "status": {"const": "ok"}, **RESULT}, {"rootOf": ROOT_OF, **ADDED}),
        exactly({**ASKED, "status": {"enum": ["timeout", "canceled", "error"]}, "error": ERROR}, ADDED),
    ]
}


def problems(schema: dict[str, Any], answer: Any) -> list[str]:
    try:
        validate(answer, schema)
    except ValidationError as error:
        return [error.message]
    return []


@pytest.mark.anyio
async def test_server_starts_without_configuration_and_has_its_tools() -> None:
    """Phase 1: the server boots with minimal config and registers the expected tool names."""
    async with connected(Path.cwd()) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"ping", "list_roots", "research_codebase", "locate_in_codebase", "find_patterns"} <= names
    assert {"analyze_component", "create_handoff", "resume_handoff"} <= names


@pytest.mark.anyio
async def test_list_roots_names_the_configured_roots_and_nothing_else(project: Path) -> None:
    """Phase 1: never leaks paths that are not on the allowlist (P6)."""
    async with connected(project) as client:
        listed = (await client.call_tool("list_roots", {})).structured_content
    assert listed == {"roots": [str(project)]}


def test_settings_have_defaults_accept_overrides_and_refuse_invalid_values(tmp_path: Path) -> None:
    """Phase 1, config parsing and merging; phase 2, the default budgets."""
    defaults = Settings()
    assert (defaults.limits.max_files_read, defaults.limits.max_bytes_read) == (50, 1_048_576)
    assert (defaults.runtime.default_deadline_ms, defaults.runtime.max_concurrent_tasks) == (30_000, 4)
    user = tmp_path / "retinue.toml"
    user.write_text("[limits]\nmax_files_read = 7\nmax_bytes_read = 9\n")
    variables = {"RETINUE_LIMITS__MAX_FILES_READ": "8"}
    merged = load_settings(directory=tmp_path, user=user, environment=variables).settings
    assert (merged.limits.max_files_read, merged.limits.max_bytes_read) == (8, 9)
    with pytest.raises(ConfigInvalid):
        load_settings(directory=tmp_path, user=user, environment={"RETINUE_LIMITS__MAX_FILES_READ": "-1"})


@pytest.mark.anyio
async def test_log_level_changes_the_log_but_no_answer(service: Service) -> None:
    """Phase 1, logging: the level changes behaviour without affecting the outputs of tools."""
    root = logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    answers: list[dict[str, Any]] = []
    enabled: list[bool] = []
    try:
        for level in ("debug", "error"):
            start_logging(level, "text", str)
            enabled.append(logging.getLogger("retinue.answers").isEnabledFor(logging.INFO))
            answers.append(await locate_in_codebase(service, ResearchRequest(question=QUESTION)))
    finally:
        logging.captureWarnings(False)
        root.setLevel(before)
        root.handlers[:] = handlers
    assert enabled == [True, False]
    assert answers[0] | {"timing": 0} == answers[1] | {"timing": 0}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "question", [QUESTION, "show examples of with_retry", "where is frob_nicate?", "x", "retry " * 500]
)
@pytest.mark.parametrize("limits", [{}, {"deadline_ms": 1}, {"max_files_read": 1}])
async def test_every_answer_conforms_to_its_schema(
    service: Service, question: str, limits: dict[str, int]
) -> None:
    """Phase 3, schema validation: no extra and no missing fields, whatever happens to the roles."""
    request = ResearchRequest(question=question)
    with_limits = limited(service, **limits)
    assert problems(REPORT, await research_codebase(with_limits, request)) == []
    for verb in (locate_in_codebase, analyze_component, find_patterns):
        assert problems(SINGLE, await verb(with_limits, request)) == []


@pytest.mark.anyio
async def test_answer_with_all_optional_fields_conforms_to_its_schema(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    """Phase 3, schema validation: several roots, historical documents, a memo, a follow-up, a cut."""
    other = write(tmp_path / "other", {"again.py": "def with_retry():\n    pass\n"})
    thoughts = write(tmp_path / "thoughts", {"why.md": "# with_retry\n\nWhy we retry.\n"})
    service = service_for(project, other, data_dir=own_folders, thoughts_dir=thoughts)
    first: dict[str, Any] = await research_codebase(
        service,
        ResearchRequest(question="show examples of with_retry", artifact=True, constraints={"tokens": 900}),
    )
    assert problems(REPORT, first) == []
    assert {"artifactPath", "patterns", "notes"} <= set(first)
    again: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="and the tests?", previous=first["id"])
    )
    assert problems(REPORT, again) == []


@pytest.mark.anyio
async def test_references_have_lines_and_findings_stay_short(service: Service) -> None:
    """Phase 3, reference formatting."""
    report: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question="how does with_retry work?")
    )
    named: list[str] = [
        one for role in ("locator", "analyzer") for one in report[role]["value"]["references"]
    ]
    assert len([one for one in named if re.fullmatch(r"[^:\n]+:\d+", one)]) > len(named) / 2
    found: list[str] = (
        report["locator"]["value"]["key_findings"] + report["analyzer"]["value"]["key_findings"]
    )
    with_code = [one for one in found if "\n" in one]
    assert max(len(one) for one in found if one not in with_code) <= 300
    assert len(with_code) <= 2 and max(one.count("\n") for one in with_code) <= 12


def test_index_can_be_bypassed_and_does_not_change_answers(project: Path, own_folders: Path) -> None:
    """Phase 4, caching: the key is stable, bypass works, and a hit changes no answer."""

    def asked(*options: str) -> dict[str, Any]:
        """Return the answer and whether the index was used."""
        [index] = (own_folders / "index").glob("*.sqlite3")
        os.utime(index, (0, 0))
        answer = json.loads(cli("locate", QUESTION, "--root", str(project), *options, "--json").stdout)
        return answer | {"timing": 0, "is_hit": index.stat().st_mtime > 0}

    for _ in range(2):
        assert cli("index", "--root", str(project)).exit_code == 0
    without, hit = asked("--no-index"), asked()
    assert (without.pop("constraints")["useIndex"], hit.pop("constraints")["useIndex"]) == (0, 1)
    assert (without.pop("is_hit"), hit.pop("is_hit")) == (False, True)
    assert hit == without
    assert hit["references"]
