"""Turns a question about a codebase into a small report with checked references.

Roles search, trace and collect examples; a model may explain what they found. Also reads and writes
the Markdown artifacts: memos and handoff documents. Knows nothing of MCP or terminals.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.research.artifact import format_memo as format_memo, write_artifact as write_artifact
    from retinue.research.explanation import ResearchModels as ResearchModels
    from retinue.research.handoff_document import (
        HANDOFF_LISTS as HANDOFF_LISTS,
        HANDOFF_PREFIX as HANDOFF_PREFIX,
        HandoffDocument as HandoffDocument,
        HandoffReference as HandoffReference,
        LineFinder as LineFinder,
        RememberedLine as RememberedLine,
        find_handoff_file as find_handoff_file,
    )
    from retinue.research.intents import brief_for as brief_for
    from retinue.research.pipeline import (
        Investigation as Investigation,
        ResearchRun as ResearchRun,
        answer_request as answer_request,
        show_report as show_report,
    )
    from retinue.research.question import (
        clean_question as clean_question,
        keywords as keywords,
        read_question as read_question,
    )
    from retinue.research.report_builder import (
        MIN_TOKENS as MIN_TOKENS,
        fit_report as fit_report,
        summarize as summarize,
    )
    from retinue.research.request import (
        ResearchConstraints as ResearchConstraints,
        ResearchRequest as ResearchRequest,
    )
    from retinue.research.role_runs import PerformInThread as PerformInThread, role_run_spec as role_run_spec
    from retinue.research.scope import (
        ReferenceNamer as ReferenceNamer,
        SearchScope as SearchScope,
        open_scope as open_scope,
    )
    from retinue.research.source_files import (
        FilesRead as FilesRead,
        ReadBudget as ReadBudget,
        SourceFiles as SourceFiles,
    )
    from retinue.research.web_research import WebQuestion as WebQuestion
    from retinue.research.web_run import WebRun as WebRun, web_run_spec as web_run_spec
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
            "intents": "brief_for",
            "pipeline": "Investigation ResearchRun answer_request show_report",
            "question": "clean_question keywords read_question",
            "report_builder": "MIN_TOKENS fit_report summarize",
            "request": "ResearchConstraints ResearchRequest",
            "role_runs": "PerformInThread role_run_spec",
            "scope": "ReferenceNamer SearchScope open_scope",
            "source_files": "FilesRead ReadBudget SourceFiles",
            "web_research": "WebQuestion",
            "web_run": "WebRun web_run_spec",
        },
    )
