"""Values, ports and errors that all other packages share. Imports none of them."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.core.agent import (
        DEFAULT_TIMEOUT_S as DEFAULT_TIMEOUT_S,
        HOST as HOST,
        HOST_SESSION_VARIABLE as HOST_SESSION_VARIABLE,
        NO_PERMISSIONS as NO_PERMISSIONS,
        PERSON as PERSON,
        Agent as Agent,
        McpServer as McpServer,
        NetworkChoice as NetworkChoice,
        Permissions as Permissions,
    )
    from retinue.core.budget import (
        UNMETERED as UNMETERED,
        Budget as Budget,
        BudgetKind as BudgetKind,
        Spending as Spending,
        Usage as Usage,
    )
    from retinue.core.code_look import (
        LOOK_RULES as LOOK_RULES,
        LOOK_TASK as LOOK_TASK,
        LOOK_TOKENS as LOOK_TOKENS,
        PLAIN_NO as PLAIN_NO,
        PLAIN_YES as PLAIN_YES,
        WORD_CHOICES as WORD_CHOICES,
        chance_of_yes as chance_of_yes,
        look_prompt as look_prompt,
    )
    from retinue.core.errors import (
        AcceptanceFailed as AcceptanceFailed,
        AddressDenied as AddressDenied,
        BudgetExceeded as BudgetExceeded,
        Canceled as Canceled,
        ConfigInvalid as ConfigInvalid,
        Conflict as Conflict,
        ContextOverflow as ContextOverflow,
        DeadlineExceeded as DeadlineExceeded,
        EmptyReply as EmptyReply,
        FetchFailed as FetchFailed,
        InternalError as InternalError,
        InvalidInput as InvalidInput,
        LimitExceeded as LimitExceeded,
        ModelFailed as ModelFailed,
        OutputInvalid as OutputInvalid,
        PathDenied as PathDenied,
        PathMissing as PathMissing,
        ProgramFailed as ProgramFailed,
        QueueFull as QueueFull,
        QuotaSpent as QuotaSpent,
        RetinueError as RetinueError,
        RootUnknown as RootUnknown,
        RunUnknown as RunUnknown,
        Stopped as Stopped,
        Throttled as Throttled,
        ToolsUnsupported as ToolsUnsupported,
        Unauthorized as Unauthorized,
        Unavailable as Unavailable,
        Unverified as Unverified,
        WorkflowStopped as WorkflowStopped,
        utc_text as utc_text,
    )
    from retinue.core.executor import (
        AskParent as AskParent,
        Delegate as Delegate,
        Emit as Emit,
        Executor as Executor,
        OnProcessStart as OnProcessStart,
        Outcome as Outcome,
        OutputLine as OutputLine,
        ProcessIdentity as ProcessIdentity,
        Resumed as Resumed,
        RunContext as RunContext,
        StreamName as StreamName,
        Task as Task,
    )
    from retinue.core.executors import (
        EXECUTOR_NAMES as EXECUTOR_NAMES,
        EXECUTORS as EXECUTORS,
        ExecutorKind as ExecutorKind,
        ExecutorTable as ExecutorTable,
        executor_table as executor_table,
        find_executor as find_executor,
    )
    from retinue.core.fair_share import read_chunks as read_chunks, read_fairly as read_fairly
    from retinue.core.file_lock import FileLock as FileLock
    from retinue.core.handoff import (
        HANDOFF_SUMMARY_TOKENS as HANDOFF_SUMMARY_TOKENS,
        HandoffContext as HandoffContext,
        HandoffRequest as HandoffRequest,
        HandoffResponse as HandoffResponse,
        handoff_schemas as handoff_schemas,
    )
    from retinue.core.ids import MessageId as MessageId, OwnerId as OwnerId, RunId as RunId
    from retinue.core.lenient_json import (
        MAX_JSON_CHARS as MAX_JSON_CHARS,
        Json as Json,
        JsonObject as JsonObject,
        NotJson as NotJson,
        any_value as any_value,
        as_int as as_int,
        as_object as as_object,
        as_object_list as as_object_list,
        as_positive_int as as_positive_int,
        as_text as as_text,
        as_text_list as as_text_list,
        embedded_values as embedded_values,
        first_value as first_value,
        json_or_none as json_or_none,
        objects_in as objects_in,
        parse_lenient as parse_lenient,
        parse_lenient_object as parse_lenient_object,
        stated_values as stated_values,
        unfenced as unfenced,
    )
    from retinue.core.memory import (
        MAX_CITED_PLACES as MAX_CITED_PLACES,
        MAX_MEMORY_CHARACTERS as MAX_MEMORY_CHARACTERS,
        MEMORY_KINDS as MEMORY_KINDS,
        MEMORY_SCOPES as MEMORY_SCOPES,
        MEMORY_STATES as MEMORY_STATES,
        MEMORY_TIERS as MEMORY_TIERS,
        CitedPlace as CitedPlace,
        Memory as Memory,
        MemoryId as MemoryId,
        MemoryKind as MemoryKind,
        MemoryScope as MemoryScope,
        MemoryState as MemoryState,
        MemoryTier as MemoryTier,
        NewMemory as NewMemory,
        RunMemory as RunMemory,
    )
    from retinue.core.message import (
        NO_ANSWER as NO_ANSWER,
        QUESTION_WITHDRAWN as QUESTION_WITHDRAWN,
        Message as Message,
        MessageStatus as MessageStatus,
        PermissionWanted as PermissionWanted,
    )
    from retinue.core.message_streams import ReadingEnd as ReadingEnd, StreamEnd as StreamEnd
    from retinue.core.model import (
        Estimator as Estimator,
        FinishReason as FinishReason,
        Model as Model,
        ModelFacts as ModelFacts,
        ModelSkills as ModelSkills,
        ModelSpeed as ModelSpeed,
        Prompt as Prompt,
        Reply as Reply,
        ReplyPiece as ReplyPiece,
        ToolCall as ToolCall,
        ToolSpec as ToolSpec,
        Turn as Turn,
        TurnRole as TurnRole,
    )
    from retinue.core.names import (
        ASK_PARENT as ASK_PARENT,
        DEFAULT_TOOL_GROUPS as DEFAULT_TOOL_GROUPS,
        DELEGATING_TOOLS as DELEGATING_TOOLS,
        EDIT_FILE as EDIT_FILE,
        FILE_TOOLS as FILE_TOOLS,
        FOREIGN_TOOLS as FOREIGN_TOOLS,
        LIST_AGENTS as LIST_AGENTS,
        MCP_PREFIX as MCP_PREFIX,
        MEMORY_TOOLS as MEMORY_TOOLS,
        OWN_TOOLS as OWN_TOOLS,
        RUN_COMMAND as RUN_COMMAND,
        RUN_SUBAGENT as RUN_SUBAGENT,
        TOOL_GROUPS as TOOL_GROUPS,
        TOOL_SYNONYMS as TOOL_SYNONYMS,
        USE_SKILL as USE_SKILL,
        WAIT_FOR_RUNS as WAIT_FOR_RUNS,
        WEB_FETCH as WEB_FETCH,
        WEB_SEARCH as WEB_SEARCH,
        WEB_TOOLS as WEB_TOOLS,
        WRITE_FILE as WRITE_FILE,
        WRITING_TOOLS as WRITING_TOOLS,
    )
    from retinue.core.permission import (
        PermissionAnswer as PermissionAnswer,
        PermissionRule as PermissionRule,
        Permit as Permit,
        ToolRequest as ToolRequest,
        Verdict as Verdict,
        argument_details as argument_details,
        deny_all as deny_all,
    )
    from retinue.core.programs import (
        ProgramLookup as ProgramLookup,
        find_program as find_program,
        look_up_program as look_up_program,
    )
    from retinue.core.receipt import (
        WEB_EVENT as WEB_EVENT,
        Activity as Activity,
        build_receipt as build_receipt,
        tells_of_web as tells_of_web,
    )
    from retinue.core.reference import Reference as Reference
    from retinue.core.report import (
        RESEARCH_ROLES as RESEARCH_ROLES,
        Clarification as Clarification,
        Confidence as Confidence,
        Intent as Intent,
        ModelExplanation as ModelExplanation,
        Report as Report,
        ReportId as ReportId,
        ReportProgress as ReportProgress,
        RoleError as RoleError,
        RoleOutcome as RoleOutcome,
        RoleResult as RoleResult,
        RoleStatus as RoleStatus,
        answer_order as answer_order,
    )
    from retinue.core.root import Root as Root
    from retinue.core.rule_matching import decide_by_rules as decide_by_rules, exact_rule as exact_rule
    from retinue.core.run import (
        ACTIVE_STATUSES as ACTIVE_STATUSES,
        ENDED_STATUSES as ENDED_STATUSES,
        STATUS_CHANGES as STATUS_CHANGES,
        TRIAL_CALLER as TRIAL_CALLER,
        Ending as Ending,
        Endpoint as Endpoint,
        Run as Run,
        RunLimits as RunLimits,
        RunSpec as RunSpec,
        RunStatus as RunStatus,
        RunTiming as RunTiming,
        check_status_change as check_status_change,
    )
    from retinue.core.shell_command import words_without_shell as words_without_shell
    from retinue.core.skill import (
        MAX_SKILL_CHARS as MAX_SKILL_CHARS,
        OpenSkills as OpenSkills,
        SkillNotes as SkillNotes,
    )
    from retinue.core.stop import Stop as Stop, run_in_thread as run_in_thread, wait_shielded as wait_shielded
    from retinue.core.text import (
        LongText as LongText,
        RedactedStream as RedactedStream,
        Redactor as Redactor,
        clip as clip,
        clip_start as clip_start,
        compact_json as compact_json,
        counted as counted,
        escape_invisible_characters as escape_invisible_characters,
        estimate_tokens as estimate_tokens,
        join_notes as join_notes,
        strip_control_characters as strip_control_characters,
        toml_string as toml_string,
    )
    from retinue.core.tool_arguments import EDITING_TOOLS as EDITING_TOOLS, READING_TOOLS as READING_TOOLS
    from retinue.core.usage_limit import (
        find_limit_notice as find_limit_notice,
        find_usage_limit as find_usage_limit,
        read_reset as read_reset,
    )
    from retinue.core.web_address import certain_host as certain_host, is_host_in as is_host_in
    from retinue.core.workflow import (
        PARALLEL_LIMIT as PARALLEL_LIMIT,
        Assignment as Assignment,
        BestOf as BestOf,
        Branch as Branch,
        Chain as Chain,
        Decision as Decision,
        Expected as Expected,
        FieldType as FieldType,
        Parallel as Parallel,
        Phase as Phase,
        Progress as Progress,
        QuorumRule as QuorumRule,
        Step as Step,
        Workflow as Workflow,
        WorkflowNode as WorkflowNode,
        steps_of as steps_of,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent": (
                "DEFAULT_TIMEOUT_S HOST HOST_SESSION_VARIABLE NO_PERMISSIONS PERSON Agent McpServer "
                "NetworkChoice Permissions"
            ),
            "budget": "UNMETERED Budget BudgetKind Spending Usage",
            "code_look": (
                "LOOK_RULES LOOK_TASK LOOK_TOKENS PLAIN_NO PLAIN_YES WORD_CHOICES chance_of_yes look_prompt"
            ),
            "errors": (
                "AcceptanceFailed AddressDenied BudgetExceeded Canceled ConfigInvalid Conflict "
                "ContextOverflow DeadlineExceeded EmptyReply FetchFailed InternalError InvalidInput "
                "LimitExceeded ModelFailed OutputInvalid PathDenied PathMissing ProgramFailed QueueFull "
                "QuotaSpent RetinueError "
                "RootUnknown RunUnknown Stopped Throttled ToolsUnsupported Unauthorized Unavailable "
                "Unverified WorkflowStopped utc_text"
            ),
            "executor": (
                "AskParent Delegate Emit Executor OnProcessStart Outcome OutputLine "
                "ProcessIdentity Resumed RunContext StreamName Task"
            ),
            "executors": ("EXECUTORS EXECUTOR_NAMES ExecutorKind ExecutorTable executor_table find_executor"),
            "file_lock": "FileLock",
            "handoff": (
                "HANDOFF_SUMMARY_TOKENS HandoffContext HandoffRequest HandoffResponse handoff_schemas"
            ),
            "ids": "MessageId OwnerId RunId",
            "lenient_json": (
                "MAX_JSON_CHARS Json JsonObject NotJson any_value as_int as_object as_object_list "
                "as_positive_int as_text as_text_list embedded_values first_value json_or_none objects_in "
                "parse_lenient parse_lenient_object stated_values unfenced"
            ),
            "memory": (
                "MAX_CITED_PLACES MAX_MEMORY_CHARACTERS MEMORY_KINDS MEMORY_SCOPES MEMORY_STATES "
                "MEMORY_TIERS CitedPlace Memory MemoryId MemoryKind MemoryScope MemoryState MemoryTier "
                "NewMemory RunMemory"
            ),
            "message": "NO_ANSWER QUESTION_WITHDRAWN Message MessageStatus PermissionWanted",
            "message_streams": "ReadingEnd StreamEnd",
            "model": (
                "Estimator FinishReason Model ModelFacts ModelSkills ModelSpeed Prompt Reply ReplyPiece "
                "ToolCall ToolSpec Turn TurnRole"
            ),
            "names": (
                "ASK_PARENT DEFAULT_TOOL_GROUPS DELEGATING_TOOLS EDIT_FILE FILE_TOOLS FOREIGN_TOOLS "
                "LIST_AGENTS MCP_PREFIX MEMORY_TOOLS OWN_TOOLS RUN_COMMAND RUN_SUBAGENT TOOL_GROUPS "
                "TOOL_SYNONYMS USE_SKILL WAIT_FOR_RUNS WEB_FETCH WEB_SEARCH WEB_TOOLS WRITE_FILE "
                "WRITING_TOOLS"
            ),
            "permission": (
                "PermissionAnswer PermissionRule Permit ToolRequest Verdict argument_details deny_all"
            ),
            "programs": "ProgramLookup find_program look_up_program",
            "receipt": "WEB_EVENT Activity build_receipt tells_of_web",
            "reference": "Reference",
            "report": (
                "RESEARCH_ROLES Clarification Confidence Intent ModelExplanation Report ReportId "
                "ReportProgress RoleError RoleOutcome RoleResult RoleStatus answer_order"
            ),
            "root": "Root",
            "rule_matching": "decide_by_rules exact_rule",
            "run": (
                "ACTIVE_STATUSES ENDED_STATUSES STATUS_CHANGES TRIAL_CALLER Ending Endpoint Run RunLimits "
                "RunSpec RunStatus RunTiming check_status_change"
            ),
            "fair_share": "read_chunks read_fairly",
            "shell_command": "words_without_shell",
            "skill": "MAX_SKILL_CHARS OpenSkills SkillNotes",
            "stop": "Stop run_in_thread wait_shielded",
            "text": (
                "LongText RedactedStream Redactor clip clip_start compact_json counted "
                "escape_invisible_characters estimate_tokens join_notes strip_control_characters toml_string"
            ),
            "tool_arguments": "EDITING_TOOLS READING_TOOLS",
            "usage_limit": "find_limit_notice find_usage_limit read_reset",
            "web_address": "certain_host is_host_in",
            "workflow": (
                "PARALLEL_LIMIT Assignment BestOf Branch Chain Decision Expected FieldType Parallel Phase "
                "Progress QuorumRule Step Workflow WorkflowNode steps_of"
            ),
        },
    )
