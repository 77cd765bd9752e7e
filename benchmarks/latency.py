"""Intent to row, as one client sees it that emits at a steady rate and reads the rows."""

import os
import threading
import time

from benchmarks.members import Members
from mesh_events import topics
from mesh_events.emit import Emitter
from mesh_events.intents import ProductUpdated
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import decode_row

UPDATES, UPDATES_PER_S, WARM_UP = 300, 20, 40
"""Intents that count, how many a second, and how many before them do not count."""


def row_latency(members: Members, emitter: Emitter, product: str) -> list[float]:
    """ProductUpdated emitted -> its row read by an independent consumer, s; of rows that came.

    The first ones, which do not count, wait for connections.
    """
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    tag = os.urandom(3).hex()
    done = threading.Event()
    reader = PartitionReader(members.clusters["east"].login, topics.CATALOG)
    reader.seek(reader.bounds()[1])

    def watch() -> None:
        while not done.is_set() and len(seen) < WARM_UP + UPDATES:
            for message in reader.poll(0.2):
                now = time.perf_counter()
                row = decode_row(message.value(), members.registry)
                seen.setdefault(str(getattr(row, "description", "")), now)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(WARM_UP + UPDATES):
        text = f"{tag} {number}"
        event = ProductUpdated(meta=emitter.meta(), product=product, description=text)
        sent[text] = time.perf_counter()
        emitter.emit(event)
        time.sleep(max(0.0, 1 / UPDATES_PER_S - (time.perf_counter() - sent[text])))
    watcher.join(60)
    done.set()
    reader.close()
    counted = list(sent.items())[WARM_UP:]
    return [seen[text] - start for text, start in counted if text in seen]
