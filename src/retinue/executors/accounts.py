"""Names the account that an agent's runs spend, so that runs of a spent account can wait together.

A name is made of the executor, the address of the provider and a fingerprint of the key, or `login`. It never
contains a key: a fingerprint is 32 bits of a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from retinue.core import Agent, ConfigInvalid, ExecutorKind
from retinue.executors.process import expand_variables


def account_name(
    agent: Agent, kind: ExecutorKind, environment: Mapping[str, str], endpoint: tuple[str, str] | None = None
) -> str:
    """Return the name of the account of an agent's runs.

    `environment` is the server's own. `endpoint` is the URL and the key variable of the agent's model server.
    """
    if endpoint is not None:
        url, key_variable = endpoint
        return _join(kind.name, url, environment.get(key_variable, "") if key_variable else "", "")
    if not kind.account_variables:  # any program: nobody knows its account, so each agent has its own
        return f"{kind.name} {agent.name}"
    values = {name: _value(name, agent, environment) for name in kind.account_variables}
    url = next((value for name, value in values.items() if name.endswith("_URL")), "")
    key = next((value for name, value in values.items() if value and not name.endswith("_URL")), "")
    name = _join(kind.name, url, key, "login")
    return f"{name}, model {agent.model or 'default'}" if kind.quota_per_model else name


def _value(name: str, agent: Agent, environment: Mapping[str, str]) -> str:
    if name in agent.env:
        with suppress(ConfigInvalid):  # a variable is not set: the run fails and says so
            return expand_variables(name, agent.env[name], environment)
    return environment.get(name, "")


def _join(executor: str, url: str, key: str, without_key: str) -> str:
    address = urlsplit(url)
    where = f" at {address.hostname}{f':{address.port}' if address.port else ''}" if address.hostname else ""
    digest = hashlib.sha256(b"retinue account " + key.encode("utf-8", "replace")).hexdigest()[:8]
    who = f"key {digest}" if key else without_key
    return f"{executor}{where}{f', {who}' if who else ''}"
