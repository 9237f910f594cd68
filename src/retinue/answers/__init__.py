"""Answers questions about a codebase: reads the question, finds the places, and writes what they show.

Knows nothing of runs, MCP or terminals.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.answers.callers import (
        list_callers as list_callers,
    )
    from retinue.answers.changes import (
        explain_changes as explain_changes,
    )
    from retinue.answers.claims import (
        cited_places as cited_places,
        describe_claims as describe_claims,
        says_not_found as says_not_found,
        support_of as support_of,
    )
    from retinue.answers.code_finder import (
        CodeExcerpt as CodeExcerpt,
        CodeFinder as CodeFinder,
        fit_excerpts as fit_excerpts,
    )
    from retinue.answers.components import (
        quote_lines as quote_lines,
    )
    from retinue.answers.error_origins import (
        explain_error as explain_error,
        prints_message as prints_message,
    )
    from retinue.answers.flow import (
        tell_flow as tell_flow,
    )
    from retinue.answers.locator import (
        LocatorResult as LocatorResult,
        locate as locate,
    )
    from retinue.answers.patterns import (
        find_examples as find_examples,
    )
    from retinue.answers.question_reader import (
        ROLE_INTENTS as ROLE_INTENTS,
        Question as Question,
        asks_a_question as asks_a_question,
        clean_question as clean_question,
        read_question as read_question,
        split_addresses as split_addresses,
    )
    from retinue.answers.reader import (
        FIRST_PLACES as FIRST_PLACES,
        MIN_CODE_TOKENS as MIN_CODE_TOKENS,
        NOT_CERTAIN as NOT_CERTAIN,
        NOT_FOUND as NOT_FOUND,
        NOT_JUDGED as NOT_JUDGED,
        QUOTED_HEADING as QUOTED_HEADING,
        CodeAnswer as CodeAnswer,
        CodeReader as CodeReader,
        ReadingLimits as ReadingLimits,
    )
    from retinue.answers.reader_messages import without_thoughts as without_thoughts
    from retinue.answers.report_builder import (
        MIN_TOKENS as MIN_TOKENS,
        fit_report as fit_report,
        merge_outcomes as merge_outcomes,
        summarize as summarize,
        tell_once as tell_once,
    )
    from retinue.answers.request import (
        ResearchConstraints as ResearchConstraints,
        ResearchRequest as ResearchRequest,
    )
    from retinue.answers.role_context import (
        RoleContext as RoleContext,
    )
    from retinue.answers.scope import (
        ReferenceNamer as ReferenceNamer,
        SearchScope as SearchScope,
        open_scope as open_scope,
    )
    from retinue.answers.source_files import (
        MAX_QUOTE_CHARS as MAX_QUOTE_CHARS,
        REDACTED_LINE as REDACTED_LINE,
        FilesRead as FilesRead,
        ReadBudget as ReadBudget,
        SourceFile as SourceFile,
        SourceFiles as SourceFiles,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "callers": "list_callers",
            "changes": "explain_changes",
            "claims": "cited_places describe_claims says_not_found support_of",
            "code_finder": "CodeExcerpt CodeFinder fit_excerpts",
            "components": "quote_lines",
            "error_origins": "explain_error prints_message",
            "flow": "tell_flow",
            "locator": "LocatorResult locate",
            "patterns": "find_examples",
            "question_reader": (
                "Question ROLE_INTENTS asks_a_question clean_question read_question split_addresses"
            ),
            "reader": (
                "CodeAnswer CodeReader FIRST_PLACES MIN_CODE_TOKENS NOT_CERTAIN NOT_FOUND NOT_JUDGED "
                "QUOTED_HEADING ReadingLimits"
            ),
            "reader_messages": "without_thoughts",
            "report_builder": "MIN_TOKENS fit_report merge_outcomes summarize tell_once",
            "request": "ResearchConstraints ResearchRequest",
            "role_context": "RoleContext",
            "scope": "ReferenceNamer SearchScope open_scope",
            "source_files": "FilesRead MAX_QUOTE_CHARS REDACTED_LINE ReadBudget SourceFile SourceFiles",
        },
    )
