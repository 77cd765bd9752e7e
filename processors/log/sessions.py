"""New connections for aiokafka before its sessions with brokers end.

A broker that asks for the login anew closes the connection of a client that does not answer, and
aiokafka cannot. A heartbeat that is lost so costs the worker the log: aiokafka then looks for the
group's coordinator, behind a fetch that waits for longer than the group does. So each connection
is replaced in good time, and closed once what it was asked is answered.
"""

import asyncio
from typing import Any

import structlog

log = structlog.get_logger(__name__)

_PATIENCE_S = 10.0
"""For an answer on the old connection; a fetch waits for 1.5 s."""


async def renew(client: Any, session_s: float) -> None:
    """Replace each connection of an `AIOKafkaClient` twice in a session, until cancelled.

    session_s: for how long brokers take a login to be good, seconds
    """
    while True:
        await asyncio.sleep(session_s / 2)
        for node, group in list(client._conns):  # noqa: SLF001 - it has no other way in
            # what the client began with is closed by itself
            if node != "bootstrap":
                try:
                    await _replace(client, node, group)
                except Exception as error:
                    log.exception("session_not_renewed", node=node, error=str(error))


async def _replace(client: Any, node: int, group: Any) -> None:
    connections = client._conns  # noqa: SLF001
    old = connections.pop((node, group), None)
    if old is None:
        return
    made = None
    try:
        made = await client._get_conn(node, group=group)  # noqa: SLF001
    finally:
        if made is None:
            # the client counts on an entry for each request under way
            connections.setdefault((node, group), old)
            log.warning("session_not_renewed", node=node, error="no connection")
    if made is None:
        return
    if answers := [answer for *_, answer in old._requests]:  # noqa: SLF001
        await asyncio.wait(answers, timeout=_PATIENCE_S)
    old.close()
