"""Reading a topic as a person: from a position to the end or on and on."""

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from mesh_events.errors import InfrastructureError, InvalidValueError, WaitTimeoutError
from mesh_events.kafka.connection import Connection, translated, translating
from mesh_events.spelling import asked
from self_service.cli.framework.exits import NotFoundError

_METADATA_TIMEOUT_S = 10
_TRY_S = 2
_GREATEST = 2**63 - 1
"""Kafka counts offsets in 64 bits."""
_MARKS: dict[str, int] = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be read.

    start: offset or one of Kafka's marks; last: instead the last so many records of each partition
    most: stop after so many records
    timeout: seconds, None for as long as it takes
    follow: go on at the end; else reading stops at the ends that there were when it began
    """

    topic: str
    start: int = OFFSET_BEGINNING
    last: int | None = None
    partition: int | None = None
    most: int | None = None
    timeout: float | None = None
    follow: bool = False


def position(text: str) -> tuple[int, int | None]:
    """(start, last) of `Wanted` for what `--from` says; raises InvalidValueError."""
    if text in _MARKS:
        return _MARKS[text], None
    digits = text.removeprefix("-")
    if not digits.isdecimal():
        raise InvalidValueError(f"--from {text!r}: use beginning, end, an offset, or -N")
    if len(digits) > len(str(_GREATEST)) or int(digits) > _GREATEST:
        raise InvalidValueError(f"--from {text[:40]}: the greatest offset is {_GREATEST}")
    return (OFFSET_END, int(digits)) if text.startswith("-") else (int(digits), None)


def read(login: Connection, wanted: Wanted) -> Iterator[Message]:
    """The wanted records, each partition in its order.

    Raises RefusedError where Kafka refuses, NotFoundError for an unknown topic, WaitTimeoutError
    where fewer than `most` came in time while following.
    """
    doing = f"reading {wanted.topic} at {login.bootstrap_servers} as {login.user}"
    failed_logins: list[KafkaError] = []
    consumer = Consumer(
        {
            **login.config(),
            # the client library wants a name; no group is joined, no offset committed
            "group.id": f"{login.user}.console",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "error_cb": lambda error: _keep_login_error(error, failed_logins),
        }
    )
    deadline = math.inf if wanted.timeout is None else time.monotonic() + wanted.timeout
    try:
        partitions = _partitions(consumer, wanted, doing, failed_logins, deadline)
        ranges = {one: _range(consumer, wanted, one, doing, deadline) for one in partitions}
        consumer.assign(
            [TopicPartition(wanted.topic, one, start) for one, (start, _) in ranges.items()]
        )
        ends = {one: end for one, (_, end) in ranges.items()}
        yield from _records(consumer, wanted, ends, doing, deadline)
    finally:
        consumer.close()


def _keep_login_error(error: KafkaError, found: list[KafkaError]) -> None:
    if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes
        found.append(error)


def _partitions(
    consumer: Consumer,
    wanted: Wanted,
    doing: str,
    failed_logins: list[KafkaError],
    deadline: float,
) -> list[int]:
    topic = _topic(consumer, wanted.topic, doing, failed_logins)
    while _is_unknown(topic) and wanted.follow and time.monotonic() < deadline:
        # a connector makes its topics with their first records; polling also serves errors
        consumer.poll(0.3)
        topic = _topic(consumer, wanted.topic, doing, failed_logins)
    if _is_unknown(topic):
        known = asked(wanted.topic, consumer.list_topics(timeout=_METADATA_TIMEOUT_S).topics)
        raise NotFoundError(
            f"{doing}: the topic does not exist: {known}see `sdm topic list`, and "
            "`sdm link list` if it was a copy"
        )
    if topic.error is not None:
        raise translated(topic.error, doing)
    if wanted.partition is None:
        return sorted(topic.partitions)
    if wanted.partition not in topic.partitions:
        raise NotFoundError(f"{doing}: partition {wanted.partition} does not exist")
    return [wanted.partition]


def _topic(consumer: Consumer, name: str, doing: str, failed_logins: list[KafkaError]) -> Any:
    """What the cluster says about the topic.

    The call for it tells only that no broker answered; a refused login is told to the callback,
    which polling serves, so that short tries see it soon.
    """
    deadline = time.monotonic() + _METADATA_TIMEOUT_S
    while True:
        try:
            with translating(doing):
                return consumer.list_topics(name, timeout=_TRY_S).topics[name]
        except InfrastructureError as error:
            consumer.poll(0)
            if failed_logins:
                raise translated(failed_logins[-1], doing) from error
            if time.monotonic() > deadline:
                raise


def _is_unknown(topic: Any) -> bool:
    known = topic.error is None
    return not known and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def _range(
    consumer: Consumer, wanted: Wanted, partition: int, doing: str, deadline: float = math.inf
) -> tuple[int, int]:
    """(where reading starts, the end that it stops at) in a partition."""
    is_mark = wanted.last is None and wanted.start in _MARKS.values()
    if is_mark and wanted.follow:
        return wanted.start, _GREATEST
    with translating(doing):
        low, high = consumer.get_watermark_offsets(
            TopicPartition(wanted.topic, partition), timeout=_METADATA_TIMEOUT_S
        )
    if is_mark:
        return low if wanted.start == OFFSET_BEGINNING else high, high
    if wanted.last is not None:
        place = TopicPartition(wanted.topic, partition)
        return _last(consumer, place, (low, high), wanted.last, doing, deadline), high
    # a consumer that is sent behind the end begins at the first record instead
    return min(max(low, wanted.start), high), high


def _last(
    consumer: Consumer,
    place: TopicPartition,
    bounds: tuple[int, int],
    count: int,
    doing: str,
    deadline: float,
) -> int:
    """The offset of the last but `count` record: markers and compaction take up offsets, too."""
    low, high = bounds
    reach = count
    while True:
        start = max(low, high - reach)
        found = _offsets(consumer, place, (start, high), count, doing, deadline)
        if len(found) >= count or start == low:
            return found[0] if found else high
        reach *= 4


def _offsets(
    consumer: Consumer,
    place: TopicPartition,
    bounds: tuple[int, int],
    most: int,
    doing: str,
    deadline: float,
) -> deque[int]:
    """Offsets of the last records, `most` at most, between two of a partition's offsets."""
    start, end = bounds
    found: deque[int] = deque(maxlen=most)
    if start >= end or most == 0:
        return found
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    left = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
    one = Wanted(place.topic, start, partition=place.partition, timeout=left)
    found.extend(
        message.offset()
        for message in _records(consumer, one, {place.partition: end}, doing, deadline)
    )
    return found


