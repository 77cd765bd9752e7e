"""The stream of a statement grows while it runs."""

from collections import defaultdict

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.integration.partitions.owner import add_partitions
from tests.integration.sql.records import bare
from tests.integration.statements.conftest import CLICK, PARTITIONS, Stage, framed

pytestmark = [pytest.mark.platform, pytest.mark.slow]

GROWN = PARTITIONS + 2


def test_partitions_added_to_a_stream_reach_the_result_in_order(stage: Stage) -> None:
    sent = defaultdict[int, list[bytes]](list)

    def click(numbers: range, partitions: int) -> None:
        # a new one: a producer learns of new partitions minutes later
        producer = Producer(stage.login.config(acks="all"))
        for number in numbers:
            poison = b"poison %d" % number
            record = framed(stage.ids["click"], bare(CLICK, {"number": number, "userid": 1}))
            value = poison if number % 100 == 57 else record
            sent[number % partitions].append(value)
            producer.produce(stage.clicks, value, b"key", number % partitions)
        assert producer.flush(30) == 0

    click(range(1000), PARTITIONS)
    stage.add("SELECT number FROM clicks", names={"clicks": stage.clicks})
    stage.until_landed(990)
    add_partitions(stage.login, stage.clicks, GROWN)
    click(range(1000, 3000), GROWN)
    stage.wait_for(lambda one: len(one.positions) == GROWN, "it was started with all partitions")
    running = stage.until_active()
    assert (running.incarnation, running.failure) == (2, None)
    # and so does a client for the administration
    stage.admin = AdminClient(stage.login.config())
    stage.until_landed(2970, GROWN)
    stage.stop()

    out, dead = stage.landed(stage.out, GROWN), stage.landed(f"{stage.out}.dead", GROWN)
    for partition, values in sent.items():
        places = [
            [one.headers["mesh.source"].decode().rsplit("/", 2)[1:] for one in found]
            for found in (
                [one for one in out if one.partition == partition],
                [one for one in dead if one.partition == partition],
            )
        ]
        poisoned = [at for at, value in enumerate(values) if value.startswith(b"poison")]
        good = [at for at in range(len(values)) if at not in poisoned]
        assert places == [[[str(partition), str(at)] for at in some] for some in (good, poisoned)]
