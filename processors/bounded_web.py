"""Faust's web server with a bound on its connections: anybody on the machine can open them."""

import asyncio
from typing import Any

from aiohttp.web import AppRunner, Server
from aiohttp.web_protocol import RequestHandler
from faust.web.drivers.aiohttp import Web

MOST_CONNECTIONS = 256
"""Far more than ask for readiness and metrics; each is an open file."""
IDLE_S = 30
"""Seconds after which a connection without a request is closed."""


class BoundedWeb(Web):  # type: ignore[misc]
    """Closes the connection that was opened first when one more comes than the bound."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        self._runner = AppRunner(self.web_app, access_log=None, keepalive_timeout=IDLE_S)

    async def start_server(self) -> None:
        """Start the server, with its bound before it listens."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - for the type checker; it was set up above
        _bound(server)
        await self._create_site().start()


def _bound(server: Server) -> None:
    """Close the oldest connection whenever there are more than `MOST_CONNECTIONS`."""
    accept = server.connection_made
    opened: dict[RequestHandler, asyncio.Transport] = {}
    lost = server.connection_lost

    def made(handler: RequestHandler, transport: asyncio.Transport) -> None:
        accept(handler, transport)
        opened[handler] = transport
        if len(opened) > MOST_CONNECTIONS:
            opened.pop(next(iter(opened))).abort()

    def gone(handler: RequestHandler, exc: BaseException | None = None) -> None:
        opened.pop(handler, None)
        lost(handler, exc)

    server.connection_made = made  # type: ignore[method-assign]
    server.connection_lost = gone  # type: ignore[method-assign]
