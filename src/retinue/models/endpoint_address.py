"""Parses and checks the URL of a model server. Knows nothing of the servers themselves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from retinue.core import ConfigInvalid

EXAMPLE = "http://127.0.0.1:1234/v1"


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The address of a server. It contains no user name, password or query, so it is safe to show."""

    root: str
    """Base of the server's own API: `http://127.0.0.1:1234`."""
    key: str
    """Identifies the server: different spellings of its URL have the same key."""
    loopback: bool
    encrypted: bool

    @property
    def base(self) -> str:
        """Base of the OpenAI-compatible API."""
        return self.root + "/v1"

    @classmethod
    def parse(cls, url: str) -> EndpointAddress:
        """Parse a URL. Raises `ConfigInvalid`, which does not repeat the URL: it may contain a password."""
        try:
            parts = urlsplit(url.strip())
            port, host = parts.port, parts.hostname or ""
        except ValueError:
            raise _invalid_url("is not a URL") from None
        if parts.scheme not in ("http", "https") or not host:
            raise _invalid_url("is not an http or https URL")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise _invalid_url("contains a user name, a password, a query or a fragment")
        if any(not char.isprintable() or char.isspace() for char in parts.netloc + parts.path):
            raise _invalid_url("contains a space or a control character")
        bracketed = f"[{host}]" if ":" in host else host
        authority = f"{bracketed}:{port}" if port else bracketed
        path = parts.path.rstrip("/").removesuffix("/v1")
        loopback = _is_loopback(host)
        canonical = f"127.0.0.1:{port}" if loopback and port else authority
        return cls(
            root=f"{parts.scheme}://{authority}{path}",
            key=canonical + path,
            loopback=loopback,
            encrypted=parts.scheme == "https",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _invalid_url(reason: str) -> ConfigInvalid:
    """Build the error for a URL that cannot be used."""
    return ConfigInvalid(
        f"the URL of a model server {reason}",
        hint=f"write it like {EXAMPLE}; put a key into the variable that `api_key_env` names",
    )
