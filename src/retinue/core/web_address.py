"""Finds out which host a URL leads to, as the clients that open it would.

Clients disagree about backslashes, user names, percent signs and invisible characters. A URL with any of them
has no certain host. Knows nothing of permissions.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

_CERTAIN_URL = re.compile(
    r"https?://(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:/[!-\[\]-~]*|[?#][!-?A-\[\]-~]*)?",
    re.IGNORECASE,
)
"""A URL that every client reads in the same way."""
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61", "."))
_BETWEEN_HOSTS = re.compile(r"[^\w.\-:\[\]]+")
_IGNORED_MARK = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that domain names ignore, beside characters of the category `Cf`."""
_IPV4_PART = re.compile(r"0x[0-9a-f]*|[0-9]+")
MAX_CHARACTERS = 8_192


def certain_host(url: str) -> str | None:
    """Return the host that every client opens for the URL, in lower case; None if clients may differ."""
    found = _CERTAIN_URL.fullmatch(url) if len(url) <= MAX_CHARACTERS else None
    return None if found is None else canonical_host(found["host"])


def possible_hosts(url: str) -> frozenset[str]:
    """Return every host that some client may open for the URL."""
    certain = certain_host(url)
    if certain is not None:
        return frozenset({certain})
    readings = {url, _percent_decoded(url)}
    readings |= {re.sub(r"[\x00-\x20\x7f]", "", reading) for reading in readings}
    readings |= {_without_invisible(unicodedata.normalize("NFKC", one.translate(_DOTS))) for one in readings}
    hosts: set[str] = set()
    for reading in readings:
        for part in _BETWEEN_HOSTS.split(reading):
            address = part.strip("[]")
            name, _, _ = part.partition(":")
            hosts |= {canonical_host(each) for each in (name, address, part.rpartition(":")[2]) if each}
    return frozenset(hosts)


@lru_cache(maxsize=1024)
def canonical_host(host: str) -> str:
    """Return the one spelling of a host: lower case, Punycode, no dot at the end, addresses in full."""
    name = host.translate(_DOTS).rstrip(".").strip("[]")
    if not name.isascii():
        name = _without_invisible(unicodedata.normalize("NFKC", name))
        name = ".".join(map(_punycode, name.casefold().split(".")))
    name = name.lower()
    if ":" in name:
        try:
            address = IPv6Address(name.partition("%")[0])
        except ValueError:
            return name
        return str(address.ipv4_mapped or address)
    return _ipv4(name) or name


def _percent_decoded(text: str) -> str:
    """Decode `%61` to `a`, twice, because some clients do."""
    for _ in range(2):
        text = re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)
    return text


def _without_invisible(text: str) -> str:
    """Return the text without the characters that domain names ignore, such as soft hyphens."""
    return "".join(
        letter for letter in text if unicodedata.category(letter) != "Cf" and not _IGNORED_MARK.match(letter)
    )


def _punycode(label: str) -> str:
    try:
        return label.encode("idna").decode()
    except UnicodeError:
        return label


def _ipv4(name: str) -> str | None:
    """Return the address of a name such as `127.1`, `0x7f000001` or `2130706433`; None for other names."""
    parts = name.split(".")
    if len(parts) > 4 or not all(map(_IPV4_PART.fullmatch, parts)):
        return None
    try:
        numbers = [_number(part) for part in parts]
        value = numbers[-1] + sum(number << (24 - 8 * place) for place, number in enumerate(numbers[:-1]))
        return str(IPv4Address(value))
    except ValueError:
        return None


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and part != "0" else 10)


def is_host_in(host: str, domain: str) -> bool:
    """Whether a canonical host is the domain, or below it."""
    wanted = canonical_host(domain.removeprefix("*.").removeprefix("."))
    return bool(wanted) and (wanted == "*" or host == wanted or host.endswith(f".{wanted}"))
