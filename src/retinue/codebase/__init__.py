"""Reads, searches, indexes and ranks the user's files. Knows nothing of agents, runs, budgets and hosts.

The sub-packages build on each other: `access`, then `git`, `search` and `parse`, then `names` and `index`,
then `rank`.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.access import (
        SECRET_NAMES as SECRET_NAMES,
        Bounds as Bounds,
        FileEntry as FileEntry,
        FileWriter as FileWriter,
        Opener as Opener,
        Policy as Policy,
        SecretFiles as SecretFiles,
        find_secret_files as find_secret_files,
        reading_policy as reading_policy,
        split_lines as split_lines,
    )
    from retinue.codebase.codebase import Codebase as Codebase, CodebaseView as CodebaseView
    from retinue.codebase.git import (
        Git as Git,
        GitRepository as GitRepository,
        GitView as GitView,
        find_git as find_git,
        read_git_file as read_git_file,
    )
    from retinue.codebase.index import (
        AddedLine as AddedLine,
        LoggedCommit as LoggedCommit,
        read_added_lines as read_added_lines,
        read_commits as read_commits,
    )
    from retinue.codebase.names import (
        CodeFile as CodeFile,
        NameResolver as NameResolver,
        ReceiverKind as ReceiverKind,
        Target as Target,
    )
    from retinue.codebase.parse import (
        MAX_SEARCHED_BYTES as MAX_SEARCHED_BYTES,
        STOP_WORDS as STOP_WORDS,
        CallSite as CallSite,
        Chunk as Chunk,
        CodeImport as CodeImport,
        FileKind as FileKind,
        ParsedCode as ParsedCode,
        ParsedQuestion as ParsedQuestion,
        Symbol as Symbol,
        file_category as file_category,
        file_kind as file_kind,
        has_searchable_text as has_searchable_text,
        missing_parsers as missing_parsers,
        outline_text as outline_text,
        parse_code as parse_code,
        parse_hints as parse_hints,
        parse_question as parse_question,
        split_identifier as split_identifier,
        stem as stem,
        terms_of_text as terms_of_text,
    )
    from retinue.codebase.rank import (
        Located as Located,
        Locator as Locator,
        Place as Place,
        RankedSection as RankedSection,
        best_definitions as best_definitions,
        rank_sections as rank_sections,
        rank_texts as rank_texts,
        with_word_breaks as with_word_breaks,
    )
    from retinue.codebase.references import (
        Claim as Claim,
        check_claims as check_claims,
        words_in_files as words_in_files,
    )
    from retinue.codebase.search import (
        MAX_PATTERN_CHARS as MAX_PATTERN_CHARS,
        LineMatch as LineMatch,
        SearchPattern as SearchPattern,
        SearchResult as SearchResult,
        find_ripgrep as find_ripgrep,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "access": (
                "SECRET_NAMES Bounds FileEntry FileWriter Opener Policy SecretFiles find_secret_files "
                "reading_policy split_lines"
            ),
            "codebase": "Codebase CodebaseView",
            "git": "Git GitRepository GitView find_git read_git_file",
            "index": "AddedLine LoggedCommit read_added_lines read_commits",
            "names": "CodeFile NameResolver ReceiverKind Target",
            "parse": (
                "MAX_SEARCHED_BYTES STOP_WORDS CallSite Chunk CodeImport FileKind ParsedCode ParsedQuestion "
                "Symbol file_category file_kind has_searchable_text missing_parsers "
                "outline_text parse_code parse_hints parse_question split_identifier stem terms_of_text"
            ),
            "rank": (
                "Located Locator Place RankedSection best_definitions rank_sections "
                "rank_texts with_word_breaks"
            ),
            "references": "Claim check_claims words_in_files",
            "search": "MAX_PATTERN_CHARS LineMatch SearchPattern SearchResult find_ripgrep",
        },
    )
