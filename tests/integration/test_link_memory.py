"""Records that fill the heap of their domain's Spark server hold up no other domain's link."""

import pytest
from confluent_kafka import Producer

from projections.links import State
from tests.mesh_fixtures import kit
from tests.mesh_kit import Mesh, eventually

__all__ = ["kit"]
pytestmark = [pytest.mark.platform, pytest.mark.long]
RECORDS, SIZE = 128, 16_000_000
"""Two gigabytes, which their compression makes two megabytes of: twice the server's heap."""


def test_records_that_fill_a_server_hold_up_no_link_of_another_domain(kit: Mesh) -> None:
    heavy, light = (kit.register_domain(stem) for stem in ("ownheavy", "ownlight"))
    reader = kit.register_domain("far", "west").application()
    product, topic = light.product()
    written = [b"0"]
    light.fill(topic, *written)
    light.grant(product, reader.domain.request(product, reader.name))
    eventually(lambda: reader.read(topic) == written, f"the copy of {topic}")
    before = kit.image().links[f"{product}@west"]

    large, large_topic = heavy.product()
    login = kit.login(heavy.name)
    producer = Producer(login.config(compression_type="gzip", message_max_bytes=SIZE + 1000))
    for _ in range(RECORDS):
        producer.produce(large_topic, bytes(SIZE))
        # one in each batch: a batch must not unpack to more
        assert producer.flush(60) == 0
    heavy.grant(large, reader.domain.request(large, reader.name), active=False)
    name = f"{large}@west"
    for failures in range(1, 4):
        written.append(b"%d" % failures)
        light.fill(topic, written[-1])
        eventually(lambda: reader.read(topic) == written, "it is copied meanwhile")
        for state in (State.ACTIVE, State.FAILED):
            kit.wait_for(
                lambda image, state=state: image.links[name].state is state, f"{name} {state}", 240
            )
    after = kit.image().links[f"{product}@west"]
    assert (after.incarnation, after.state) == (before.incarnation, State.ACTIVE)
