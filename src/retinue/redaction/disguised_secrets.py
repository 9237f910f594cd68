"""Finds secrets that rules miss because of how they are written: joined, folded, in colour, in base64.

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
ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
JOINT_KEYWORDS = (
    *(
        f"{end}{sign}{begin}"
        for end in QUOTES
        for sign in ("+", " + ", ".", " . ", " & ")
        for begin in QUOTES
    ),
    *(f"{end}{sign}{line}" for end in QUOTES for sign in (" +", " .", " &", "\\", " \\") for line in "\r\n"),
    *(f": {sign}{chomp}{line}" for sign in ">|" for chomp in ("", "-", "+") for line in "\r\n"),
    *("\\\n", "\\\r\n", "\r", "\b", "\x1b", *ZERO_WIDTH),
)
OPEN_QUOTE = r"[fbru]{0,2}[\"'\x60]"
CONTROL_SEQUENCE = (
    r"\x1b\[[0-?]{0,40}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[78=>M]"
    r"|\xc2\xad|\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf"
)
"""Colours, links and other commands to a terminal, and characters without width (in UTF-8)."""
JOINT = (
    r"[\w+/=-]([\"'\x60][ \t]*(?:[+.&][ \t]*\\?(?:\r?\n[ \t]*)?|\\\r?\n[ \t]*)"
    rf"{OPEN_QUOTE})[\w+/=-]"
    r"|:[ \t]([>|][+-]?[ \t]*\r?\n[ \t]+)"
    r"|(\\\r?\n[ \t]*)"
    rf"|((?:{CONTROL_SEQUENCE}|\x08)+)"
    r"|[\w+/=-](\r+)[\w+/=-]"
)
"""What stands between two literals that are joined, between a name and a folded value in YAML, between the
lines of a command, and what is not visible: `grep --color ghp_` prints colours in the middle of a token."""
OVERSTRIKE = rf"((?:{CONTROL_SEQUENCE}|[^\n\x08]\x08)+)"
"""Letters that a terminal does not show, because a backspace follows and another letter covers them."""
WINDOW_BYTES = 400
"""Bytes before and after a joint that are searched, extended to the end of a word within the line."""
WORD_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+/=.~%-"
MAX_WORD_BYTES = 1 << 16

LONG_WORD = r"[A-Za-z0-9+/]{24,}={0,2}"
PRINTABLE = bytes((9, 10, 13, *range(32, 127)))


def find_between_joints(text: bytes, joint: RegexPattern, find: FindSecrets) -> Iterator[SecretSpan]:
    """Yield the secrets that are found in the text without its joints."""
    for joints in _group_near_joints(text, _find_joints(text, joint)):
        first, last = joints[0][0], joints[-1][1]
        start = max(text.rfind(b"\n", 0, first) + 1, min(first - WINDOW_BYTES, _start_of_word(text, first)))
        end = text.find(b"\n", last)
        end = min(len(text) if end < 0 else end + 1, max(last + WINDOW_BYTES, _end_of_word(text, last)))
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
        first, last = max(match.span(group) for group in range(1, joint.groups + 1))
        yield first, last
        at = last


def _group_near_joints(text: bytes, joints: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Group the joints that a secret may span: those in one word, and near ones in a line or two."""
    group: list[tuple[int, int]] = []
    for joint in joints:
        end = group[-1][1] if group else 0
        is_far = joint[0] - end > WINDOW_BYTES and _end_of_word(text, end) < joint[0]
        if group and (is_far or text.count(b"\n", end, joint[0]) > 1):
            yield group
            group = []
        group.append(joint)
    if group:
        yield group


def _start_of_word(text: bytes, at: int) -> int:
    """Return where the word begins that ends here."""
    return at - len(word := text[max(0, at - MAX_WORD_BYTES) : at]) + len(word.rstrip(WORD_BYTES))


def _end_of_word(text: bytes, at: int) -> int:
    """Return where the word ends that begins here."""
    return at + len(word := text[at : at + MAX_WORD_BYTES]) - len(word.lstrip(WORD_BYTES))


def decode_base64(word: bytes) -> bytes:
    """Return the text that a word encodes, or nothing if it encodes no text."""
    word = word.rstrip(b"=")
    decoded = base64.b64decode(word[: len(word) // 4 * 4])
    return b"" if decoded.translate(None, PRINTABLE) else decoded
