"""Many threads look into topics of one real cluster, and those of one domain do not answer."""

import time
import uuid
from threading import Thread

import pytest

from local_platform import Endpoints
from mesh_events.errors import MeshError
from processors.clusters.kafka import KafkaAdmin
from spark_streams.log import OF_A_DOMAIN, KafkaLog
from tests.links.real import until

TIMEOUT_S = 5.0


def test_who_waits_for_a_partition_holds_up_nobody_else(platform: Endpoints) -> None:
    east = KafkaAdmin("east", platform.administration("east"))
    slow, other = (f"{domain}.t{uuid.uuid4().hex[:10]}" for domain in ("east", "shop"))
    for topic in (slow, other):
        east.create_topic(topic, 3, {})
    until(lambda: east.topic(slow) is not None and east.topic(other) is not None)
    log, faults = KafkaLog(east.login, timeout_s=TIMEOUT_S), list[str]()

    def ask_in_vain() -> None:
        with pytest.raises(MeshError) as caught:
            log.bounds(slow, [7])
        faults.append(str(caught.value))

    try:
        assert set(log.bounds(slow, range(3))) == {0, 1, 2}
        waiting = [Thread(target=ask_in_vain) for _ in range(OF_A_DOMAIN)]
        for one in waiting:
            one.start()
        begun, asked = time.monotonic(), 0
        while all(one.is_alive() for one in waiting):
            assert set(log.bounds(other, range(3))) == {0, 1, 2}
            asked += 1
        waited = time.monotonic() - begun
        for one in waiting:
            one.join()
        assert asked > waited, f"{asked} answers in {waited:.1f} s"
        assert len(faults) == len(waiting)
        assert all(slow in fault for fault in faults)
    finally:
        log.close()
        for topic in (slow, other):
            east.delete_topic(topic)
