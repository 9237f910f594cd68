"""What users can ask of Retinue: one method or function for each request.

The MCP server, the command line and the dashboard all call this package. Knows nothing of them.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.service.adoption import adopt_workflows as adopt_workflows
    from retinue.service.agent_state import AgentState as AgentState
    from retinue.service.agents import AgentService as AgentService, plan_models as plan_models
    from retinue.service.deletion import (
        delete_old_runs as delete_old_runs,
        delete_runs as delete_runs,
        prune as prune,
    )
    from retinue.service.documents import (
        list_documents as list_documents,
        read_document as read_document,
    )
    from retinue.service.evolution import EvolutionService as EvolutionService
    from retinue.service.handoff_documents import (
        HandoffDraft as HandoffDraft,
        create_handoff as create_handoff,
        resume_handoff as resume_handoff,
    )
    from retinue.service.indexing import can_index as can_index, make_indexes as make_indexes
    from retinue.service.memory import MemoryService as MemoryService
    from retinue.service.overview import (
        answer_run as answer_run,
        learning_overview as learning_overview,
        resume_abandoned as resume_abandoned,
        resume_answered as resume_answered,
        run_overview as run_overview,
        runs_overview as runs_overview,
        watch_for_changes as watch_for_changes,
    )
    from retinue.service.quotas import clear_quota as clear_quota, spent_quotas as spent_quotas
    from retinue.service.research import (
        ResearchRequest as ResearchRequest,
        ResearchVerb as ResearchVerb,
        analyze_component as analyze_component,
        find_patterns as find_patterns,
        index_folder as index_folder,
        locate_in_codebase as locate_in_codebase,
        research_codebase as research_codebase,
    )
    from retinue.service.run_output import (
        log_pages as log_pages,
        read_last_lines as read_last_lines,
        read_log as read_log,
        read_patch as read_patch,
        result_pages as result_pages,
        whole_outcome as whole_outcome,
    )
    from retinue.service.run_refusal import IsFromRun as IsFromRun, refuse_runs as refuse_runs
    from retinue.service.run_views import clip_line as clip_line
    from retinue.service.runs import Delegation as Delegation, RunService as RunService
    from retinue.service.service import (
        ADD_A_ROOT as ADD_A_ROOT,
        ScheduleJob as ScheduleJob,
        Service as Service,
    )
    from retinue.service.settings import (
        check_settings_file as check_settings_file,
        describe_settings as describe_settings,
        set_setting as set_setting,
        settings_file_to_edit as settings_file_to_edit,
        user_settings_location as user_settings_location,
    )
    from retinue.service.setup import (
        InstallOutcome as InstallOutcome,
        create_agent as create_agent,
        diagnose as diagnose,
        host_file as host_file,
        host_link as host_link,
        host_snippet as host_snippet,
        install_host as install_host,
        list_hosts as list_hosts,
        server_entry as server_entry,
        uninstall_host as uninstall_host,
        write_project_examples as write_project_examples,
    )
    from retinue.service.skills import SkillService as SkillService
    from retinue.service.status_reports import (
        decide_status as decide_status,
        report_status as report_status,
    )
    from retinue.service.waiting import RunWaiter as RunWaiter
    from retinue.service.web import (
        WebRequest as WebRequest,
        clear_web_cache as clear_web_cache,
        web_research as web_research,
    )
    from retinue.service.web_sources import search_provider as search_provider, web_cache as web_cache
    from retinue.service.workflow_views import savings_table as savings_table, timeline as timeline
    from retinue.service.workflows import (
        WorkflowChildren as WorkflowChildren,
        WorkflowService as WorkflowService,
        parse_assignment as parse_assignment,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "adoption": "adopt_workflows",
            "agent_state": "AgentState",
            "agents": "AgentService plan_models",
            "deletion": "delete_old_runs delete_runs prune",
            "documents": "list_documents read_document",
            "evolution": "EvolutionService",
            "handoff_documents": "HandoffDraft create_handoff resume_handoff",
            "indexing": "can_index make_indexes",
            "memory": "MemoryService",
            "overview": (
                "answer_run learning_overview resume_abandoned resume_answered run_overview runs_overview "
                "watch_for_changes"
            ),
            "quotas": "clear_quota spent_quotas",
            "research": (
                "ResearchRequest ResearchVerb analyze_component find_patterns index_folder "
                "locate_in_codebase research_codebase"
            ),
            "run_output": ("log_pages read_last_lines read_log read_patch result_pages whole_outcome"),
            "run_refusal": "IsFromRun refuse_runs",
            "run_views": "clip_line",
            "runs": "Delegation RunService",
            "service": "ADD_A_ROOT ScheduleJob Service",
            "settings": (
                "check_settings_file describe_settings set_setting settings_file_to_edit "
                "user_settings_location"
            ),
            "setup": (
                "InstallOutcome create_agent diagnose host_file host_link host_snippet install_host "
                "list_hosts server_entry uninstall_host write_project_examples"
            ),
            "skills": "SkillService",
            "status_reports": "decide_status report_status",
            "waiting": "RunWaiter",
            "web": "WebRequest clear_web_cache web_research",
            "web_sources": "search_provider web_cache",
            "workflow_views": "savings_table timeline",
            "workflows": "WorkflowChildren WorkflowService parse_assignment",
        },
    )
