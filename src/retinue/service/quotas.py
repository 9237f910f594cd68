"""The verbs of accounts whose usage limit is spent: list them, let one be used again."""

from __future__ import annotations

from typing import Any

from retinue.core import InvalidInput, Redactor, clip
from retinue.runtime import quota_view
from retinue.store import Store


def spent_quotas(store: Store, redactor: Redactor) -> list[dict[str, Any]]:
    """The accounts whose usage limit is spent, with the time when it ends."""
    return redactor.redact_value([quota_view(each) for each in store.quotas.list()])


async def clear_quota(store: Store, account: str | None) -> dict[str, Any]:
    """Let a spent account be used again at once; all of them if no account is named."""
    spent = [each.account for each in store.quotas.list()]
    if account is not None and account not in spent:
        hint = "spent are: " + "; ".join(spent) if spent else "no account is spent"
        raise InvalidInput(f"{clip(account, 200)!r} is not a spent account", hint=hint)
    cleared = spent if account is None else [account]
    for each in cleared:
        await store.write(store.quotas.clear, each)
    return {"cleared": cleared}
