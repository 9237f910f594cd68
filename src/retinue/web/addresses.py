"""Decides which addresses of the web may be opened: by their spelling, their host and where it leads.

Only http and https, only addresses that every client reads alike, and only machines on the public internet.
The user may open single private hosts by name. Knows nothing of requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urljoin, urlsplit

from retinue.core import AddressDenied, certain_host, clip, is_host_in

MAX_ADDRESS_CHARS = 2_000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOWEST_FREE_PORT = 1024
"""Public hosts are opened on port 80, 443, and from this one on: the others belong to other protocols."""
_PRIVATE_NAMES = (
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "home.arpa",
    "localdomain",
    "svc",
    "onion",
    "test",
    "invalid",
)
"""Domains that exist only inside networks, or nowhere. They are refused without asking a name server."""
_CLOUD_ADDRESSES = frozenset({IPv4Address("168.63.129.16"), IPv4Address("100.100.100.200")})
"""Addresses in public ranges at which clouds serve a machine's own secrets."""
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv6Network("3fff::/20"))
"""Ranges for protocols and examples that `ipaddress` calls public, depending on its version."""
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_NON_ASCII = re.compile(r"[^\x21-\x7e]")

IpAddress = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address that may be opened, without its fragment."""

    url: str
    scheme: str
    host: str
    """In its one spelling, as rules compare it."""
    port: int
    is_private: bool = False
    """Whether the user opened this host although it may be private."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def root(self) -> str:
        """The address of the host itself, such as `https://docs.python.org`."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{shown}" + (
            "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRules:
    """The hosts that the user allows."""

    allow_hosts: tuple[str, ...] = ()
    """Domains; if there are any, no others are opened."""
    deny_hosts: tuple[str, ...] = ()
    """Domains that are never opened."""
    allow_private: tuple[str, ...] = ()
    """Single hosts, or `host:port`, that are opened although they are in a private network."""

    def check(self, url: str) -> WebAddress:
        """Return the address, or raise `AddressDenied` with the reason."""
        written = url.strip().partition("#")[0]
        shown = clip(written, 200)
        if len(written) > MAX_ADDRESS_CHARS:
            raise AddressDenied(
                f"an address of {len(written)} characters is too long", hint="use a shorter one"
            )
        if not written.lower().startswith(("http://", "https://")):
            raise AddressDenied(
                f"{shown} is not an address of the web", hint="only http and https are opened"
            )
        scheme, _, rest = written.partition("://")
        scheme = scheme.lower()
        host_part, slash, path = rest.partition("/")
        # search results have letters of all languages in their paths
        path = _NON_ASCII.sub(lambda found: quote(found[0], errors="replace"), path)
        written = f"{scheme}://{host_part}{slash}{path}"
        if "@" in host_part:
            raise AddressDenied(
                f"an address with a user name is not opened: {clip(host_part.rpartition('@')[2], 100)}"
            )
        host = certain_host(written)
        if host is None:
            raise AddressDenied(
                f"{shown} is not opened: programs may read different hosts in it",
                hint="write the host in plain letters, Punycode for other alphabets",
            )
        parts = urlsplit(written)
        try:
            port = _DEFAULT_PORTS[scheme] if parts.port is None else parts.port
        except ValueError:
            raise AddressDenied(f"{shown} has a wrong port") from None
        private = self._opens_private(host, port)
        if not private:
            _refuse_private_name(host)
            if port not in _DEFAULT_PORTS.values() and port < _LOWEST_FREE_PORT:
                raise AddressDenied(
                    f"{host} is not opened on port {port}",
                    hint="only ports 80, 443 and from 1024 on are opened",
                )
        if any(is_host_in(host, domain) for domain in self.deny_hosts):
            raise AddressDenied(f"{host} is denied", hint="`network.deny_hosts` in the settings lists it")
        if self.allow_hosts and not private and not any(is_host_in(host, each) for each in self.allow_hosts):
            raise AddressDenied(
                f"{host} is not among the allowed hosts",
                hint="`network.allow_hosts` in the settings lists them",
            )
        return WebAddress(written, scheme, host, port, private)

    def follow(self, before: WebAddress, location: str) -> WebAddress:
        """Check where a redirect leads. Raises `AddressDenied`."""
        after = self.check_link(before, location)
        if before.scheme == "https" and after.scheme == "http":
            raise AddressDenied(f"{before.host} leads from https to http at {after.host}")
        return after

    def check_link(self, before: WebAddress, location: str) -> WebAddress:
        """Check an address that a page or an answer names. Raises `AddressDenied`."""
        try:
            joined = urljoin(before.url, location)
        except ValueError:
            raise AddressDenied(f"{before.host} leads to an address that cannot be read") from None
        after = self.check(joined)
        if after.is_private and after.origin != before.origin and not before.is_private:
            raise AddressDenied(
                f"{before.host} leads to the private host {after.host}",
                hint="a page of the web may not choose what is opened in your network",
            )
        return after

    def choose_ip(self, address: WebAddress, resolved: Iterable[str]) -> list[str]:
        """Return the addresses to connect to. Raises `AddressDenied` if any of them is not public."""
        found = [str(each).partition("%")[0] for each in resolved]
        if not found:
            raise AddressDenied(f"{address.host} has no address")
        if not address.is_private:
            for each in found:
                if not is_public(each):
                    raise AddressDenied(
                        f"{address.host} leads into a private network",
                        hint="`network.allow_private` in your own settings file opens a single host",
                    )
        return found

    def _opens_private(self, host: str, port: int) -> bool:
        for entry in self.allow_private:
            name, colon, number = entry.rpartition(":")
            if colon and number.isdigit() and (name.count(":") == 0 or name.startswith("[")):
                if certain_host(f"http://{name}/") == host and int(number) == port:
                    return True
            elif (
                certain_host(
                    f"http://{f'[{entry}]' if entry.count(':') > 1 and '[' not in entry else entry}/"
                )
                == host
            ):
                return True
        return False


def _refuse_private_name(host: str) -> None:
    try:
        literal = ip_address(host)
    except ValueError:
        literal = None
    if literal is not None:
        if not is_public(host):
            raise AddressDenied(
                f"{host} is in a private network",
                hint="`network.allow_private` in your own settings file opens a single host",
            )
    elif "." not in host or any(is_host_in(host, name) for name in _PRIVATE_NAMES):
        raise AddressDenied(
            f"{host} is a name inside a network",
            hint="`network.allow_private` in your own settings file opens a single host",
        )


def is_public(written: str) -> bool:
    """Return whether an IP address belongs to a machine on the public internet, by every way to read it."""
    try:
        address = ip_address(written.partition("%")[0])
    except ValueError:
        return False
    return all(map(_is_public, (address, *_embedded(address))))


def _is_public(address: IpAddress) -> bool:
    special = (
        address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
        or address.is_reserved or address.is_unspecified or address in _CLOUD_ADDRESSES
        or any(address in network for network in _SPECIAL)
    )  # fmt: skip
    if isinstance(address, IPv6Address) and (address in _NAT64 or address.ipv4_mapped or address.sixtofour):
        special = False  # the address inside decides
    elif isinstance(address, IPv6Address):
        special = special or address.is_site_local or not address.is_global
    else:
        special = special or not address.is_global
    return not special


def _embedded(address: IpAddress) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address leads to: mapped, 6to4, Teredo, NAT64, compatible."""
    if isinstance(address, IPv4Address):
        return []
    low = IPv4Address(int(address) & 0xFFFFFFFF)
    found = [each for each in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())) if each]
    if address in _NAT64 or address in _COMPATIBLE:
        found.append(low)
    if (int(address) >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):  # ISATAP
        found.append(low)
    return found
