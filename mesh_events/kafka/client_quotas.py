"""Client quotas of a cluster, by user (KIP-546); confluent-kafka cannot set them.

Kafka delays the answers to a client that exceeds its quota, and refuses nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Float64, Int16, Int32, Schema, String

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.requests import reading, send

PRODUCED, CONSUMED = "producer_byte_rate", "consumer_byte_rate"
"""Bytes per second and broker."""
REQUESTS = "request_percentage"
"""Percent of the time of one broker thread."""
_TIMEOUT_S = 10


def set_quotas(login: Connection, quotas: Mapping[str | None, Mapping[str, float]]) -> None:
    """Set quotas of users; those that are not named stay as they are.

    Args:
        login: as whom; needs AlterConfigs on the cluster.
        quotas: user, None for all users that have no quota of their own -> quota -> value; a value
            of 0 removes the quota.

    Raises:
        InfrastructureError: the cluster does not answer, or refuses.
    """
    doing = f"setting quotas at {login.bootstrap_servers} as {login.user}"
    [answer] = send(login, [_AlterQuotas(quotas)], doing, _TIMEOUT_S)
    with reading(doing):
        for code, text, *_ in answer.entries:
            if code:
                raise InfrastructureError(f"{doing}: {text} (error {code})", retriable=False)


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
    """AlterClientQuotas: entity -> quotas to set or to remove."""

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

    def __init__(self, quotas: Mapping[str | None, Mapping[str, float]]) -> None:
        self._quotas = quotas

    def build(self, request_struct_class: type[_AlterQuotasV0]) -> _AlterQuotasV0:
        return request_struct_class(list(self._entries()), False)

    def _entries(self) -> Iterable[Any]:
        for user, quotas in self._quotas.items():
            # a user without a name is every user
            yield [("user", user)], [(key, value, value == 0) for key, value in quotas.items()]
