"""Helpers for the tests of tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from retinue.codebase import Codebase
from retinue.core import Budget, BudgetKind, Json
from retinue.redaction import SecretRedactor
from retinue.runtime.meter import Meter, TreeAccount
from retinue.tools import Allows, FileTools, Toolbox, allow_all
from tests.codebase.file_support import create_root

ROOM = 1_000


class Bank:
    """Grants a meter everything that it requests."""

    def try_take(self, kind: BudgetKind, amount: int) -> bool:
        return True

    def give_back(self, kind: BudgetKind, amount: int) -> None: ...

    @property
    def account(self) -> TreeAccount:
        raise AssertionError("it never needs a refill")


def metered(**limits: int) -> Meter:
    return Meter(Budget(**limits), Bank())


def file_toolbox(
    folder: Path, files: Mapping[str, str | bytes], meter: Meter | None = None, allows: Allows = allow_all
) -> Toolbox:
    redactor = SecretRedactor()
    tools = FileTools(Codebase([create_root(folder, files)]), redactor, meter or metered())
    return Toolbox(tools.tools(), redactor, allows)


async def answer(box: Toolbox, name: str, tokens: int = ROOM, **arguments: Json) -> str:
    return (await box.call(name, arguments, tokens)).text


def spent(meter: Meter) -> Counter[str]:
    return Counter(meter.usage().as_dict())
