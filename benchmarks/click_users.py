"""CLICK_USERS: clicks joined with users, by a statement and by Kafka Streams, in turn.

Both read the same topics, with rows of users changing meanwhile, and write a topic of their own.
What came out is held against what was written: each click once, in its order, with a name that its
user had, never an older one than the click before got. The rate is that behind the first record of
the result: neither the start of Streams' JVM, nor a statement's way over the log, nor the build of
either's table is in it. The seconds are all of that, from the command to the last record.
"""

import io
import json
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, TopicPartition

from benchmarks.clicks import CLICK, OUT, PARTITIONS, USER, Ground, bounds
from benchmarks.control import Bench
from benchmarks.members import wait
from benchmarks.report import spread, surroundings, tell
from benchmarks.streams.peer import Peer
from local_platform import Endpoints, PlatformSettings
from mesh_events.statements import StatementAdded, StatementDeleted
from projections.statements import Statement

RATE_PER_S = 1000
SECONDS = 20
SQL = """
SELECT c.number, c.ip, c.userid, c.request, c.status, c.time, u.username, u.level
FROM clicks c JOIN users u ON c.userid = u.userid"""


def run(
    settings: PlatformSettings, endpoints: Endpoints, clicks: int, users: int, rounds: int
) -> None:
    """Each in turn, `rounds` times: a backlog is drained, then clicks come at a steady rate."""
    around = surroundings()
    ground = Ground.filled(Bench(endpoints, settings.home), endpoints, clicks, users)
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(settings, Path(folder))
        found: dict[str, list[Round]] = {"statement": [], "Kafka Streams": []}
        warm = _statement(ground, 0)
        _drop(ground, warm)
        for number in range(1, rounds + 1):
            found["statement"].append(_by_statement(ground, number))
            found["Kafka Streams"].append(_by_peer(ground, peer, Path(folder), number))
    figures = {name: _figures(turns) for name, turns in found.items()}
    ours, theirs = (figures[name] for name in ("statement", "Kafka Streams"))
    figures["ratio, statement to Streams"] = _ratio(ours, theirs)
    around |= {"clicks": clicks, "users": users, "partitions": PARTITIONS, "rounds": rounds}
    tell("click_users", around, figures)


def run_sizes(
    settings: PlatformSettings, endpoints: Endpoints, clicks: int, sizes: list[int], rounds: int
) -> None:
    """The same statement over tables of other sizes, in turn: what a row more of a table costs."""
    around = surroundings()
    grounds = {
        users: Ground.filled(Bench(endpoints, settings.home), endpoints, clicks, users)
        for users in sizes
    }
    found: dict[int, list[Round]] = {users: [] for users in sizes}
    for ground in grounds.values():
        _drop(ground, _statement(ground, 0))
    for number in range(1, rounds + 1):
        for users, ground in grounds.items():
            found[users].append(_by_statement(ground, number))
    figures = {f"{users} users": _figures(turns) for users, turns in found.items()}
    least, most = (figures[f"{users} users"] for users in (min(sizes), max(sizes)))
    figures["ratio, the largest to the smallest"] = _ratio(most, least)
    around |= {"clicks": clicks, "partitions": PARTITIONS, "rounds": rounds}
    tell("join_size", around, figures)


def _figures(turns: list["Round"]) -> dict[str, Any]:
    return {
        "drain, records/s": round(sum(one.rate for one in turns) / len(turns)),
        "each": ", ".join(str(round(one.rate)) for one in turns),
        "seconds": ", ".join(str(round(one.seconds, 1)) for one in turns),
        **spread([took for one in turns for took in one.late]),
    }


