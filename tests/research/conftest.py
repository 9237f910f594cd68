"""A small project with something of each kind, and the ways to ask about it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.codebase import Policy
from retinue.config import LimitSettings, RuntimeSettings, Settings
from retinue.core import Root, Stop
from retinue.redaction import SecretRedactor
from retinue.research import Ledger, SourceFiles, check_question, search_scope
from retinue.research.role_context import Inquiry
from retinue.service import Service

FILES = {
    "src/shop/retry.py": '''
        """Trying again when a call fails."""

        import time

        from shop.settings import MAX_ATTEMPTS, settings


        class RetryPolicy:
            """How often and how long to wait; `should_retry` decides."""

            def should_retry(self, attempt: int) -> bool:
                return attempt < MAX_ATTEMPTS

            def delay(self, attempt: int) -> float:
                return settings.base_delay * 2**attempt


        def with_retry(call, policy):
            attempt = 0
            while True:
                try:
                    return call()
                except OSError:
                    attempt += 1
                    if not policy.should_retry(attempt):
                        raise
                    time.sleep(policy.delay(attempt))
    ''',
    "src/shop/settings.py": """
        MAX_ATTEMPTS = 3

        class Settings:
            base_delay = 0.1

        settings = Settings()
    """,
    "src/shop/payment.py": """
        from shop.retry import RetryPolicy, with_retry


        def charge_card(gateway, amount):
            return with_retry(lambda: gateway.charge(amount), RetryPolicy())
    """,
    "src/shop/stock.py": """
        from shop.retry import RetryPolicy, with_retry


        def reserve_items(warehouse, order):
            policy = RetryPolicy()
            for item in order.items:
                with_retry(lambda: warehouse.reserve(item.sku, item.count), policy)
            return order
    """,
    "src/shop/cli.py": """
        from shop.payment import charge_card


        def main():
            charge_card(connect(), 10)
    """,
    "src/web/client.ts": """
        export async function fetchPage(url: string): Promise<Page> {
          const response = await fetch(url);
          return parsePage(await response.text());
        }
    """,
    "tests/test_retry.py": """
        from shop.retry import RetryPolicy, with_retry


        def test_with_retry_gives_up():
            with_retry(fail, RetryPolicy())
    """,
    "docs/retry.md": """
        # Retries

        A failed call is tried again by `with_retry`.
    """,
    "config/shop.toml": """
        [retry]
        attempts = 3
    """,
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", FILES).resolve()


@pytest.fixture
def inquire(project: Path) -> Callable[..., Inquiry]:
    """A question of the project, as a role is given it."""

    def make(question: str, max_files: int = 50, max_bytes: int = 1_048_576) -> Inquiry:
        scope = search_scope([Root.at(project)], Policy(), (), Stop())
        sources = SourceFiles(scope.codebase, Ledger(max_files, max_bytes), SecretRedactor().redact)
        return Inquiry(check_question(question), scope, sources)

    return make


@pytest.fixture
def service(project: Path, own_folders: Path) -> Service:
    """What the surfaces talk to, for the project."""
    return service_for(project, data_dir=own_folders)


def service_for(*roots: Path, data_dir: Path, **settings: Any) -> Service:
    return Service(
        roots=tuple(map(Root.at, roots)),
        redactor=SecretRedactor(),
        settings=Settings(data_dir=data_dir, **settings),
    )


def limited(service: Service, **limits: int) -> Service:
    """The same with other limits; `deadline_ms` is one of them."""
    deadline = limits.pop("deadline_ms", 30_000)
    settings = replace(
        service.settings,
        limits=LimitSettings(**limits),
        runtime=RuntimeSettings(default_deadline_ms=deadline),
    )
    return replace(service, settings=settings)
