"""The link: latency of single records at a steady rate, and how fast a backlog is copied."""

import struct
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.control import Bench
from benchmarks.members import wait
from benchmarks.report import spread, surroundings, tell
from local_platform import Endpoints
from mesh_events.intents import AccessGranted, AccessRequested, Engine, LinkPaused, LinkResumed
from mesh_events.kafka.connection import Connection
from projections.links import link_id
from spark_streams.log import KafkaLog
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail

RATE_PER_S = 1000
SECONDS = 20
WARM_UP_S = 5
"""So long records are sent at the same rate before those that count: the first wait for the
producer's connection."""
VALUE_BYTES = 200


def run(endpoints: Endpoints, home: Path, backlog: int) -> None:
    """A grant to another cluster; then records through its link, each with its time of sending.

    First Spark copies, then MirrorMaker takes the same copy over.
    """
    around = surroundings() | {"warm_up_s": WARM_UP_S}
    bench = Bench(endpoints, home, partitions=4)
    source, copy = bench.clusters["east"].login, bench.clusters["west"].login
    _grant(bench)
    wait(lambda: _state(bench) == "ACTIVE")
    floor = spread(_latency(source, source, bench.product))
    figures = {f"floor: {RATE_PER_S} records/s, read at the source": floor}
    about = {"product": bench.product, "cluster": "west"}
    for engine in (Engine.SPARK, Engine.MIRRORMAKER):
        if _engine(bench) is not engine:
            bench.submit(bench.owner, LinkResumed(meta=bench.owner.meta(), **about, engine=engine))
            wait(lambda: _state(bench) == "ACTIVE")
        latency = spread(_latency(source, copy, bench.product))
        figures[f"{engine}: {RATE_PER_S} records/s, read at the copy"] = latency
        bench.submit(bench.owner, LinkPaused(meta=bench.owner.meta(), **about))
        wait(lambda: _state(bench) == "PAUSED")
        wrote = _write(source, bench.product, backlog)
        start = time.perf_counter()
        bench.submit(bench.owner, LinkResumed(meta=bench.owner.meta(), **about))
        wait(lambda: _is_complete(bench, source, copy), 300)
        took = time.perf_counter() - start
        figures[f"{engine}: backlog of {backlog} records, from resume to the end"] = {
            "seconds": round(took, 1),
            "records/s": round(backlog / took),
            "of writing them": round(wrote / took, 2),
        }
        bench.submit(bench.owner, LinkPaused(meta=bench.owner.meta(), **about))
        wait(lambda: _state(bench) == "PAUSED")
    tell("link", around, figures)


def _grant(bench: Bench) -> None:
    asked = AccessRequested(
        meta=bench.there.meta(),
        product=bench.product,
        application=bench.apps["over the link"],
        reason="figures",
    )
    bench.submit(bench.there, asked)
    bench.submit(
        bench.owner,
        AccessGranted(meta=bench.owner.meta(), product=bench.product, request=asked.meta.id),
    )


def _state(bench: Bench) -> str | None:
    link = bench.image().links.get(link_id(bench.product, "west"))
    return str(link.state) if link is not None else None


def _engine(bench: Bench) -> Engine:
    return bench.image().links[link_id(bench.product, "west")].engine


def _latency(source: Connection, place: Connection, topic: str) -> list[float]:
    """Seconds from producing to reading, at `place`, after the warm-up."""
    consumer = _at_end(place, topic)
    producer = Producer(source.config(linger_ms=0, enable_idempotence=True))
    took: list[float] = []
    start = time.perf_counter()
    sent, seconds = 0, WARM_UP_S + SECONDS
    while len(took) < RATE_PER_S * seconds and time.perf_counter() - start < seconds + 30:
        due = min(RATE_PER_S * seconds, round((time.perf_counter() - start) * RATE_PER_S))
        while sent < due:
            value = struct.pack(">d", time.perf_counter()).ljust(VALUE_BYTES, b"x")
            producer.produce(topic, value, partition=sent % 4)
            sent += 1
        producer.poll(0)
        found = [m.value() for m in consumer.consume(500, 0.001) if m.error() is None]
        now = time.perf_counter()
        took.extend(now - struct.unpack(">d", value[:8])[0] for value in found)
    consumer.close()
    return took[RATE_PER_S * WARM_UP_S :]


def _at_end(place: Connection, topic: str) -> Consumer:
    consumer = Consumer(
        place.config(
            group_id="admin.figures", fetch_wait_max_ms=50, isolation_level="read_committed"
        )
    )
    ends = [
        TopicPartition(
            topic,
            number,
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1],
        )
        for number in range(4)
    ]
    consumer.assign(ends)
    consumer.poll(0.5)
    return consumer


def _write(source: Connection, topic: str, count: int) -> float:
    """Seconds that plain writing takes."""
    producer = Producer(source.config(linger_ms=5, queue_buffering_max_messages=1_000_000))
    start = time.perf_counter()
    for number in range(count):
        producer.produce(topic, b"x" * VALUE_BYTES, partition=number % 4)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(120)
    return time.perf_counter() - start


def _is_complete(bench: Bench, source: Connection, copy: Connection) -> bool:
    """Whether the last record of each of the source's partitions is in the copy."""
    link = bench.image().links[link_id(bench.product, "west")]
    there, here = KafkaLog(source, committed=True), KafkaLog(copy, committed=True)
    origin = Origin(link.source_cluster, link.source_topic_id or "")
    copied = positions(read_tail(here, bench.product, 4, origin))
    ends = {number: end for number, (_, end) in there.bounds(bench.product, range(4)).items()}
    for log in (there, here):
        log.close()
    return copied == ends
