"""The one module that names concrete classes and puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retinue.config.load import Loaded, load
from retinue.core.errors import ConfigInvalid
from retinue.core.root import Root
from retinue.redaction import Redactor
from retinue.service.service import Service
from retinue.store.token import new_token, token_of


def read_settings(flags: Mapping[str, Any]) -> Loaded:
    """The settings in force for this process; flags that were not given are None."""
    return load(flags={key: value for key, value in flags.items() if value not in (None, ())})


def build_service(loaded: Loaded) -> Service:
    settings = loaded.settings
    return Service(
        roots=_roots(loaded),
        redact=Redactor().redact,
        allow_host_roots=settings.allow_host_roots,
        settings=settings,
    )


def token(loaded: Loaded, *, new: bool = False) -> str:
    """The bearer token of the data folder."""
    return (new_token if new else token_of)(loaded.settings.data_dir)


def _roots(loaded: Loaded) -> tuple[Root, ...]:
    roots: list[Root] = []
    for path in loaded.settings.roots:
        try:
            root = Root.at(path)
        except ConfigInvalid as error:
            origin = loaded.origins.get("roots", "roots")
            raise ConfigInvalid(f"{origin}: roots: {error.message}", hint=error.hint) from None
        if root not in roots:
            roots.append(root)
    return tuple(roots)
