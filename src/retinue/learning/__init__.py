"""What agents learn from people and keep: skills.

Knows nothing of MCP, of terminals or of how runs are performed.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.learning.skill_catalog import FoundSkill as FoundSkill, SkillCatalog as SkillCatalog
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
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "skill_catalog": "FoundSkill SkillCatalog",
            "skill_library": "SkillLibrary rank_skills",
            "skill_writer": (
                "SkillPoint check_skill_name copy_skill find_points remove_skill skill_document write_skill"
            ),
        },
    )
