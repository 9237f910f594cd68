"""Persistent state: runs, messages, events, budgets, logs and user decisions.

Everything lies in one data folder, which many processes may use at the same time. `Store` is the entry point.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.store.access_tokens import (
        load_or_create_token as load_or_create_token,
        replace_token as replace_token,
    )
    from retinue.store.agent_memory import AgentMemory as AgentMemory
    from retinue.store.files import lock_file as lock_file, replace_file as replace_file
    from retinue.store.known_answers import KnownAnswersFile as KnownAnswersFile
    from retinue.store.ledgers import initial_credit as initial_credit
    from retinue.store.logs import (
        ALL_STREAMS as ALL_STREAMS,
        LogLine as LogLine,
        LogStream as LogStream,
        LogWriter as LogWriter,
        count_lines as count_lines,
        read_log as read_log,
        read_output as read_output,
        summarize_log as summarize_log,
        tail_log as tail_log,
    )
    from retinue.store.memories import (
        FoundMemory as FoundMemory,
        MemoryChange as MemoryChange,
        MemoryStore as MemoryStore,
        memory_file as memory_file,
    )
    from retinue.store.memory_hygiene import UNDO_DAYS as UNDO_DAYS, HygieneResult as HygieneResult
    from retinue.store.meta_files import message_view as message_view, time_text as time_text
    from retinue.store.pruning import (
        delete_requests as delete_requests,
        is_pruning_due as is_pruning_due,
        prune_expired_runs as prune_expired_runs,
    )
    from retinue.store.queue import (
        Capacity as Capacity,
        SchedulingState as SchedulingState,
        SlotClaim as SlotClaim,
    )
    from retinue.store.quotas import SpentQuota as SpentQuota
    from retinue.store.recovery import (
        EndProcesses as EndProcesses,
        Orphan as Orphan,
        Owner as Owner,
        interrupt_owner as interrupt_owner,
        recover_dead_owners as recover_dead_owners,
    )
    from retinue.store.reports import Reports as Reports
    from retinue.store.runs import SUMMARY_EVENT as SUMMARY_EVENT
    from retinue.store.sessions import (
        SESSION_SUFFIX as SESSION_SUFFIX,
        SessionFile as SessionFile,
        StoredSession as StoredSession,
        delete_sessions as delete_sessions,
        list_sessions as list_sessions,
    )
    from retinue.store.store import Store as Store
    from retinue.store.temporary_folders import (
        remove_abandoned_folders as remove_abandoned_folders,
        temporary_folder as temporary_folder,
    )
    from retinue.store.user_decisions import (
        PERMISSIONS_FILE as PERMISSIONS_FILE,
        Approval as Approval,
        ApprovedSkills as ApprovedSkills,
        ConfirmedChecks as ConfirmedChecks,
        RememberedPermissions as RememberedPermissions,
        TrustedProjects as TrustedProjects,
    )
    from retinue.store.workflow_records import (
        ALLOWED_CHECKS_STEP as ALLOWED_CHECKS_STEP,
        RESULT_STEP as RESULT_STEP,
        StepCheckpoint as StepCheckpoint,
        WorkflowRecord as WorkflowRecord,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "access_tokens": "load_or_create_token replace_token",
            "agent_memory": "AgentMemory",
            "files": "lock_file replace_file",
            "known_answers": "KnownAnswersFile",
            "ledgers": "initial_credit",
            "logs": (
                "ALL_STREAMS LogLine LogStream LogWriter count_lines read_log read_output summarize_log "
                "tail_log"
            ),
            "memories": "FoundMemory MemoryChange MemoryStore memory_file",
            "memory_hygiene": "UNDO_DAYS HygieneResult",
            "meta_files": "message_view time_text",
            "pruning": "delete_requests is_pruning_due prune_expired_runs",
            "queue": "Capacity SchedulingState SlotClaim",
            "quotas": "SpentQuota",
            "recovery": "EndProcesses Orphan Owner interrupt_owner recover_dead_owners",
            "reports": "Reports",
            "runs": "SUMMARY_EVENT",
            "sessions": "SESSION_SUFFIX SessionFile StoredSession delete_sessions list_sessions",
            "store": "Store",
            "temporary_folders": "remove_abandoned_folders temporary_folder",
            "user_decisions": (
                "PERMISSIONS_FILE Approval ApprovedSkills ConfirmedChecks RememberedPermissions "
                "TrustedProjects"
            ),
            "workflow_records": "ALLOWED_CHECKS_STEP RESULT_STEP StepCheckpoint WorkflowRecord",
        },
    )
