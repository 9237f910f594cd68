"""Parses text: questions, the terms of code, outlines and symbols of files, and the kind of a path.

Works on bytes and strings. Reads no files.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.parse.definitions import (
        Definition as Definition,
        Symbol as Symbol,
    )
    from retinue.codebase.parse.file_kinds import (
        MAX_SEARCHED_BYTES as MAX_SEARCHED_BYTES,
        FileCategory as FileCategory,
        FileKind as FileKind,
        file_category as file_category,
        file_kind as file_kind,
        has_searchable_text as has_searchable_text,
    )
    from retinue.codebase.parse.imports import (
        ALL as ALL,
        CodeImport as CodeImport,
        text_of as text_of,
    )
    from retinue.codebase.parse.languages import missing_parsers as missing_parsers
    from retinue.codebase.parse.outline import (
        Chunk as Chunk,
        ChunkColumns as ChunkColumns,
        chunk_columns as chunk_columns,
        outline_text as outline_text,
    )
    from retinue.codebase.parse.parsed_code import (
        CallSite as CallSite,
        LocalName as LocalName,
        ParsedCode as ParsedCode,
        Typed as Typed,
        parse_code as parse_code,
    )
    from retinue.codebase.parse.question import (
        ParsedQuestion as ParsedQuestion,
        looks_like_code as looks_like_code,
        parse_hints as parse_hints,
        parse_question as parse_question,
    )
    from retinue.codebase.parse.terms import (
        FOLDER_MARK as FOLDER_MARK,
        NAME_MARK as NAME_MARK,
        STOP_WORDS as STOP_WORDS,
        PathTerms as PathTerms,
        QueryTerms as QueryTerms,
        Vocabulary as Vocabulary,
        WordSpans as WordSpans,
        find_path_terms as find_path_terms,
        folder_part as folder_part,
        name_without_suffix as name_without_suffix,
        separate_words as separate_words,
        split_identifier as split_identifier,
        stem as stem,
        terms_of_text as terms_of_text,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "file_kinds": (
                "MAX_SEARCHED_BYTES FileCategory FileKind file_category file_kind has_searchable_text"
            ),
            "imports": "ALL CodeImport text_of",
            "languages": "missing_parsers",
            "outline": "Chunk ChunkColumns chunk_columns outline_text",
            "parsed_code": "CallSite LocalName ParsedCode Typed parse_code",
            "question": "ParsedQuestion looks_like_code parse_hints parse_question",
            "definitions": "Definition Symbol",
            "terms": (
                "FOLDER_MARK NAME_MARK PathTerms QueryTerms STOP_WORDS Vocabulary WordSpans find_path_terms "
                "folder_part name_without_suffix separate_words split_identifier stem terms_of_text"
            ),
        },
    )
