"""Runs the dashboard's web server on 127.0.0.1 until it is interrupted. Knows nothing of the pages."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from retinue.dashboard.access import LinkTokens
from retinue.dashboard.site import DashboardSite
from retinue.http_server import GuardedServer, guarded_config, listen
from retinue.service import Service

HOST = "127.0.0.1"
PORT_HINT = "another program may use the port; choose another port, or leave out --port"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINAL_BROWSERS = frozenset({"www-browser", "links", "elinks", "lynx", "w3m"})
"""Browsers of the `webbrowser` module that would take over the terminal."""


class _DashboardServer(GuardedServer):
    """A uvicorn server that ends the event streams of open pages when it shuts down."""

    def __init__(self, config: uvicorn.Config, site: DashboardSite) -> None:
        super().__init__(config)
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._site.end()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """End normally on a signal. Uvicorn would raise the signal again and cut the shutdown short."""
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


async def serve_dashboard(
    service: Service, port: int, print_link: Callable[[str], None], *, opens_browser: bool
) -> None:
    """Serve until interrupted. Calls `print_link` as soon as the server accepts connections."""
    listener = listen(HOST, port, PORT_HINT)
    tokens = LinkTokens()
    with listener:
        site, bound = DashboardSite(service), listener.getsockname()[1]
        app = site.app(tokens, bound, service.is_from_run)
        config = guarded_config(app, lifespan="off", timeout_graceful_shutdown=2)
        link = f"http://{HOST}:{bound}/?token="
        print_link(link + tokens.token)
        if opens_browser:  # in a daemon thread, because some browsers block until they are closed
            threading.Thread(target=_open_browser, args=(link + tokens.new_ticket(),), daemon=True).start()
        await _DashboardServer(config, site).serve(sockets=[listener])


def _open_browser(link: str) -> None:
    """Open the link in a graphical browser, if there is one."""
    with suppress(webbrowser.Error):  # the link is printed anyway
        browser = webbrowser.get()
        if getattr(browser, "name", "") not in TERMINAL_BROWSERS:
            browser.open(link)
