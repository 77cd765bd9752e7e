"""What a login sees of a Kafka cluster: its topics and their offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from mesh_events.errors import InfrastructureError, InvalidValueError, MeshError
from mesh_events.kafka.connection import Connection, translating
from mesh_events.spelling import asked
from self_service.cli.framework.exits import NotFoundError

if TYPE_CHECKING:
    from processors.clusters.kafka import ClusterAdmin, KafkaAdmin

_TIMEOUT_S = 10
_BAD_INPUT = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
    }
)
"""What Kafka answers where the caller and not the server is at fault."""


def admin(login: Connection) -> "KafkaAdmin":
    """Topics and rights of a cluster, as far as the login may."""
    from processors.clusters.kafka import KafkaAdmin

    return KafkaAdmin(f"of {login.user}", login)


def create_topic(
    cluster: "ClusterAdmin", name: str, partitions: int, config: Mapping[str, str]
) -> None:
    """Make a topic; raises InvalidValueError where Kafka does not take a name, number or setting.

    Other errors are those of `ClusterAdmin.create_topic`.
    """
    try:
        cluster.create_topic(name, partitions, config)
    except InfrastructureError as error:
        cause = error.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].code() in _BAD_INPUT:
            raise InvalidValueError(f"topic {name}: {cause.args[0].str()}") from error
        raise


def topics(login: Connection) -> dict[str, int]:
    """Topic -> number of partitions, for every topic that the login may describe."""
    from confluent_kafka.admin import AdminClient

    with translating(f"listing topics at {login.bootstrap_servers} as {login.user}"):
        found = AdminClient(login.config()).list_topics(timeout=_TIMEOUT_S)
    return {name: len(topic.partitions) for name, topic in found.topics.items()}


def unknown_topic(login: Connection, topic: str, doing: str = "") -> NotFoundError:
    """Says that a topic is not there, and which one may be meant."""
    try:
        known = [*topics(login)]
    except MeshError:
        known = []
    return NotFoundError(
        f"{doing}there is no topic {topic} at {login.bootstrap_servers}: {asked(topic, known)}"
        f"see `sdm topic list`, or create it with `sdm topic create {topic}`"
    )


def require_topic(login: Connection, topic: str, *, to_write: bool = False) -> None:
    """Raise NotFoundError with the next step where there is no such topic, at once.

    A producer would wait for it for half a minute. RefusedError where the login may not see it;
    with `to_write`, for what is done before the first record, also where it may not write to it.
    """
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AclOperation, AdminClient

    with translating(f"writing {topic} at {login.bootstrap_servers} as {login.user}"):
        # held until the answer is here: a collected client fails what it was asked
        client = AdminClient(login.config())
        asked = client.describe_topics(
            TopicCollection([topic]),
            include_authorized_operations=to_write,
            request_timeout=_TIMEOUT_S,
        )
        try:
            found = asked[topic].result(_TIMEOUT_S + 1)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            raise unknown_topic(login, topic) from error
        if to_write and AclOperation.WRITE not in (found.authorized_operations or ()):
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def offsets(login: Connection, topic: str) -> dict[int, tuple[int, int]]:
    """Partition -> (first offset, end offset) of a topic."""
    from confluent_kafka import IsolationLevel
    from confluent_kafka.admin import OffsetSpec

    every = IsolationLevel.READ_UNCOMMITTED
    return _pairs(login, topic, (OffsetSpec.earliest(), every), (OffsetSpec.latest(), every))


OpenTransactions = Mapping[int, tuple[int, int]]
"""Partition -> (last stable offset, end offset), where an open transaction keeps them apart."""


def open_transactions(login: Connection, topic: str) -> OpenTransactions:
    """Where transactions are open in a topic: readers of committed records get no further.

    Raises NotFoundError where there is no such topic.
    """
    from confluent_kafka import IsolationLevel
    from confluent_kafka.admin import OffsetSpec

    latest = OffsetSpec.latest()
    found = _pairs(
        login,
        topic,
        # the whole end first: what is written in between is no open transaction
        (latest, IsolationLevel.READ_UNCOMMITTED),
        (latest, IsolationLevel.READ_COMMITTED),
    )
    if not found:
        raise unknown_topic(login, topic)
    return {number: (first, end) for number, (end, first) in found.items() if first < end}


def _pairs(login: Connection, topic: str, *asked: Any) -> dict[int, tuple[int, int]]:
    """Partition -> its offset for both pairs of a specification and an isolation level."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    doing = f"reading offsets of {topic} at {login.bootstrap_servers} as {login.user}"
    with translating(doing):
        client = AdminClient(login.config())
        partitions = client.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        found: dict[int, list[int]] = {number: [] for number in partitions}
        for spec, isolation in asked:
            answers = client.list_offsets(
                {TopicPartition(topic, number): spec for number in partitions},
                isolation_level=isolation,
                request_timeout=_TIMEOUT_S,
            )
            for place, answer in answers.items():
                found[place.partition].append(answer.result(_TIMEOUT_S).offset)
    return {number: (pair[0], pair[1]) for number, pair in found.items()}
