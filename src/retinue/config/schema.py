"""The settings as a flat table of dotted keys, and the check of one value against its row.

Knows nothing of files or the environment.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from retinue.config.settings import Settings


class Wrong(ValueError):
    """A value that does not fit; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    """Dotted, in snake_case: `limits.max_files_read`."""
    kind: Any
    bounds: Mapping[str, Any]

    @property
    def allowed(self) -> str:
        """What may stand here, in words."""
        if choices := self.choices:
            many = "a list of: " if self.is_list else "one of: "
            return many + ", ".join(choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            words = ["a whole number"]
            for name, word in (("at_least", "of at least"), ("at_most", "of at most")):
                if self.bounds.get(name) is not None:
                    words.append(f"{word} {self.bounds[name]}")
            return " ".join(words)
        if self.is_list:
            return "a list of paths" if self.item is Path else "a list of strings"
        return "a path" if self.kind is Path else "a string"

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def item(self) -> Any:
        return get_args(self.kind)[0] if self.is_list else self.kind

    @property
    def choices(self) -> tuple[str, ...]:
        literal = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        return literal or self.bounds.get("one_of", ())

    @property
    def user_only(self) -> bool:
        return bool(self.bounds.get("user_only"))

    def check(self, value: object) -> Any:
        """The value as the settings hold it, or `Wrong`."""
        if self.is_list:
            if not isinstance(value, list | tuple):
                raise Wrong(self.allowed)
            return tuple(self._item(item) for item in cast("list[object]", value))
        return self._item(value)

    def from_text(self, text: str, separator: str) -> Any:
        """The same from an environment variable, where everything is text."""
        if self.is_list:
            parts = text.split(separator if self.item is Path else ",")
            return self.check([part.strip() for part in parts if part.strip()])
        if self.kind is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if text.strip().lower() not in words:
                raise Wrong(self.allowed)
            return words[text.strip().lower()]
        if self.kind is int:
            digits = text.strip().replace("_", "")
            if not re.fullmatch(r"-?\d{1,18}", digits):
                raise Wrong(self.allowed)
            return self.check(int(digits))
        return self.check(text)

    def _item(self, value: object) -> Any:
        if self.kind is bool:
            if not isinstance(value, bool):
                raise Wrong(self.allowed)
            return value
        if self.kind is int:
            low, high = self.bounds.get("at_least"), self.bounds.get("at_most")
            if not isinstance(value, int) or isinstance(value, bool):
                raise Wrong(self.allowed)
            if (low is not None and value < low) or (high is not None and value > high):
                raise Wrong(self.allowed)
            return value
        if not isinstance(value, str) or "\0" in value or (self.choices and value not in self.choices):
            raise Wrong(self.allowed)
        if self.item is Path:
            if not value:
                raise Wrong(self.allowed)
            return Path(value).expanduser()
        return value


def _rows(kind: type, prefix: str = "") -> Iterator[Row]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[field.name]):
            yield from _rows(hints[field.name], f"{prefix}{field.name}.")
        else:
            yield Row(prefix + field.name, hints[field.name], field.metadata)


@cache
def rows() -> Mapping[str, Row]:
    return {row.key: row for row in _rows(Settings)}


@cache
def sections() -> frozenset[str]:
    return frozenset(key.rpartition(".")[0] for key in rows() if "." in key)


def snake(key: str) -> str:
    """`limits.maxFilesRead` and `limits.max-files-read` as `limits.max_files_read`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def nearest(key: str) -> str | None:
    """The valid key that the wrong one most looks like."""
    whole = difflib.get_close_matches(key, rows(), n=1, cutoff=0.6)
    if whole:
        return whole[0]
    leaf = key.rpartition(".")[2]
    leaves = {known.rpartition(".")[2]: known for known in rows()}
    close = difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.6)
    return leaves[close[0]] if close else None


def build(values: Mapping[str, Any]) -> Settings:
    """Settings from checked values; what is not given keeps its default."""

    def make(kind: type[Any], prefix: str) -> Any:
        hints = get_type_hints(kind)
        given: dict[str, Any] = {}
        for field in dataclasses.fields(kind):
            key = prefix + field.name
            if dataclasses.is_dataclass(hints[field.name]):
                given[field.name] = make(hints[field.name], key + ".")
            elif key in values:
                given[field.name] = values[key]
        return kind(**given)

    maker: Callable[[type[Settings], str], Settings] = make
    return maker(Settings, "")


def value_of(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value
