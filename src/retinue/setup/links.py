"""One-click links that add Retinue to a host. Opens nothing and knows nothing of files."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from retinue.core import InvalidInput
from retinue.setup.entry import ServerEntry
from retinue.setup.hosts import HOSTS, SERVER_NAME, Host


def add_link(host: Host, entry: ServerEntry) -> str:
    """The link that makes the host offer to add us, as its makers document it."""
    if host.link is None:
        with_links = ", ".join(other.name for other in HOSTS if other.link)
        raise InvalidInput(
            f"{host.title} has no add link", hint=f"hosts with one: {with_links}; others: leave out --link"
        )
    config = host.filled(entry)
    if host.link == "whole-entry":
        return f"{host.link_base}?{quote(_compact({'name': SERVER_NAME, **config}), safe='')}"
    encoded = base64.b64encode(_compact(config).encode()).decode("ascii")
    return f"{host.link_base}?name={SERVER_NAME}&config={quote(encoded, safe='')}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
