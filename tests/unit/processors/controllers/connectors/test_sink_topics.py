"""A sink over a topic that was made anew changes no row of the earlier one, and misses nothing."""

from pathlib import Path

import pytest

from mesh_events.connectors import (
    ConnectorActivated,
    ConnectorAdded,
    ConnectorDeleted,
    ConnectorUpdated,
)
from mesh_events.rows import ConnectorState
from projections.connectors.state import Connector
from self_service.cli.connect import jdbc_sink
from self_service.cli.connect.databases import Database
from self_service.cli.connect.jdbc_sink import Key
from tests.connectors.memory import NAME, PRINCIPAL, MemoryConnector

TOPIC, GROUP, OTHER = "east.orders", f"connect-{NAME}", "east.later"


@pytest.fixture
def made(tmp_path: Path) -> MemoryConnector:
    found = MemoryConnector(tmp_path)
    make_anew(found)
    return found


def make_anew(made: MemoryConnector) -> str:
    """The topic is deleted and made again; its new id."""
    made.east.delete_topic(TOPIC)
    made.east.create_topic(TOPIC, 1, {})
    return made.east.topic_ids([TOPIC])[TOPIC]


def config(key: Key = Key.POSITION, table: str = "orders", name: str = NAME) -> dict[str, str]:
    database = Database("db.invalid", 5432, "sdm", "shop", is_shared=True)
    settings = jdbc_sink.config(name, [TOPIC], database, key)
    return {**settings, "collection.name.format": table}


def add(
    made: MemoryConnector, key: Key = Key.POSITION, table: str = "orders", name: str = NAME
) -> None:
    given = config(key, table, name)
    made.log.say(ConnectorAdded, "east", connector=name, config=given)
    made.log.govern()
    made.look(times=3)


def update(made: MemoryConnector, table: str) -> None:
    made.log.say(ConnectorUpdated, "east", connector=NAME, config=config(table=table))
    made.log.govern()
    made.look(times=4)


def named(made: MemoryConnector, name: str) -> Connector:
    return made.log.image.connectors[name]


def test_a_sink_by_position_stands_still_without_rights_once_its_topic_is_another(
    made: MemoryConnector,
) -> None:
    add(made)
    before = made.east.topic_ids([TOPIC])
    assert dict(made.connector.topic_ids) == before
    make_anew(made)
    made.look(times=5)
    assert made.said() == ["Activated", "source_recreated"]
    assert made.connector.state is ConnectorState.FAILED
    assert "collection.name.format=${topic}_2" in (made.connector.failure or "")
    assert made.api.found[NAME].is_still
    assert not made.east.rights(principal=PRINCIPAL)
    assert dict(made.connector.topic_ids) == before


def test_another_controller_refuses_it_as_well(made: MemoryConnector) -> None:
    add(made)
    make_anew(made)
    made.controller = made.new_controller()
    made.look(times=3)
    assert made.said() == ["Activated", "source_recreated"]


def test_in_another_table_it_begins_anew_and_the_earlier_table_is_never_filled_again(
    made: MemoryConnector,
) -> None:
    add(made)
    now = make_anew(made)
    made.look(times=2)
    made.api.calls.clear()
    made.east.busy_groups = {GROUP}
    update(made, "later")
    assert made.api.calls == []
    made.east.busy_groups = set()
    made.look(times=2)
    assert made.east.deleted_groups == [GROUP]
    assert made.api.calls == [f"put {NAME}", f"resume {NAME}"]
    assert made.connector.state is ConnectorState.ACTIVE
    assert dict(made.connector.topic_ids) == {TOPIC: now}
    update(made, "orders")
    assert made.connector.failure_code == "source_recreated"
    assert made.east.deleted_groups == [GROUP]


@pytest.mark.parametrize("name", [NAME, OTHER])
def test_a_sink_that_is_added_over_the_rows_of_one_that_was_dropped_is_refused(
    made: MemoryConnector, name: str
) -> None:
    add(made)
    made.say(ConnectorDeleted)
    made.look(times=6)
    assert made.connector.is_over
    make_anew(made)
    add(made, name=name)
    assert named(made, name).failure_code == "source_recreated"
    assert not made.east.rights(principal=f"mesh.connect.{name}")


