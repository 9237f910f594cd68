"""Finds and reads the files that define agents, workflows, teams and profiles.

Knows nothing of how agents run or who runs them.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.definitions.agent_catalog import AgentCatalog as AgentCatalog, AgentSources as AgentSources
    from retinue.definitions.agent_fields import NAME_PATTERN as NAME_PATTERN
    from retinue.definitions.agent_files import (
        AgentDefinition as AgentDefinition,
        PickedExecutor as PickedExecutor,
        PickExecutor as PickExecutor,
    )
    from retinue.definitions.definition_files import (
        home_relative as home_relative,
        working_folders as working_folders,
    )
    from retinue.definitions.executor_support import (
        grants_in_worktree as grants_in_worktree,
        permissions_beyond_reading as permissions_beyond_reading,
        unsupported_fields as unsupported_fields,
    )
    from retinue.definitions.problems import (
        DefinitionProblem as DefinitionProblem,
        MalformedDefinition as MalformedDefinition,
        did_you_mean as did_you_mean,
    )
    from retinue.definitions.project_checks import find_checks as find_checks
    from retinue.definitions.skill_check import check_skill as check_skill
    from retinue.definitions.skill_files import (
        DRAFTS as DRAFTS,
        OWN_SKILLS as OWN_SKILLS,
        SKILL_FILE as SKILL_FILE,
        SkillEntry as SkillEntry,
        SkillFile as SkillFile,
        SkillFolder as SkillFolder,
        SkillText as SkillText,
        granted_tools as granted_tools,
        list_bundle as list_bundle,
        project_skill_folders as project_skill_folders,
        read_skill as read_skill,
        read_skill_bundle as read_skill_bundle,
        read_skill_file as read_skill_file,
        read_skill_header as read_skill_header,
        split_skill as split_skill,
        user_skill_folders as user_skill_folders,
    )
    from retinue.definitions.sub_agent_files import read_protocol as read_protocol
    from retinue.definitions.workflow_files import (
        CHECKS as CHECKS,
        FoundWorkflow as FoundWorkflow,
        WorkflowCatalog as WorkflowCatalog,
        WorkflowKind as WorkflowKind,
        read_team as read_team,
        read_workflow as read_workflow,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent_catalog": "AgentCatalog AgentSources",
            "agent_fields": "NAME_PATTERN",
            "agent_files": "AgentDefinition PickedExecutor PickExecutor",
            "definition_files": "home_relative working_folders",
            "executor_support": "grants_in_worktree permissions_beyond_reading unsupported_fields",
            "problems": "DefinitionProblem MalformedDefinition did_you_mean",
            "project_checks": "find_checks",
            "skill_check": "check_skill",
            "skill_files": (
                "DRAFTS OWN_SKILLS SKILL_FILE SkillEntry SkillFile SkillFolder SkillText granted_tools "
                "list_bundle project_skill_folders read_skill read_skill_bundle read_skill_file "
                "read_skill_header split_skill user_skill_folders"
            ),
            "sub_agent_files": "read_protocol",
            "workflow_files": "CHECKS FoundWorkflow WorkflowCatalog WorkflowKind read_team read_workflow",
        },
    )
