"""The one room that names concrete classes and puts them together. Everything else is given what it needs."""

from retinue.wiring.lifetimes import lifetime, recording, running
from retinue.wiring.parts import build_service, is_child, open_models, own_run, read_settings, redactor, token

__all__ = [
    "build_service",
    "is_child",
    "lifetime",
    "open_models",
    "own_run",
    "read_settings",
    "recording",
    "redactor",
    "running",
    "token",
]
