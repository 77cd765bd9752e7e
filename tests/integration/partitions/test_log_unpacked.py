"""Ends of topics whose last record is small on the wire and large once it is unpacked."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from local_platform.jvm import JVM_BOUNDS
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin
from spark_streams.errors import CopyError
from spark_streams.log import KafkaLog
from spark_streams.provenance import HEADER, Origin, Provenance
from spark_streams.tail import read_tail
from tests.integration.local_platform.bounded import broker
from tests.links.real import until

pytestmark = pytest.mark.platform
ZEROS = {"gzip": 600_000_000, "zstd": 600_000_000, "lz4": 600_000_000, "snappy": 250_000_000}
"""Compression -> bytes of a record; it packs some by a thousandth, and some by a twentieth."""
ROOM = 150_000_000
"""Bytes by which the process that looks may grow."""
KINDS = list(ZEROS)
ORIGIN = Origin("east", "id")
PLACE = (HEADER, Provenance(ORIGIN, 0, 4).encode())
LOOK = """
import json, resource, sys
from mesh_events.kafka.connection import Connection
from spark_streams.log import KafkaLog
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
servers, user, topic, committed = sys.argv[1:]
log = KafkaLog(Connection(servers, user, sys.stdin.read()), committed=committed == "True")
bounds = log.bounds(topic, [0])
before = most()
[found] = log.last(topic, bounds).values()
print(json.dumps([found.offset, len(found.headers), most() - before]))
log.close()
"""
"""Looks at a topic's end, and prints by how many bytes the process has grown meanwhile."""


@pytest.fixture(scope="module")
def east() -> Iterator[KafkaAdmin]:
    """A broker of this module's own, without bounds: it takes what unpacks to any size."""
    with broker(dict.fromkeys(JVM_BOUNDS, 2**31 - 1), []) as login:
        yield KafkaAdmin("east", login)


@pytest.fixture
def topic(east: KafkaAdmin) -> Iterator[str]:
    name = f"east.t{uuid.uuid4().hex[:10]}"
    east.create_topic(name, 1, {"max.message.bytes": str(16 * 1024 * 1024)})
    until(lambda: east.topic(name) is not None, 120)
    yield name
    east.delete_topic(name)


def write(login: Connection, topic: str, value: bytes, kind: str, count: int = 1) -> None:
    producer = Producer(
        login.config(compression_type=kind, message_max_bytes=1_000_000_000, linger_ms=50)
    )
    for _ in range(count):
        producer.produce(topic, value, b"k", 0, headers=[PLACE])
    assert producer.flush(180) == 0


@pytest.mark.parametrize("committed", [False, True], ids=["all", "committed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_unpacks_to_very_much_is_not_unpacked(
    east: KafkaAdmin, topic: str, kind: str, committed: bool
) -> None:
    """The place of it is known all the same; what it says is not."""
    write(east.login, topic, b"first", "none")
    write(east.login, topic, bytes(ZEROS[kind]), kind)
    login = east.login
    assert login.tls is None
    done = subprocess.run(
        [sys.executable, "-c", LOOK, login.bootstrap_servers, login.user, topic, str(committed)],
        input=login.password,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    offset, read, grown = json.loads(done.stdout)
    assert grown < ROOM
    assert (offset, read) == (1, 0)
    log = KafkaLog(login, committed=committed)
    try:
        with pytest.raises(CopyError) as caught:
            read_tail(log, topic, 1, ORIGIN)
    finally:
        log.close()
    assert caught.value.code == "destination_unreadable"
    assert f"{topic}/0 offset 1" in caught.value.reason
    assert "sdm kafka delete-records" in caught.value.reason


@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_the_last_record_of_a_packed_batch_is_read(east: KafkaAdmin, topic: str, kind: str) -> None:
    write(east.login, topic, b"value" * 100, kind, count=50)
    log = KafkaLog(east.login, committed=True)
    try:
        bounds = log.bounds(topic, [0])
        assert bounds == {0: (0, 50)}
        [last] = log.last(topic, bounds).values()
        assert (last.offset, last.headers, last.unread) == (49, (PLACE,), "")
        [last] = log.last(topic, {0: (0, 20)}).values()
        assert (last.offset, last.headers) == (19, (PLACE,))
        assert log.last(topic, {0: (50, 50)}) == {}
    finally:
        log.close()


@pytest.mark.parametrize("kind", ["none", "zstd"])
def test_what_a_transaction_took_back_is_no_last_record(
    east: KafkaAdmin, topic: str, kind: str
) -> None:
    writer = Producer(
        east.login.config(
            transactional_id=topic, compression_type=kind, transaction_timeout_ms=60_000
        )
    )
    writer.init_transactions(30)

    def write_in_transaction(count: int) -> None:
        writer.begin_transaction()
        for _ in range(count):
            writer.produce(topic, b"value", b"k", 0, headers=[PLACE])
        assert writer.flush(30) == 0

    committed, everything = KafkaLog(east.login, committed=True), KafkaLog(east.login)

    def last(log: KafkaLog) -> dict[int, int]:
        found = log.last(topic, log.bounds(topic, [0]))
        return {partition: one.offset for partition, one in found.items()}

    try:
        write_in_transaction(3)
        writer.abort_transaction(30)
        assert (last(committed), last(everything)) == ({}, {0: 2})
        write_in_transaction(2)
        writer.commit_transaction(30)
        # the marker is written after the answer
        until(lambda: committed.bounds(topic, [0]) == {0: (0, 7)}, 120)
        for _ in range(20):
            write_in_transaction(1)
            writer.abort_transaction(30)
        assert (last(committed), last(everything)) == ({0: 5}, {0: 45})
        write_in_transaction(1)
        assert (last(committed), last(everything)) == ({0: 5}, {0: 47})
        writer.commit_transaction(30)
        until(lambda: committed.bounds(topic, [0]) == {0: (0, 49)}, 120)
        assert (last(committed), last(everything)) == ({0: 47}, {0: 47})
    finally:
        committed.close()
        everything.close()
