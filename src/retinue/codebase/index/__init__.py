"""TODO."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.index.evidence import (
        CommitEvidence as CommitEvidence,
        Evidence as Evidence,
        FileDetail as FileDetail,
        ScanEvidence as ScanEvidence,
        merge_commit_evidence as merge_commit_evidence,
    )
    from retinue.codebase.index.history import (
        GitHistory as GitHistory,
        read_commit_evidence as read_commit_evidence,
    )
    from retinue.codebase.index.index import (
        Index as Index,
        discard_if_damaged as discard_if_damaged,
        index_exists as index_exists,
        remove_unused_indexes as remove_unused_indexes,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "evidence": "CommitEvidence Evidence FileDetail ScanEvidence merge_commit_evidence",
            "history": "GitHistory read_commit_evidence",
            "index": "Index discard_if_damaged index_exists remove_unused_indexes",
        },
    )
