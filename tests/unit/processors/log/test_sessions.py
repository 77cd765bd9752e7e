"""Connections are replaced before brokers end them, and nothing that was asked is lost."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

from processors.log.sessions import renew


class Connection:
    def __init__(self) -> None:
        self._requests: deque[tuple[int, int, asyncio.Future[str]]] = deque()
        self.begun, self.closed = asyncio.Event(), asyncio.Event()

    def close(self) -> None:
        self.closed.set()


def client(fresh: Connection | None, **found: Connection) -> Any:
    """As much of aiokafka's client as holds its connections."""
    connections: dict[Any, Connection] = {(1, group): one for group, one in found.items()}

    async def connect(node: int, *, group: str) -> Connection | None:
        await asyncio.sleep(0)
        if fresh is not None:
            connections[node, group] = fresh
            fresh.begun.set()
        return fresh

    return SimpleNamespace(_conns=connections, _get_conn=connect)


def test_an_old_connection_is_closed_when_what_it_was_asked_is_answered() -> None:
    async def scene() -> None:
        old, new = Connection(), Connection()
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        old._requests.append((1, 0, answer))
        found = client(new, heartbeats=old)
        renewing = asyncio.create_task(renew(found, 0.02))
        await asyncio.wait_for(new.begun.wait(), 5)
        assert found._conns[1, "heartbeats"] is new
        assert not old.closed.is_set(), "an answer is under way"
        answer.set_result("ok")
        await asyncio.wait_for(old.closed.wait(), 5)
        renewing.cancel()

    asyncio.run(scene())


def test_without_a_new_connection_the_old_one_stays() -> None:
    async def scene() -> None:
        old, tried = Connection(), asyncio.Event()
        found = client(None, heartbeats=old)
        connect = found._get_conn

        async def told(*args: Any, **options: Any) -> None:
            await connect(*args, **options)
            tried.set()

        found._get_conn = told
        renewing = asyncio.create_task(renew(found, 0.02))
        await asyncio.wait_for(tried.wait(), 5)
        await asyncio.sleep(0)
        assert found._conns[1, "heartbeats"] is old
        assert not old.closed.is_set()
        renewing.cancel()

    asyncio.run(scene())
