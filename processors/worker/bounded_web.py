"""Faust's web server with bounds: anybody on the machine can open connections to it.

It shares a thread with the worker, so that what others send must not take that thread's time.
"""

import asyncio
import logging
import time
from typing import Any

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import AppRunner, Server
from aiohttp.web_protocol import RequestHandler
from faust.web.drivers.aiohttp import Web

log = structlog.get_logger(__name__)
MOST_CONNECTIONS = 256
"""Far more than ask for readiness and metrics; each is an open file."""
IDLE_S = 30
"""Seconds after which a connection without a request is closed."""
MOST_PARTS, PARTS_PER_S = 32, 8
"""Of what a connection sends, at once and in the long run; one more closes it.

A part is what arrives together, of 2 KiB at most: a request for a page is one.
"""
_PART_BYTES = 2048
TOLD_EVERY_S = 60
"""Seconds between two lines of the log about malformed requests."""


class BoundedWeb(Web):  # type: ignore[misc]
    """Closes the connection that was opened first when one more comes than the bound."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        # no page reads a body: a connection with one is closed once it was answered
        self._runner = AppRunner(
            self.web_app,
            access_log=None,
            keepalive_timeout=IDLE_S,
            lingering_time=0,
            auto_decompress=False,
            logger=_server_log(),
        )

    async def start_server(self) -> None:
        """Start the server, with its bound before it listens."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - for the type checker; it was set up above
        _bound(server)
        await self._create_site().start()


class _Malformed(logging.Filter):
    """Has one short line a minute for requests that are no HTTP; they need no login."""

    def __init__(self) -> None:
        super().__init__()
        self._next, self._passed_over = 0.0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, HttpProcessingError):
            return True
        if time.monotonic() < self._next:
            self._passed_over += 1
            return False
        # nothing of what was sent
        log.warning("request_malformed", fault=type(fault).__name__, passed_over=self._passed_over)
        self._next, self._passed_over = time.monotonic() + TOLD_EVERY_S, 0
        return False


def _server_log() -> logging.Logger:
    """aiohttp's, where faults of the pages themselves keep their tracebacks."""
    found = logging.Logger("aiohttp.server")  # noqa: LOG001 - its filter is this server's alone
    found.parent = logging.getLogger("aiohttp.server")
    found.addFilter(_Malformed())
    return found


class _Bounded(asyncio.Protocol):
    """Hands on to a connection's handler what comes, as long as that is within the bounds."""

    def __init__(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        self._handler, self._transport = handler, transport
        self._left, self._since = float(MOST_PARTS), time.monotonic()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._left = min(MOST_PARTS, self._left + (now - self._since) * PARTS_PER_S)
        self._since = now
        self._left -= 1 + len(data) // _PART_BYTES
        if self._left < 0:
            self._transport.abort()
        else:
            self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


def _bound(server: Server) -> None:
    """Bound each connection, and close the oldest one when there are more than the bound."""
    accept = server.connection_made
    opened: dict[RequestHandler, asyncio.Transport] = {}
    lost = server.connection_lost

    def made(handler: RequestHandler, transport: asyncio.Transport) -> None:
        accept(handler, transport)
        transport.set_protocol(_Bounded(handler, transport))
        opened[handler] = transport
        if len(opened) > MOST_CONNECTIONS:
            opened.pop(next(iter(opened))).abort()

    def gone(handler: RequestHandler, exc: BaseException | None = None) -> None:
        opened.pop(handler, None)
        lost(handler, exc)

    server.connection_made = made  # type: ignore[method-assign]
    server.connection_lost = gone  # type: ignore[method-assign]
