"""Builds the service from concrete classes. Everywhere else, code gets its collaborators passed in."""

from retinue.wiring.callers import called_by_run, current_run
from retinue.wiring.lifetimes import lifetime, recording, running
from retinue.wiring.parts import (
    access_token,
    build_service,
    open_models,
    read_settings,
    redactor,
)

__all__ = [
    "access_token",
    "build_service",
    "called_by_run",
    "current_run",
    "lifetime",
    "open_models",
    "read_settings",
    "recording",
    "redactor",
    "running",
]
