"""Settings of the mesh's own topics. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mesh_events import topics

_DAY_MS = 24 * 60 * 60 * 1000
# a broker whose clock is late would refuse what is an hour ahead of it by default, and the governor
# with it
_ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
_COMPACTED = {"cleanup.policy": "compact", **_ANY_TIME}
_THIRTY_DAYS = {"retention.ms": str(30 * _DAY_MS), **_ANY_TIME}
TOPICS: Mapping[str, Mapping[str, str]] = {
    topics.GOVERNANCE: {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": str(topics.MAX_LOG_BYTES),
        # the broker unpacks what a producer compressed: a codec that one reader lacks must not
        # be able to stop it
        "compression.type": "uncompressed",
    },
    topics.CATALOG: _COMPACTED,
    topics.ACCESS: _COMPACTED,
    topics.LINKS: _COMPACTED,
    topics.STATEMENTS: _COMPACTED,
    topics.CONNECTORS: _COMPACTED,
    topics.LINEAGE: _THIRTY_DAYS,
    topics.CHECKPOINTS: {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "LogAppendTime",
    },
    topics.QUARANTINE: {
        **_THIRTY_DAYS,
        # copies of what anybody with a login of intents appends
        "retention.bytes": str(1024**3),
        "max.message.bytes": str(topics.MAX_LOG_BYTES),
    },
}
"""Topic -> settings. The log is the truth, hence kept for ever; its time is Kafka's."""
KEPT_FOR_EVER = (topics.GOVERNANCE, topics.CHECKPOINTS)
"""Topics of which every setting counts: with another one records would be lost, or their times."""
REPLICATION = "replication.factor"
MIN_INSYNC = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class Durability:
    """How many brokers may be lost before an acknowledged record is.

    Args:
        replicas: brokers that hold each of the mesh's own topics, >= 1.
        min_insync: how many of them must have a record before it is acknowledged, <= replicas.
    """

    replicas: int = 3
    min_insync: int = 2

    def config(self, topic: str) -> dict[str, str]:
        """The settings that a topic is created with."""
        return {**TOPICS[topic], MIN_INSYNC: str(self.min_insync), UNCLEAN: "false"}
