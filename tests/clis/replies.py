"""What a scripted model says, before any API has put it into its own words."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from retinue.core import Json

_numbers = itertools.count(1)
INPUT_TOKENS = 11
OUTPUT_TOKENS = 7


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Use:
    """A call of one tool."""

    tool: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = field(default_factory=lambda: f"call_{next(_numbers)}")

    @property
    def json(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True)
class Fail:
    """The API refuses."""

    status: int
    message: str = "the stub refuses"


@dataclass(frozen=True)
class Hang:
    """The API says nothing until the test lets go."""

    released: threading.Event = field(default_factory=threading.Event)


Reply = Say | Use | Fail | Hang
