"""Builds the service from concrete classes. Everywhere else, code gets its collaborators passed in."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.wiring.callers import called_by_run as called_by_run, current_run as current_run
    from retinue.wiring.completions import (
        agent_names as agent_names,
        run_ids as run_ids,
        setting_names as setting_names,
        workflow_names as workflow_names,
    )
    from retinue.wiring.lifetimes import lifetime as lifetime, recording as recording, running as running
    from retinue.wiring.model_trial import try_model as try_model
    from retinue.wiring.parts import (
        access_token as access_token,
        build_service as build_service,
        open_models as open_models,
        project_memory as project_memory,
    )
    from retinue.wiring.start import (
        follow_host as follow_host,
        known_answers as known_answers,
        read_settings as read_settings,
        redactor as redactor,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "callers": "called_by_run current_run",
            "completions": "agent_names run_ids setting_names workflow_names",
            "lifetimes": "lifetime recording running",
            "model_trial": "try_model",
            "parts": "access_token build_service open_models project_memory",
            "start": "follow_host known_answers read_settings redactor",
        },
    )
