"""The user's settings as the plan by which models are found."""

from __future__ import annotations

from retinue.config import Settings
from retinue.models import TIERS, EndpointPlan, ModelPlan, TierPlan


def plan_models(settings: Settings) -> ModelPlan:
    given = settings.models
    tiers = {name: getattr(given.tiers, name) for name in TIERS}
    return ModelPlan(
        endpoint=given.endpoint,
        model=given.model,
        endpoints={
            name: EndpointPlan(each.url, each.api_key_env, each.slots, each.context)
            for name, each in given.endpoints.items()
        },
        tiers={name: TierPlan(tier.endpoint, tier.model) for name, tier in tiers.items()},
        patience_s=given.patience_s,
    )
