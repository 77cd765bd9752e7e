"""What a link must survive, and what must close it rather than let it copy wrong data."""

import time
from functools import partial

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mesh_events.intents import LinkCreated, LinkDeleted, LinkPaused, LinkResumed
from tests.faults.copy_checker import differences, missing, read
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right, topic_id
from tests.faults.run.stage import PARTITIONS, WAIT_S, Copied, Stage, eventually
from tests.kafka_client import delete_and_create
from tests.selection import draws

ROUNDS = 4
RECORDS = 400


def kill_spark_repeatedly(stage: Stage) -> float:
    """At any moment: while it copies, while it has just started; the longest recovery counts."""
    chance, longest = draws("links"), 0.0
    for _ in range(ROUNDS):
        began = time.monotonic()
        before = stage.kill(stage.spark)
        mark = stage.mark()
        stage.back(before)
        if chance.random() < 0.7:
            longest = max(longest, stage.first_copied(began, mark))
        # the next kill hits it in the middle of something
        time.sleep(chance.random())
    return max(longest, stage.first_copied(began, mark))


def restart_broker(service: str, stage: Stage) -> float:
    """A clean stop and start, as for an update."""
    began = time.monotonic()
    stage.platform.restart(service)
    stage.pulse(began)
    return stage.first_copied(began)


def open_transaction(stage: Stage) -> float:
    """A writer dies in the middle of a transaction, the server of the link while it is open."""
    topic = stage.copied.topic
    dying = Producer(
        stage.kit.login(stage.owner.name).config(
            transactional_id=f"{stage.owner.name}.dying", transaction_timeout_ms=10_000
        )
    )
    dying.init_transactions(20)
    dying.begin_transaction()
    for n in range(20):
        dying.produce(topic, f"never committed {n}".encode(), partition=n % PARTITIONS)
    assert dying.flush(20) == 0
    began = time.monotonic()
    before = stage.kill(stage.spark)
    mark = stage.mark()
    stage.back(before)
    recovery = stage.first_copied(began, mark)
    # Kafka ends it by itself, and the copy must go on behind it
    del dying
    stage.first_copied(began)
    return recovery


def empty_destination(stage: Stage) -> float:
    """An admin deletes all records of a copy; the copy is made anew as the runbook says."""
    hurt = filled(stage)
    paused(stage, hurt)
    west = AdminClient(stage.kit.admin_login("west").config())
    everything = [TopicPartition(hurt.topic, partition, -1) for partition in range(PARTITIONS)]
    for answer in west.delete_records(everything).values():
        answer.result(15)
    stage.kit.accepted(stage.owner.say(LinkResumed, product=hurt.product, cluster="west"))
    return closed_and_made_anew(stage, hurt, "destination_lost")


def delete_destination(stage: Stage) -> float:
    """An admin deletes a copy while the link runs."""
    hurt = filled(stage)
    west = AdminClient(stage.kit.admin_login("west").config())
    west.delete_topics([hurt.topic])[hurt.topic].result(15)
    return closed_and_made_anew(stage, hurt, "destination_lost")


def recreate_destination(stage: Stage) -> float:
    """An admin deletes a copy and makes a topic of the same name while the link runs."""
    hurt = filled(stage)
    old = topic_id(stage, hurt.topic, "west")
    west = AdminClient(stage.kit.admin_login("west").config())
    west.delete_topics([hurt.topic])[hurt.topic].result(15)

    def made() -> bool:
        west.create_topics([NewTopic(hurt.topic, PARTITIONS, 1)])[hurt.topic].exception(15)
        return topic_id(stage, hurt.topic, "west") != old

    stage.soon(made, "the topic is made again")
    closed(stage, hurt, "destination_lost")
    # a topic that the mesh has not made is never overwritten: who made it has to take it away
    west.delete_topics([hurt.topic])[hurt.topic].result(15)
    return made_anew(stage, hurt)


def recreate_source(stage: Stage) -> float:
    """The owner's source is deleted and made again: the copy is of something that is gone."""
    hurt = filled(stage)
    paused(stage, hurt)
    _remake(stage, hurt)
    write(stage, hurt.topic)
    stage.kit.accepted(stage.owner.say(LinkResumed, product=hurt.product, cluster="west"))
    return closed_and_made_anew(stage, hurt, "source_recreated")


