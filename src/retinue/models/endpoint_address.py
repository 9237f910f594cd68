"""Where a model's server is: one URL, checked before anything is sent there. Knows nothing of servers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from retinue.core import ConfigInvalid

EXAMPLE = "http://127.0.0.1:1234/v1"


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """Without a name, a password or a query: what is shown of it holds no secret."""

    root: str
    """Where the server's own endpoints are: `http://127.0.0.1:1234`."""
    key: str
    """The same for every way to write it: what shares a server shares its slots."""
    loopback: bool
    encrypted: bool

    @property
    def base(self) -> str:
        """Where the OpenAI-compatible endpoints are."""
        return self.root + "/v1"

    @classmethod
    def parse(cls, url: str) -> EndpointAddress:
        """Raises `ConfigInvalid`; the URL itself is not repeated, for it may hold a password."""
        try:
            parts = urlsplit(url.strip())
            port, host = parts.port, parts.hostname or ""
        except ValueError:
            raise _invalid("is not a URL") from None
        if parts.scheme not in ("http", "https") or not host:
            raise _invalid("is not an http or https URL")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise _invalid("has a name, a password, a query or a fragment in it")
        if any(not char.isprintable() or char.isspace() for char in parts.netloc + parts.path):
            raise _invalid("has a space or a control character in it")
        shown = f"[{host}]" if ":" in host else host
        place = f"{shown}:{port}" if port else shown
        path = parts.path.rstrip("/").removesuffix("/v1")
        loopback = _is_loopback(host)
        known_as = f"127.0.0.1:{port}" if loopback and port else place
        return cls(
            root=f"{parts.scheme}://{place}{path}",
            key=known_as + path,
            loopback=loopback,
            encrypted=parts.scheme == "https",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _invalid(reason: str) -> ConfigInvalid:
    return ConfigInvalid(
        f"the URL of a model's server {reason}",
        hint=f"write it as {EXAMPLE}; a key goes into the variable that `api_key_env` names",
    )
