"""Secrets out of text, before it leaves."""

from retinue.redaction.redact import SecretRedactor

__all__ = ["SecretRedactor"]
