"""A question about a codebase becomes a small checked report. Knows nothing of MCP, terminals or models."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.research.advised import Consult as Consult
    from retinue.research.artifact import write_artifact as write_artifact, write_new as write_new
    from retinue.research.constraints import ResearchConstraints as ResearchConstraints
    from retinue.research.fitting import FEWEST_TOKENS as FEWEST_TOKENS, fit_report as fit_report
    from retinue.research.followup import Earlier as Earlier
    from retinue.research.handoff_document import (
        HANDOFF_LISTS as HANDOFF_LISTS,
        HandoffDocument as HandoffDocument,
        KeptReference as KeptReference,
    )
    from retinue.research.handoff_file import HANDOFF_PREFIX as HANDOFF_PREFIX, find_handoff as find_handoff
    from retinue.research.ledger import Ledger as Ledger
    from retinue.research.model_advisor import ByModel as ByModel
    from retinue.research.naming import Naming as Naming
    from retinue.research.perform import InThread as InThread, PerformRole as PerformRole
    from retinue.research.pipeline import (
        PLACES_FOUND as PLACES_FOUND,
        ResearchPlan as ResearchPlan,
        investigate as investigate,
        report_of as report_of,
        roles_for as roles_for,
    )
    from retinue.research.question import check_question as check_question
    from retinue.research.relocate import Landmark as Landmark, Surveyor as Surveyor
    from retinue.research.role_runs import (
        AsRuns as AsRuns,
        Performing as Performing,
        role_error as role_error,
        role_spec as role_spec,
    )
    from retinue.research.scope import SearchScope as SearchScope, search_scope as search_scope
    from retinue.research.sources import SourceFiles as SourceFiles
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "advised": "Consult",
            "artifact": "write_artifact write_new",
            "constraints": "ResearchConstraints",
            "fitting": "FEWEST_TOKENS fit_report",
            "followup": "Earlier",
            "handoff_document": "HANDOFF_LISTS HandoffDocument KeptReference",
            "handoff_file": "HANDOFF_PREFIX find_handoff",
            "ledger": "Ledger",
            "model_advisor": "ByModel",
            "naming": "Naming",
            "perform": "InThread PerformRole",
            "pipeline": "PLACES_FOUND ResearchPlan investigate report_of roles_for",
            "question": "check_question",
            "relocate": "Landmark Surveyor",
            "role_runs": "AsRuns Performing role_error role_spec",
            "scope": "SearchScope search_scope",
            "sources": "SourceFiles",
        },
    )
