"""Wrappers that add a feature to any executor: sessions, worktrees, checks, skills, valid JSON."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.wrappers.acceptance import WithAcceptance as WithAcceptance
    from retinue.executors.wrappers.memory import WithMemory as WithMemory
    from retinue.executors.wrappers.output_schema import (
        OutputSchema as OutputSchema,
        check_output_schema as check_output_schema,
        is_placeholder as is_placeholder,
    )
    from retinue.executors.wrappers.reference_check import (
        ReferenceVerdict as ReferenceVerdict,
        check_references as check_references,
        complete_references as complete_references,
        remove_wrong_references as remove_wrong_references,
        written_references as written_references,
    )
    from retinue.executors.wrappers.session import WithSession as WithSession
    from retinue.executors.wrappers.skills import (
        WithSkills as WithSkills,
        prompt_with_skills as prompt_with_skills,
    )
    from retinue.executors.wrappers.snapshot import prune_snapshots as prune_snapshots
    from retinue.executors.wrappers.validation import (
        JSON_ONLY_PROMPT as JSON_ONLY_PROMPT,
        WithValidation as WithValidation,
        validate_answers as validate_answers,
    )
    from retinue.executors.wrappers.worktree import (
        WithWorktree as WithWorktree,
        WorktreePreparation as WorktreePreparation,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "acceptance": "WithAcceptance",
            "memory": "WithMemory",
            "output_schema": "OutputSchema check_output_schema is_placeholder",
            "reference_check": (
                "ReferenceVerdict check_references complete_references remove_wrong_references "
                "written_references"
            ),
            "session": "WithSession",
            "skills": "WithSkills prompt_with_skills",
            "snapshot": "prune_snapshots",
            "validation": "JSON_ONLY_PROMPT WithValidation validate_answers",
            "worktree": "WithWorktree WorktreePreparation",
        },
    )