def test_a_sink_that_comes_back_for_another_table_does_not_go_on_at_its_old_positions(
    made: MemoryConnector,
) -> None:
    add(made)
    made.say(ConnectorDeleted)
    made.look(times=6)
    make_anew(made)
    add(made, table="later")
    assert made.east.deleted_groups == [GROUP]
    assert made.connector.state is ConnectorState.ACTIVE


def test_a_sink_by_the_records_key_reads_the_new_topic_from_its_begin_once(
    made: MemoryConnector,
) -> None:
    add(made, Key.RECORD)
    now = make_anew(made)
    made.api.calls.clear()
    made.look(times=8)
    assert made.said() == ["Activated", "source_recreated", "Activated"]
    assert made.api.calls == [f"stop {NAME}", f"put {NAME}", f"resume {NAME}"]
    assert made.east.deleted_groups == [GROUP]
    assert dict(made.connector.topic_ids) == {TOPIC: now}


def test_a_record_key_that_has_the_offset_is_no_key_of_the_record(made: MemoryConnector) -> None:
    by_offset = {
        **config(Key.RECORD),
        "transforms": "at",
        "transforms.at.type": "org.apache.kafka.connect.transforms.InsertField$Key",
        "transforms.at.offset.field": "place",
    }
    made.log.say(ConnectorAdded, "east", connector=NAME, config=by_offset)
    made.log.govern()
    made.look(times=3)
    make_anew(made)
    made.look(times=3)
    assert made.connector.state is ConnectorState.FAILED


def test_a_sink_reads_what_is_committed(made: MemoryConnector) -> None:
    add(made)
    config = made.api.found[NAME].config
    assert config["consumer.override.isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("key", "partitions", "cleanup", "versions", "fails"),
    [
        (Key.RECORD, 4, "delete", [1, 2], True),
        (Key.RECORD, 1, "delete", [1, 2], False),
        (Key.RECORD, 1, "compact,delete", [1, 2], True),
        (Key.RECORD, 4, "compact", [1], False),
        (Key.POSITION, 4, "compact", [1, 2], False),
    ],
)
def test_a_sink_stops_where_the_latest_record_of_a_key_is_not_known(
    made: MemoryConnector,
    key: Key,
    partitions: int,
    cleanup: str,
    versions: list[int],
    fails: bool,
) -> None:
    made.east.delete_topic(TOPIC)
    made.east.create_topic(TOPIC, partitions, {"cleanup.policy": cleanup})
    add(made, key)
    assert made.connector.state is ConnectorState.ACTIVE
    made.versions[f"{TOPIC}-key"] = versions
    made.look(times=6)
    failed = made.connector.failure_code == "keys_moved"
    assert failed is fails
    assert bool(made.east.rights(principal=PRINCIPAL)) is not fails


@pytest.mark.parametrize("key", list(Key))
def test_a_sink_that_replaces_rows_stops_where_its_topic_gets_partitions(
    made: MemoryConnector, key: Key
) -> None:
    """Later records of a key may stand in another partition than its earlier ones."""
    add(made, key)
    fails = key is Key.RECORD
    assert dict(made.connector.partitions) == ({TOPIC: 1} if fails else {})
    made.east.add_partitions(TOPIC, 2)
    made.look(times=3)
    assert (made.connector.failure_code == "partitions_added") is fails
    assert bool(made.east.rights(principal=PRINCIPAL)) is not fails
    # one that is made anew is another topic
    made.east.delete_topic(TOPIC)
    made.east.create_topic(TOPIC, 4, {})
    made.look(times=4)
    last = "Activated" if fails else "source_recreated"
    assert made.said()[-1] == last
    assert not fails or dict(made.connector.partitions) == {TOPIC: 4}


