"""How many partitions a topic may have that a link copies or a statement reads.

Whoever owns the topic decides that number. Each partition takes a task slot of a Spark server for
as long as the flow runs, and a partition of the consumer's cluster.
"""

from dataclasses import dataclass
from typing import NamedTuple

from processors.clusters.kafka import Topic
from spark_streams.errors import CopyError

TOO_MANY_PARTITIONS = "too_many_partitions"
MOST_PARTITIONS = 128
"""A quarter of the 512 task slots that a domain's links have on the local platform."""
OF_LINKS, OF_STATEMENTS = "SDM_LINK_PARTITIONS", "SDM_STATEMENT_PARTITIONS"


class Most(NamedTuple):
    """Most partitions of a topic, by what reads it."""

    links: int = MOST_PARTITIONS
    statements: int = MOST_PARTITIONS


@dataclass(frozen=True, slots=True)
class PartitionLimit:
    """A limit on the partitions of one topic, and the setting that has it."""

    most: int
    setting: str

    def finding(self, topic: Topic, cluster: str) -> str | None:
        """Why a topic may not be read, None if it may."""
        if topic.partitions <= self.most:
            return None
        return (
            f"the topic {topic.name} on cluster {cluster} has {topic.partitions} partitions, "
            f"at most {self.most} are allowed: use a topic with fewer, or ask the operator to "
            f"raise {self.setting}, which holds from the worker's next start on"
        )

    def require(self, topic: Topic, cluster: str) -> None:
        """Raise CopyError `too_many_partitions` for a topic above the limit."""
        if (reason := self.finding(topic, cluster)) is not None:
            raise CopyError(TOO_MANY_PARTITIONS, reason)
