"""Evidence for questions: what each file contains, from the SQLite index or from a scan of the files.

Also reads the commit history. Knows nothing of ranking.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.index.database import (
        discard_if_damaged as discard_if_damaged,
        index_exists as index_exists,
        remove_unused_indexes as remove_unused_indexes,
    )
    from retinue.codebase.index.evidence import (
        Evidence as Evidence,
        FileDetail as FileDetail,
        ScanEvidence as ScanEvidence,
        read_texts as read_texts,
        searchable_entries as searchable_entries,
    )
    from retinue.codebase.index.history import (
        AddedLine as AddedLine,
        GitHistory as GitHistory,
        LoggedCommit as LoggedCommit,
        read_added_lines as read_added_lines,
        read_commits as read_commits,
    )
    from retinue.codebase.index.index import Index as Index
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "database": "discard_if_damaged index_exists remove_unused_indexes",
            "evidence": "Evidence FileDetail ScanEvidence read_texts searchable_entries",
            "history": "AddedLine GitHistory LoggedCommit read_added_lines read_commits",
            "index": "Index",
        },
    )
