"""How far a copy has come, read from the copy itself: the destination log is the checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_streams.errors import CopyError
from spark_streams.last import Last
from spark_streams.log import PartitionLog, TooLongError
from spark_streams.provenance import HEADER, NotProvenanceError, Origin, Provenance


@dataclass(frozen=True, slots=True)
class Tail:
    """One partition of a destination.

    low, end: its first and its end offset.
    next: source offset behind the last copied record; None if the partition holds no record.
    """

    low: int
    end: int
    next: int | None


Tails = Mapping[int, Tail]
"""Partition -> tail."""


def read_tail(
    log: PartitionLog,
    topic: str,
    partitions: int,
    origin: Origin,
    begin: Mapping[int, int] | None = None,
) -> dict[int, Tail]:
    """Read the tail of every partition 0..partitions-1.

    Args:
        log: where the topic is.
        topic: the destination.
        partitions: how many it has.
        origin: what is read.
        begin: partition -> the end that it had when the flow came to it; where nothing was written
            since, its last record tells nothing.

    Raises:
        CopyError: `destination_foreign`, if the last record of a partition was not written by
            a link that reads this partition of `origin`; `destination_unreadable`, if nobody can
            tell because it cannot be read, unpacks to too much, or is not found in time.
    """
    bounds, begin = log.bounds(topic, range(partitions)), begin or {}
    try:
        last = log.last(topic, bounds)
    except TooLongError as error:
        raise CopyError(
            "destination_unreadable",
            f"the last record of {topic} was not found: {error}; see who writes to it in "
            "transactions, and delete what they left behind its records, or all of it (`sdm kafka "
            "delete-records`), then stop and start the statement; a link's copy is begun anew "
            "(delete the link and create it again)",
        ) from error
    tails = {}
    for partition, (low, end) in bounds.items():
        is_ours = end > begin.get(partition, 0)
        own = last.get(partition) if is_ours else None
        behind = None if own is None else place_of(topic, partition, own, origin) + 1
        tails[partition] = Tail(low, end, behind)
    return tails


def positions(tails: Tails) -> dict[int, int]:
    """Partition -> next source offset, for partitions that hold a record."""
    return {p: tail.next for p, tail in tails.items() if tail.next is not None}


def place_of(topic: str, partition: int, last: Last, origin: Origin) -> int:
    """The source offset of a record.

    Raises:
        CopyError: as `read_tail` does.
    """
    place = f"the record at {topic}/{partition} offset {last.offset}"
    if last.unread:
        raise CopyError(
            "destination_unreadable",
            f"{place} {last.unread}, so that it is not known how far the topic was filled: delete "
            f"the records before offset {last.offset + 1} of that partition (`sdm kafka "
            "delete-records`), then stop and start the statement; a link's copy is begun anew "
            "(delete the link and create it again)",
        )
    values = [value for name, value in last.headers if name == HEADER]
    if not values:
        raise _foreign(f"{place} was not written by a link")
    try:
        # a product may itself be a copy: the last header is this link's
        found = Provenance.parse(values[-1])
    except NotProvenanceError as error:
        raise _foreign(f"{place}: {error}") from error
    if found.origin != origin or found.partition != partition:
        raise _foreign(
            f"{place} was copied from {found.origin.prefix}{found.partition}, "
            f"not from {origin.prefix}{partition}"
        )
    return found.offset


def _foreign(what: str) -> CopyError:
    return CopyError(
        "destination_foreign",
        f"{what}: find out who wrote there, then begin anew (delete the link and create it again; "
        "delete the statement and add it again)",
    )
