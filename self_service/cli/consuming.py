"""Reading a topic as a person: from a position to the end or on and on, decoded and shown."""

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from mesh_events.errors import (
    InfrastructureError,
    InvalidValueError,
    WaitTimeoutError,
)
from mesh_events.kafka import Connection, header_list, translated, translating
from self_service.cli import subjects
from self_service.cli.exits import NotFoundError
from self_service.cli.output import Format, json_text, printable, rendered, text_of
from self_service.cli.times import stamp

if TYPE_CHECKING:
    from self_service.cli.context import Mesh

_METADATA_TIMEOUT_S = 10
_TRY_S = 2
_GREATEST = 2**63 - 1
"""Kafka counts offsets in 64 bits."""
_DEEPEST = 64
"""Levels of a value that is shown as one; a deeper one is shown as the text that it came as."""
_MARKS: dict[str, int] = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be read.

    start: offset or one of Kafka's marks; last: instead so many offsets before each end
    most: stop after so many records
    timeout: seconds, None for as long as it takes
    follow: go on at the end
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
        starts = [_start(consumer, wanted, one, doing) for one in partitions]
        consumer.assign(starts)
        yield from _records(consumer, wanted, len(partitions), doing, deadline)
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
        raise NotFoundError(
            f"{doing}: there is no such topic; see `sdm topic list`, and "
            "`sdm link list` if it was a copy"
        )
    if topic.error is not None:
        raise translated(topic.error, doing)
    if wanted.partition is None:
        return sorted(topic.partitions)
    if wanted.partition not in topic.partitions:
        raise NotFoundError(f"{doing}: there is no partition {wanted.partition}")
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


def _start(consumer: Consumer, wanted: Wanted, partition: int, doing: str) -> TopicPartition:
    if wanted.last is None and wanted.start in _MARKS.values():
        return TopicPartition(wanted.topic, partition, wanted.start)
    with translating(doing):
        low, high = consumer.get_watermark_offsets(
            TopicPartition(wanted.topic, partition), timeout=_METADATA_TIMEOUT_S
        )
    # a consumer that is sent behind the end begins at the first record instead
    offset = wanted.start if wanted.last is None else high - wanted.last
    return TopicPartition(wanted.topic, partition, min(max(low, offset), high))


def _records(
    consumer: Consumer, wanted: Wanted, partitions: int, doing: str, deadline: float
) -> Iterator[Message]:
    ended: set[int] = set()
    count = 0
    while wanted.follow or len(ended) < partitions:
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
            ended.discard(message.partition())
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


class Decoder:
    """Bytes of a topic as values: Avro of the registry, else JSON, else text, else hex digits."""

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh

    def value(self, data: bytes | None) -> tuple[Any, int | None]:
        """(value, schema id); the id is None for what is not Avro of the registry."""
        if data is None:
            return None, None
        if len(data) >= 5 and data[0] == 0:
            schema_id = int.from_bytes(data[1:5], "big")
            try:
                text = self._mesh.registry.schema_text(schema_id)
                found = subjects.decoded(text, data)
                return (found, schema_id) if _is_shallow(found) else (text_of(data), None)
            except ValueError:
                return text_of(data), None
            except InfrastructureError as error:
                if error.retriable:
                    raise
                return text_of(data), None
        return _plain(data), None

    def document(self, message: Message, *, headers: bool) -> dict[str, Any]:
        """A record as shown; `tombstone` tells a null value from an empty one."""
        key, key_schema = self.value(message.key())
        value, schema = self.value(message.value())
        shown: dict[str, Any] = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "time": stamp(message.timestamp()[1]),
            "key": key,
            "value": value,
            "tombstone": message.value() is None,
            "key_schema": key_schema,
            "value_schema": schema,
        }
        if headers:
            # pairs, since a name may stand there several times
            shown["headers"] = [
                [name, None if data is None else text_of(data)]
                for name, data in header_list(message)
            ]
        return shown


def _plain(data: bytes) -> Any:
    text = text_of(data)
    if text[:1] in ("{", "["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return found if _is_shallow(found) else text
    return text


def _is_shallow(value: Any) -> bool:
    """Whether a value can be written out: a writer may nest thousands of brackets."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False


def write(document: dict[str, Any], form: Format) -> None:
    """One record on stdout, at once: a line, a JSON line, or a YAML document."""
    if form is Format.TABLE:
        text = _line(document)
    elif form is Format.JSON:
        # one line per record, so that a pipe can follow
        text = _one_line(document) + "\n"
    else:
        text = "---\n" + rendered(document, Format.YAML)
    sys.stdout.write(text)
    sys.stdout.flush()


def _line(document: dict[str, Any]) -> str:
    position = f"{document['partition']}@{document['offset']}"
    value = "(tombstone)" if document["tombstone"] else _compact(document["value"])
    line = f"{position}\t{document['time']}\t{_compact(document['key'])}\t{value}\n"
    headers = "".join(f"\t{name}: {value}\n" for name, value in document.get("headers", []))
    return "\n".join(
        "\t".join(printable(part) for part in row.split("\t"))
        for row in (line + headers).split("\n")
    )


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "-"
    return _one_line(value)


def _one_line(value: Any) -> str:
    return json_text(json.loads(rendered(value, Format.JSON)))
