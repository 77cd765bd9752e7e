"""How many decisions a second, and how long intents take beside a domain that writes all it can.

Durations on the log are differences of its append times (ms); those up to a row are seen by one
client that emits and reads.
"""

import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.latency import UPDATES, row_latency
from benchmarks.members import Members, wait
from benchmarks.processes import service_pid
from benchmarks.report import spread, surroundings, tell
from local_platform import Endpoints
from mesh_events import topics
from mesh_events.codec import Wire, decode, encode
from mesh_events.decisions import Decision
from mesh_events.emit import Emitter
from mesh_events.intents import DomainFrozen, DomainThawed, ProductUpdated, intents_login
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.meta import Event
from mesh_events.read import to_record
from mesh_events.statements import StatementAdded

DOMAINS = 20
ROUNDS = 5
FREEZES = 10
FLOOD_WARM_UP_S = 5.0
_PLAIN: dict[str, Any] = {
    "enable_idempotence": False,
    "max_in_flight_requests_per_connection": 1,
    "batch_num_messages": 1_000,
}
"""As every writer of the log: without producer ids, in order, in batches that brokers take."""
Figures = dict[str, dict[str, Any]]


def run(endpoints: Endpoints, home: Path, intents: int) -> None:
    """All figures; `intents` is how many each round of the rate decides."""
    around = surroundings()
    members = Members(endpoints, home)
    emitters = [_member(members, number) for number in range(DOMAINS)]
    figures: Figures = {
        "decisions": _rates(members, emitters, intents, service_pid(home, "governor"))
    }
    writer, reader = emitters[0], emitters[1]
    figures |= _audit_log(home)
    figures["intent -> row, alone"] = _row_latency(members, reader)
    for kind in _FLOODS:
        with _flood(members, writer, kind) as rate:
            figures[f"intent -> row, beside {kind}"] = _row_latency(members, reader) | rate()
        _drain(members)
        with _flood(members, writer, kind) as rate:
            figures[f"freeze -> decision, beside {kind}"] = _freezes(members) | rate()
        _drain(members)
    tell("decisions", around, figures)


def _member(members: Members, number: int) -> Emitter:
    emitter = members.domain(f"d{number}x{members.tag}")
    members.publish(emitter, _product(members, number))
    return emitter


def _product(members: Members, number: int) -> str:
    return f"d{number}x{members.tag}.orders"


def _update(emitter: Emitter, product: str, text: str) -> Event:
    return ProductUpdated(meta=emitter.meta(), product=product, description=text)


def _wire(emitter: Emitter, members: Members, event: Event) -> Wire:
    return encode(
        event, members.registry.schema_id(event.type_name()), emitter.key, emitter.root_key
    )


