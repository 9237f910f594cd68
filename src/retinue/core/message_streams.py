"""Ends of an MCP connection that are built on another end: what they all do in the same way.

The MCP library works with anyio streams, so these do too. Knows nothing of messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

T = TypeVar("T")


class Closable(Protocol):
    """Something with an end."""

    async def aclose(self) -> None: ...


class StreamEnd:
    """One end of a connection. Closes the end that it is built on."""

    def __init__(self, inner: Closable) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class ReadingEnd(StreamEnd, ABC, Generic[T]):
    """An end that yields what `receive` returns, until the stream ends."""

    @property
    def last_context(self) -> Any:
        """The context of the last message, which the MCP library looks for."""
        return getattr(self._inner, "last_context", None)

    @abstractmethod
    async def receive(self) -> T:
        """Return the next message. Raises `anyio.EndOfStream` at the end."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        import anyio  # values need no event loop

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