@pytest.mark.parametrize(("before", "after", "grown"), [(1, 4, 4), (4, 1, 4), (1, 4, 5)])
def test_a_topic_that_is_made_anew_has_its_own_number_of_partitions(
    made: MemoryConnector, before: int, after: int, grown: int
) -> None:
    """Also where the sink fails before it is active with the new one."""
    made.east.delete_topic(TOPIC)
    made.east.create_topic(TOPIC, before, {})
    add(made, Key.RECORD)
    made.east.delete_topic(TOPIC)
    made.east.create_topic(TOPIC, after, {})
    made.api.fail(NAME, "java.lang.RuntimeException: x")
    made.look(times=8)
    made.api.mend(NAME)
    made.look(seconds=60, times=12)
    assert made.connector.state is ConnectorState.ACTIVE
    assert dict(made.connector.partitions) == {TOPIC: after}
    if grown > after:
        made.east.add_partitions(TOPIC, grown)
        made.look(times=6)
        assert made.connector.failure_code == "partitions_added"


def test_a_sink_that_failed_at_its_first_start_may_have_made_rows(made: MemoryConnector) -> None:
    made.api.fails[NAME] = "java.lang.RuntimeException: x"
    add(made, Key.RECORD)
    made.look(times=6)
    assert dict(made.connector.partitions) == {TOPIC: 1}
    made.east.add_partitions(TOPIC, 4)
    made.api.mend(NAME)
    made.look(seconds=60, times=10)
    assert made.connector.failure_code == "partitions_added"


def test_a_sink_that_ran_before_its_topic_goes_on_and_is_told_its_id(
    made: MemoryConnector,
) -> None:
    made.east.delete_topic(TOPIC)
    add(made)
    assert not made.connector.topic_ids
    run = made.connector.run
    now = make_anew(made)
    made.api.calls.clear()
    made.look(times=5)
    assert made.said() == ["Activated", "Activated"]
    assert dict(made.connector.topic_ids) == {TOPIC: now}
    assert made.connector.run == run
    assert made.api.calls == [f"put {NAME}"]
    assert made.api.found[NAME].config["consumer.override.mesh.topic.ids"] == f"{TOPIC}={now}"
    told = [kind.name for kind, *_ in made.lineage.told]
    assert (told.count("START"), told.count("ABORT")) == (1, 0)


@pytest.mark.parametrize("key", list(Key))
def test_a_topic_that_is_gone_is_told_and_may_come_back_as_another(
    made: MemoryConnector, key: Key
) -> None:
    add(made, key)
    made.east.delete_topic(TOPIC)
    made.look(times=3)
    assert made.said() == ["Activated", "source_missing"]
    assert not made.east.rights(principal=PRINCIPAL)
    make_anew(made)
    made.look(times=4)
    last = "source_recreated" if key is Key.POSITION else "Activated"
    assert made.said() == ["Activated", "source_missing", last]


def test_no_right_is_given_for_a_topic_that_is_made_anew_while_rights_are_given(
    made: MemoryConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(made)
    before = made.east.topic_ids([TOPIC])
    make_anew(made)
    answers = iter([before])
    found = made.east.topic_ids
    monkeypatch.setattr(made.east, "topic_ids", lambda names: next(answers, found(names)))
    made.east.bindings.clear()
    made.look()
    assert not made.east.rights(principal=PRINCIPAL)


def test_a_sink_that_fails_before_it_ever_ran_has_its_topic_on_the_log(
    made: MemoryConnector,
) -> None:
    made.api.fails[NAME] = "org.A: a row was refused\n\tat x"
    add(made)
    assert "Activated" not in made.said()
    make_anew(made)
    made.controller = made.new_controller()
    made.look(times=3)
    assert made.connector.failure_code == "source_recreated"


def test_its_rights_go_while_connect_is_silent(made: MemoryConnector) -> None:
    add(made)
    made.api.down = True
    make_anew(made)
    made.look()
    assert not made.east.rights(principal=PRINCIPAL)


def test_a_topic_id_is_of_what_the_fact_names_and_the_sink_reads(made: MemoryConnector) -> None:
    add(made)
    last = made.leadership.facts[-1]
    assert isinstance(last, ConnectorActivated)
    strange = last.model_copy(
        update={
            "meta": last.meta.model_copy(update={"id": "another"}),
            "topic_ids": {"east.users": "x"},
        }
    )
    made.log.append(strange, by="controller")
    assert set(made.connector.topic_ids) == {TOPIC}
