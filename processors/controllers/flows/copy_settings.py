"""Settings of a copy, from those that its source has of its own. Pure.

The owner of the source chooses them for a topic on another domain's cluster. What changes which
records readers find there follows the source. What costs the cluster files, memory or work for no
record more stays within a range, and so does the time for which tombstones are kept.
"""

from collections.abc import Mapping

from processors.clusters.kafka import Topic

_SAME = (
    "cleanup.policy",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "min.compaction.lag.ms",
    "retention.ms",
)
"""The copy has them as the source has them.

Times count from the copying: Spark's sink cannot set a record's time.
"""
_KAFKAS = {
    "cleanup.policy": "delete",
    "delete.retention.ms": "86400000",
    "retention.ms": "604800000",
}
"""Kafka's defaults of what decides when a record goes, where the source does not tell: a copy says
them, since the other cluster may have defaults of its own."""
_BY_SIZE = {"retention.bytes": "-1"}
"""A copy counts other bytes than its source, uncompressed and with a header more: by the source's
size it would delete what the source keeps."""
_HOUR_MS, _MIB = 3_600_000, 1_048_576
_INFINITE = float("inf")
RANGES: Mapping[str, tuple[float, float]] = {
    # a segment is four files, which brokers hold open: 10 minutes are at most 1008 a week
    "segment.ms": (_HOUR_MS // 6, _INFINITE),
    "segment.bytes": (16 * _MIB, 1024 * _MIB),
    # for a compacted topic Kafka closes segments by it as by segment.ms
    "max.compaction.lag.ms": (_HOUR_MS // 6, _INFINITE),
    # at 0 the cleaner writes a partition anew for each closed segment
    "min.cleanable.dirty.ratio": (0.1, 1),
    # a reader that is further behind misses tombstones; Kafka's default is a day
    "delete.retention.ms": (24 * _HOUR_MS, _INFINITE),
}
"""Setting -> least and largest value; one outside becomes the nearest.

The local platform's brokers refuse them for topics of domains as well.
"""
BROKERS_COMPRESSION = "producer"
"""What `compression.type` may be: brokers compress nothing anew, and unpack nothing to keep it so.
Those of the local platform refuse another one for topics of domains as well."""
_COMPRESSION = "compression.type"
_MAX_RECORD = "max.message.bytes"
_KAFKAS_MAX_RECORD = 1_048_588
LARGEST_RECORD = 16 * _MIB
"""Bytes of a record that is copied: brokers and readers need the memory for it at once. The local
platform's brokers take none from a domain that is larger, compressed or not."""
_HEADER_ROOM = 4_096
"""The largest record still has to fit with one more header."""


def copied_settings(source: Mapping[str, str]) -> dict[str, str]:
    """Setting -> value of a copy; what is not among them is the cluster's default.

    A copy takes each record, whatever its source does: that counts what is compressed.
    """
    source = {**_KAFKAS, **source}
    same = {name: source[name] for name in _SAME if name in source}
    within = {name: _nearest(name, source[name]) for name in RANGES if name in source}
    if _COMPRESSION in source:
        same[_COMPRESSION] = BROKERS_COMPRESSION
    return same | within | _BY_SIZE | {_MAX_RECORD: str(LARGEST_RECORD + _HEADER_ROOM)}


def max_record_bytes(copy: Topic) -> int:
    """The largest record that a copy takes."""
    return int(copy.config.get(_MAX_RECORD, _KAFKAS_MAX_RECORD))


def _nearest(name: str, value: str) -> str:
    least, largest = RANGES[name]
    if float(value) < least:
        return str(least)
    return str(largest) if float(value) > largest else value
