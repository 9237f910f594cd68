"""The arguments of tool calls: other names for them, and errors that say what is wrong with them.

Knows nothing of the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from retinue.core import InvalidInput

SAME_ARGUMENTS = (
    ("agent_name", "agent", "name", "team", "workflow"),
    ("prompt", "task", "input"),
    ("runId", "run_id", "runIds", "run_ids"),
    ("messageId", "message_id"),
    ("answer", "answers"),
    ("open", "still_open"),
    ("question", "query"),
)
"""Names that our tools use for the same thing. Every tool accepts all of them."""


def rename_arguments(
    tool: str, arguments: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Give each argument the name that the tool has for it. `known` has the schemas of its arguments.

    Raises `InvalidInput` for arguments that the tool does not have, and for two names with two values.
    """
    renamed: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in arguments.items():
        target = name if name in known else _same_argument(name, known)
        if target is None:
            unknown.append(name)
            continue
        fitted = value if target == name else _as_list_or_item(value, known[target])
        if renamed.setdefault(target, fitted) != fitted:
            raise InvalidInput(
                f"{tool}: {name} and another argument both mean {target}, with different values",
                hint=f"pass only {target}",
            )
    if unknown:
        raise _unknown_arguments(tool, unknown, known)
    return renamed


def _same_argument(name: str, known: Iterable[str]) -> str | None:
    """The argument of a tool that means the same as this name; None if there is not exactly one."""
    same = [group for group in SAME_ARGUMENTS if name in group]
    found = [each for each in known if any(each in group for group in same)]
    return found[0] if len(found) == 1 else None


def _as_list_or_item(value: Any, schema: Mapping[str, Any]) -> Any:
    """One item as a list, or a list of one item as that item, if the argument expects it."""
    match value, schema.get("type"):
        case str(), "array" if not value.lstrip().startswith("["):
            return [value]
        case [item], "string":
            return item
        case _:
            return value


def _unknown_arguments(tool: str, unknown: Iterable[str], known: Iterable[str]) -> InvalidInput:
    allowed = sorted(known)
    names = sorted(unknown)
    wrong = [
        {"argument": name, "problem": "no such argument", "nearest": near_names(name, allowed, 1)}
        for name in names
    ]
    takes = f"{tool} takes: {', '.join(allowed)}" if allowed else f"{tool} takes no arguments"
    return InvalidInput(f"{tool}: no such argument: {', '.join(names)}", hint=takes, arguments=wrong)


def wrong_arguments(tool: str, error: ValidationError) -> InvalidInput:
    """Name each wrong argument and what was expected, without the values that were given."""
    wrong: list[dict[str, Any]] = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        argument = ".".join(str(part) for part in problem["loc"]) or "arguments"
        wrong.append({"argument": argument, "problem": problem["msg"]})
    problems = "; ".join(f"{item['argument']}: {item['problem']}" for item in wrong)
    return InvalidInput(f"{tool}: {problems}", hint="correct the arguments and call again", arguments=wrong)


def near_names(name: str, known: Iterable[str], number: int) -> list[str]:
    """The known names that are most like this one."""
    from difflib import get_close_matches  # for wrong names only; costs memory

    return get_close_matches(name, list(known), number)
