"""Replaying a long log: ours against consuming and decoding only, on the same records."""

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Producer

from benchmarks.report import surroundings, tell
from benchmarks.scratch import scratch_log
from benchmarks.workload import Workload
from local_platform import Endpoints
from mesh_events.codec import decode
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import to_record
from mesh_events.record import Record
from mesh_events.signing import SigningKey
from projections.integrity.log_verifier import LogVerifier
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import replay

EVERY = 1000
"""A checkpoint is signed over so many records, as the worker does by default."""


def run(endpoints: Endpoints, events: int, verified: int) -> None:
    """Write `events` records to a topic of its own; replay them in several ways.

    `verified` records are replayed with all signatures checked.
    """
    around = surroundings()
    with scratch_log(endpoints) as (login, topic):
        workload = Workload()
        count, took = write(login, topic, events, workload)
        figures: dict[str, dict[str, Any]] = {"encode, sign, write": _rate(count, took)}
        floor = _rate(*_timed(login, topic, _consume))
        figures["floor: consume only"] = floor
        decoded = _rate(*_timed(login, topic, _decode))
        figures["floor: consume and decode"] = decoded
        folded = _rate(*_timed(login, topic, _fold))
        figures["replay"] = {**folded, "of decode": _ratio(folded, decoded)}
        checked = _rate(*_timed(login, topic, _verify, verified))
        figures["replay, signatures checked"] = {**checked, "of decode": _ratio(checked, decoded)}
        signed: list[SignedCheckpoint] = []
        controller = workload.key("controller")
        hashed = _rate(*_timed(login, topic, lambda log: sign(log, controller, signed)))
        figures["tree and checkpoints"] = {**hashed, "of consume": _ratio(hashed, floor)}
        trusted = TrustedCheckpoints(signed, workload.key("root").public)
        believed = _rate(*_timed(login, topic, lambda log: _believe(log, trusted)))
        figures["replay, covered by checkpoints"] = {
            **believed,
            "of decode": _ratio(believed, decoded),
        }
        tell("replay", around, figures)


def write(login: Connection, topic: str, events: int, workload: Workload) -> tuple[int, float]:
    """Write at least so many records; returns how many and the seconds it took."""
    producer = Producer(
        login.config(linger_ms=20, batch_size=1_000_000, queue_buffering_max_messages=200_000)
    )
    start, count = time.perf_counter(), 0
    for wire in workload.records(events):
        while True:
            try:
                producer.produce(
                    topic,
                    wire.value,
                    wire.key,
                    0,
                    timestamp=workload.time_ms,
                    headers=wire.headers,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        count += 1
    producer.flush(60)
    return count, time.perf_counter() - start


def _timed(login: Connection, topic: str, work: Any, most: int | None = None) -> tuple[int, float]:
    with PartitionReader(login, topic) as reader:
        start = time.perf_counter()
        count = work(_records(reader, most))
        return count, time.perf_counter() - start


def _records(reader: PartitionReader, most: int | None) -> Iterator[Record]:
    for number, message in enumerate(reader.to_end()):
        if most is not None and number >= most:
            return
        yield to_record(message)


def _consume(records: Iterator[Record]) -> int:
    return sum(1 for _ in records)


def _decode(records: Iterator[Record]) -> int:
    """Decode with all schemas known; the first records introduce them."""
    schemas: dict[int, str] = {}
    count = 0
    for record in records:
        event = decode(record, schemas, None, verify=False).event
        if event is not None and event.type_name() == "SchemaIntroduced":
            schemas[event.schema_id] = event.schema_text  # type: ignore[attr-defined]
        count += 1
    return count


def _fold(records: Iterator[Record]) -> int:
    return replay(records, verify=False).offset + 1


def _verify(records: Iterator[Record]) -> int:
    return replay(records).offset + 1


def sign(records: Iterator[Record], key: SigningKey, signed: list[SignedCheckpoint]) -> int:
    """The tree over the log, and a checkpoint over every thousand records and over the rest."""
    verifier = LogVerifier()
    for record in records:
        verifier.take(record)
        if verifier.unconfirmed == EVERY:
            signed.append(_head(verifier, key))
    if verifier.unconfirmed:
        signed.append(_head(verifier, key))
    return verifier.size


def _head(verifier: LogVerifier, key: SigningKey) -> SignedCheckpoint:
    body = verifier.head("benchmark/mesh.governance", EVERY)
    verifier.confirm(body)
    return body.sign(key)


def _believe(records: Iterator[Record], trusted: TrustedCheckpoints) -> int:
    return replay(records, trusted=trusted).offset + 1


def _rate(count: int, seconds: float) -> dict[str, Any]:
    return {"events": count, "seconds": round(seconds, 1), "events/s": round(count / seconds)}


def _ratio(ours: dict[str, Any], floor: dict[str, Any]) -> float:
    return round(float(ours["events/s"]) / float(floor["events/s"]), 2)
