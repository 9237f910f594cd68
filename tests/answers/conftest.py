"""A small project with a file of each kind, and the services that answer questions about it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.answers import (
    FilesRead,
    ResearchRequest,
    SourceFiles,
    open_scope,
    read_question,
)
from retinue.answers.role_context import RoleContext
from retinue.codebase import Policy
from retinue.config import Settings
from retinue.config.settings import LimitSettings, RuntimeSettings
from retinue.core import RoleResult, Root, Stop
from retinue.redaction import SecretRedactor
from retinue.service import Service
from retinue.store import Reports

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


ContextFor = Callable[[str], RoleContext]
ContextIn = Callable[[Path, str], RoleContext]


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
def context_in() -> ContextIn:
    """Return what a role gets to answer a question about a folder."""

    def make(folder: Path, question: str) -> RoleContext:
        scope = open_scope([Root.at(folder)], Policy(), (), Stop())
        sources = SourceFiles(scope.codebase, FilesRead(), SecretRedactor().redact)
        return RoleContext(
            ResearchRequest(question=question),
            read_question(question),
            scope,
            sources,
        )

    return make


@pytest.fixture
def context_for(project: Path, context_in: ContextIn) -> ContextFor:
    """Return what a role gets to answer a question about the project."""
    return lambda question: context_in(project, question)


def findings_starting(result: RoleResult, beginning: str) -> list[str]:
    return [finding for finding in result.key_findings if finding.startswith(beginning)]


@pytest.fixture
def service(project: Path, own_folders: Path) -> Service:
    """A service for the project, without recorded runs."""
    return service_for(project, data_dir=own_folders)


def service_for(*roots: Path, data_dir: Path, **settings: Any) -> Service:
    return Service(
        roots=tuple(map(Root.at, roots)),
        redactor=SecretRedactor(),
        settings=Settings(data_dir=data_dir, **settings),
        open_reports=lambda: Reports(data_dir),
    )


def limited(service: Service, **limits: int) -> Service:
    """Return the service with other limits; `deadline_ms` is one of them."""
    deadline = limits.pop("deadline_ms", 30_000)
    settings = replace(
        service.settings,
        limits=LimitSettings(**limits),
        runtime=RuntimeSettings(default_deadline_ms=deadline),
    )
    return replace(service, settings=settings)
