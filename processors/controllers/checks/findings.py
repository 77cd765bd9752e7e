"""What is found in the world when a check is made: evidence, or a code and a next step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mesh_events.connectors import Configured
from mesh_events.errors import ConfigurationError, InfrastructureError, RefusedError
from mesh_events.intents import ClusterRegistered
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.references import resolve
from mesh_events.schema import json_size
from mesh_events.schema.compatibility import Break, Level, breaks
from mesh_events.schema.definition import Kind, Version
from mesh_events.schema.patterns import require_usable
from mesh_events.schema.registry import Registry
from mesh_events.schema.size import TOO_MANY_VERSIONS
from mesh_events.statements import StatementAdded, Wording
from processors.clusters.kafka import ClusterAdmin, KafkaAdmin, Topic
from processors.connect.cluster import ConnectCluster
from processors.controllers.flows.partition_limit import TOO_MANY_PARTITIONS, PartitionLimit
from processors.controllers.statements.planning import plan_statement
from processors.registries.replica import RegistryReplica
from projections.connectors import config
from projections.statements import (
    BEGIN_OF,
    DEAD_END_OF,
    DEAD_LETTERS,
    END_OF,
    STREAM_ID,
    TOPIC_ID,
    Statement,
)
from spark_streams.log import PartitionLog
from spark_streams.sql.text.parse import parse

CERTAIN_S = 2.0
"""What a registry lacks must be lacking for so long: one that starts may answer before it has read
its own log to the end. Measured with Apicurio after a kill: for 0.05 to 0.3 s."""
_LONGEST = 1000
"""Characters of a reason that is another server's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check; a code means that it failed, once that was so for `certain_s`."""

    evidence: dict[str, str] = field(default_factory=dict)
    code: str = ""
    reason: str = ""
    certain_s: float = 0.0


def cluster_reachable(intent: ClusterRegistered, tls: Tls | None) -> Finding:
    """The cluster answers, and lets the operator's principal in; so does a registry of its own."""
    where = {"bootstrap_servers": intent.bootstrap_servers}
    try:
        password = resolve(intent.admin_password)
        login = Connection(intent.bootstrap_servers, intent.admin_user, password, tls)
        found = Finding({**where, "brokers": str(KafkaAdmin(intent.cluster, login).ping())})
        if intent.registry_url is None:
            return found
        where["registry"] = intent.registry_url
        password = resolve(intent.registry_password or "")
    except ConfigurationError as error:
        return Finding(where, "cluster_login_failed", f"{error}; correct it and register again")
    try:
        RegistryReplica(
            intent.registry_url, intent.registry_user or "", password
        ).require_writable()
    except InfrastructureError as error:
        if error.retriable:
            raise
        return Finding(where, "registry_login_failed", f"{error}; correct it and register again")
    return Finding({**found.evidence, **where})


def topic_exists(topic: str, admin: ClusterAdmin) -> Finding:
    """The topic is there; the evidence tells its partitions and Kafka's id of it."""
    found = admin.topic(topic)
    where = {"cluster": admin.name, "topic": topic}
    if found is None:
        return Finding(
            where,
            "unknown_topic",
            f"there is no topic {topic} on cluster {admin.name}: list them, or "
            "create it, then publish again",
        )
    return Finding({**where, "topic_id": found.id, "partitions": str(found.partitions)})


def schema_registered(topic: str, registry: Registry) -> Finding:
    """The topic's values have a registered schema, `<topic>-value`."""
    subject = f"{topic}-value"
    found = registry.latest(subject)
    if found is None:
        return Finding(
            {"subject": subject},
            "no_schema",
            f"the registry has no subject {subject}: register the schema of the topic's values, "
            "then publish again",
            CERTAIN_S,
        )
    schema_id, version = found
    where = {"subject": subject, "schema_id": str(schema_id), "version": str(version)}
    try:
        versions = registry.history(subject)
        if versions:
            # another one may have been registered since
            version = versions[-1].number
            where |= {"schema_id": str(versions[-1].schema_id), "version": str(version)}
        number, broken = _unreadable_before(versions, subject, registry)
    except RefusedError as error:
        step = "" if error.code == TOO_MANY_VERSIONS else "register that version, and "
        return Finding(where, error.code, f"{error}; then {step}publish again")
    except InfrastructureError as error:
        if error.retriable:
            raise
        return Finding(where, "schema_not_usable", f"{error}; register one that can be used")
    if broken:
        return Finding(
            where,
            "incompatible_schema",
            f"records in version {number} of {subject} cannot be read with version {version}, "
            f"which consumers of the product will use: {'; '.join(map(str, broken))}. Register a "
            "version that reads all of them, delete the old version from the registry if none of "
            "its records is left, or publish another topic",
        )
    return Finding(where)


