"""Ranks files by the evidence and locates the places that answer a question."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.rank.locator import (
        Located as Located,
        Locator as Locator,
        Place as Place,
        best_definitions as best_definitions,
    )
    from retinue.codebase.rank.texts import (
        RankedSection as RankedSection,
        rank_sections as rank_sections,
        rank_texts as rank_texts,
        with_word_breaks as with_word_breaks,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "locator": "Located Locator Place best_definitions",
            "texts": "RankedSection rank_sections rank_texts with_word_breaks",
        },
    )
