"""Where a copy goes on: pure judgement over what the logs say. In doubt it refuses.

Names: `floor` is what the governance log knows to be in the destination, partition -> next source
offset; `source` is where the source's partitions begin and end.
"""

from collections.abc import Mapping

from spark_streams.errors import CopyError
from spark_streams.log import Bounds
from spark_streams.tail import Tail, Tails

_AGAIN = "delete the link (which purges the copy) and create it again"


def start_positions(
    tails: Tails, floor: Mapping[int, int], source: Bounds, *, compacted: bool = False
) -> dict[int, int]:
    """Partition -> source offset at which the next incarnation starts.

    compacted: nothing but compaction removes records from the destination. Then a partition whose
        first offset is 0 was never cut, and what is missing behind the tail was superseded or
        deleted: the floor counts.

    Raises:
        CopyError: `partitions_differ`, `destination_lost`, `source_gap` or `source_truncated`.
    """
    if tails.keys() != source.keys():
        raise CopyError(
            "partitions_differ",
            f"the source has {len(source)} partitions, the destination {len(tails)}, and Kafka "
            f"removes none: add partitions to the source, or {_AGAIN}",
        )
    starts = {}
    for partition in sorted(source):
        tail, known = tails[partition], floor.get(partition)
        if compacted and tail.low == 0 and tail.end > 0 and known is not None:
            tail = Tail(tail.low, tail.end, max(known, tail.next or 0))
        starts[partition] = _start(partition, tail, known, source[partition])
    return starts


def _start(partition: int, tail: Tail, floor: int | None, source: tuple[int, int]) -> int:
    low, end = source
    if tail.next is None:
        position = _of_empty(partition, tail, floor, source)
    else:
        position = tail.next
        if floor is not None and position < floor:
            raise _lost(partition, f"ends with source offset {position - 1}", floor)
    if position < low:
        raise CopyError(
            "source_gap",
            f"partition {partition}: the copy goes on at source offset {position}, but the source "
            f"begins at {low}; keep records there for longer, then {_AGAIN}",
        )
    if position > end:
        raise CopyError(
            "source_truncated",
            f"partition {partition}: the copy goes on at source offset {position}, but the source "
            f"ends at {end}: restore the source, or {_AGAIN}",
        )
    return position


def _of_empty(partition: int, tail: Tail, floor: int | None, source: tuple[int, int]) -> int:
    """Nothing there: right where the source has nothing either, or never had a record copied.

    From one that begins at 0 nothing was removed: what it holds are aborted transactions. Where all
    was copied and the source is empty as well, retention has removed it from both.
    """
    low, end = source
    if tail.low > 0 and floor == low == end:
        return end
    if tail.low > 0:
        raise _lost(partition, "was emptied", floor)
    if floor is None:
        return low
    # the floor of a partition that never had a record is where the first incarnation started,
    # and that was the source's beginning, which never goes back
    if floor > low:
        raise _lost(partition, "is empty", floor)
    return floor


def _lost(partition: int, found: str, floor: int | None) -> CopyError:
    known = "" if floor is None else f", though everything before {floor} had been copied"
    return CopyError(
        "destination_lost",
        f"partition {partition} of the destination {found}{known}: find out what happened "
        f"(retention, deleted records, a topic made anew), then {_AGAIN}",
    )
