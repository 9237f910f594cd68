"""Markdown and YAML files become values. Knows nothing of how agents are performed or who asks for them."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.definitions.catalog import AgentSources as AgentSources, Catalog as Catalog
    from retinue.definitions.definition import AgentDefinition as AgentDefinition
    from retinue.definitions.places import home_relative as home_relative, working_folders as working_folders
    from retinue.definitions.problem import (
        DefinitionProblem as DefinitionProblem,
        MalformedDefinition as MalformedDefinition,
        did_you_mean as did_you_mean,
    )
    from retinue.definitions.project_checks import find_checks as find_checks
    from retinue.definitions.supported_fields import unsupported_fields as unsupported_fields
    from retinue.definitions.trust import permissions_beyond_reading as permissions_beyond_reading
    from retinue.definitions.workflow_catalog import (
        FoundWorkflow as FoundWorkflow,
        WorkflowCatalog as WorkflowCatalog,
        WorkflowKind as WorkflowKind,
    )
    from retinue.definitions.workflows import (
        CHECKS as CHECKS,
        read_team as read_team,
        read_workflow as read_workflow,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "catalog": "AgentSources Catalog",
            "definition": "AgentDefinition",
            "places": "home_relative working_folders",
            "problem": "DefinitionProblem MalformedDefinition did_you_mean",
            "project_checks": "find_checks",
            "supported_fields": "unsupported_fields",
            "trust": "permissions_beyond_reading",
            "workflow_catalog": "FoundWorkflow WorkflowCatalog WorkflowKind",
            "workflows": "CHECKS read_team read_workflow",
        },
    )
