"""What trust costs: verifying a long log against hashing and decoding it only, and signing."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.replay import sign, write
from benchmarks.report import surroundings, tell
from benchmarks.scratch import scratch_log
from benchmarks.workload import Workload
from local_platform import Endpoints
from mesh_events import avro
from mesh_events.codec import decode, encode, frame
from mesh_events.decisions import SchemaIntroduced
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.intents import AccessRequested
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.meta import Meta, new_id
from mesh_events.read import to_record
from mesh_events.record import Record
from projections.integrity.chain import Chain, chained
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import replay
from self_service.cli.verification.scope import Scope
from self_service.cli.verification.verifier import verify

SIGNED = 20_000
"""Intents that are encoded with and without a signature."""
Figures = dict[str, dict[str, Any]]


def run(endpoints: Endpoints, events: int) -> None:
    """Write `events` records with a checkpoint over every thousand, and verify them."""
    around = surroundings()
    with scratch_log(endpoints) as (login, topic):
        workload = Workload()
        count, _ = write(login, topic, events, workload)
        figures = _figures(login, topic, count, workload)
    tell("verify", around, {**figures, **_signing(workload)})


def _figures(login: Connection, topic: str, count: int, workload: Workload) -> Figures:
    root, governor = workload.key("root").public, workload.key("gov").public
    signed: list[SignedCheckpoint] = []
    _timed(login, topic, lambda log: sign(log, workload.key("controller"), signed))
    chain, trusted = chained(signed[0].body.origin, signed), TrustedCheckpoints(signed, root)

    def checked(scope: Scope) -> Callable[[Iterator[Record]], object]:
        return lambda log: _verified(log, root, governor, chain, scope)

    ways: dict[str, Callable[[Iterator[Record]], object]] = {
        "floor: consume, hash, decode": _hash_and_decode,
        "verify, hashes of what is covered": checked(Scope(count - 1)),
        "verify, with every signature and decision": checked(Scope()),
        "replay, covered by checkpoints": lambda log: replay(log, trusted=trusted),
        "replay, with every signature": replay,
    }
    figures: Figures = {}
    floor = 0.0
    for name, work in ways.items():
        seconds = _timed(login, topic, work)
        floor = floor or seconds
        figures[name] = {
            "events": count,
            "seconds": round(seconds, 1),
            "events/s": round(count / seconds),
            "of floor": round(floor / seconds, 2),
        }
    return figures


def _verified(
    records: Iterator[Record], root: str, governor: str, chain: Chain, scope: Scope
) -> None:
    report = verify(records, root, governor, chain=chain, scope=scope)
    if report.findings:
        raise RuntimeError(f"an honest log was found wanting: {report.findings[0]}")


def _hash_and_decode(records: Iterator[Record]) -> None:
    schemas: dict[int, str] = {}
    for record in records:
        leaf_hash(record)
        event = decode(record, schemas, None, verify=False).event
        if isinstance(event, SchemaIntroduced):
            schemas[event.schema_id] = event.schema_text


def _timed(login: Connection, topic: str, work: Callable[[Iterator[Record]], object]) -> float:
    with PartitionReader(login, topic) as reader:
        start = time.perf_counter()
        work(map(to_record, reader.to_end()))
        return time.perf_counter() - start


def _signing(workload: Workload) -> Figures:
    """An intent as Avro, and the same signed: what each emitter pays."""
    key = workload.key("op")
    identity = new_id()
    meta = Meta.model_validate(
        {
            "id": identity,
            "time": "2026-01-01T00:00:00Z",
            "actor": "benchmark",
            "domain": "west",
            "correlation": identity,
            "producer": "benchmark",
        }
    )
    event = AccessRequested(meta=meta, product="east.p1", application="west.a1", reason="figures")
    text = avro.text_of(event.type_name())
    plain = _each(lambda: frame(100, text, event.model_dump()))
    signed = _each(lambda: encode(event, 100, key, workload.key("root").public))
    return {
        "floor: an intent as Avro": {"events": SIGNED, "us each": plain},
        "an intent, signed": {
            "events": SIGNED,
            "us each": signed,
            "of floor": round(plain / signed, 2),
        },
    }


def _each(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(SIGNED):
        work()
    return round((time.perf_counter() - start) / SIGNED * 1e6, 1)
