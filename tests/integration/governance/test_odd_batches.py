"""Batches that a broker takes and clients do not agree about: every reader reads every record."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import NewTopic

from mesh_events import topics
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.intents import ProductUpdated
from mesh_events.kafka.batches import Stored, stored
from mesh_events.kafka.connection import Connection, header_list
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import LogReader
from processors.own_topics.wanted import TOPICS
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Mesh, fresh
from tests.odd_batches import ODD, batch, produce, record

GOOD = batch(record(value=b"good"))


@contextmanager
def topic_like_the_log(kit: Mesh) -> Iterator[tuple[Connection, str]]:
    """It has a good batch, and is deleted in the end."""
    login, topic = kit.admin_login(), f"mesh.{fresh('odd')}"
    new = NewTopic(topic, 1, 1, config=dict(TOPICS[topics.GOVERNANCE]))
    admin = kit.admin()
    admin.create_topics([new])[topic].result(30)
    produce(login, topic, GOOD)
    yield login, topic
    admin.delete_topics([topic])[topic].result(30)


@pytest.fixture(scope="module")
def odd_topic(kit: Mesh) -> Iterator[tuple[Connection, str]]:
    """A topic like the log with every odd batch, a good one before and behind each."""
    with topic_like_the_log(kit) as (login, topic):
        for data in ODD.values():
            produce(login, topic, data)
            produce(login, topic, GOOD)
        yield login, topic


def plain(message: Stored) -> tuple[object, ...]:
    return message.offset(), message.key(), message.value(), header_list(message)


def expected() -> list[tuple[object, ...]]:
    batches = [GOOD, *(one for data in ODD.values() for one in (data, GOOD))]
    found = [one for data in batches for _, records in stored(data) for one in records]
    return [(at, one.key(), one.value(), one.headers()) for at, one in enumerate(found)]


def test_every_record_of_every_odd_batch_is_read_at_its_place(
    odd_topic: tuple[Connection, str],
) -> None:
    with PartitionReader(*odd_topic, gapless=True) as reader:
        assert [plain(message) for message in reader.to_end()] == expected()


@pytest.mark.parametrize("name", ODD)
def test_a_reader_at_the_end_reads_however_many_odd_batches_come(kit: Mesh, name: str) -> None:
    """With each answer that has nothing for it librdkafka asks for twice as much, up to a bound.

    What says that it stands before the end librdkafka leaves out for a reader that is there.
    """
    odd = ODD[name]
    [(_, wanted)] = stored(odd)
    with (
        topic_like_the_log(kit) as (login, topic),
        PartitionReader(login, topic, gapless=True) as reader,
    ):
        assert [message.offset() for message in reader.to_end()] == [0]
        for _ in range(3):
            place = produce(login, topic, odd)
            found = [(one.offset(), one.key(), one.value()) for one in reader.to_end()]
            assert found == [(at, one.key(), one.value()) for at, one in enumerate(wanted, place)]
            # read by librdkafka again, up to the next odd one
            place = produce(login, topic, GOOD)
            assert [message.offset() for message in reader.to_end()] == [place]


@pytest.mark.parametrize("polls", [0, 1, 3])
def test_batches_that_each_begin_before_themselves_are_read_at_their_places(
    kit: Mesh, polls: int
) -> None:
    """Each takes the place that the one before it has left, for a reader that reads beside it."""
    found: list[bytes | None] = []
    with (
        topic_like_the_log(kit) as (login, topic),
        PartitionReader(login, topic, gapless=True) as reader,
    ):
        found += [message.value() for message in reader.to_end()]
        produce(login, topic, batch(record(value=b"1", delta=-1), record(value=b"2")))
        for number in range(3, 30):
            for _ in range(polls):
                found += [message.value() for message in reader.poll(0.01)]
            produce(login, topic, batch(record(value=str(number).encode(), delta=-1)))
        found += [message.value() for message in reader.to_end()]
    assert found == [b"good", *(str(one).encode() for one in range(1, 30))]


def test_a_record_reads_the_same_wherever_reading_begins(
    odd_topic: tuple[Connection, str],
) -> None:
    wanted = expected()
    with PartitionReader(*odd_topic, None, gapless=True) as reader:
        for first in range(len(wanted)):
            reader.seek(first)
            assert plain(next(reader.to_end())) == wanted[first]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_an_odd_batch_on_the_log_delays_no_honest_intent(scene: Scene, odd: bytes) -> None:
    kit, owner = scene.kit, scene.owner
    # brokers of the local platform take some of them from their administrator alone
    place = produce(kit.admin_login(), topics.GOVERNANCE, odd)
    kit.accepted(owner.say(ProductUpdated, product=scene.product, tags=[fresh("behind")]))
    [(count, _)] = stored(odd)
    for offset in range(place, place + count):
        kit.decided(offset)


def test_readers_agree_on_the_log_whatever_is_on_it(scene: Scene) -> None:
    kit = scene.kit
    administrator = kit.admin_login()
    first, *_ = [produce(administrator, topics.GOVERNANCE, odd) for odd in ODD.values()]
    kit.accepted(scene.owner.say(ProductUpdated, product=scene.product, tags=[fresh("last")]))
    login = kit.login("mesh.operator")

    def leaves(start: int) -> dict[int, bytes]:
        with LogReader(login, start) as reader:
            return {one.offset: leaf_hash(one) for one in reader.to_end()}

    whole = leaves(0)
    last = max(whole)
    # from among the odd ones, and from some places before
    for start in [*range(0, first, 1 + first // 20), *range(first - 5, last, 3)]:
        # others may append meanwhile
        found = {offset: leaf for offset, leaf in leaves(start).items() if offset <= last}
        assert found == {offset: leaf for offset, leaf in whole.items() if offset >= start}
