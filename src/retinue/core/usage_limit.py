"""Recognises a spent usage limit in what providers and coding CLIs say, and reads when it ends.

The words are those of Claude Code, Codex, Gemini and the APIs behind them. Knows nothing of runs. A text that
only discusses limits must not count, so callers pass error messages, never the answer of a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

MAX_WAIT_S = 35 * 86_400.0
"""The longest quota is monthly. A later reset is not believed."""
MAX_TEXT = 4_000
"""Characters of a text that are searched."""

_LIMIT = re.compile(
    r"""usage\ limit\ (?:has\ been\ )?reached
    | you['’]ve\ (?:hit|reached)\ your\ (?:[\w.-]+\ ){0,3}limit\b
    | (?:5-hour|five-hour|session|daily|weekly|monthly|opus|sonnet)\ limit\ reached
    | (?:hit|reached)\ your\ (?:[\w.-]+\ ){0,3}quota\ limit
    | exhausted\ your\ (?:[\w.-]+\ ){0,2}(?:quota|capacity)
    | exceeded\ your\ current\ quota
    | quota\ exceeded
    | out\ of\ extra\ usage
    | credit\ balance\ is\ too\ low
    | \b(?:usage_limit_reached|insufficient_quota|usage_not_included)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_BANNER_START = re.compile(
    r"[\W_]*(?:(?:api\s+)?error:\s*)?(?:claude\s+(?:ai\s+)?|you\s+(?:have\s+)?(?=e))?", re.IGNORECASE
)
"""What may stand before the words of a limit in a line that is nothing but the notice."""

_EPOCH = re.compile(r"(?:\||resets?_?at\W{1,4})(\d{10})\b", re.IGNORECASE)
_IN_SECONDS = re.compile(r"(?:resets?_in_seconds|retry_after)\W{1,4}(\d+)", re.IGNORECASE)
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:ms|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_DURATION = re.compile(
    r"(?:(?:again|retry|resets?)\s+(?:in|after|within)|retryDelay\W{1,4})\s*"
    rf"((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)
_UNIT_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(
    r"(?:again|resets?)\s+(?:at\s+|on\s+)?"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})"
    r"(?:st|nd|rd|th)?,?\s*(?P<year>\d{4})?,?\s*(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>am|pm)?"
    r"(?:\s*\((?P<zone>[\w/+-]+)\)|\s+(?P<offset>(?:GMT|UTC)(?:[+-]\d{1,2}(?::?\d\d)?)?))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class UsageLimit:
    """A spent usage limit."""

    reset_at: float | None
    """When it ends, in seconds since 1970; None if nobody says."""


def find_usage_limit(text: str, now: float) -> UsageLimit | None:
    """Return the limit that an error message reports; None if it reports none."""
    searched = text[:MAX_TEXT]
    found = _LIMIT.search(searched)
    return None if found is None else UsageLimit(read_reset(searched[found.start() :], now))


def find_limit_notice(lines: Iterable[str], now: float) -> UsageLimit | None:
    """Return the limit that a line of output reports, if the line is nothing but the notice.

    For programs whose output may also talk about limits.
    """
    for line in lines:
        text = line[:MAX_TEXT].strip()
        begin = _BANNER_START.match(text)
        if _LIMIT.match(text, begin.end() if begin else 0):
            return UsageLimit(read_reset(text, now))
    return None


def read_reset(text: str, now: float) -> float | None:
    """Return when the text says that a limit ends, in seconds since 1970."""
    for read in (_read_number, _read_duration, _read_timestamp, _read_clock):
        reset_at = read(text, now)
        if reset_at is not None:
            return reset_at if now < reset_at <= now + MAX_WAIT_S else None
    return None


def _read_number(text: str, now: float) -> float | None:
    if found := _EPOCH.search(text):
        return float(found[1])
    return now + float(found[1]) if (found := _IN_SECONDS.search(text)) else None


def _read_duration(text: str, now: float) -> float | None:
    """Read `in 5 days 22 hours 11 minutes`, `after 21h53m56s`, `within 24h`."""
    found = _DURATION.search(text)
    if found is None:
        return None
    return now + sum(float(amount) * _UNIT_S[unit.lower()] for amount, unit in _PART.findall(found[1]))


def _read_timestamp(text: str, now: float) -> float | None:
    found = _TIMESTAMP.search(text)
    if found is None:
        return None
    zone = (found[3] or "").replace("Z", "+00:00")
    try:
        when = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
    except ValueError:
        return None
    return when.timestamp()


def _read_clock(text: str, now: float) -> float | None:
    """Read `3pm (America/Santiago)`, `10:57 PM GMT-3`, `Oct 9, 5pm`, `Jul 5th, 2026 8:19 PM`."""
    found = _CLOCK.search(text)
    if found is None or not (found["half"] or found["minute"]):
        return None
    zone = _time_zone(found["zone"], found["offset"])
    today = datetime.fromtimestamp(now, zone)
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    try:
        when = today.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            when = when.replace(year=int(found["year"] or today.year), month=month, day=int(found["day"]))
            if not found["year"] and when < today - timedelta(days=180):
                when = when.replace(year=today.year + 1)
        elif when <= today:
            when += timedelta(days=1)
    except ValueError:
        return None
    return when.timestamp()


def _time_zone(name: str | None, offset: str | None) -> tzinfo | None:
    """Return a zone by its name, such as `Asia/Shanghai`, or by its offset; None for this machine's."""
    if name and name.upper() not in ("UTC", "GMT"):
        from zoneinfo import ZoneInfo  # only needed after a limit was hit

        try:
            return ZoneInfo(name)
        except (ValueError, OSError, KeyError):  # unknown here, or a machine without a table of zones
            return None
    if name or offset:
        number = re.search(r"([+-])(\d{1,2}):?(\d\d)?", offset or "")
        if number is None:
            return UTC
        away = timedelta(hours=int(number[2]), minutes=int(number[3] or 0))
        return timezone(-away if number[1] == "-" else away)
    return None
