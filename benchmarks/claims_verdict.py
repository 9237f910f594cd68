"""The verdict on one claim, for `benchmarks.claims`."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Verdict(NamedTuple):
    """Whether a claim is true."""

    kind: Literal["true", "false", "unverifiable"]
    why: str = ""
