"""Asks the caller back: when a question names nothing, or is in another language than the code.

A clarification says what is missing, and offers what the project has: its roots and its main components.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from retinue.answers.role_context import RoleContext, soft_deadline
from retinue.codebase import Place, file_category, has_searchable_text, words_in_files
from retinue.core import Clarification, Stop

MAX_COMPONENTS = 8
MIN_COMPONENT_FILES = 2
NEARLY_ALL = 0.9
"""A folder with this share of the files is not a part of the project, but the place of its parts."""
MAX_LISTED_FILES = 20_000
UNKNOWN_SHARE = 0.5
"""If more of the words are in none of the best files, the code is in another language than the question."""
CHECKED_PLACES = 8


def ask_for_subject(context: RoleContext, stop: Stop) -> Clarification:
    """Ask what the question is about, and offer the parts of the project."""
    return Clarification(
        question="Which part do you mean? Name a component, a function, a file or a feature of the project.",
        roots=_roots(context),
        components=main_components(context, stop),
    )


def ask_for_language(context: RoleContext, places: Sequence[Place], stop: Stop) -> Clarification | None:
    """Ask for the words of the code, if the question is in another language and names nothing of it."""
    question = context.question
    if not question.is_foreign or question.names or question.parsed.paths:
        return None
    terms = question.subject_terms
    entries = [place.entry for place in places[:CHECKED_PLACES]]
    seen = words_in_files(context.scope.codebase, entries, terms, stop)
    unknown = [term for term in terms if not any(term in found for found in seen.values())]
    if terms and len(unknown) <= UNKNOWN_SHARE * len(terms):
        return None
    return Clarification(
        question="The question seems to be in another language than the code, which does not use its words. "
        "Ask in the language of the code (most code is in English), or name identifiers.",
        roots=_roots(context),
        components=main_components(context, stop),
        keywords=tuple(dict.fromkeys(question.word(term) for term in unknown))[:MAX_COMPONENTS],
    )


def language_note(context: RoleContext) -> str | None:
    """Say that an answer rests on names alone, because the question is in another language."""
    if not context.question.is_foreign or not context.question.names:
        return None
    return "The question seems to be in another language: only words that the code has were searched for."


def _is_code(path: str) -> bool:
    """Return whether a file seems to be code: files without a suffix and hidden files configure tools."""
    name = path.rpartition("/")[2]
    return "." in name.lstrip(".") and not name.startswith(".") and has_searchable_text(path)


def _roots(context: RoleContext) -> tuple[str, ...]:
    paths = context.scope.searched_paths
    return paths if len(paths) > 1 else ()


def main_components(context: RoleContext, stop: Stop) -> tuple[str, ...]:
    """Return the folders that hold most of the project's own code, largest first, or its files.

    Descends as long as a single folder holds nearly everything: `src`, then `src/shop`, then its parts.
    """
    with soft_deadline(stop) as soft:
        listed = context.scope.codebase.files(soft.stop, max_files=MAX_LISTED_FILES).entries
        own = [
            context.scope.relative_path(entry)[1].split("/")
            for entry in listed
            if file_category(entry.path) in ("own", "package") and _is_code(entry.path)
        ]
        prefix: list[str] = []
        while True:
            depth = len(prefix)
            folders = Counter(path[depth] for path in own if len(path) > depth + 1)
            name, number = folders.most_common(1)[0] if folders else ("", 0)
            if not number or number < NEARLY_ALL * len(own):
                break
            prefix.append(name)
            own = [path for path in own if path[:-1][depth : depth + 1] == [name]]
        parts = [name for name, number in folders.most_common() if number >= MIN_COMPONENT_FILES]
        parts = parts or sorted({path[len(prefix)] for path in own})
        return tuple("/".join((*prefix, part)) for part in parts[:MAX_COMPONENTS])
    return ()
