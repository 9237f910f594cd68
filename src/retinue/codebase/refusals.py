"""Why a file was not opened: errors that name no path outside the roots and carry a reason to count by."""

from __future__ import annotations

import errno

from retinue.core import LimitExceeded, PathDenied, PathMissing


def hidden(path: str) -> PathDenied:
    """Said before the file is looked for, so it does not tell whether there is one."""
    return PathDenied(
        f"the policy hides {path!r}",
        hint="secrets are hidden by default; the policy's `allow` makes exceptions",
        reason="denied",
    )


def outside(path: str) -> PathDenied:
    return PathDenied(f"{path!r} leads outside its root", reason="denied")


def not_a_file(path: str) -> PathDenied:
    return PathDenied(
        f"{path!r} is not a regular file", hint="folders can be listed; pipes and devices are never read"
    )


def binary(path: str) -> PathDenied:
    return PathDenied(f"{path!r} is binary", hint="only text can be read", reason="binary")


def too_large(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded(
        "file bytes", size, limit, hint="raise the policy's max_file_bytes, or look at a smaller file"
    )


def missing(path: str) -> PathMissing:
    return PathMissing(f"nothing readable at {path!r}", hint="list the folder to see what is there")


def from_os(error: OSError, path: str) -> PathDenied | PathMissing:
    """Only the error's number is passed on: its text may hold the absolute path."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return PathDenied(f"no permission to read {path!r}", reason="unreadable")
    return missing(path)
