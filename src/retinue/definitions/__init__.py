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
            "sub_agent_files": "read_protocol",
            "workflow_files": "CHECKS FoundWorkflow WorkflowCatalog WorkflowKind read_team read_workflow",
        },
    )