def _unreadable_before(
    versions: Sequence[Version], subject: str, registry: Registry
) -> tuple[int, list[Break]]:
    """An earlier version that the latest one cannot read, and where; of Avro alone."""
    if not versions or any(one.kind != Kind.AVRO for one in versions):
        _require_usable(versions, subject)
        return 0, []
    *earlier, latest = versions
    text = registry.schema_text(latest.schema_id)
    require_usable(text, subject)
    with registry.counted():
        for one in reversed(earlier):
            if broken := breaks(registry.schema_text(one.schema_id), text, Level.BACKWARD):
                return one.number, broken
    return 0, []


def target_free(
    topic: str, known: str | None, admin: ClusterAdmin, *, being_made: bool = False
) -> Finding:
    """The copy's name is free in the consumer's cluster, or is the mesh's own copy already."""
    found = admin.topic(topic)
    where = {"cluster": admin.name, "topic": topic}
    if found is None:
        return Finding({**where, "found": "nothing"})
    if being_made or found.id == known:
        return Finding({**where, "found": "the link's own copy", "topic_id": found.id})
    return Finding(
        {**where, "topic_id": found.id},
        "target_taken",
        f"the topic {topic} exists on cluster {admin.name} and is not a copy made by the mesh: "
        "rename or delete it there, then grant again",
    )


def too_many_partitions(
    topics: Sequence[Topic | None], cluster: str, limit: PartitionLimit
) -> Finding | None:
    """The finding on the first topic above the limit, in the words of what would not start."""
    for topic in topics:
        if topic is not None and (reason := limit.finding(topic, cluster)) is not None:
            where = {"cluster": cluster, "topic": topic.name, "partitions": str(topic.partitions)}
            return Finding(where, TOO_MANY_PARTITIONS, reason)
    return None


def _require_usable(versions: Sequence[Version], subject: str) -> None:
    """Raise RefusedError where the latest version is too large, or has an unsupported pattern."""
    for latest in versions[-1:]:
        text = latest.schema.text
        try:
            match latest.kind:
                case Kind.JSON:
                    json_size.parsed(text, subject)
                case Kind.PROTOBUF:
                    json_size.require_short(text, subject)
        except ValueError as error:
            raise RefusedError("schema_not_usable", f"{subject}: it is not JSON") from error


def statement_sound(
    intent: Wording,
    destination: str,
    admin: ClusterAdmin,
    registry: Registry,
    before: str | None = None,
    limit: PartitionLimit | None = None,
) -> Finding:
    """The topics are there and not too large, and the text can be understood over their schemas.

    The types of its columns are Spark's to judge, when it starts. `before` is the text that is to
    be replaced, if one is.
    """
    where = {"cluster": admin.name, "stream": intent.stream}
    topics: dict[str, Topic | None] = {}

    def topic(name: str) -> Topic | None:
        return topics.setdefault(name, admin.topic(name))

    try:
        plan = plan_statement(intent, destination, admin.name, topic, registry, before)
    except RefusedError as error:
        return Finding(where, error.code, str(error), CERTAIN_S if error.code == "no_schema" else 0)
    stream = topics[intent.stream]
    assert stream is not None  # noqa: S101 - for the type checker; refused above
    if limit is not None and (found := too_many_partitions([*topics.values()], admin.name, limit)):
        return found
    columns = ", ".join(one.name for one in plan.query.out)
    return Finding({**where, "partitions": str(stream.partitions), "columns": columns})


