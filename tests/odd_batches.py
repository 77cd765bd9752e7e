"""Record batches as no client writes them, and a way to have a broker take them."""

import asyncio
import time
from collections.abc import Sequence
from struct import pack
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from mesh_events.kafka.connection import SCRAM, Connection
from mesh_events.kafka.transport import protocol


def number(value: int) -> bytes:
    """A signed number in zig-zag form."""
    left, found = ((value << 1) ^ (value >> 63)) & (2**64 - 1), bytearray()
    while left > 0x7F:
        found.append((left & 0x7F) | 0x80)
        left >>= 7
    return bytes([*found, left])


def wide(value: int) -> bytes:
    """A signed number in five bytes, of which the last has a bit above 32 that brokers drop."""
    zigzag = (((value << 1) ^ (value >> 31)) & 0xFFFFFFFF) | 1 << 33
    return bytes([*((zigzag >> shift) & 0x7F | 0x80 for shift in (0, 7, 14, 21)), zigzag >> 28])


def widened(
    key: bytes = b"k", value: bytes = b"v", headers: bytes | None = None, *, of: str
) -> bytes:
    """A record with the length that `of` names in five bytes; `headers` are encoded already."""
    encode = {one: wide if one == of else number for one in ("record", "key", "value", "count")}
    parts = [b"\0", number(0), number(0), encode["key"](len(key)), key]
    parts += [encode["value"](len(value)), value]
    parts += [encode["count"](0) if headers is None else headers]
    body = b"".join(parts)
    return encode["record"](len(body)) + body


def text(value: bytes | None, length: int | None = None) -> bytes:
    """A length and the bytes; a negative `length` stands alone."""
    if length is not None and length < 0:
        return number(length)
    return number(-1) if value is None else number(len(value)) + value


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[bytes] = (),
    *,
    delta: int = 0,
    attributes: int = 0,
    key_length: int | None = None,
    value_length: int | None = None,
) -> bytes:
    """One record; `headers` are names and values, encoded."""
    parts = [bytes([attributes]), number(0), number(delta)]
    parts += [text(key, key_length), text(value, value_length)]
    parts += [number(len(headers)), *headers]
    body = b"".join(parts)
    return number(len(body)) + body


def header(name: bytes, value: bytes | None, length: int | None = None) -> bytes:
    """A header of a record."""
    return text(name) + text(value, length)


def batch(*records: bytes, attributes: int = 0, base: int = 0, time_ms: int | None = None) -> bytes:
    """A batch without a producer id."""
    return packed(b"".join(records), len(records), attributes, base=base, time_ms=time_ms)


def packed(
    data: bytes,
    count: int,
    codec: int,
    *,
    base: int = 0,
    time_ms: int | None = None,
    producer: int | None = None,
) -> bytes:
    """A batch of `count` records, whose bytes are compressed already as the attributes say.

    With the id of a producer, it is that producer's first batch.
    """
    now = int(time.time() * 1000) if time_ms is None else time_ms
    sender = (-1, -1, -1) if producer is None else (producer, 0, 0)
    tail = pack(">hiqqqhii", codec, count - 1, now, now, *sender, count) + data
    return pack(">qiibI", base, 9 + len(tail), -1, 2, calc_crc32c(tail)) + tail


ODD = {
    "an offset far away": batch(record(delta=1_000_000)),
    "an offset before the batch": batch(record(delta=-5)),
    "one before the batch, and its own": batch(record(value=b"1", delta=-1), record(value=b"2")),
    "several before the batch": batch(
        *(record(value=bytes([one]), delta=one - 2) for one in range(5))
    ),
    "offsets in the wrong order": batch(record(value=b"1", delta=1), record(value=b"2")),
    "one offset twice": batch(record(value=b"1"), record(value=b"2")),
    "a gap": batch(record(value=b"1"), record(value=b"2", delta=7), record(value=b"3", delta=2)),
    "a value of length -2": batch(record(value_length=-2)),
    "a key of length -2": batch(record(key_length=-2)),
    "a value of length -2 behind a good one": batch(record(), record(delta=1, value_length=-2)),
    "a length that is very negative": batch(record(value_length=-(2**31))),
    "a value of a negative length with a bit above 32": batch(record(value_length=-(2**32))),
    "a key of a negative length with a bit above 32": batch(record(key_length=-(2**32))),
    "a header's name with a zero byte": batch(
        record(headers=[header(b"ce_id", b"1"), header(b"ce_id\0x", b"2")])
    ),
    "a header's value of length -2": batch(record(headers=[header(b"a", b"", -2)])),
    "a header's name that is no text": batch(record(headers=[header(b"\xff", b"1")])),
    "a header without a name": batch(record(headers=[header(b"", None)])),
    **{f"a wide length of a {of}": batch(widened(of=of)) for of in ("record", "key", "value")},
    "a wide number of headers": batch(widened(of="count")),
    "a wide length of a header's name": batch(
        widened(headers=number(1) + wide(1) + b"a" + number(1) + b"b", of="none")
    ),
    "a wide length of a header's value": batch(
        widened(headers=number(1) + number(1) + b"a" + wide(1) + b"b", of="none")
    ),
    "a wide length of null": batch(record(value=b"1"), widened(of="value", value=b"")),
    "attributes of a record": batch(record(attributes=0xFF)),
    "no key and no value": batch(record(None, None)),
}
"""What a broker takes, by what is odd about it."""


MANY_HEADERS = batch(record(headers=[header(b"", None)] * 100_001))
"""What a broker takes that has no bound of headers."""


def produce(connection: Connection, topic: str, data: bytes) -> int:
    """Have partition 0 take a batch as it is; its first offset. Raises aiokafka's KafkaError."""
    return asyncio.run(_produce(connection, topic, data))


async def _produce(connection: Connection, topic: str, data: bytes) -> int:
    client: Any = AIOKafkaClient(
        bootstrap_servers=connection.bootstrap_servers,
        security_protocol=protocol(connection.tls),
        ssl_context=connection.tls.context() if connection.tls else None,
        sasl_mechanism=SCRAM,
        sasl_plain_username=connection.user,
        sasl_plain_password=connection.password,
    )
    try:
        await client.bootstrap()
        await client.set_topics([topic])
        leader = client.cluster.leader_for_partition(TopicPartition(topic, 0))
        request = ProduceRequest(None, -1, 10_000, [(topic, [(0, data)])])
        answer = await client.send(leader, request)
        [(_, [partition])] = answer.topics
        if partition[1]:
            raise for_code(partition[1])(f"error {partition[1]}")
        return int(partition[2])
    finally:
        await client.close()
