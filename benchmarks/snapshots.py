"""The state at any offset of a long log: out of snapshots, against full replays of it."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.replay import sign, write
from benchmarks.report import spread, surroundings, tell
from benchmarks.scratch import scratch_log
from benchmarks.workload import Workload
from local_platform import Endpoints
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import to_record
from mesh_events.record import Record
from projections.checksum import checksum
from projections.image import Image
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import replay
from snapshots.history import Read, extend, image_at
from snapshots.store import Store

COMPARED = 5
"""Offsets at which the whole state is held against a full replay."""
SEED = 1


def run(endpoints: Endpoints, events: int, questions: int) -> None:
    """Write `events` records, make snapshots of them, ask `questions` times what was then."""
    around = surroundings()
    with scratch_log(endpoints) as (login, topic):
        with tempfile.TemporaryDirectory() as folder:
            workload = Workload()
            count, _ = write(login, topic, events, workload)
            figures = _figures(login, topic, count, questions, Path(folder), workload)
        tell("snapshots", around, figures)


def _figures(
    login: Connection, topic: str, count: int, questions: int, folder: Path, workload: Workload
) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {}
    with Store(folder / "log.db") as store:
        figures["made"] = _made(store, login, topic, count, workload)
        chance = random.Random(SEED)
        offsets = [chance.randrange(count) for _ in range(questions)]
        with PartitionReader(login, topic, None, brief=True) as reader:
            for name, question in QUESTIONS.items():
                figures[name] = _answered(store, _log(reader), offsets, question)
            asked = offsets[:COMPARED]
            start = time.perf_counter()
            found = [checksum(image_at(store, _log(reader), at_offset=at)) for at in asked]
            took = (time.perf_counter() - start) / len(asked)
        figures["checksum of everything"] = {"n": len(asked), "mean_ms": round(took * 1000)}
        figures["the same by a full replay"] = _replayed(login, topic, asked, found)
    return figures


def _made(
    store: Store, login: Connection, topic: str, count: int, workload: Workload
) -> dict[str, Any]:
    signed: list[SignedCheckpoint] = []
    with PartitionReader(login, topic) as reader:
        sign(map(to_record, reader.to_end()), workload.key("controller"), signed)
    trusted = TrustedCheckpoints(signed, workload.key("root").public)
    with PartitionReader(login, topic, None) as reader:
        start = time.perf_counter()
        made = extend(store, _log(reader), trusted)
        took = time.perf_counter() - start
    return {
        "n": made,
        "seconds": round(took, 1),
        "events/s": round(count / took),
        "MB": round(store.path.stat().st_size / 1e6),
    }


def _answered(
    store: Store, read: Read, offsets: list[int], question: Callable[[Image], object]
) -> dict[str, Any]:
    took: list[float] = []
    for at in offsets:
        start = time.perf_counter()
        question(image_at(store, read, at_offset=at))
        took.append(time.perf_counter() - start)
    return spread(took)


def _replayed(login: Connection, topic: str, asked: list[int], found: list[str]) -> dict[str, Any]:
    start, equal = time.perf_counter(), 0
    for at, expected in zip(asked, found, strict=True):
        with PartitionReader(login, topic) as reader:
            records = map(to_record, reader.to_end())
            equal += checksum(replay(records, at_offset=at, verify=False)) == expected
    took = (time.perf_counter() - start) / len(asked)
    return {"n": len(asked), "equal": equal, "mean_ms": round(took * 1000)}


def _log(reader: PartitionReader) -> Read:
    def read(start: int) -> Iterator[Record]:
        reader.seek(start)
        return map(to_record, reader.to_end())

    return read


def _may_read(image: Image) -> object:
    """Who may read a product, and since when."""
    return image.catalog.get("east.p7"), image.access.open_for("east.p7", "west.a7")


def _catalog(image: Image) -> object:
    """Every product with its page."""
    return list(image.catalog.values())


QUESTIONS: dict[str, Callable[[Image], object]] = {
    "who may read one product": _may_read,
    "the whole catalog": _catalog,
}
