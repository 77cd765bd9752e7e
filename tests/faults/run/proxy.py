"""A small TCP proxy that is slow, or resets whoever connects, as it is told."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self


class Proxy:
    """Passes connections on to a port of this machine.

    delay_s: every answer waits so long before its first byte and between pieces.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self.delay_s, self.connections = 0.0, 0
        self._cuts, self._open = False, set[asyncio.StreamWriter]()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the proxy does not listen"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        """From now on whoever is connected, or connects, is cut off at once."""
        self._cuts = True
        self._loop.call_soon_threadsafe(self._cut_off)

    def mend(self) -> None:
        """Pass connections on again."""
        self._cuts = False

    def _cut_off(self) -> None:
        for writer in self._open:
            _reset(writer)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, family=socket.AF_INET)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._cuts:
            _reset(answer)
            return
        self._open.add(answer)
        try:
            with suppress(OSError, asyncio.CancelledError):
                far, ask = await asyncio.open_connection("127.0.0.1", self._target)
                await asyncio.gather(_pass(near, ask, _at_once), _pass(far, answer, self._late))
        finally:
            self._open.discard(answer)

    async def _late(self) -> None:
        await asyncio.sleep(self.delay_s)


async def _at_once() -> None:
    return


async def _pass(
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
    before: Callable[[], Awaitable[None]],
) -> None:
    with suppress(OSError):
        while piece := await source.read(65_536):
            await before()
            target.write(piece)
            await target.drain()
    target.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close without a goodbye: the other side sees a reset."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
