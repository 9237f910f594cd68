"""Texts of models, programs and files, which say what they like, made fit to be shown to a person."""

from __future__ import annotations

import re
from typing import TypeVar, cast

T = TypeVar("T")

_SEQUENCE = re.compile(r"\x1b(?:\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def strip_control_characters(said: T) -> T:
    """A text, or all texts of an answer, without what would command a terminal or reorder what is read."""
    if isinstance(said, str):
        return cast(T, _CONTROL.sub("", _SEQUENCE.sub("", said.replace("\r\n", "\n"))))
    if isinstance(said, dict):
        return cast(
            T,
            {
                strip_control_characters(key): strip_control_characters(value)
                for key, value in cast(dict[str, object], said).items()
            },
        )
    if isinstance(said, list | tuple):
        return cast(T, [strip_control_characters(each) for each in cast(list[object], said)])
    return said


def name_invisible_characters(text: str) -> str:
    """The text with a name in place of every letter that cannot be seen, or that reorders those around it.

    Whoever allows a command must see all of it: what is left out of sight is allowed too (P7).
    """
    return _UNSEEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
