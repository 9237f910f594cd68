"""The `local` executor: runs an agent as a loop over a local model and a set of tools.

Knows nothing of particular model servers.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.local.evidence import describe_claims as describe_claims
    from retinue.executors.local.executor import LocalExecutor as LocalExecutor
    from retinue.executors.local.likely_code import (
        LIKELY as LIKELY,
        UNLIKELY as UNLIKELY,
        likeliest as likeliest,
    )
    from retinue.executors.local.replies import without_thoughts as without_thoughts
    from retinue.executors.local.search_words import (
        read_search_words as read_search_words,
        search_words_prompt as search_words_prompt,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "evidence": "describe_claims",
            "executor": "LocalExecutor",
            "likely_code": "LIKELY UNLIKELY likeliest",
            "replies": "without_thoughts",
            "search_words": "read_search_words search_words_prompt",
        },
    )
