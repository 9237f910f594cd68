"""Serves the dashboard on this machine alone, until interrupted. Knows nothing of what is on its pages."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from retinue.core import Unavailable
from retinue.dashboard.access import LinkTokens
from retinue.dashboard.site import DashboardSite
from retinue.service import Service

HOST = "127.0.0.1"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINAL_BROWSERS = frozenset({"www-browser", "links", "elinks", "lynx", "w3m"})
"""Browsers that Python knows and that would take the terminal from us."""


class _DashboardServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, site: DashboardSite) -> None:
        super().__init__(config)
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._site.end()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Either is the ordinary end. The library would raise it again, and cut short what we close."""
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


async def serve_dashboard(
    service: Service, port: int, tell: Callable[[str], None], *, opens_browser: bool
) -> None:
    """`tell` is given the link once it works."""
    listener, keys = _listen(port), LinkTokens()
    with listener:
        site, bound = DashboardSite(service), listener.getsockname()[1]
        config = uvicorn.Config(
            site.app(keys, bound),
            log_config=None,
            access_log=False,  # it would hold the token
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        link = f"http://{HOST}:{bound}/?token="
        tell(link + keys.token)
        if opens_browser:  # in a thread that nobody waits for: some browsers go on until they are closed
            threading.Thread(target=_open_browser, args=(link + keys.ticket(),), daemon=True).start()
        await _DashboardServer(config, site).serve(sockets=[listener])


def _open_browser(link: str) -> None:
    with suppress(webbrowser.Error):  # the link is printed
        browser = webbrowser.get()
        if getattr(browser, "name", "") not in TERMINAL_BROWSERS:
            browser.open(link)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {HOST}:{port}: {error.strerror}",
            hint="another program may have the port: choose another one, or leave out --port for any",
        ) from None
