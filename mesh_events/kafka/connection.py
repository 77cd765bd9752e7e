"""Connections to Kafka: settings that are the same everywhere, and errors in our own words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from mesh_events.errors import InfrastructureError, LoginRefusedError, RefusedError
from mesh_events.kafka.transport import Tls, protocol

SCRAM = "SCRAM-SHA-512"
PARTITIONER = "murmur2_random"
"""Java's choice of a partition by a record's key, and librdkafka's name for it.

librdkafka's own default puts a key elsewhere: two writers of a topic would break a key's order.
"""
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


TOPIC_IDS = "mesh.topic.ids"
"""Setting of the mesh's consumers in Java that has the ids of their topics; see `known_topics`."""


def known_topics(ids: Mapping[str, str]) -> str:
    """The setting's value: with it a consumer fails where a topic was deleted and made again.

    Args:
        ids: topic -> its id in Kafka.
    """
    return ",".join(f"{topic}={one}" for topic, one in sorted(ids.items()))


@dataclass(frozen=True, slots=True)
class Connection:
    """Where and as whom to log in, and under TLS or not. The password never appears in a repr."""

    bootstrap_servers: str
    user: str
    password: str = field(repr=False)
    tls: Tls | None = None

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings for confluent-kafka; `more` uses underscores for dots."""
        return {
            **self.librdkafka(),
            # a broker that comes back is found again at once
            "reconnect.backoff.max.ms": 1000,
            # librdkafka prints to stderr by itself; what matters comes back as an error
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def librdkafka(self) -> dict[str, str]:
        """The login under the names of clients on librdkafka (C, Python, Go ...).

        Beside it the partitioner, so that these clients put a key where Java's clients do.
        """
        return {
            **self._common(),
            "partitioner": PARTITIONER,
            "sasl.username": self.user,
            "sasl.password": self.password,
            **(self.tls.librdkafka() if self.tls else {}),
        }

    def java(self) -> dict[str, str]:
        """The login under the names of Java clients, nothing more."""
        return {
            **self._common(),
            "sasl.jaas.config": jaas(self.user, self.password),
            **(self.tls.java() if self.tls else {}),
        }

    def _common(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": protocol(self.tls),
            "sasl.mechanism": SCRAM,
        }


def jaas(user: str, password: str) -> str:
    """How a Java client is told a SCRAM login."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password))
    return '{} required username="{}" password="{}";'.format(LOGIN_MODULE, *quoted)


_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_LOGIN = {KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION}  # noqa: SLF001


def is_login_refused(error: KafkaError) -> bool:
    """Whether Kafka does not take user and password."""
    return error.code() in _LOGIN


def is_denied(error: KafkaError) -> bool:
    """Whether an error says that the login has no right to it."""
    return error.code() in _DENIED


def translated(error: KafkaError, doing: str) -> Exception:
    """Our error for one of Kafka's; `doing` says what was tried, with names and place."""
    text = error.str()
    if is_denied(error):
        return RefusedError("kafka_denied", f"{doing}: Kafka refused ({error.name()})")
    if is_login_refused(error):
        return LoginRefusedError(f"{doing}: the login was refused; see user and password")
    return InfrastructureError(f"{doing}: {text} ({error.name()})", retriable=error.retriable())


@contextmanager
def translating(doing: str) -> Iterator[None]:
    """Raise our errors instead of Kafka's inside the block."""
    try:
        yield
    except KafkaException as error:
        raise translated(error.args[0], doing) from error


# For a name that is not UTF-8 the library sets an error and still returns a list, with a hole in
# it. Called through here, Python notices; a plain `message.headers()` in a busy loop segfaults.
_headers_of = methodcaller("headers")


def header_list(message: Message) -> list[tuple[str, bytes | None]]:
    """A message's headers in their order; ask once for each message.

    Kafka takes any bytes as a name. Where one is not UTF-8 the library can read none of them, and
    the record counts as one without headers.
    """
    try:
        return list(_headers_of(message) or [])
    except (UnicodeDecodeError, SystemError):
        return []


def plain_headers(message: Message) -> Mapping[str, bytes | None]:
    """A message's headers as a mapping; the last value of a name wins."""
    return dict(header_list(message))
