"""Who waits for whom when many threads look into topics of one cluster."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

import pytest

from mesh_events.kafka.connection import Connection
from spark_streams.log import OF_A_DOMAIN, KafkaLog

NOWHERE = Connection("127.0.0.1:9", "nobody", "none")


@pytest.fixture
def log() -> Iterator[KafkaLog]:
    made = KafkaLog(NOWHERE, timeout_s=1)
    yield made
    made.close()


def test_looks_at_one_domains_topics_wait_for_each_other_and_for_nobody_else(log: KafkaLog) -> None:
    def used(topic: str) -> str:
        with log._clients(topic):
            return topic

    with ThreadPoolExecutor(2) as pool:
        with ExitStack() as busy:
            for number in range(OF_A_DOMAIN):
                busy.enter_context(log._clients(f"east.t{number}"))
            own, other = pool.submit(used, "east.more"), pool.submit(used, "shop.orders")
            assert other.result(30) == "shop.orders"
            assert own in wait([own], 0.2).not_done
        assert own.result(30) == "east.more"
