"""Clients for language models behind OpenAI-compatible servers such as LM Studio, Ollama and llama.cpp."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.models.connection import (
        ConnectionLost as ConnectionLost,
        ServerConnection as ServerConnection,
    )
    from retinue.models.endpoint_address import EndpointAddress as EndpointAddress
    from retinue.models.model_tiers import (
        SKILLS_FILE as SKILLS_FILE,
        TIERS as TIERS,
        EndpointPlan as EndpointPlan,
        ModelPlan as ModelPlan,
        Models as Models,
        TierPlan as TierPlan,
        endpoint_key as endpoint_key,
    )
    from retinue.models.probe import (
        SkillsFile as SkillsFile,
        probe_model as probe_model,
        skills_key as skills_key,
    )
    from retinue.models.server_info import (
        ModelServer as ModelServer,
        ResolvedModel as ResolvedModel,
        display_name as display_name,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "connection": "ConnectionLost ServerConnection",
            "endpoint_address": "EndpointAddress",
            "model_tiers": "SKILLS_FILE TIERS EndpointPlan ModelPlan Models TierPlan endpoint_key",
            "probe": "SkillsFile probe_model skills_key",
            "server_info": "ModelServer ResolvedModel display_name",
        },
    )
