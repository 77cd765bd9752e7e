"""The worker's web server with more connections than it has room for."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import faust
import pytest
from structlog.testing import capture_logs

from processors.worker import bounded_web
from processors.worker.bounded_web import MOST_CONNECTIONS, BoundedWeb


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


def flood(port: int, head: bytes, part: bytes) -> int:
    """How many parts a server takes before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), 5) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(head)
        for sent in range(100_000):
            try:
                one.sendall(part)
            except ConnectionError:
                return sent
        return 100_000


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"POST /ready HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        (b"GET /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", b"a" * 1000),
        (b"GET /ready HTTP/1.1\r\nHost: x\r\n", b"a: b\r\n"),
        (b"GET /", b"r"),
        (b"", b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n" * 100),
    ],
    ids=["chunks", "long-body", "headers", "path", "requests"],
)
def test_a_connection_that_sends_without_an_end_is_closed(
    head: bytes, part: bytes, tmp_path: Path
) -> None:
    async def story() -> tuple[int, str]:
        async with served(tmp_path) as port:
            sent = await asyncio.to_thread(flood, port, head, part)
            return sent, await answer(port)

    sent, text = asyncio.run(story())

    assert text == "yes"
    # what the kernel has taken meanwhile is never read
    assert sent < 50_000


def test_a_connection_that_asks_now_and_then_stays_open(tmp_path: Path) -> None:
    async def story() -> list[int]:
        connector = aiohttp.TCPConnector()
        async with served(tmp_path) as port, aiohttp.ClientSession(connector=connector) as session:
            found = []
            for _ in range(20):
                async with session.get(f"http://127.0.0.1:{port}/ready") as response:
                    await response.read()
                    assert response.connection is None
                    found.append(response.status)
            assert sum(map(len, connector._conns.values())) == 1
            return found

    assert asyncio.run(story()) == [200] * 20


def test_malformed_requests_are_one_short_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def sent(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n: no name\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return answer

    async def story() -> list[bytes]:
        async with served(tmp_path) as port:
            return [await sent(port) for _ in range(5)]

    with capture_logs() as lines:
        answers = asyncio.run(story())

    assert all(one.startswith(b"HTTP/1.0 400") for one in answers), answers
    assert [one["event"] for one in lines] == ["request_malformed"]
    assert not [one for one in caplog.records if one.exc_info]


def test_a_fault_of_a_page_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    fault = ValueError("a fault of ours")
    bounded_web._server_log().error("Error handling request", exc_info=fault)

    assert [one.exc_info is not None for one in caplog.records] == [True]
