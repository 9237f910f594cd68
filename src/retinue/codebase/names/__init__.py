"""Finds the definitions that names of code mean, across files. Reads files only through `CodeFiles`."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.names.module_search import CodeFile as CodeFile, Target as Target
    from retinue.codebase.names.name_resolver import (
        NameResolver as NameResolver,
        ReceiverKind as ReceiverKind,
    )
else:
    __getattr__ = lazy_exports(
        __name__, {"module_search": "CodeFile Target", "name_resolver": "NameResolver ReceiverKind"}
    )
