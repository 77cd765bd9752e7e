"""Asks a cluster for the mesh's own topics, and refuses what is less durable than it is to be."""

from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection, translated
from processors.own_topics.findings import Described, findings
from processors.own_topics.wanted import TOPICS, Durability

log = structlog.get_logger(__name__)
_TIMEOUT_S = 20


def verify(connection: Connection, wanted: Durability) -> None:
    """Log every finding; raise ConfigurationError for those that a mesh cannot run with.

    Args:
        connection: a login that may describe the topics and their settings.
        wanted: how durable they are to be.

    Raises:
        ConfigurationError: names each topic, setting, code and next step.
        MeshError: the cluster does not answer, or refuses.
    """
    found = list(findings(wanted, described(connection)))
    for one in found:
        log.warning("own_topic_differs", topic=one.topic, code=one.code.value, detail=one.detail)
    refused = [str(one) for one in found if one.refuses]
    if refused:
        raise ConfigurationError("; ".join(refused))


def described(connection: Connection) -> dict[str, Described]:
    """Topic -> how the cluster has it; without those that do not exist."""
    admin, names = AdminClient(connection.config()), list(TOPICS)
    place = f"describing the mesh's own topics as {connection.user}"
    described = admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_S)
    topics = {name: _result(described[name], place) for name in names}
    there = [name for name, topic in topics.items() if topic is not None]
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in there]
    asked = admin.describe_configs(resources, request_timeout=_TIMEOUT_S) if resources else {}
    configs = {resource.name: _result(answer, place) for resource, answer in asked.items()}
    return {
        name: Described(
            min(len(partition.replicas) for partition in topics[name].partitions),
            {setting: entry.value for setting, entry in configs[name].items()},
        )
        for name in there
        if configs[name] is not None
    }


def _result(answer: Any, doing: str) -> Any:
    """The answer's value; None for a topic that does not exist."""
    try:
        return answer.result(_TIMEOUT_S + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise translated(error.args[0], doing) from error
