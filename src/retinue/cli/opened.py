"""The service for the length of one command: the data folder is opened, used and closed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from retinue.core import RetinueError

if TYPE_CHECKING:
    from retinue.service import Service

T = TypeVar("T")


def with_service(use: Callable[[Service], Awaitable[T]], flags: Mapping[str, Any] | None = None) -> T:
    """`flags` are settings that the command line gives."""
    import asyncio  # imported here because `--help` must not wait for it

    from retinue import wiring

    async def inside() -> T | RetinueError:
        loaded = wiring.read_settings(flags or {})
        async with wiring.running(
            loaded, wiring.build_service(loaded, at_hand=not wiring.is_child())
        ) as service:
            try:
                return await use(service)
            except RetinueError as error:  # raised through task groups it would arrive wrapped in groups
                return error

    done = asyncio.run(inside())
    if isinstance(done, RetinueError):
        raise done
    return done
