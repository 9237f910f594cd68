"""Removes secrets from text before it leaves Retinue."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.redaction.redactor import SecretRedactor as SecretRedactor
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "redactor": "SecretRedactor",
        },
    )
