"""Links that MirrorMaker copies between two real clusters: as exact, and handed over to Spark."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints, PlatformSettings
from local_platform.layout import Layout
from local_platform.supervision.state import PlatformState
from mesh_events.facts import CopyPurged, LinkActivated, LinkFailed
from mesh_events.intents import Engine
from processors.controllers.flows import fence
from projections.links import State
from tests.links.real import RealMirror, assert_exact, until
from tests.mesh_fixtures import connect_service


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealMirror]:
    made = RealMirror(platform)
    yield made
    made.close()


@pytest.fixture
def connect_pid(settings: PlatformSettings) -> Callable[[], int | None]:
    """Tells the process of the Connect worker."""

    def pid() -> int | None:
        state = PlatformState.load(Layout(settings.home).state)
        assert state is not None
        return next((one.pid for one in state.services if one.name == connect_service()), None)

    return pid


def remains(link: RealMirror) -> list[str]:
    """Rights and passwords of the link's incarnations, wherever they are."""
    return [
        *(
            str(one)
            for admin in link.admins.values()
            for one in admin.rights()
            if fence.is_writer(one.principal, link.harness.name)
        ),
        *(
            str(found)
            for found in link.endpoints.connect_secrets.rglob("mesh.link.*")
            if fence.is_writer(found.name, link.harness.name)
        ),
    ]


def test_every_kind_of_record_arrives_as_it_was(link: RealMirror) -> None:
    link.produce(
        (0, b"k", b"v", None),
        (0, None, b"no key", [("one", b"1")]),
        (1, b"gone", None, [("tombstone", b"yes")]),
        (1, b"", b"", [("twice", b"1"), ("twice", b"2"), ("none", None)]),
        (2, b"k", bytes(range(256)) * 2000, None),
    )
    link.reconcile_until(link.is_told, 90)
    assert_exact(link)
    assert {run.engine for _, run, _ in link.lineage.told} == {"MIRRORMAKER"}


@pytest.mark.long
def test_records_that_unpack_to_more_than_the_heap_are_copied_by_the_same_process(
    link: RealMirror, connect_pid: Callable[[], int | None]
) -> None:
    """Each is some bytes on disk; those of a transaction that is aborted do not arrive."""
    settings = link.east.login.config(
        transactional_id=f"{link.topic}.writer",
        compression_type="zstd",
        message_max_bytes=2**21,
        batch_num_messages=1,
    )
    producer, before = Producer(settings), connect_pid()
    producer.init_transactions()
    for number, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        for _ in range(150):
            producer.produce(link.topic, bytes([number]) + b"x" * 1_000_000, b"k", 0)
            producer.poll(0)
        producer.commit_transaction() if commits else producer.abort_transaction()
    link.reconcile_until(link.caught_up, 240)
    assert [value[0] for _, _, value, _ in link.copy()[0] if value] == [0] * 150 + [2] * 150
    assert connect_pid() == before


def test_aborted_transactions_of_the_source_do_not_arrive(link: RealMirror) -> None:
    settings = link.east.login.config(transactional_id=f"{link.topic}.writer")
    producer = Producer(settings)
    producer.init_transactions()
    for number, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(link.topic, f"{number}".encode(), b"k", 0)
        producer.commit_transaction() if commits else producer.abort_transaction()
    link.reconcile_until(link.caught_up, 90)
    assert [value for _, _, value, _ in link.copy()[0]] == [b"0", b"2"]
    assert_exact(link)


def test_nothing_is_lost_or_doubled_when_connect_is_killed(
    link: RealMirror, connect_pid: Callable[[], int | None]
) -> None:
    link.reconcile_until(lambda: link.harness.link.state is State.ACTIVE, 90)
    for turn in range(2):
        link.produce(*[(n % 3, b"%d" % n, b"%d" % turn, None) for n in range(20_000)])
        victim = connect_pid()
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        link.produce(*[(n % 3, b"%d" % n, b"later", None) for n in range(3000)])
        until(lambda victim=victim: connect_pid() not in (None, victim), 120)
    link.reconcile_until(link.caught_up, 180)
    assert_exact(link)


def test_spark_and_mirrormaker_hand_a_copy_over_to_each_other(link: RealMirror) -> None:
    """Each goes on by the marks that the other has left."""
    turns = (None, Engine.SPARK, Engine.MIRRORMAKER, Engine.SPARK)
    for turn, engine in enumerate(turns):
        link.produce(*[(n % 3, b"%d" % turn, b"%d" % n, None) for n in range(300)])
        if engine is not None:
            link.harness.resume(engine)
        link.reconcile_until(link.caught_up, 90)
        link.harness.pause()
        link.reconcile_until(lambda: link.harness.link.state is State.PAUSED, 60)
        assert remains(link) == []
    assert_exact(link)
    assert len(link.harness.said(LinkActivated)) >= len(turns)
    assert not [fault for fault in link.harness.said(LinkFailed) if not fault.retriable]


def test_a_killed_controllers_copy_is_taken_over(link: RealMirror) -> None:
    link.produce((0, b"k", b"1", None))
    link.reconcile_until(link.caught_up, 90)
    link.controller.close()
    link.controller = link.new_controller()
    link.produce((1, b"k", b"2", None))
    link.reconcile_until(link.caught_up, 60)
    assert len(link.harness.said(LinkActivated)) == 1


def test_a_removed_link_leaves_nothing_behind(link: RealMirror) -> None:
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up, 90)
    link.harness.remove()
    link.reconcile_until(lambda: link.harness.link.state is State.DELETED, 60)
    assert link.harness.said(CopyPurged)
    assert link.west.topic(link.topic) is None
    assert remains(link) == []
    assert link.new_mirror().states().get(link.harness.name) is None


def test_records_that_are_gone_before_they_were_copied_close_the_link(link: RealMirror) -> None:
    link.produce(*[(n % 3, None, b"v", None) for n in range(30)])
    link.reconcile_until(link.caught_up, 90)
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED, 60)
    link.produce(*[(n % 3, None, b"v", None) for n in range(30)])
    client = AdminClient(link.east.login.config())
    wanted = [TopicPartition(link.topic, partition, -1) for partition in range(3)]
    for answer in client.delete_records(wanted).values():
        answer.result(10)
    link.harness.resume()
    link.reconcile_until(
        lambda: any(not fault.retriable for fault in link.harness.said(LinkFailed)), 90
    )
    assert link.harness.said(LinkFailed)[-1].code == "source_gap"
    assert link.new_mirror().states().get(link.harness.name) is None