def _records(
    consumer: Consumer, wanted: Wanted, ends: Mapping[int, int], doing: str, deadline: float
) -> Iterator[Message]:
    """Records before the `ends` (partition -> offset), or on and on while following."""
    ended: set[int] = set()
    count = 0
    while wanted.follow or len(ended) < len(ends):
        if wanted.most is not None and count >= wanted.most:
            return
        left = min(0.5, deadline - time.monotonic())
        if left <= 0:
            _short(wanted, count, doing)
            return
        with translating(doing):
            message = consumer.poll(left)
        if message is None:
            continue
        error = message.error()
        if error is None:
            partition, offset = message.partition(), message.offset()
            if offset + 1 >= ends[partition]:
                ended.add(partition)
            # a topic that is being written has records behind its end by now
            if wanted.follow or offset < ends[partition]:
                count += 1
                yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own codes
            ended.add(message.partition())
        elif error.code() not in _PASSING:
            raise translated(error, doing)


_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})  # noqa: SLF001
"""Errors after which the client library tries again by itself."""


def _short(wanted: Wanted, count: int, doing: str) -> None:
    """The time is over: an error only for somebody who waited for a number of records."""
    if wanted.most is not None and wanted.follow:
        raise WaitTimeoutError(
            f"{doing}: {count} of {wanted.most} records came within {wanted.timeout:g} s"
        )
    if not wanted.follow:
        raise WaitTimeoutError(f"{doing}: the end was not reached within {wanted.timeout:g} s")
