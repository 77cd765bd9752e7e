"""kill -9 of each server and of all brokers at once; the supervisor starts them again."""

import time

from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.stage import Stage


def kill_governor(stage: Stage) -> float:
    """Also with a revocation on its way: it must not be lost with the governor."""
    removed = stage.revoke_one()
    began = time.monotonic()
    before = stage.kill("governor")
    recovery = stage.pulse(began)
    stage.back(before)
    removed()
    return recovery


def kill_spark(stage: Stage) -> float:
    """The copy stands still until the controller has a server again."""
    began = time.monotonic()
    before = stage.kill(stage.spark)
    recovery = stage.first_copied(began)
    stage.back(before)
    return recovery


def kill_registry(stage: Stage) -> float:
    """What needs no new schema goes on; a publication waits for its check."""
    topic = stage.new_topic("late")
    began = time.monotonic()
    before = stage.kill("registry")
    stage.pulse(began, 20)
    published = stage.owner.publish(topic, topic)
    stage.kit.wait_for(lambda image: topic in image.catalog, "the publication is accepted", 100)
    stage.kit.accepted(published)
    recovery = time.monotonic() - began
    stage.back(before)
    return recovery


def kill_east(stage: Stage) -> float:
    """The log's own cluster."""
    removed = stage.revoke_one()
    began = time.monotonic()
    before = stage.kill("kafka-east")
    recovery = stage.pulse(began)
    stage.back(before)
    stage.first_copied(began)
    removed()
    return recovery


def kill_west(stage: Stage) -> float:
    """The cluster of the copy; governing goes on meanwhile."""
    began = time.monotonic()
    before = stage.kill("kafka-west")
    mark = stage.mark()
    stage.pulse(began, 30)
    recovery = stage.first_copied(began, mark)
    stage.back(before)
    return recovery


def kill_all_brokers(stage: Stage) -> float:
    """Both clusters at once."""
    began = time.monotonic()
    east, west = stage.kill("kafka-east"), stage.kill("kafka-west")
    mark = stage.mark()
    stage.pulse(began)
    recovery = stage.first_copied(began, mark)
    stage.back(east)
    stage.back(west)
    return recovery


FAULTS = (
    Fault("governor-killed", "kill -9 of the governor", kill_governor, all_is_right),
    Fault("spark-killed", "kill -9 of the Spark server under a link", kill_spark, all_is_right),
    Fault("registry-killed", "kill -9 of the registry, a product published", kill_registry,
          all_is_right),
    Fault("broker-west-killed", "kill -9 of the broker that holds the copy", kill_west,
          all_is_right),
    Fault("broker-east-killed", "kill -9 of the broker that holds the log", kill_east,
          all_is_right),
    Fault("brokers-killed", "kill -9 of all brokers at once", kill_all_brokers, all_is_right, 240),
)  # fmt: skip
