"""Prepares the process of a server: logging, garbage collection, threads. Knows nothing of MCP.

This module imports nothing slow, so that `disable_gc` can run before the MCP library is loaded.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

GC_THRESHOLD = 10_000
"""Allocations between two collections of the youngest generation. Python's default of 700 collects about ten
times during one run."""

SWITCH_S = 0.0005
"""How long a thread may compute before another one gets the interpreter. Python's default is 5 ms."""

REPEAT_WINDOW_S = 60.0
SAME_MESSAGES = 5
"""How often the same message is logged within the window."""
LOGGER_MESSAGES = 200
"""How many messages of one logger are logged within the window."""


def disable_gc() -> None:
    """Turn the garbage collector off. Call it before libraries are loaded.

    Loading libraries creates no garbage, and collecting takes a tenth of the start-up time.
    """
    gc.disable()


def skip_pydantic_plugins() -> None:
    """Keep pydantic from loading plugins. Call it before pydantic is loaded.

    To find plugins, it reads the metadata of all installed packages, and a plugin sees every message.
    """
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"


def freeze_gc() -> None:
    """Exclude all existing objects from garbage collection and turn the collector on again.

    Call it when everything is loaded. Scanning the loaded modules takes 5 of the 20 ms of CPU time that a run
    of a coding CLI costs the server.
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    gc.enable()


def switch_threads_often() -> None:
    """Let the event loop go on soon while worker threads compute.

    The loop gives the interpreter away with every system call, and then waits for it as long as the other
    threads may compute. With Python's default, three threads that search code make a call of `ping` take
    284 to 359 ms (p99), with this one 89 to 95 ms, and the searches take no longer.
    """
    sys.setswitchinterval(SWITCH_S)


def start_logging(level: str, style: str, redact: Callable[[str], str]) -> None:
    """Log to stderr as text or JSON, redacted.

    Replaces all existing handlers, because those of a library would bypass the redaction.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_RedactingFormatter(style, redact))
    handler.addFilter(_RepeatFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


class _RepeatFilter(logging.Filter):
    """Counts messages that repeat instead of logging each: the log stays small whatever a client does.

    Logs the first few equal messages of a minute, then the 10th, the 100th and so on. All messages of one
    logger together are limited in the same way.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[object] = Counter()
        self._since = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._since > REPEAT_WINDOW_S:
            self._counts.clear()
            self._since = now
        error = record.exc_info[0] if record.exc_info else None
        same = (record.name, record.levelno, str(record.msg), error)
        for key, limit in ((same, SAME_MESSAGES), (record.name, LOGGER_MESSAGES)):
            self._counts[key] += 1
            if self._counts[key] > limit and not _is_power_of_ten(self._counts[key]):
                return False
        if (count := self._counts[same]) > SAME_MESSAGES:
            record.msg = f"{record.getMessage()} (repeated: {count} times within a minute)"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"


class _RedactingFormatter(logging.Formatter):
    def __init__(self, style: str, redact: Callable[[str], str]) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._json = style == "json"
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        if not self._json:
            return self._redact(super().format(record))
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = self._redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
