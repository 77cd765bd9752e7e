"""How far a copy is behind its source, read from Kafka alone: no Spark needed, at any time."""

from collections.abc import Mapping

from spark_streams.log import Ahead, PartitionLog, TooLongError
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail


def behind(source: PartitionLog, topic: str, position: Mapping[int, int]) -> dict[int, int]:
    """Partition -> offsets from `position` to the last record of the source; 0 when caught up.

    Args:
        source: the source cluster, `read_committed`.
        topic: the source topic.
        position: partition -> next source offset to be copied.

    Ends of transactions are no records: behind them a copy has caught up. In between they count.
    """
    bounds = source.bounds(topic, position)
    ahead = {p: (max(low, position[p]), end) for p, (low, end) in bounds.items()}
    last = source.last(topic, ahead, headers=False)
    return {p: last[p].offset + 1 - position[p] if p in last else 0 for p in position}


def record_ends(source: PartitionLog, topic: str, position: Mapping[int, int]) -> dict[int, int]:
    """Partition -> source offset behind its last record; `position` where no record is behind it.

    A copy that has come there has all that the source holds now. Arguments as those of `behind`.
    Where the last record is not found in time, the partition's end is behind it as well.
    """
    try:
        late = behind(source, topic, position)
    except TooLongError:
        ends = source.bounds(topic, position)
        return {p: max(at, ends[p][1]) for p, at in position.items()}
    return {partition: at + late[partition] for partition, at in position.items()}


def ahead(
    source: PartitionLog, topic: str, position: Mapping[int, int], most_s: float
) -> dict[int, Ahead]:
    """Partition -> the first record of the source from `position` on, see `PartitionLog.first`."""
    bounds = source.bounds(topic, position)
    within = {p: (max(low, position[p]), end) for p, (low, end) in bounds.items()}
    return source.first(topic, within, most_s)


def copied(
    source: PartitionLog,
    source_topic: str,
    destination: PartitionLog,
    topic: str,
    partitions: int,
    origin: Origin,
) -> dict[int, int]:
    """Partition -> source offset up to which the copy `topic` has come.

    Raises:
        CopyError: `destination_foreign`, if the destination is not a copy of `origin`.
    """
    begun = {p: low for p, (low, _) in source.bounds(source_topic, range(partitions)).items()}
    return begun | positions(read_tail(destination, topic, partitions, origin))
