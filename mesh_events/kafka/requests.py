"""Requests to a broker that confluent-kafka cannot make, by aiokafka's client."""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import SCRAM, Connection
from mesh_events.kafka.transport import protocol

_BROKEN = (
    *(TypeError, AttributeError, ValueError, LookupError),
    *(AssertionError, EOFError, OverflowError, struct.error),
)
"""What the client raises where an answer is not as the protocol has it."""


def send(login: Connection, requests: Sequence[Any], doing: str, timeout_s: float) -> list[Any]:
    """Log in, send requests one after the other, and return their responses.

    Called where no event loop runs.

    Args:
        login: as whom.
        requests: of `aiokafka.protocol`; any broker answers them.
        doing: what is done, with names and place, for an error.
        timeout_s: for all of it, seconds.

    Raises:
        InfrastructureError: the cluster does not answer, or refuses the login.
    """
    try:
        with reading(doing):
            return asyncio.run(asyncio.wait_for(_send(login, requests), timeout_s))
    except (KafkaError, TimeoutError, OSError) as fault:
        raise InfrastructureError(f"{doing}: {fault!r}", retriable=True) from fault


@contextmanager
def reading(doing: str) -> Iterator[None]:
    """Raises InfrastructureError where what a broker answered is not as the protocol has it."""
    try:
        yield
    except _BROKEN as fault:
        kind = type(fault).__name__
        raise InfrastructureError(
            f"{doing}: the broker's answer cannot be read ({kind})", retriable=True
        ) from fault


async def _send(login: Connection, requests: Sequence[Any]) -> list[Any]:
    client = AIOKafkaClient(
        bootstrap_servers=login.bootstrap_servers,
        security_protocol=protocol(login.tls),
        ssl_context=login.tls.context() if login.tls else None,
        sasl_mechanism=SCRAM,
        sasl_plain_username=login.user,
        sasl_plain_password=login.password,
    )
    try:
        await client.bootstrap()
        return [await client.send(client.get_random_node(), one) for one in requests]
    finally:
        await client.close()