def _ratio(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    names = ("drain, records/s", "p50_ms", "p99_ms")
    return {name: round(one[name] / other[name], 2) for name in names}


@dataclass(frozen=True)
class Round:
    """One drain and one steady load: records/s behind the first, s in all, s of each click."""

    rate: float
    seconds: float
    late: list[float]


def _by_statement(ground: Ground, number: int) -> Round:
    topic = f"{ground.domain}.out{number}"
    with ground.changing():
        rate, seconds = _drain(ground, topic, lambda: _statement(ground, number))
    took = _latency(ground, topic)
    _drop(ground, number)
    return _checked(ground, topic, Round(rate, seconds, took))


def _by_peer(ground: Ground, peer: Peer, folder: Path, number: int) -> Round:
    topic = f"{ground.domain}.peer{number}"
    ground.east.create_topic(topic, PARTITIONS, {})
    told = _settings(ground, folder, topic)
    running: list[subprocess.Popen[bytes]] = []
    try:
        with ground.changing():
            rate, seconds = _drain(ground, topic, lambda: running.append(peer.start(told)))
        took = _latency(ground, topic)
    finally:
        # it starts in a thread of its own, and may not have
        for one in running:
            one.terminate()
            one.wait(60)
    return _checked(ground, topic, Round(rate, seconds, took))


def _checked(ground: Ground, topic: str, done: Round) -> Round:
    ground.check(topic)
    ground.east.delete_topic(topic)
    return done


def _drain(ground: Ground, topic: str, start: Any) -> tuple[float, float]:
    wanted = ground.written
    began = time.perf_counter()
    thread = threading.Thread(target=start)
    thread.start()
    first, since, count = 0, began, 0
    consumer = Consumer(ground.east.login.config(group_id="admin.figures"))
    while count < wanted:
        time.sleep(0.1)
        if time.perf_counter() - began > 300:
            raise SystemExit(f"{topic} stands at {count} of {wanted}")
        if not count and ground.east.topic(topic) is None:
            continue
        count = sum(end for _, end in bounds(consumer, topic))
        if count and not first:
            first, since = count, time.perf_counter()
    now = time.perf_counter()
    consumer.close()
    thread.join()
    return (wanted - first) / (now - since), now - began


def _latency(ground: Ground, topic: str) -> list[float]:
    """Seconds from producing a click to reading what came of it."""
    login = ground.east.login
    consumer = Consumer(login.config(group_id="admin.figures", fetch_wait_max_ms=50))
    ends = [end for _, end in bounds(consumer, topic)]
    consumer.assign([TopicPartition(topic, number, end) for number, end in enumerate(ends)])
    consumer.poll(0.5)
    reader, took = fastavro.parse_schema(OUT), list[float]()
    wanted, sent, start = RATE_PER_S * SECONDS, 0, time.perf_counter()
    with ground.changing():
        while len(took) < wanted and time.perf_counter() - start < SECONDS + 30:
            due = min(wanted, round((time.perf_counter() - start) * RATE_PER_S))
            for _ in range(due - sent):
                ground.click(time.perf_counter())
            sent = due
            ground.producer.flush(0)
            for message in consumer.consume(500, 0.001):
                now = time.perf_counter()
                row: Any = fastavro.schemaless_reader(io.BytesIO(message.value()[5:]), reader)
                took.append(now - row["time"] / 1_000_000)
    consumer.close()
    return took


def _statement(ground: Ground, number: int) -> int:
    bench, name = ground.bench, f"{ground.domain}.join{number}"
    bench.submit(
        bench.owner,
        StatementAdded(
            meta=bench.owner.meta(),
            statement=name,
            sql=SQL,
            stream=ground.clicks,
            tables=[ground.table],
            names={"clicks": ground.clicks, "users": ground.table},
            destination=f"{ground.domain}.out{number}",
        ),
    )
    wait(lambda: _found(ground, name).is_active, 120)
    return number


def _drop(ground: Ground, number: int) -> None:
    bench, name = ground.bench, f"{ground.domain}.join{number}"
    bench.submit(bench.owner, StatementDeleted(meta=bench.owner.meta(), statement=name))
    wait(lambda: _found(ground, name).is_over, 60)


def _found(ground: Ground, name: str) -> Statement:
    return ground.bench.image().statements[name]


def _settings(ground: Ground, folder: Path, topic: str) -> dict[str, str]:
    return {
        **ground.east.login.java(),
        "application.id": topic.replace(".", "-"),
        "state.dir": str(folder / "state"),
        "num.stream.threads": str(PARTITIONS),
        "auto.offset.reset": "earliest",
        "replication.factor": "1",
        # Streams would wait for 100 ms by default; this is what every other producer here does
        "producer.linger.ms": "5",
        "bench.clicks": ground.clicks,
        "bench.users": ground.table,
        "bench.out": topic,
        "bench.id": str(ground.out_id),
        "bench.schema.click": json.dumps(CLICK),
        "bench.schema.user": json.dumps(USER),
        "bench.schema.out": json.dumps(OUT),
    }
