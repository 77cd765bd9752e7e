"""Links between two real clusters, driven by the controller over a real Spark Connect server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from openlineage.client.event_v2 import RunState
from structlog.testing import capture_logs

from local_platform import Endpoints
from local_platform.layout import Layout
from mesh_events.facts import (
    CopyPurged,
    CopyRetained,
    LinkActivated,
    LinkAdvanced,
    LinkFailed,
    LinkStopped,
)
from mesh_events.intents import OnRevoke
from processors.clusters.rights import reader
from processors.controllers.flows.fence import bindings_of
from processors.controllers.links.links import CopyPlan
from processors.lineage.events import LineageTopic
from processors.spark.error_files import ErrorFiles
from projections.links import Copy, State
from spark_streams.copy import with_provenance
from spark_streams.engine import CopySpec, Failed
from spark_streams.lag import behind, copied
from spark_streams.log import KafkaLog
from spark_streams.provenance import Origin
from tests.links.real import DOMAIN, RealLink, assert_exact, count, everything, until
from tests.mesh_fixtures import home_of, spark_service


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealLink]:
    made = RealLink(platform)
    yield made
    made.close()


def test_every_kind_of_record_arrives_as_it_was(link: RealLink) -> None:
    link.produce(
        (0, b"k", b"v", None),
        (0, None, b"no key", [("one", b"1")]),
        (1, b"gone", None, [("tombstone", b"yes")]),
        (1, None, None, None),
        (2, b"", b"", [("null", None), ("empty", b""), ("twice", b"1"), ("twice", b"2")]),
        (2, b"\x00\xff", bytes(range(256)), [("mesh.source", b"some/where/else/0/1")]),
    )
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert link.harness.link.state is State.ACTIVE


def test_committed_transactions_arrive_and_aborted_ones_do_not(link: RealLink) -> None:
    writer = Producer(link.east.login.config(transactional_id=link.topic))
    writer.init_transactions(20)
    for round_ in range(4):
        writer.begin_transaction()
        for n in range(5):
            writer.produce(link.topic, f"{round_}.{n}".encode(), partition=n % 3)
        if round_ % 2:
            writer.abort_transaction(20)
        else:
            writer.commit_transaction(20)
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert count(link.copy()) == 10
    assert lag_of(link) == {0: 0, 1: 0, 2: 0}

    # the position behind the tail is a marker; what comes behind it is not lost at a restart
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    link.produce((0, b"later", b"later", None))
    link.harness.resume()
    link.reconcile_until(link.caught_up)
    assert_exact(link)


def test_a_paused_link_stands_still_and_goes_on_where_it_stood(link: RealLink) -> None:
    link.produce(*[(n % 3, None, str(n).encode(), None) for n in range(3000)])
    link.reconcile_until(lambda: link.harness.link.state is State.ACTIVE)
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    stood = link.copy()
    told = link.harness.said(LinkStopped)[-1].positions
    assert told == {str(p): len(records) for p, records in stood.items() if records}
    assert bindings_of(link.west, link.topic, link.harness.name) == set()
    assert bindings_of(link.east, link.topic, link.harness.name) == set()

    link.produce(*[(n % 3, None, b"later", None) for n in range(300)])
    link.reconcile()
    assert link.copy() == stood
    link.harness.resume()
    link.reconcile_until(link.is_told)
    assert_exact(link)
    kinds = [kind for kind, _, _ in link.lineage.told if kind is not RunState.RUNNING]
    assert kinds == [RunState.START, RunState.COMPLETE, RunState.START]


def test_another_worker_finds_the_running_link_and_leaves_it(link: RealLink) -> None:
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    link.controller.close()
    link.controller = link.new_controller()
    link.produce((1, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    assert len(link.harness.said(LinkActivated)) == 1
    assert link.harness.said(LinkFailed) == []


def test_the_floor_and_the_lineage_follow_the_copy(link: RealLink) -> None:
    link.produce(*[(n % 3, None, b"v", None) for n in range(30)])
    link.reconcile_until(lambda: link.harness.link.positions.get("2") == 10)
    assert link.harness.said(LinkAdvanced)
    link.reconcile_until(
        lambda: bool(link.lineage.told) and link.lineage.told[-1][0] is RunState.RUNNING
    )
    runs = {run.run for _, run, _ in link.lineage.told}
    assert runs == {link.harness.link.run}


def test_a_removed_link_purges_its_copy_and_its_principals(link: RealLink) -> None:
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    topic_id, writer = link.west.topic(link.topic).id, link.harness.link.principal
    link.harness.remove()
    link.reconcile_until(lambda: link.harness.link.state is State.DELETED)
    assert link.harness.link.copy is Copy.PURGED
    assert link.harness.said(CopyPurged)[-1].topic_id == topic_id
    assert link.west.topic(link.topic) is None
    for admin in link.admins.values():
        assert bindings_of(admin, link.topic, link.harness.name) == set()
        assert admin.rights(principal=writer) == set()

    link.harness.create()
    link.reconcile_until(link.caught_up)
    assert_exact(link)


def test_a_retained_copy_stays_frozen_and_can_be_taken_up_again(link: RealLink) -> None:
    link.produce((0, b"k", b"1", None))
    link.reconcile_until(link.caught_up)
    link.harness.remove(OnRevoke.RETAIN)
    link.reconcile_until(lambda: link.harness.link.state is State.DELETED)
    assert link.harness.said(CopyRetained)[-1].topic_id == link.west.topic(link.topic).id
    link.produce((0, b"k", b"2", None))
    link.reconcile()
    assert count(link.copy()) == 1

    link.harness.create()
    link.reconcile_until(link.caught_up)
    assert_exact(link)


def test_a_copy_is_purged_although_it_has_an_unexpected_reader(link: RealLink) -> None:
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    link.west.grant(reader("mallory", link.topic))
    link.harness.remove()
    link.reconcile_until(lambda: link.harness.link.state is State.DELETED)
    assert link.west.topic(link.topic) is None
    assert link.harness.said(CopyPurged)[-1].unexpected_readers == ["mallory"]


def test_nothing_is_removed_while_a_granted_reader_may_read_the_copy(link: RealLink) -> None:
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    right = reader("west.analytics", link.topic)
    link.west.grant(right)
    link.harness.grant("west.analytics")
    link.harness.remove()
    link.reconcile_until(lambda: link.harness.link.failure_code == "readers_remain")
    assert "west.analytics" in link.harness.link.failure
    assert link.west.topic(link.topic) is not None
    link.west.withdraw(right)
    link.reconcile_until(lambda: link.harness.link.state is State.DELETED)
    assert link.west.topic(link.topic) is None


def test_a_record_as_large_as_the_source_takes_is_copied(platform: Endpoints) -> None:
    link = RealLink(platform, 1, **{"retention.ms": "123456789", "cleanup.policy": "compact"})
    try:
        link.produce((0, b"large", b"x" * 1_048_000, None), (0, b"k", b"v", None))
        link.reconcile_until(link.caught_up)
        assert_exact(link)
        config = link.west.topic(link.topic).config
        assert config["retention.ms"] == "123456789"
        assert config["cleanup.policy"] == "compact"
    finally:
        link.close()


def test_a_copy_that_lives_but_does_not_move_is_started_anew(link: RealLink) -> None:
    """Spark does not notice a refused record before the next one: here there is none."""
    link.produce((0, b"k", b"1", None))
    link.reconcile_until(link.caught_up)
    link.pace = replace(link.pace, stall=3)
    link.controller.close()
    link.controller = link.new_controller()
    link.west.withdraw(bindings_of(link.west, link.topic, link.harness.name))
    link.produce((0, b"k", b"2", None))
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    # its restart may be slow as well
    assert {fault.code for fault in link.harness.said(LinkFailed)} == {"query_stalled"}
    link.reconcile_until(lambda: link.harness.link.state is State.ACTIVE)
    assert link.harness.link.failure is None


def test_no_password_is_found_in_the_servers_log(link: RealLink) -> None:
    """Also not when a query fails, and its plan is told."""
    passwords: list[str] = []
    for admin in link.admins.values():
        connection = admin.connection

        def noted(principal, password, connection=connection):
            passwords.append(password)
            return connection(principal, password)

        admin.connection = noted
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.caught_up)
    link.west.withdraw(bindings_of(link.west, link.topic, link.harness.name))

    def failed() -> bool:
        # Spark notices with the next record that the last one was refused
        link.produce((0, b"k", b"v", None))
        return bool(link.harness.said(LinkFailed))

    link.reconcile_until(failed)
    fault = link.harness.said(LinkFailed)[-1]
    assert fault.code == "query_failed"
    assert "TopicAuthorizationException" in fault.reason
    text = spark_log(link.endpoints)
    assert "TopicAuthorizationException" in text
    assert len(passwords) >= 2
    for password in passwords:
        assert password not in text
        assert all(password not in str(fact) for fact in link.harness.facts)


def test_lineage_lands_on_its_topic_under_the_runs_id(link: RealLink) -> None:
    lineage = LineageTopic(link.east.login, link.topic)
    link.produce((0, b"k", b"v", None))
    link.reconcile_until(link.is_told)
    kind, run, _ = link.lineage.told[0]
    lineage.tell(kind, run)
    ((key, value),) = [
        record[1:3] for records in link.source().values() for record in records if record[1] != b"k"
    ]
    assert key == link.harness.link.run.encode()
    told = json.loads(value)
    assert (told["eventType"], told["run"]["runId"]) == ("START", link.harness.link.run)
    assert told["job"]["name"] == link.harness.name


def test_lineage_that_cannot_be_written_stops_nothing(link: RealLink) -> None:
    stranger = link.east.connection("nobody", "wrong")
    link.reconcile_until(lambda: bool(link.lineage.told))
    with capture_logs() as logs:
        LineageTopic(stranger, link.topic).tell(*link.lineage.told[0])
    assert [entry["event"] for entry in logs] == ["lineage_not_written"]


class Casting:
    """Work that reads each value as a number, and fails where it is none."""

    def apply(self, session, records, origin):
        from pyspark.sql.connect import functions as f

        session.conf.set("spark.sql.ansi.enabled", "true")
        number = f.col("value").cast("string").cast("bigint")
        out = with_provenance(
            records.withColumn("value", number.cast("string").cast("binary")), origin
        )
        return out.withColumn("topic", f.lit(self.topic))

    def __init__(self, topic: str) -> None:
        self.topic = topic


def test_a_value_that_fails_a_query_is_in_a_local_file_and_not_on_the_log(
    link: RealLink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = f"4711-{link.topic}-[CAST_OVERFLOW]\nCaused by: org.Anna: 0815"
    errors = link.errors = ErrorFiles(tmp_path)
    # the query is to end by itself before it counts as one that does not get on
    link.pace = replace(link.pace, stall=60)
    link.controller.close()
    link.controller = link.new_controller()
    monkeypatch.setattr(CopyPlan, "work", lambda *_: Casting(link.topic))
    link.produce((0, b"k", b"7", None), (0, b"k", value.encode(), None))
    with capture_logs() as lines:
        link.reconcile_until(lambda: bool(link.harness.said(LinkFailed)))
    fault = link.harness.said(LinkFailed)[-1]
    assert (fault.code, "CAST_INVALID_INPUT" in fault.reason) == ("query_failed", True)
    for part in ("4711", "Anna", "0815"):
        told = (link.harness.facts, link.harness.image, link.lineage.told, lines)
        assert part not in repr(told)
    path = errors.path("link", link.harness.name, fault.code)
    assert "4711" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(path) in repr(lines)


def spark_log(endpoints: Endpoints) -> str:
    """The log of the Spark Connect server that the link runs on."""
    log = Layout(home_of(endpoints)).log(spark_service(DOMAIN))
    return log.read_text(encoding="utf-8", errors="replace")


def lag_of(link: RealLink) -> dict[int, int]:
    source = KafkaLog(link.east.login, committed=True)
    copy = KafkaLog(link.west.login)
    try:
        origin = Origin("east", link.east.topic(link.topic).id)
        come = copied(source, link.topic, copy, link.topic, link.partitions, origin)
        return behind(source, link.topic, come)
    finally:
        source.close()
        copy.close()


def test_nothing_is_written_behind_a_record_that_is_refused(link: RealLink) -> None:
    """What stands last tells how far a copy is: what was refused before it would be lost."""
    topic, name = f"{link.topic}.small", f"{link.topic}@small"
    link.west.create_topic(topic, 3, {"max.message.bytes": "200000"})
    until(lambda: link.west.topic(topic) is not None)
    source = link.east.topic(link.topic)
    assert source is not None
    values = [b"%d" % at * 1_000 for at in range(100, 400)]
    values[150] = large = b"x" * 500_000
    link.produce(*[(0, b"k", value, None) for value in values])
    engine = link.new_engine()
    engine.start(
        CopySpec(
            link=name,
            writer="admin",
            source=link.endpoints.administration("east"),
            source_topic=link.topic,
            origin=Origin("east", source.id),
            destination=link.endpoints.administration("west"),
            destination_topic=topic,
            start=dict.fromkeys(range(link.partitions), 0),
            max_record_bytes=2_000_000,
        )
    )
    try:
        # Spark notices it with a later record
        def failed() -> bool:
            link.produce((0, b"k", b"later", None))
            return any(isinstance(one, Failed) for one in engine.states().get(name, ()))

        until(failed, timeout=60)
        copied_values = [value for _, _, value, _ in everything(link.west, topic)[0]]
        assert copied_values == values[: len(copied_values)]
        assert len(copied_values) <= values.index(large)
    finally:
        engine.stop(name)
        engine.close()
        link.west.delete_topic(topic)
