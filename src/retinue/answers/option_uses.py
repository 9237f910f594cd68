"""Finds where the code reads and sets an option, and the value that it uses if the option is not set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from retinue.answers.option_shapes import (
    BOUND,
    CHECK,
    COMMENT,
    DESCRIBED,
    NOT_SEARCHED,
    SETS,
    Option,
    parse_option,
)
from retinue.answers.role_context import RoleContext
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.codebase import Bounds, LineMatch, SearchPattern, file_category, split_identifier
from retinue.core import Stop

READ_BOUNDS = Bounds(max_files=60, max_matches=120, max_matches_per_file=6, max_line_chars=300)


def _spellings(name: str) -> list[str]:
    """Return how code may write an option: `limit-rate`, `limit_rate`, `LIMIT_RATE`, `limitRate`."""
    words = split_identifier(name)
    camel = "".join(word.capitalize() for word in words)
    forms = (
        name.lstrip("-"),
        "_".join(words),
        "_".join(words).upper(),
        camel[:1].lower() + camel[1:],
        camel,
    )
    return list(dict.fromkeys(forms))


def find_reads(context: RoleContext, option: Option, stop: Stop) -> list[tuple[SourceFile, LineMatch]]:
    """Return the lines that read an option, those in other functions than the definition first."""
    either = "|".join(map(re.escape, _spellings(option.name)))
    # A name of one word is also a part of other names and a plain word.
    prefix = r"\w*_?" if len(split_identifier(option.name)) > 1 else r"(?:\.|->|::|\[[\"'])"
    found = context.scope.codebase.grep(
        SearchPattern(rf"{prefix}(?:{either})\b"), stop, globs=NOT_SEARCHED, bounds=READ_BOUNDS
    ).matches
    stop.check()
    reads: list[tuple[int, SourceFile, LineMatch]] = []
    for match in found:
        if file_category(match.entry.path) not in ("own", "package"):
            continue
        if match.entry == option.entry and match.line == option.line:
            continue
        source = context.sources.peek(match.entry, stop)
        if source is None or match.line in source.prose_lines or match.line > len(source.lines):
            continue
        parsed = parse_option(match.entry, match.line, match.text)
        is_definition = parsed is not None and parsed.shape in ("field", "constant", "key")
        within = source.definition_around(match.line)
        if within is None or (within.line == match.line and not _is_setter(within, option)):
            continue
        if not re.search(rf"(?:{either})\b", COMMENT.sub("", match.text)):
            continue
        is_read = re.search(rf"[.\[>:]\s*[\"']?\w*(?:{either})\b(?!\s*=[^=])", match.text) is not None
        is_setter = within.line == match.line
        reads.append((-2 if is_setter else 2 * is_definition - is_read, source, match))
    folder = PurePosixPath(option.entry.path).parent
    near = [one for one in reads if PurePosixPath(one[2].entry.path).parent == folder]
    if near and len(split_identifier(option.name)) == 1:  # elsewhere, the same word may be another option
        reads = near
    reads.sort(key=lambda one: (one[0], one[2].entry != option.entry))
    distinct: dict[object, tuple[SourceFile, LineMatch]] = {}
    for worst, source, match in reads:
        if worst < 2:
            is_written = re.search(rf"(?:{either})\b\s*[|&]?=[^=]|=\s*(?:{either})\b", match.text) is not None
            key = (match.entry, source.definition_around(match.line), is_written)
            distinct.setdefault(key, (source, match))
    return list(distinct.values())


def flag_set_by(
    source: SourceFile, option: Option, reads: Sequence[tuple[SourceFile, LineMatch]]
) -> Option | None:
    """Return the variable that an option is read into, if its name differs.

    It is on the line of the option, or on the line below a check for a command-line option.
    """
    if option.shape in DESCRIBED and (bound := BOUND.search(source.lines[option.line - 1])) is not None:
        name = bound["field"] or bound["dest"]
        if name not in _spellings(option.name):
            return replace(option, name=name, shape="field")
    if option.shape != "command-line option":
        return None
    checks = [(source, option.line), *((read, match.line) for read, match in reads)]
    for read, line in checks:
        if line < len(read.lines) and CHECK.search(read.lines[line - 1]):
            found = SETS.match(read.lines[line])
            if found is not None:
                name = found["flag"] or found["variable"]
                return replace(option, entry=read.entry, line=line + 1, name=name, shape="constant")
    return None


def _is_setter(definition: SourceDefinition, option: Option) -> bool:
    """Return whether a method is named like the option, as in `serializeNulls` or `setSerializeNulls`."""
    name = "".join(split_identifier(definition.name))
    wanted = "".join(split_identifier(option.name))
    is_builder = "builder" in (definition.owner or "").lower()
    return name in (f"set{wanted}", f"with{wanted}", f"disable{wanted}", f"enable{wanted}") or (
        name == wanted and is_builder
    )


def default_at_reads(option: Option, reads: Sequence[tuple[SourceFile, LineMatch]]) -> str:
    """Return the value that readers use if the option is not set: `opts.limit ?? 10`."""
    name = re.escape(option.name.lstrip("-"))
    for source, match in reads if option.shape not in DESCRIBED else ():
        text = source.lines[match.line - 1]
        if found := re.search(
            rf"\b{name}\b(?:[\"'\])]*\s*(?:\?\?|\|\||\bor\b)|[\"']\s*,(?=\s*[\w\"'.]+\s*\)))\s*([^,;)}}]+)",
            text,
        ):
            return found[1].strip()
    return ""
