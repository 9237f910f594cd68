"""Finds secrets that rules miss because of how they are written: joined, folded, in colour or in base64.

Brings the text into the form that the rules know, and maps back what they find there. Knows no rules.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from retinue.redaction.regex_engine import RegexPattern
from retinue.redaction.secret_rule import SecretSpan

FindSecrets = Callable[[bytes], Iterable[SecretSpan]]

QUOTES = "\"'`"
JOINT_KEYWORDS = (
    *(
        f"{end}{sign}{begin}"
        for end in QUOTES
        for sign in ("+", " + ", ".", " . ", " & ")
        for begin in QUOTES
    ),
    *(f"{end}{sign}{line}" for end in QUOTES for sign in (" +", " .", " &", "\\", " \\") for line in "\r\n"),
    *(f": {sign}{chomp}{line}" for sign in ">|" for chomp in ("", "-", "+") for line in "\r\n"),
    "\x1b[",
)
OPEN_QUOTE = r"[fbru]{0,2}[\"'\x60]"
JOINT = (
    r"[\w+/=-]([\"'\x60][ \t]*(?:[+.&][ \t]*\\?(?:\r?\n[ \t]*)?|\\\r?\n[ \t]*)"
    rf"{OPEN_QUOTE})[\w+/=-]"
    r"|:[ \t]([>|][+-]?[ \t]*\r?\n[ \t]+)"
    r"|((?:\x1b\[[0-?]{0,40}[@-~])+)"
)
"""What stands between two literals that are joined, or between a name and a folded value in YAML, and the
colours of a terminal: `grep --color ghp_` prints one in the middle of a token."""
WINDOW_BYTES = 400
"""How far before and behind a joint the text is searched: the rest of the line, at most."""

LONG_WORD = r"[A-Za-z0-9+/]{24,}={0,2}"
PRINTABLE = bytes((9, 10, 13, *range(32, 127)))


def find_in_joined_literals(text: bytes, joint: RegexPattern, find: FindSecrets) -> Iterator[SecretSpan]:
    """Yield the secrets that are found if joined literals are read as one, without colours."""
    for joints in _group_near_joints(_find_joints(text, joint)):
        start = max(text.rfind(b"\n", 0, joints[0][0]) + 1, joints[0][0] - WINDOW_BYTES)
        end = text.find(b"\n", joints[-1][1])
        end = min(len(text) if end < 0 else end + 1, joints[-1][1] + WINDOW_BYTES)
        pieces: list[bytes] = []
        offsets, positions = [0], [start]
        at, length = start, 0
        for first, last in joints:
            pieces.append(text[at:first])
            length += first - at
            offsets.append(length)
            positions.append(last)
            at = last
        pieces.append(text[at:end])

        def original(offset: int, offsets: list[int] = offsets, positions: list[int] = positions) -> int:
            piece = bisect_right(offsets, offset) - 1
            return positions[piece] + offset - offsets[piece]

        for found in find(b"".join(pieces)):
            yield SecretSpan(original(found.start), original(found.end - 1) + 1, found.kind)


def _find_joints(text: bytes, joint: RegexPattern) -> Iterator[tuple[int, int]]:
    at = 0
    while match := joint.search(text, at):
        first, last = max(match.span(group) for group in (1, 2, 3))
        yield first, last
        at = last


def _group_near_joints(joints: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Group the joints that are so close that a secret may span them."""
    group: list[tuple[int, int]] = []
    for joint in joints:
        if group and joint[0] - group[-1][1] > WINDOW_BYTES:
            yield group
            group = []
        group.append(joint)
    if group:
        yield group


def decode_base64(word: bytes) -> bytes:
    """Return the text that a word encodes, or nothing if it encodes no text."""
    word = word.rstrip(b"=")
    decoded = base64.b64decode(word[: len(word) // 4 * 4])
    return b"" if decoded.translate(None, PRINTABLE) else decoded
