"""Keeps lessons of past work: skills, memories, and drafts that are measured before they are kept.

Knows nothing of MCP, of terminals or of how runs are performed.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.learning.draft_audit import audit_time as audit_time
    from retinue.learning.draft_files import StoredDraft as StoredDraft
    from retinue.learning.drafts import Drafts as Drafts
    from retinue.learning.friction import (
        Friction as Friction,
        FrictionKey as FrictionKey,
        FrictionKind as FrictionKind,
        PastGrant as PastGrant,
        PastQuestion as PastQuestion,
        PastRetries as PastRetries,
        PastRun as PastRun,
        TokensLost as TokensLost,
        find_friction as find_friction,
        is_known as is_known,
    )
    from retinue.learning.in_use import (
        InUse as InUse,
        memory_text as memory_text,
        skill_text as skill_text,
    )
    from retinue.learning.memory import (
        Memories as Memories,
        MemoryAuthor as MemoryAuthor,
    )
    from retinue.learning.memory_export import MAX_IMPORT_BYTES as MAX_IMPORT_BYTES
    from retinue.learning.memory_texts import RecalledMemory as RecalledMemory
    from retinue.learning.proposals import (
        MAX_EDITS as MAX_EDITS,
        MAX_POINTS as MAX_POINTS,
        MAX_TRIGGERS as MAX_TRIGGERS,
        TRIGGER_LENGTH as TRIGGER_LENGTH,
        DraftKind as DraftKind,
        Gates as Gates,
        Proposal as Proposal,
        read_proposal as read_proposal,
    )
    from retinue.learning.skill_catalog import FoundSkill as FoundSkill, SkillCatalog as SkillCatalog
    from retinue.learning.skill_effects import (
        JudgedRun as JudgedRun,
        count_effects as count_effects,
    )
    from retinue.learning.skill_library import SkillLibrary as SkillLibrary, rank_skills as rank_skills
    from retinue.learning.skill_writer import (
        SkillPoint as SkillPoint,
        check_skill_name as check_skill_name,
        copy_skill as copy_skill,
        find_points as find_points,
        remove_skill as remove_skill,
        skill_document as skill_document,
        write_skill as write_skill,
    )
    from retinue.learning.trial import (
        Attempt as Attempt,
        DraftTrial as DraftTrial,
        DraftVerdict as DraftVerdict,
        TaskTrial as TaskTrial,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "draft_audit": "audit_time",
            "draft_files": "StoredDraft",
            "drafts": "Drafts",
            "friction": (
                "Friction FrictionKey FrictionKind PastGrant PastQuestion PastRetries PastRun TokensLost "
                "find_friction is_known"
            ),
            "in_use": "InUse memory_text skill_text",
            "memory": "Memories MemoryAuthor",
            "memory_export": "MAX_IMPORT_BYTES",
            "memory_texts": "RecalledMemory",
            "proposals": (
                "MAX_EDITS MAX_POINTS MAX_TRIGGERS TRIGGER_LENGTH DraftKind Gates Proposal read_proposal"
            ),
            "skill_catalog": "FoundSkill SkillCatalog",
            "skill_effects": "JudgedRun count_effects",
            "skill_library": "SkillLibrary rank_skills",
            "skill_writer": (
                "SkillPoint check_skill_name copy_skill find_points remove_skill skill_document write_skill"
            ),
            "trial": "Attempt DraftTrial TaskTrial DraftVerdict",
        },
    )
