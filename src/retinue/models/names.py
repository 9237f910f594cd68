"""Names of models: what is shown of one, and whether two mean the same. Knows nothing of servers."""

from __future__ import annotations

import re

_FILE = re.compile(r"^(?:/|[A-Za-z]:[\\/]|\\\\)")
_INSTANCE = re.compile(r":(?:latest|\d+)$")
MAX_LENGTH = 200


def display_name(name: str) -> str:
    """As it may be told to others: llama.cpp names a model by the path of its file."""
    if _FILE.match(name):
        name = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return "".join(char for char in name if char.isprintable())[:MAX_LENGTH]


def same_model(one: str, other: str) -> bool:
    """Whether they name the same model: servers add an owner, a file's ending, `:latest` or an instance."""
    return _core(one) == _core(other)


def _core(name: str) -> str:
    last = re.split(r"[\\/]", name.strip().lower())[-1]
    return _INSTANCE.sub("", last.removesuffix(".gguf"))
