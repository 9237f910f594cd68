"""Asks the caller back when a question names nothing, and offers what the project has.

The offer lists its roots, if there are several, and its main components.
"""

from __future__ import annotations

from collections import Counter

from retinue.answers.role_context import RoleContext, soft_deadline
from retinue.codebase import file_category, has_searchable_text
from retinue.core import Clarification, Stop

MAX_COMPONENTS = 8
MIN_COMPONENT_FILES = 2
NEARLY_ALL = 0.9
"""A folder with this share of the files is not a part of the project, but the place of its parts."""
MAX_LISTED_FILES = 20_000


def ask_for_subject(context: RoleContext, stop: Stop) -> Clarification:
    """Ask what the question is about, and offer the parts of the project."""
    return Clarification(
        question="Which part do you mean? Name a component, a function, a file or a feature of the project.",
        roots=_roots(context),
        components=main_components(context, stop),
    )


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