def _rates(
    members: Members, emitters: Sequence[Emitter], intents: int, governor: int
) -> dict[str, Any]:
    """Decisions a second, of intents that stand on the log when the governor goes on.

    It is stopped while they are appended: the logins' quotas let through less than it decides.
    """
    rates: list[float] = []
    for number in range(ROUNDS):
        sent = [
            [
                _wire(emitter, members, _update(emitter, _product(members, index), f"{number}"))
                for _ in range(intents // DOMAINS)
            ]
            for index, emitter in enumerate(emitters)
        ]
        start = _end(members)
        threads = [
            threading.Thread(target=_produce, args=(_login(members, index), wires))
            for index, wires in enumerate(sent)
        ]
        os.kill(governor, signal.SIGSTOP)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            goes_on = time.time()
        finally:
            os.kill(governor, signal.SIGCONT)
        rates.append(_decided(members, start, sum(map(len, sent)), goes_on))
    return {
        "n": ROUNDS,
        "per_s": round(statistics.median(rates)),
        "least_per_s": round(min(rates)),
        "intents": intents,
    }


def _audit_log(home: Path) -> Figures:
    """`sdm audit log` of what the log has by now; each time in a process of its own."""
    figures: Figures = {}
    for name, options in {"all": [], "the last 20": ["--limit", "20"]}.items():
        took: list[float] = []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            shown = subprocess.run(
                [sys.executable, "-m", "self_service.cli", "audit", "log", "-o", "json", *options],
                env={**os.environ, "SDM_HOME": str(home)},
                capture_output=True,
                check=True,
            ).stdout
            took.append(time.perf_counter() - start)
        figures[f"audit log, {name}"] = {"shown": len(json.loads(shown)), **spread(took[1:])}
    return figures


def _login(members: Members, number: int) -> Connection:
    return members.login(intents_login(f"d{number}x{members.tag}"), "east")


def _produce(login: Connection, wires: Sequence[Wire]) -> None:
    producer = Producer(login.config(acks="all", linger_ms=5, **_PLAIN))
    for wire in wires:
        producer.produce(topics.GOVERNANCE, wire.value, wire.key, partition=0, headers=wire.headers)
    producer.flush(60)


def _end(members: Members) -> int:
    with PartitionReader(members.clusters["east"].login, topics.GOVERNANCE, None) as log:
        return log.bounds()[1]


def _decided(members: Members, start: int, count: int, goes_on: float) -> float:
    """Decisions a second on the `count` intents behind `start`, from `goes_on` to the last one."""
    last, seen = 0, 0
    deadline = time.monotonic() + 300
    schemas = members.image().schemas
    with PartitionReader(members.clusters["east"].login, topics.GOVERNANCE, start) as log:
        while seen < count and time.monotonic() < deadline:
            for message in log.poll(0.2):
                entry = decode(to_record(message), schemas, members.profile.root_key, verify=False)
                if isinstance(entry.event, Decision) and entry.event.offset >= start:
                    seen, last = seen + 1, entry.time
    if seen < count:
        raise SystemExit(f"{count - seen} of {count} intents were not decided within 300 s")
    return count / (last / 1000 - goes_on)


def _row_latency(members: Members, emitter: Emitter) -> dict[str, Any]:
    took = row_latency(members, emitter, _product(members, 1))
    # a row that the next update of the product made needless before it was written
    return spread(took) | {"superseded": UPDATES - len(took)}


def _freezes(members: Members) -> dict[str, Any]:
    """The operator freezes another domain and thaws it -> acceptance, as the operator sees it."""
    domain = f"d2x{members.tag}"
    took: list[float] = []
    for _ in range(FREEZES):
        meta = members.operator.meta()
        until = datetime.now(UTC) + timedelta(hours=1)
        start = time.perf_counter()
        members.submit(
            members.operator, DomainFrozen(meta=meta, domain=domain, until=until, reason="figures")
        )
        took.append(time.perf_counter() - start)
        meta = members.operator.meta()
        members.submit(members.operator, DomainThawed(meta=meta, domain=domain, reason="figures"))
    return spread(took)


@contextmanager
def _flood(members: Members, emitter: Emitter, kind: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """Another process writes as much as Kafka takes, as the first domain; yields its rate."""
    wires = _FLOODS[kind](members, emitter)
    context = multiprocessing.get_context("spawn")
    stop, written = context.Event(), context.Value("q", 0)
    process = context.Process(target=flood, args=(_login(members, 0), wires, stop, written))
    process.start()
    try:
        wait(lambda: written.value > 0)
        time.sleep(FLOOD_WARM_UP_S)
        began, before = time.monotonic(), written.value
        yield lambda: {"flood_per_s": round((written.value - before) / (time.monotonic() - began))}
    finally:
        stop.set()
        process.join(60)


def _unusable(_: Members, __: Emitter) -> list[Wire]:
    return [Wire(os.urandom(8), os.urandom(100), []) for _ in range(1000)]


def _signed(members: Members, emitter: Emitter) -> list[Wire]:
    """Intents that are decided at once; behind the last one come copies of the first."""
    product = _product(members, 0)
    return [_wire(emitter, members, _update(emitter, product, "x")) for _ in range(20_000)]


def _checked(members: Members, emitter: Emitter) -> list[Wire]:
    """Statements whose texts have to be parsed before they are refused: no two are the same."""
    product = _product(members, 0)
    sums = ", ".join(" + ".join(f"length(v{i}{j})" for j in range(20)) for i in range(5))

    def added(number: int) -> Event:
        return StatementAdded(
            meta=emitter.meta(),
            statement=f"{product.partition('.')[0]}.s{number}",
            sql=" ".join(["SELECT", sums, ",", str(number), "FROM", f"`{product}`"]),
            stream=product,
            destination=f"{product}-s{number}",
        )

    return [_wire(emitter, members, added(number)) for number in range(2_000)]


_FLOODS: dict[str, Callable[[Members, Emitter], list[Wire]]] = {
    "unusable records": _unusable,
    "signed intents": _signed,
    "statements to check": _checked,
}
"""What a domain writes as fast as Kafka takes it."""


def flood(login: Connection, wires: Sequence[Wire], stop: Any, written: Any) -> None:
    """Write the records again and again until `stop`; counts what Kafka has acknowledged."""
    # a request far above the share would silence the connection for minutes
    producer = Producer(
        login.config(linger_ms=5, batch_size=16_384, queue_buffering_max_messages=2_000, **_PLAIN)
    )

    def count(error: object, _: object) -> None:
        if error is None:
            written.value += 1

    while not stop.is_set():
        for wire in wires:
            while not stop.is_set():
                try:
                    producer.produce(
                        topics.GOVERNANCE,
                        wire.value,
                        wire.key,
                        partition=0,
                        headers=wire.headers,
                        on_delivery=count,
                    )
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
    producer.purge()
    producer.flush(10)


def _drain(members: Members) -> None:
    """Wait until everything on the log is decided."""
    wait(lambda: not members.image().intents.undecided, 600)
