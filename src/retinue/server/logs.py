"""Log lines: to stderr alone, as text or JSON, redacted like everything that leaves. Knows nothing of MCP."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime


class _Formatter(logging.Formatter):
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


def start_logging(level: str, style: str, redact: Callable[[str], str]) -> None:
    """Replace whatever handlers there are: a library's own would bypass the redaction."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(style, redact))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
