"""Text that a UTF-8 file or database can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text with lone surrogates replaced: hosts can send them, UTF-8 cannot hold them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
