"""Secrets out of text, before it leaves."""

from retinue.redaction.redact import Redactor

__all__ = ["Redactor"]
