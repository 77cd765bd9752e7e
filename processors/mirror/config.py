"""A link's copy as a MirrorSourceConnector: its name, its config, and what it needs to be allowed.

Pure. Of what MirrorMaker does beside copying records nothing is used: topics, settings, rights and
consumer groups are the mesh's.
"""

import re
from dataclasses import replace

from mesh_events.kafka.connection import TOPIC_IDS, Connection, known_topics
from processors.clusters.principals import LINKS
from processors.clusters.rights import Binding, Operation, Resource
from processors.mirror import TRANSFORMATION
from spark_streams.engine import CopySpec

OFFSETS = "mesh.mirror-offsets"
"""Topic at the copy's cluster where Connect keeps positions, in the records' own transactions."""
_PACKAGE = "org.apache.kafka.connect"
_CONVERTER = f"{_PACKAGE}.converters.ByteArrayConverter"
_CLIENTS = ("producer", "consumer", "admin")
_WRITER = re.compile(rf"{re.escape(LINKS)}(?P<link>.+@.+)\.[0-9a-f]{{8}}")


def link_of(connector: str) -> str | None:
    """The link of a connector, None for one that is no link's.

    A connector has the name of the principal that it writes as: Connect remembers by the name how
    far one has read, and an incarnation begins where its copy ends.
    """
    found = _WRITER.fullmatch(connector)
    return found["link"] if found else None


def transactional_id(group: str, writer: str) -> str:
    """As which an incarnation's one task writes; `group` is the Connect workers'."""
    return f"{group}-{writer}-0"


def reading(writer: str) -> list[Binding]:
    """What an incarnation needs at the source, beside the right to read the topic."""
    return [Binding(writer, Operation.READ, Resource.GROUP, writer)]


def writing(writer: str, group: str) -> list[Binding]:
    """What an incarnation needs at the copy's cluster, beside the right to write the copy."""
    return [
        Binding(writer, Operation.ALL, Resource.TRANSACTIONAL_ID, transactional_id(group, writer)),
        *(
            Binding(writer, operation, Resource.TOPIC, OFFSETS)
            for operation in (
                Operation.READ,
                Operation.WRITE,
                Operation.CREATE,
                Operation.DESCRIBE_CONFIGS,
            )
        ),
    ]


def config_of(spec: CopySpec, source_password: str, destination_password: str) -> dict[str, str]:
    """The connector's config; passwords are references that Connect resolves.

    The source's topic and the copy have the same name: a product's topic begins with its domain.
    """
    source = replace(spec.source, password=source_password)
    destination = replace(spec.destination, password=destination_password)
    return {
        "connector.class": f"{_PACKAGE}.mirror.MirrorSourceConnector",
        "tasks.max": "1",
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "header.converter": _CONVERTER,
        "source.cluster.alias": spec.origin.cluster,
        "target.cluster.alias": spec.link.rpartition("@")[2],
        **_prefixed("source.cluster.", source),
        **_prefixed("target.cluster.", destination),
        **_overrides(destination),
        "producer.override.max.request.size": str(spec.max_record_bytes),
        "offsets.storage.topic": OFFSETS,
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
        "topics": re.escape(spec.source_topic),
        "topics.exclude": "",
        "replication.policy.class": f"{_PACKAGE}.mirror.IdentityReplicationPolicy",
        "refresh.topics.enabled": "false",
        "refresh.groups.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "emit.offset-syncs.enabled": "false",
        "source.consumer.isolation.level": "read_committed",
        # each poll is a transaction: 500 records, as by default, would make too many of a backlog
        "source.consumer.max.poll.records": "5000",
        "source.consumer.fetch.max.bytes": str(16 * 1024 * 1024),
        "producer.override.linger.ms": "0",
        # a record that is gone before it was copied is an error, and not passed over
        "source.consumer.auto.offset.reset": "none",
        f"source.consumer.{TOPIC_IDS}": known_topics({spec.source_topic: spec.origin.topic_id}),
        # it stands where the copy goes on, also for a partition that never had a record
        "source.consumer.group.id": spec.writer,
        "transforms": "provenance",
        "transforms.provenance.type": TRANSFORMATION,
        "transforms.provenance.prefix": spec.origin.prefix,
    }


def _prefixed(prefix: str, login: Connection) -> dict[str, str]:
    return {prefix + name: value for name, value in login.java().items()}


def _overrides(login: Connection) -> dict[str, str]:
    """How Connect's own clients of this connector log in; TLS they have from the worker."""
    allowed = {name: value for name, value in login.java().items() if not name.startswith("ssl.")}
    return {
        f"{client}.override.{name}": value for client in _CLIENTS for name, value in allowed.items()
    }