def recreate_source_running(stage: Stage) -> float:
    """The same under the link, with more records at once than there were: none is copied."""
    hurt = filled(stage)
    west = stage.kit.admin_login("west").config()
    before = read(west, hurt.topic)
    _remake(stage, hurt)
    for _ in range(3):
        write(stage, hurt.topic)
    stage.kit.wait_for(
        lambda image: image.links[hurt.link].failure_code == "source_recreated",
        "the link tells that its source is another one",
        WAIT_S,
    )
    assert read(west, hurt.topic) == before, "records of the new topic were copied"
    return made_anew(stage, hurt)


def _remake(stage: Stage, hurt: Copied) -> None:
    east = AdminClient(stage.kit.admin_login("east").config())
    delete_and_create(east, hurt.topic, PARTITIONS)


def filled(stage: Stage) -> Copied:
    """A link of its own that has copied some records."""
    copied = stage.link("hurt")
    write(stage, copied.topic)
    eventually(lambda: left(stage, copied) == 0, "everything is copied", WAIT_S)
    return copied


def write(stage: Stage, topic: str) -> None:
    """Some records into a source."""
    producer = Producer(stage.kit.login(stage.owner.name).config(linger_ms=5))
    for n in range(RECORDS):
        producer.produce(topic, b"%d" % n, partition=n % PARTITIONS)
    assert producer.flush(20) == 0


def paused(stage: Stage, copied: Copied) -> None:
    """Let the link stand still."""
    stage.kit.accepted(stage.owner.say(LinkPaused, product=copied.product, cluster="west"))
    stage.link_is("PAUSED", copied.link)


def left(stage: Stage, copied: Copied) -> int:
    """How many records the copy lacks; raises AssertionError where it is wrong."""
    source = read(stage.kit.admin_login("east").config(), copied.topic)
    copy = read(stage.kit.admin_login("west").config(), copied.topic)
    wrong = differences(source, copy, f"east/{topic_id(stage, copied.topic)}")
    assert not wrong, wrong
    return missing(source, copy)


def closed_and_made_anew(stage: Stage, copied: Copied, code: str) -> float:
    """The link says why it is closed; see `made_anew` for the rest."""
    closed(stage, copied, code)
    return made_anew(stage, copied)


def closed(stage: Stage, copied: Copied, code: str) -> None:
    """Wait until the link has closed, for the right reason."""
    found = stage.kit.wait_for(
        lambda image: image.links[copied.link].state == "FAILED", "the link is closed", WAIT_S
    )
    assert found.links[copied.link].failure_code == code, found.links[copied.link]


def made_anew(stage: Stage, copied: Copied) -> float:
    """Removed and created again the link is complete; seconds from there.

    The grant is ended afterwards, so that the mesh is as it was.
    """
    link = {"product": copied.product, "cluster": "west"}
    began = time.monotonic()
    stage.kit.accepted(stage.owner.say(LinkDeleted, **link, reason="its copy is lost"))
    stage.link_is("DELETED", copied.link)
    stage.kit.accepted(stage.owner.say(LinkCreated, **link))
    stage.link_is("ACTIVE", copied.link)
    eventually(lambda: left(stage, copied) == 0, "the new copy is complete", WAIT_S)
    recovery = time.monotonic() - began
    stage.kit.accepted(stage.owner.emitter.emit(stage.revocation(copied)))
    stage.link_is("DELETED", copied.link)
    return recovery


FAULTS = (
    Fault(
        "spark-killed-repeatedly",
        f"kill -9 of the Spark server {ROUNDS} times at any moment",
        kill_spark_repeatedly,
        all_is_right,
        420,
    ),
    Fault(
        "broker-west-restarted",
        "a clean restart of the broker of the copy",
        partial(restart_broker, "kafka-west"),
        all_is_right,
    ),
    Fault(
        "broker-east-restarted",
        "a clean restart of the broker of source and log",
        partial(restart_broker, "kafka-east"),
        all_is_right,
    ),
    Fault(
        "transaction-left-open",
        "a writer dies in a transaction, Spark is killed meanwhile",
        open_transaction,
        all_is_right,
    ),
    Fault(
        "destination-emptied",
        "all records of a copy are deleted; made anew",
        empty_destination,
        all_is_right,
        240,
    ),
    Fault(
        "destination-deleted",
        "a copy is deleted under a running link; made anew",
        delete_destination,
        all_is_right,
        240,
    ),
    Fault(
        "destination-recreated",
        "a copy is deleted and made again by hand; made anew",
        recreate_destination,
        all_is_right,
        240,
    ),
    Fault(
        "source-recreated",
        "a source is deleted and made again; copied anew",
        recreate_source,
        all_is_right,
        240,
    ),
    Fault(
        "source-recreated-running",
        "the same under a running link, with more records at once than there were",
        recreate_source_running,
        all_is_right,
        240,
    ),
)
