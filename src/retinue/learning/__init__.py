"""What is kept from past runs: friction, drafts against it, and trials that measure drafts.

Knows nothing of where runs are stored or how they are performed.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.learning.drafts import (
        Drafts as Drafts,
        EvolverRun as EvolverRun,
        Live as Live,
        StoredDraft as StoredDraft,
    )
    from retinue.learning.friction import (
        Friction as Friction,
        FrictionKind as FrictionKind,
        PastRun as PastRun,
        find_friction as find_friction,
        is_rejected as is_rejected,
    )
    from retinue.learning.proposals import (
        DraftKind as DraftKind,
        Gates as Gates,
        Proposal as Proposal,
        apply_edits as apply_edits,
        numbered_points as numbered_points,
        read_proposal as read_proposal,
    )
    from retinue.learning.trial import (
        Attempt as Attempt,
        DraftTrial as DraftTrial,
        TaskTrial as TaskTrial,
        TrialVerdict as TrialVerdict,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "drafts": "Drafts EvolverRun Live StoredDraft",
            "friction": "Friction FrictionKind PastRun find_friction is_rejected",
            "proposals": "DraftKind Gates Proposal apply_edits numbered_points read_proposal",
            "trial": "Attempt DraftTrial TaskTrial TrialVerdict",
        },
    )
