"""The worker's web server with more connections than it has room for."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import faust
import pytest

from processors import bounded_web
from processors.bounded_web import MOST_CONNECTIONS, BoundedWeb


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[int]:
    """The port of a server with the page /ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    app = faust.App("test", web_bind="127.0.0.1", web_port=port, datadir=str(folder))
    app.web = BoundedWeb(app)

    @app.page("/ready")
    async def ready(web: BoundedWeb, request: object) -> object:
        return web.text("yes")

    app.web.init_server()
    await app.web.start_server()
    try:
        yield port
    finally:
        await app.web.stop_server()


def opened(count: int, port: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port), 5) for _ in range(count)]


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def answer(port: int) -> str:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
        session.get(f"http://127.0.0.1:{port}/ready") as response,
    ):
        return await response.text()


def test_a_page_is_answered_beside_very_many_idle_connections(tmp_path: Path) -> None:
    async def story() -> tuple[str, int]:
        async with served(tmp_path) as port:
            held = await asyncio.to_thread(opened, 3 * MOST_CONNECTIONS, port)
            text = await answer(port)
            still_open = sum(not is_closed(one) for one in held)
            for one in held:
                one.close()
            return text, still_open

    text, still_open = asyncio.run(story())

    assert text == "yes"
    assert MOST_CONNECTIONS // 2 < still_open <= MOST_CONNECTIONS


def test_a_connection_without_a_request_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_web, "IDLE_S", 0.2)

    async def story() -> bytes:
        async with served(tmp_path) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            found = await asyncio.wait_for(reader.read(1), 20)
            writer.close()
            return found

    assert asyncio.run(story()) == b""
