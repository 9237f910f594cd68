"""Everything that reads the user's files. Knows nothing of agents, runs, budgets' owners or hosts."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.bounds import Bounds as Bounds
    from retinue.codebase.codebase import Codebase as Codebase
    from retinue.codebase.entry import FileEntry as FileEntry
    from retinue.codebase.kinds import (
        FileKind as FileKind,
        file_kind as file_kind,
        file_standing as file_standing,
    )
    from retinue.codebase.locate import Located as Located, Locator as Locator, Place as Place
    from retinue.codebase.opener import Opener as Opener
    from retinue.codebase.outline import outline_text as outline_text
    from retinue.codebase.pattern import (
        MAX_PATTERN_CHARS as MAX_PATTERN_CHARS,
        SearchPattern as SearchPattern,
    )
    from retinue.codebase.policy import Policy as Policy
    from retinue.codebase.question import ParsedQuestion as ParsedQuestion, parse_question as parse_question
    from retinue.codebase.read import split_lines as split_lines
    from retinue.codebase.references import (
        CheckedClaims as CheckedClaims,
        Claim as Claim,
        check_claims as check_claims,
        words_in_files as words_in_files,
    )
    from retinue.codebase.ripgrep import find_ripgrep as find_ripgrep
    from retinue.codebase.search import LineMatch as LineMatch
    from retinue.codebase.sources import MAX_SEARCHED_BYTES as MAX_SEARCHED_BYTES
    from retinue.codebase.symbols import Symbol as Symbol, exact_symbols as exact_symbols
    from retinue.codebase.terms import split_identifier as split_identifier, stem as stem
    from retinue.codebase.view import CodebaseView as CodebaseView
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "bounds": "Bounds",
            "codebase": "Codebase",
            "entry": "FileEntry",
            "kinds": "FileKind file_kind file_standing",
            "locate": "Located Locator Place",
            "opener": "Opener",
            "outline": "outline_text",
            "pattern": "MAX_PATTERN_CHARS SearchPattern",
            "policy": "Policy",
            "question": "ParsedQuestion parse_question",
            "read": "split_lines",
            "references": "CheckedClaims Claim check_claims words_in_files",
            "ripgrep": "find_ripgrep",
            "search": "LineMatch",
            "sources": "MAX_SEARCHED_BYTES",
            "symbols": "Symbol exact_symbols",
            "terms": "split_identifier stem",
            "view": "CodebaseView",
        },
    )
