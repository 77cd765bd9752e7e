"""What of the mesh runs inside brokers: bounds for what their clients may cost them.

What lives here: the Scala sources of policies of topics (KIP-201), of the authorizer, and of bounds
that twenty-six of Kafka's own classes are made to ask for; their names and settings.
What does not: how they are compiled and put on a broker's class path (`jars.scala_jars`).
"""

from pathlib import Path

from processors.controllers.flows.copy_settings import BROKERS_COMPRESSION, RANGES

SOURCES = tuple(
    Path(__file__).parent / name
    for name in (
        "BoundedAppends.scala",
        "BoundedAuthorizer.scala",
        "BoundedBatches.scala",
        "BoundedCleaning.scala",
        "BoundedConnections.scala",
        "BoundedFetches.scala",
        "BoundedHandlers.scala",
        "BoundedIndexes.scala",
        "BoundedMarkers.scala",
        "BoundedMembers.scala",
        "BoundedOffsets.scala",
        "BoundedParsing.scala",
        "BoundedPartitions.scala",
        "BoundedPatterns.scala",
        "BoundedProducers.scala",
        "BoundedRequests.scala",
        "BoundedSegments.scala",
        "BoundedTables.scala",
        "BoundedTls.scala",
        "BoundedWork.scala",
        "PatchKafka.scala",
        "Recent.scala",
        "TopicPolicies.scala",
    )
)
PATCH = "mesh.PatchKafka"
"""The main class that writes Kafka's classes with bounds below a folder."""
_MIB = 1 << 20
EARLIEST_MS = 63_000_000_000_000
"""So far back a record's time may lie: some two thousand years."""


def _range(least: float, largest: float) -> str:
    return f"{_plain(least)}:{'' if largest == float('inf') else _plain(largest)}"


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


_MORE_RANGES = {
    # until then a deleted segment's file is open, and no bound of segments counts it
    "file.delete.delay.ms": (0.0, 60_000.0),
    # an index that is full begins a new segment
    "segment.index.bytes": (float(_MIB), float("inf")),
    # without entries a fetch reads all batches before its offset
    "index.interval.bytes": (1024.0, 8192.0),
    # Kafka's own tests use it in place of segment.bytes, and it has no least value
    "internal.segment.bytes": RANGES["segment.bytes"],
    # a larger one is copied by nobody, and the broker unpacks a batch as a whole
    "max.message.bytes": (0.0, 17.0 * _MIB),
    # a producer is remembered until an hour after the time of its last record
    "message.timestamp.after.max.ms": (0.0, 3_600_000.0),
    # a time that Spark cannot hold, in microseconds, ends all that reads the topic
    "message.timestamp.before.max.ms": (0.0, float(EARLIEST_MS)),
}
_VALUES = {
    # a broker that compresses anew takes seconds for a batch, in each of its request handlers; what
    # it keeps uncompressed is a thousand times what was sent, past the quota of who sent it
    "compression.type": BROKERS_COMPRESSION,
    # Kafka's own: else a handler waits for the disk, once for each batch that has so many records
    "flush.messages": str(2**63 - 1),
    "flush.ms": str(2**63 - 1),
    # each new segment would take all of segment.bytes on the disk
    "preallocate": "false",
    # a segment would end so much before the least of segment.ms
    "segment.jitter.ms": "0",
    # offsets would mean other records, and nobody who remembers one would see it
    "unclean.leader.election.enable": "false",
}
_FREE = (
    "cleanup.policy",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.type",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
)
"""Settings that cost nobody but the topic's owner, whatever they are."""
POLICY = {
    "create.topic.policy.class.name": "mesh.CreatePolicy",
    "alter.config.policy.class.name": "mesh.AlterPolicy",
    "mesh.policy.characters": "64",
    "mesh.policy.characters.of.lists": "2048",
    "mesh.policy.partitions": "256",
    "mesh.policy.partitions.per.hour": "1000",
    "mesh.policy.free": ":".join(_FREE),
    **{f"mesh.policy.values.{name}": value for name, value in _VALUES.items()},
    **{
        f"mesh.policy.range.{name}": _range(*ends)
        for name, ends in {**RANGES, **_MORE_RANGES}.items()
    },
}
"""What topics may cost the cluster, but for the mesh's own: see `TopicPolicies.scala`. A setting
that is not named here is refused."""
AUTHORIZER = {
    "authorizer.class.name": "mesh.BoundedAuthorizer",
    "mesh.authorizer.characters": "249",
    "mesh.authorizer.names": "2000",
}
"""What names of groups and transactional ids may cost: see `BoundedAuthorizer.scala`."""
JVM_BOUNDS = {
    "mesh.batches.record.bytes": 17 * _MIB,
    "mesh.batches.bytes": 32 * _MIB,
    "mesh.batches.records": 100_000,
    "mesh.batches.record.headers": 10_000,
    "mesh.batches.headers": 500_000,
    "mesh.batches.request.bytes": 256 * _MIB,
    "mesh.batches.login.bytes": 1024 * _MIB,
    "mesh.request.fields": 10_000,
    "mesh.request.fields.admin": 200_000,
    "mesh.request.names": 250,
    "mesh.request.described": 250,
    "mesh.tables.steps": 100_000,
    "mesh.tables.steps.own": 5_000_000,
    "mesh.handlers.domain": 2,
    "mesh.handlers.domains": 4,
    "mesh.handlers.fetches": 3,
    "mesh.handlers.appends": 3,
    "mesh.handlers.waiting": 1000,
    "mesh.handlers.bytes": 32 * _MIB,
    "mesh.work.ms": 1000,
    "mesh.work.late.ms": 3000,
    "mesh.work.expired.ms": 200,
    "mesh.work.unread": 32 * _MIB,
    "mesh.work.answer": 32 * _MIB,
    "mesh.pattern.characters": 249,
    "mesh.offsets": 50_000,
    "mesh.producers": 50_000,
    "mesh.markers.bytes": _MIB // 2,
    "mesh.members.bytes": 64 * _MIB,
    "mesh.members.topics": 1000,
    "mesh.appends.times": 4,
    "mesh.appends.late.ms": 3000,
    "mesh.appends.records": 2000,
    "mesh.appends.record.bytes": 8192,
    "mesh.connections": 2000,
    "mesh.connections.domains": 3500,
    "mesh.connections.new": 1500,
    "mesh.connections.bytes": 192 * _MIB,
    "mesh.fetch.wait.ms": 2000,
    "mesh.fetch.waiting": 50_000,
    "mesh.partitions": 4000,
    "mesh.partitions.topic": 256,
    "mesh.partitions.hour": 1000,
    "mesh.cleaner.slice.ms": 10_000,
    "mesh.cleaner.slice.most.ms": 3_600_000,
    "mesh.segments": 1000,
    "mesh.segments.young": 200,
    "mesh.segments.kept": 6000,
    "mesh.tls.ms": 2,
    "mesh.tls.empty": 100,
}
"""Properties of the JVM: what clients may cost a broker; see `Bounded*.scala`."""
