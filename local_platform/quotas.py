"""Client quotas of a cluster: no login of a domain may starve the brokers.

Kafka slows a login down that goes beyond its quota, and refuses nothing. The quota of all users
holds for each of them by itself; the platform's and the mesh's own logins are taken out of it.
confluent-kafka cannot set quotas, so the one request is spoken by aiokafka's client.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Float64, Int16, Int32, Schema, String

from local_platform.errors import NotReadyError
from mesh_events.kafka import SCRAM, Connection
from mesh_events.transport import protocol

_TIMEOUT_S = 10
_WRITTEN, _READ = "producer_byte_rate", "consumer_byte_rate"
_REQUESTS = "request_percentage"
_UNBOUND = float(2**60)
OWN = ("admin", "registry", "connect", "mesh.governor", "mesh.operator")
"""Logins that serve every domain: slowing one of them would slow all."""


def ensure_quotas(login: Connection, bytes_s: int, request_percent: int) -> None:
    """Set the quota of all users, and take our own out of it; repeatable.

    Args:
        login: the super user's.
        bytes_s: what a login may write, and as much read, bytes per second and broker; 0 for no
            quota.
        request_percent: what a login may take of the brokers' threads' time, 100 for one thread;
            0 for no quota.

    Raises:
        NotReadyError: the cluster does not answer yet, or refuses.
    """
    wanted: dict[str | None, Mapping[str, float]] = {
        None: _quotas(float(bytes_s), float(request_percent)),
        **{user: _quotas(_UNBOUND, _UNBOUND) for user in OWN},
    }
    try:
        answer = asyncio.run(asyncio.wait_for(_ask(login, wanted), _TIMEOUT_S))
    except (KafkaError, TimeoutError, OSError) as fault:
        raise NotReadyError(f"quotas at {login.bootstrap_servers}: {fault!r}") from fault
    for code, text, *_ in answer.entries:
        if code:
            raise NotReadyError(f"quotas at {login.bootstrap_servers}: {text} (error {code})")


def _quotas(bytes_s: float, request_percent: float) -> dict[str, float]:
    return {_WRITTEN: bytes_s, _READ: bytes_s, _REQUESTS: request_percent}


async def _ask(login: Connection, wanted: Mapping[str | None, Mapping[str, float]]) -> Any:
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
        return await client.send(client.get_random_node(), _AlterQuotas(wanted))
    finally:
        await client.close()


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 49
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "entries",
            Array(
                ("error_code", Int16),
                ("error_message", String("utf-8")),
                ("entity", Array(("type", String("utf-8")), ("name", String("utf-8")))),
            ),
        ),
    )


class _AlterQuotasV0(RequestStruct):  # type: ignore[misc]
    """AlterClientQuotas (KIP-546): entity -> quotas to set or to remove."""

    API_KEY = 49
    API_VERSION = 0
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        (
            "entries",
            Array(
                ("entity", Array(("type", String("utf-8")), ("name", String("utf-8")))),
                (
                    "ops",
                    Array(("key", String("utf-8")), ("value", Float64), ("remove", Boolean)),
                ),
            ),
        ),
        ("validate_only", Boolean),
    )


class _AlterQuotas(Request[_AlterQuotasV0]):  # type: ignore[misc]
    API_KEY = 49

    def __init__(self, wanted: Mapping[str | None, Mapping[str, float]]) -> None:
        self._wanted = wanted

    def build(self, request_struct_class: type[_AlterQuotasV0]) -> _AlterQuotasV0:
        return request_struct_class(list(self._entries()), False)

    def _entries(self) -> Iterable[Any]:
        for user, quotas in self._wanted.items():
            # a user without a name is every user
            yield [("user", user)], [(key, value, value == 0) for key, value in quotas.items()]