def destination_free(
    intent: StatementAdded,
    admin: ClusterAdmin,
    before: Statement | None = None,
    stream: PartitionLog | None = None,
    log: PartitionLog | None = None,
) -> Finding:
    """What the statement is to fill is not there yet, or is what it filled `before`.

    Where it comes back to its topics, the evidence tells where its stream begins, as `stream` shows
    it, and where the topics end, as `log` does.
    """
    where = {"cluster": admin.name, "topic": intent.destination}
    names = (intent.destination, intent.destination + DEAD_LETTERS)
    topics = [found for name in names if (found := admin.topic(name)) is not None]
    if not topics:
        return Finding({**where, "found": "nothing"})
    first = topics[0]
    if before is None or not before.filled(first.id):
        return Finding(
            {**where, "topic": first.name, TOPIC_ID: first.id},
            "target_taken",
            f"the topic {first.name} exists on cluster {admin.name}: a statement fills topics of "
            "its own, or comes back, under its name, to those that it filled before it was "
            "deleted; name another destination, or delete it if nobody reads it",
        )
    evidence = {**where, "found": "what it filled before", TOPIC_ID: first.id}
    source = admin.topic(intent.stream)
    if source is not None:
        evidence |= {STREAM_ID: source.id}
        evidence |= edges(BEGIN_OF, source.name, source.partitions, stream, 0)
    for topic, prefix in zip(topics, (END_OF, DEAD_END_OF), strict=False):
        evidence |= edges(prefix, topic.name, topic.partitions, log, 1)
    return _may_come_back(intent, before, evidence) or Finding(evidence)


def edges(
    prefix: str, topic: str, partitions: int, log: PartitionLog | None, which: int
) -> dict[str, str]:
    """The first offsets (0) or the ends (1) of a topic's partitions, as evidence."""
    bounds = log.bounds(topic, range(partitions)) if log is not None else {}
    return {f"{prefix}{partition}": str(found[which]) for partition, found in bounds.items()}


def _may_come_back(
    intent: StatementAdded, before: Statement, evidence: dict[str, str]
) -> Finding | None:
    """Why it may not; a stream's result is gone on with, a table's only as it was."""
    if intent.stream != before.stream:
        return Finding(
            evidence,
            "stream_differs",
            f"{intent.destination} holds what {intent.statement} made of {before.stream}, and goes "
            f"on with {before.stream} alone: name another destination for {intent.stream}",
        )
    if not (_of_rows(intent.sql) or _of_rows(before.sql)):
        return None
    lost = any(
        int(begin) > before.positions.get(name.removeprefix(BEGIN_OF), 0)
        for name, begin in evidence.items()
        if name.startswith(BEGIN_OF)
    )
    if (intent.sql, dict(intent.names)) != (before.sql, dict(before.names)):
        why = "with another text"
    elif evidence.get(STREAM_ID) != before.stream_topic_id:
        why = f"of a topic {intent.stream} that is not the present one"
    elif lost:
        why = f"before {intent.stream} lost records that it had not dealt with"
    else:
        return None
    return Finding(
        evidence,
        "rows_differ",
        f"{before.destination} holds rows of TABLE(...) that {intent.statement} made {why}, and "
        f"they would stay: name another destination, or delete {before.destination} and "
        f"{before.dead_letters}",
    )


def _of_rows(sql: str) -> bool:
    try:
        return parse(sql).of_rows
    except RefusedError:  # the other check tells it
        return False


def connector_sound(
    intent: Configured, admin: ClusterAdmin, connect: ConnectCluster | None
) -> Finding:
    """Connect takes the config, and what a sink is to read is there."""
    kind = intent.config.get("connector.class", "")
    where = {"cluster": admin.name, "class": kind}
    if connect is None:
        return Finding(where, "invalid_connector", "this mesh has no Kafka Connect")
    reads = config.reads(intent.config)
    there = admin.topic_ids(reads) if reads else {}
    for topic in reads:
        if topic not in there:
            return Finding(
                {**where, "topic": topic},
                "unknown_topic",
                f"there is no topic {topic} on cluster {admin.name}: create it, then say it again",
            )
    try:
        return Finding({**where, **connect.require_sound(intent.connector, intent.config)})
    except RefusedError as error:
        told = connect.cleared(intent.connector, admin.name, str(error))
        return Finding(where, error.code, told[:_LONGEST])
