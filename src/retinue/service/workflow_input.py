"""What callers give to a workflow, checked: the assignment, and a workflow in place of a name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from retinue.core import Assignment, InvalidInput, Workflow
from retinue.definitions import MalformedDefinition, read_workflow

MOST_TOLD = 10
"""Mistakes of one spec: whoever made more has written something else."""


def parse_assignment(given: str | Mapping[str, Any]) -> Assignment:
    """A text, or a table in the words of a handoff's context."""
    if isinstance(given, str):
        return Assignment(feature=given)
    known = ("feature", "spec_path", "relevant_files", "constraints")
    for key in given:
        if key not in known:
            raise InvalidInput(f"the input has no key {key!r}", hint=f"known are: {', '.join(known)}")
    feature, spec_path = given.get("feature"), given.get("spec_path")
    if not isinstance(feature, str) or not isinstance(spec_path, str | None):
        raise InvalidInput("the input needs `feature`, a text", hint="and `spec_path` is a path, if given")
    return Assignment(
        feature=feature,
        spec_path=spec_path,
        relevant_files=_texts(given, "relevant_files"),
        constraints=_texts(given, "constraints"),
    )


def _texts(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value: Any = given.get(key) or []
    if not isinstance(value, list):
        raise InvalidInput(
            f"the input's `{key}` must be a list of texts", hint=f'for example {{"{key}": []}}'
        )
    return tuple(map(str, cast("list[Any]", value)))


def workflow_in(spec: Mapping[str, Any] | str) -> Workflow:
    """A workflow that is given as YAML, or as a table: JSON is YAML too."""
    try:
        return read_workflow(spec if isinstance(spec, str) else json.dumps(spec), "given", "given")
    except MalformedDefinition as error:
        told = [f"line {problem.line}: {problem}" for problem in error.problems[:MOST_TOLD]]
        raise InvalidInput(f"the spec is broken: {'. '.join(told)}", hint="correct the spec") from None
