"""Searches files for lines that match a pattern, with RE2 and, if installed, ripgrep."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.search.pattern import (
        MAX_PATTERN_CHARS as MAX_PATTERN_CHARS,
        SearchPattern as SearchPattern,
    )
    from retinue.codebase.search.ripgrep import (
        Ripgrep as Ripgrep,
        argument_batches as argument_batches,
        find_ripgrep as find_ripgrep,
    )
    from retinue.codebase.search.searcher import (
        LineMatch as LineMatch,
        Searcher as Searcher,
        SearchResult as SearchResult,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "pattern": "MAX_PATTERN_CHARS SearchPattern",
            "ripgrep": "Ripgrep argument_batches find_ripgrep",
            "searcher": "LineMatch SearchResult Searcher",
        },
    )
