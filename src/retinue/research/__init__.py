"""A question about a codebase becomes a small checked report. Knows nothing of MCP, terminals or models."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.research.artifact import write_artifact as write_artifact, write_new as write_new
    from retinue.research.handoff_document import (
        HANDOFF_LISTS as HANDOFF_LISTS,
        HANDOFF_PREFIX as HANDOFF_PREFIX,
        HandoffDocument as HandoffDocument,
        KeptReference as KeptReference,
        Landmark as Landmark,
        Surveyor as Surveyor,
        find_handoff as find_handoff,
    )
    from retinue.research.model_advice import ByModel as ByModel, Consult as Consult
    from retinue.research.pipeline import (
        PLACES_FOUND as PLACES_FOUND,
        ResearchPlan as ResearchPlan,
        investigate as investigate,
        report_of as report_of,
        roles_for as roles_for,
    )
    from retinue.research.question import Earlier as Earlier, check_question as check_question
    from retinue.research.report_builder import FEWEST_TOKENS as FEWEST_TOKENS, fit_report as fit_report
    from retinue.research.request import ResearchConstraints as ResearchConstraints
    from retinue.research.role_runs import (
        AsRuns as AsRuns,
        InThread as InThread,
        Performing as Performing,
        PerformRole as PerformRole,
        role_error as role_error,
        role_spec as role_spec,
    )
    from retinue.research.scope import (
        Naming as Naming,
        SearchScope as SearchScope,
        search_scope as search_scope,
    )
    from retinue.research.source_files import Ledger as Ledger, SourceFiles as SourceFiles
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "artifact": "write_artifact write_new",
            "handoff_document": (
                "HANDOFF_LISTS HANDOFF_PREFIX HandoffDocument KeptReference Landmark Surveyor find_handoff"
            ),
            "model_advice": "ByModel Consult",
            "pipeline": "PLACES_FOUND ResearchPlan investigate report_of roles_for",
            "question": "Earlier check_question",
            "report_builder": "FEWEST_TOKENS fit_report",
            "request": "ResearchConstraints",
            "role_runs": "AsRuns InThread PerformRole Performing role_error role_spec",
            "scope": "Naming SearchScope search_scope",
            "source_files": "Ledger SourceFiles",
        },
    )
