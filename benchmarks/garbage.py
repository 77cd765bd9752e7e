"""What very many unusable records cost: a worker, its standby, and both started anew.

They are written by the administrator, whom no quota slows down. Memory is resident memory of the
process; `peak` was seen while the records were written and folded.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import requests
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.members import Members
from benchmarks.report import surroundings, tell
from local_platform import Endpoints
from mesh_events import topics
from mesh_events.kafka.partition_reader import PartitionReader

BYTES = 100
PATIENCE_S = 3600
MIB = 1 << 20


class Worker:
    """A worker process, found by the address at which it answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.peak = 0
        wait(self.answer, 120)
        self.process = _listener(url)

    def answer(self) -> dict[str, Any] | None:
        """What `/ready` tells; None while nobody answers."""
        try:
            found: dict[str, Any] = requests.get(f"{self.url}/ready", timeout=30).json()
        except requests.RequestException:
            return None
        return found

    def undecided(self) -> float:
        """Records without a decision, as its metrics say."""
        text = requests.get(f"{self.url}/metrics", timeout=30).text
        found = {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        return float(found["mesh_undecided_intents"])

    def has_folded(self, offset: int) -> bool:
        """Whether its fold stands at `offset` or behind it."""
        return bool((self.answer() or {"offset": -1})["offset"] >= offset)

    def mib(self) -> int:
        """Resident memory now."""
        found = self.process.memory_info().rss
        self.peak = max(self.peak, found)
        return round(found / MIB)


def run(endpoints: Endpoints, home: Path, records: int) -> None:
    """All figures with so many records."""
    around, members = surroundings(), Members(endpoints, home)
    owner = Worker(members.settings.governor_url)
    with _standby(owner) as other:
        before = [owner.mib(), other.mib()]
        begun = time.monotonic()
        watching = threading.Event()
        watcher = threading.Thread(target=_watch, args=([owner, other], watching))
        watcher.start()
        end = _write(members, records)
        written = time.monotonic() - begun
        wait(lambda: owner.has_folded(end) and owner.undecided() == 0, PATIENCE_S)
        decided = time.monotonic() - begun
        wait(lambda: other.has_folded(end), PATIENCE_S)
        watching.set()
        watcher.join()
        figures: dict[str, dict[str, Any]] = {
            "records": {"n": records, "bytes_each": BYTES, "written_s": round(written)},
            "worker": _figure(owner, before[0]) | {"folded_and_decided_s": round(decided)},
            "standby": _figure(other, before[1]),
        }
        os.kill(owner.process.pid, signal.SIGKILL)
        begun = time.monotonic()
        wait(lambda: (other.answer() or {}).get("ready"), PATIENCE_S)
        figures["standby takes over"] = {"ready_s": round(time.monotonic() - begun, 1)}
        # its supervisor starts it anew
        wait(lambda: owner.has_folded(end), PATIENCE_S)
        figures["restarted"] = {"folded_s": round(time.monotonic() - begun, 1)}
        owner.process = _listener(owner.url)
        figures["restarted"]["after_mib"] = owner.mib()
    tell("garbage", around, figures)


def wait(condition: Callable[[], object], seconds: float) -> None:
    """Ask a few times a second, so that asking costs the worker little."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("what the benchmark waits for did not happen: see `sdm status`")
        time.sleep(0.3)


def _figure(worker: Worker, before: int) -> dict[str, Any]:
    after = worker.mib()
    return {"before_mib": before, "peak_mib": round(worker.peak / MIB), "after_mib": after}


def _listener(url: str) -> psutil.Process:
    port = int(url.rpartition(":")[2])
    for process in psutil.process_iter():
        try:
            connections = process.net_connections("tcp")
        except psutil.Error:
            continue
        if any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in connections):
            return process
    raise SystemExit(f"nobody listens at {url}: run `sdm up`")


@contextmanager
def _standby(owner: Worker) -> Iterator[Worker]:
    """A second worker of the same mesh, at the next free port."""
    host, _, port = owner.url.rpartition(":")
    url = f"{host}:{int(port) + 5}"
    process = subprocess.Popen(
        [sys.executable, "-m", "processors"],
        env={**owner.process.environ(), "SDM_GOVERNOR_URL": url},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Worker(url)
    finally:
        process.kill()
        process.wait()


def _watch(workers: list[Worker], over: threading.Event) -> None:
    while not over.wait(0.5):
        for worker in workers:
            worker.mib()


def _write(members: Members, count: int) -> int:
    """Append the records; the offset of the last one."""
    producer = Producer(
        members.clusters["east"].login.config(linger_ms=20, queue_buffering_max_messages=1_000_000)
    )
    garbage = os.urandom(BYTES)
    for _ in range(count):
        while True:
            try:
                producer.produce(topics.GOVERNANCE, garbage, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(60)
    with PartitionReader(members.clusters["east"].login, topics.GOVERNANCE, None) as log:
        return log.bounds()[1] - 1
