"""Performs a research request as a run: its roles, the reader, the web, and the artifacts it writes.

Knows nothing of MCP or terminals.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.research.artifact import (
        format_memo as format_memo,
        write_artifact as write_artifact,
    )
    from retinue.research.explanation import (
        ResearchModels as ResearchModels,
    )
    from retinue.research.handoff_document import (
        HANDOFF_LISTS as HANDOFF_LISTS,
        HANDOFF_PREFIX as HANDOFF_PREFIX,
        HandoffDocument as HandoffDocument,
        HandoffReference as HandoffReference,
        LineFinder as LineFinder,
        RememberedLine as RememberedLine,
        find_handoff_file as find_handoff_file,
    )
    from retinue.research.pipeline import (
        Investigation as Investigation,
        ResearchRun as ResearchRun,
        answer_request as answer_request,
        show_report as show_report,
    )
    from retinue.research.role_runs import (
        PerformInThread as PerformInThread,
        role_run_spec as role_run_spec,
    )
    from retinue.research.web_research import (
        WebQuestion as WebQuestion,
    )
    from retinue.research.web_run import (
        WebRun as WebRun,
        web_run_spec as web_run_spec,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "artifact": "format_memo write_artifact",
            "explanation": "ResearchModels",
            "handoff_document": (
                "HANDOFF_LISTS HANDOFF_PREFIX HandoffDocument HandoffReference LineFinder "
                "RememberedLine find_handoff_file"
            ),
            "pipeline": "Investigation ResearchRun answer_request show_report",
            "role_runs": "PerformInThread role_run_spec",
            "web_research": "WebQuestion",
            "web_run": "WebRun web_run_spec",
        },
    )
