"""Wraps any executor: sessions, worktrees, acceptance commands, promised JSON."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.wrappers.acceptance import WithAcceptance as WithAcceptance
    from retinue.executors.wrappers.answered_references import (
        ReferenceVerdict as ReferenceVerdict,
        corrected as corrected,
        judge as judge,
    )
    from retinue.executors.wrappers.output_schema import OutputSchema as OutputSchema
    from retinue.executors.wrappers.placeholders import is_placeholder as is_placeholder
    from retinue.executors.wrappers.preamble import WithPreamble as WithPreamble
    from retinue.executors.wrappers.session import WithSession as WithSession
    from retinue.executors.wrappers.validation import (
        JSON_ALONE as JSON_ALONE,
        WithValidation as WithValidation,
    )
    from retinue.executors.wrappers.worktree import WithWorktree as WithWorktree
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "acceptance": "WithAcceptance",
            "answered_references": "ReferenceVerdict corrected judge",
            "output_schema": "OutputSchema",
            "placeholders": "is_placeholder",
            "preamble": "WithPreamble",
            "session": "WithSession",
            "validation": "JSON_ALONE WithValidation",
            "worktree": "WithWorktree",
        },
    )
