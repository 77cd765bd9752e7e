"""Records that nobody can use among those of the load, and a reader that cannot keep up."""

import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Thread

from confluent_kafka import Consumer, TopicPartition

from mesh_events.codec import Wire, encode
from mesh_events.decisions import RecordsSetAside
from mesh_events.intents import ProductUpdated
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.stage import WAIT_S, Stage
from tests.mesh_kit import fresh
from tests.selection import draws

TIMES = 8
"""How often each kind of poison is written."""
ROWS = "mesh.catalog"
Poison = Callable[[Wire], Wire]
KINDS: dict[str, tuple[str, Poison]] = {
    "garbage": ("garbage", lambda wire: wire._replace(value=b"\xff\xfe{not avro")),
    "empty": ("garbage", lambda wire: wire._replace(value=b"")),
    "cut short": ("bad_signature", lambda wire: wire._replace(value=wire.value[:-3])),
    "wrong magic": ("garbage", lambda wire: wire._replace(value=b"\x01" + wire.value[1:])),
    "unknown schema": (
        "unknown_schema",
        lambda wire: wire._replace(value=b"\x00\x77\x00\x00\x00" + wire.value[5:]),
    ),
    "900 kB": ("too_large", lambda wire: wire._replace(value=b"\x00" * 900_000)),
    "unsigned": (
        "unsigned",
        lambda wire: wire._replace(
            headers=[each for each in wire.headers if not each[0].startswith("mesh_")]
        ),
    ),
    "forged": ("bad_signature", lambda wire: wire._replace(headers=_altered(wire))),
}
"""Kind -> (code with which it is set aside, what is done to a good record)."""


def _altered(wire: Wire) -> list[tuple[str, bytes]]:
    return [
        (name, bytes(64) if name == "mesh_signature" else value) for name, value in wire.headers
    ]


def poison(stage: Stage) -> float:
    """Every kind several times in any order, between what honest domains say."""
    chance = draws("poison")
    kinds = [kind for kind in KINDS for _ in range(TIMES)]
    chance.shuffle(kinds)
    written: dict[int, str] = {}
    for kind in kinds:
        good = stage.owner.make(ProductUpdated, product=stage.pulse_product, tags=[fresh("p")])
        schema_id = stage.kit.registry.schema_id(good.type_name())
        wire = encode(good, schema_id, stage.owner.key, stage.kit.profile.root_key)
        bad = KINDS[kind][1](wire)
        offset = stage.other.raw.write(bad.value, bad.key, list(bad.headers))
        written[offset] = kind
        time.sleep(chance.random() / 10)
    began = time.monotonic()
    recovery = stage.pulse(began)
    ranges: dict[int, RecordsSetAside] = {}
    for offset, kind in written.items():
        decision = stage.kit.decided(offset, WAIT_S)
        if isinstance(decision, RecordsSetAside):
            ranges[decision.offset] = decision
        else:
            code = stage.kit.code(offset)
            assert code == KINDS[kind][0], f"{kind} at {offset} was set aside as {code}"
    for found in ranges.values():
        codes = Counter(KINDS[kind][0] for at, kind in written.items() if found.decides(at))
        assert found.counts == codes, f"{found.reason}, where {dict(codes)} were written"
    return recovery


def slow_consumer(stage: Stage) -> float:
    """A subscriber of the catalog takes a row a second; nobody waits for it, it misses none."""
    login = stage.kit.login(stage.near.name)
    consumer = Consumer(
        login.config(
            group_id=f"{stage.near.name}.{fresh('slow')}",
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=2048,
            queued_max_messages_kbytes=16,
        )
    )
    consumer.subscribe([ROWS])
    slow, over, seen = Event(), Event(), [-1]
    slow.set()

    def read() -> None:
        while not over.is_set():
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                seen.append(message.offset())
                if slow.is_set():
                    over.wait(1)

    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        beats = [stage.pulse(time.monotonic(), 20) for _ in range(10)]
        end = consumer.get_watermark_offsets(TopicPartition(ROWS, 0), timeout=WAIT_S)[1]
        behind = end - 1 - seen[-1]
        slow.clear()
        deadline = time.monotonic() + WAIT_S
        while seen[-1] < end - 1 and time.monotonic() < deadline:
            over.wait(0.1)
    finally:
        over.set()
        reader.join(10)
        consumer.close()
    assert behind > 0, "the slow reader was never behind: it proves nothing"
    rows = {message.offset() for message in stage.plain().messages(ROWS) if message.offset() < end}
    missed = sorted(rows - set(seen))
    assert not missed, f"the slow reader missed {len(missed)} of {len(rows)} rows: {missed[:5]}"
    return max(beats)


FAULTS = (
    Fault(
        "poison-records",
        f"{len(KINDS)} kinds of unusable records at any place of the log",
        poison,
        all_is_right,
    ),
    Fault(
        "slow-consumer",
        "a subscriber of mesh.catalog takes a row a second, of more; the longest decision",
        slow_consumer,
        all_is_right,
    ),
)
