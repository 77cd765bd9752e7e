"""The connectors controller over Kafka Connect in memory, dying wherever it can."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mesh_events import intents
from mesh_events.connectors import (
    OWN_SECRET,
    ConnectorActivated,
    ConnectorAdded,
    ConnectorDeleted,
    ConnectorFailed,
    ConnectorStarted,
    ConnectorStopped,
    ConnectorUpdated,
)
from mesh_events.errors import RefusedError
from mesh_events.meta import Event
from mesh_events.rows import ConnectorState
from processors.clusters.principals import job_of
from processors.clusters.rights import Binding, Operation, Resource
from processors.connect.connects import Connects
from processors.connect.rest import Part
from processors.controllers.connectors import look
from processors.controllers.connectors.connectors import AT_ONCE
from processors.controllers.rights.wishes import desired, may_not_read
from projections.connectors import system_tables
from tests import sample_history as story
from tests.connectors.memory import NAME, PRINCIPAL, MemoryConnect, MemoryConnector
from tests.unit.processors.controllers.flows.test_links_crashes import Crashes, DiedError

PLACES = ["connector-after-rights", "connector-after-deploy", "connector-after-delete"]
TRACE = "org.A: task died\n\tat x\nCaused by: org.DataException: the connection was reset.\n\tat y"


@pytest.fixture
def made(tmp_path: Path) -> MemoryConnector:
    return MemoryConnector(tmp_path)


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Crashes:
    found = Crashes()
    monkeypatch.setattr(look, "crash_point", found)
    return found


def reading(made: MemoryConnector, topic: str) -> bool:
    return made.east.may(PRINCIPAL, Operation.READ, topic)


def test_a_connector_runs_as_itself_with_its_secret_by_reference(
    made: MemoryConnector, tmp_path: Path
) -> None:
    made.add({"database.password": made.secrets.store(NAME, "s3cret")})
    made.look(times=2)
    config = made.api.found[NAME].config
    named = made.connector.config["database.password"]
    version = named.removeprefix("${secret:own/").removesuffix("}")
    assert config["database.password"] == f"${{dir:{tmp_path}/own/{NAME}:{version}}}"
    assert config["offsets.storage.topic"] == "connect-offsets.east"
    login = config["producer.override.sasl.jaas.config"]
    assert f'username="{PRINCIPAL}"' in login
    assert f"${{dir:{tmp_path}/logins/east:{PRINCIPAL}}}" in login
    password = made.east.logins[PRINCIPAL]
    assert password
    assert password not in str(config)
    assert made.said() == ["Activated"]
    own = Binding(PRINCIPAL, Operation.WRITE, Resource.TOPIC, "east.", prefixed=True)
    task = Binding(PRINCIPAL, Operation.ALL, Resource.TRANSACTIONAL_ID, f"workers-{NAME}-0")
    assert {own, task} <= made.east.bindings
    assert made.lineage.told == []
    made.look()
    assert [kind.name for kind, *_ in made.lineage.told] == ["START", "RUNNING"]


def test_a_run_that_the_log_does_not_count_has_no_lineage(made: MemoryConnector) -> None:
    made.add()
    made.look()
    before = made.log.image
    # it is stopped while the look goes on that finds it running
    made.say(ConnectorStopped)
    made.time += 2
    made.controller.reconcile(before, made.leadership)
    assert made.said() == ["Activated"]
    assert made.connector.run is None
    made.look(times=4)
    assert made.said() == ["Activated", "Halted"]
    assert made.lineage.told == []


def test_each_connector_has_its_turn_however_many_come_before_it(made: MemoryConnector) -> None:
    made.add()
    names = [f"east.c{number}" for number in range(8)]
    for name in names:
        fields = {**story.connector(more={"table.include.list": f"public.{name[5:]}"})}
        made.log.say(ConnectorAdded, "east", **{**fields, "connector": name})
    made.log.govern()
    rights = made.east.rights

    def slow(**by: Any) -> Any:
        made.time += 1
        return rights(**by)

    made.east.rights = slow  # type: ignore[method-assign]
    made.look(10, times=4 * len(names))
    assert {one.state for one in made.log.image.connectors.values()} == {ConnectorState.ACTIVE}
    # nor is one forgotten that is to stop: its rights go at once, and then it does
    made.say(ConnectorStopped)
    made.look(10)
    assert not rights(principal=PRINCIPAL)
    made.look(10, times=2 * len(names))
    assert made.connector.state is ConnectorState.STOPPED


def test_what_stays_as_it_is_is_left_alone(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.calls.clear()
    made.look(times=20)
    assert made.api.calls == []
    assert made.said() == ["Activated"]


def test_a_failed_task_is_started_again_ever_less_often_and_told_once(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    made.api.calls.clear()
    made.api.fail(NAME, TRACE)
    starts = []
    for second in range(600):
        made.look(1.0)
        starts += [second] * made.api.calls.count(f"restart {NAME}")
        made.api.calls.clear()
    waits = [after - before for before, after in pairwise(starts)]
    assert starts[0] == 0
    assert waits == sorted(waits)
    assert waits[0] <= 3
    assert waits[-1] >= 200
    assert made.said() == ["Activated", "task_failed"]
    failed = made.leadership.facts[-1]
    assert isinstance(failed, ConnectorFailed)
    assert failed.tasks == [0]
    assert "task 0: DataException" in failed.reason
    assert "reset" not in failed.reason
    assert made.connector.state is ConnectorState.FAILED


def test_another_cause_of_a_failure_is_reported_at_once_and_many_are_not(
    made: MemoryConnector,
) -> None:
    """A closed connection may be reported before what closed it."""
    made.add()
    made.look(times=2)
    closed = "org.apache.kafka.connect.errors.ConnectException: org.postgresql.util.PSQLException: "
    made.api.fail(NAME, f"{closed}This replication stream has been closed.")
    made.look(1.0)
    made.api.fail(NAME, TRACE)
    made.look(1.0)
    assert made.said() == ["Activated", "task_failed", "task_failed"]
    assert "DataException" in (made.connector.failure or "")
    for _ in range(50):
        for text in (closed, TRACE):
            made.api.fail(NAME, text)
            made.look(1.0)
    assert made.said() == ["Activated", *["task_failed"] * AT_ONCE]


def test_what_was_helped_is_told_when_it_goes_on_running(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.fail(NAME, TRACE)
    made.api.mend(NAME)
    made.look(1.0)
    made.look(1.0, times=3)
    assert made.said() == ["Activated", "task_failed"]
    made.look(1.0, times=5)
    assert made.said() == ["Activated", "task_failed", "Activated"]
    again = made.leadership.facts[-1]
    assert isinstance(again, ConnectorActivated)
    assert again.restarts == 1
    assert made.connector.restarts == 1


def test_what_fails_whenever_it_has_run_for_a_while_is_not_told_without_end(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    for _ in range(100):
        made.api.fail(NAME, TRACE)
        made.api.mend(NAME)
        made.look(1.0, times=36)
    assert len(made.said()) < 40


def test_no_secret_comes_into_a_report_or_a_file(made: MemoryConnector) -> None:
    made.add({"database.password": made.secrets.store(NAME, "s3cret")})
    made.look(times=2)
    made.api.fail(NAME, f"org.A: cannot log in with s3cret and {made.east.logins[PRINCIPAL]}")
    made.look()
    assert "s3cret" not in (made.connector.failure or "")
    text = made.errors.path("connector", NAME, "task_failed").read_text()
    assert "cannot log in with (hidden) and (hidden)" in text


def test_a_record_value_in_a_trace_is_in_a_local_file_and_not_on_the_log(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    made.api.fail(
        NAME, "org.A: died\nCaused by: org.postgresql.util.PSQLException: Key (id)=(4711)"
    )
    made.look()
    assert "PSQLException" in (made.connector.failure or "")
    assert "4711" not in repr((made.leadership.facts, made.log.image, made.lineage.told))
    assert "4711" in made.errors.path("connector", NAME, "task_failed").read_text()


def test_what_somebody_else_changed_is_put_back(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    wanted = dict(made.api.found[NAME].config)
    made.time += 60
    made.api.put(NAME, {**wanted, "topic.prefix": "east.other"})
    made.look()
    assert made.api.found[NAME].config == wanted
    made.time += 60
    made.api.stop(NAME)
    made.look(times=2)
    assert made.api.found[NAME].runs
    made.time += 60
    made.api.delete(NAME)
    made.look(times=2)
    assert made.api.found[NAME].config == wanted
    made.east.bindings.clear()
    made.look(10)
    assert made.east.rights(principal=PRINCIPAL)
    strange = Binding(PRINCIPAL, Operation.READ, Resource.TOPIC, "west.orders")
    made.east.bindings.add(strange)
    made.look(10)
    assert strange not in made.east.bindings


def test_a_stopped_connector_has_no_rights_and_goes_on(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.say(ConnectorStopped, reason="r")
    made.look(times=3)
    assert made.api.found[NAME].is_still
    assert not made.east.rights(principal=PRINCIPAL)
    assert made.connector.state is ConnectorState.STOPPED
    made.say(ConnectorStarted)
    made.look(times=3)
    assert made.api.found[NAME].runs
    assert made.said() == ["Activated", "Halted", "Activated"]


def test_an_update_is_deployed_and_the_same_config_is_started_anew(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.time += 10
    made.log.say(ConnectorUpdated, "east", **story.connector(more={"poll.interval.ms": "5"}))
    made.log.govern()
    made.look(times=2)
    assert made.api.found[NAME].config["poll.interval.ms"] == "5"
    made.api.calls.clear()
    made.log.say(ConnectorUpdated, "east", **story.connector(more={"poll.interval.ms": "5"}))
    made.log.govern()
    made.look(times=2)
    assert made.api.calls == [f"restart {NAME}"]
    assert made.said() == ["Activated"] * 3


def test_a_config_has_the_secret_that_came_with_it_whatever_was_proposed_since(
    made: MemoryConnector, tmp_path: Path
) -> None:
    """Two updates at once, of which the later one is accepted first, and one is refused."""

    def running() -> str:
        folder, _, version = made.api.found[NAME].config["database.password"][6:-1].rpartition(":")
        return (Path(folder) / version).read_text()

    def update(reference: str) -> None:
        more = {"database.password": reference}
        made.log.say(ConnectorUpdated, "east", **story.connector(more=more))
        made.log.govern()
        made.look(10.0, times=2)

    made.add({"database.password": made.secrets.store(NAME, "first")})
    made.look(times=2)
    second, third = (made.secrets.store(NAME, text) for text in ("second", "third"))
    refused = made.secrets.store(NAME, "refused")
    assert running() == "first"
    update(third)
    assert running() == "third"
    made.secrets.remove(NAME, refused)
    assert running() == "third"
    update(second)
    assert running() == "second"
    kept = tmp_path / "own" / NAME
    assert sorted(one.read_text() for one in kept.iterdir()) == ["first", "second", "third"]
    # what no config has had for an hour is gone, but for what waits for its decision
    fourth = made.secrets.store(NAME, "fourth")
    more = {"database.password": fourth}
    made.log.say(ConnectorUpdated, "east", **story.connector(more=more))
    made.look(1.0)
    for one in kept.iterdir():
        os.utime(one, (0, 0))
    made.look(made.controller.pace.lineage)
    assert sorted(one.read_text() for one in kept.iterdir()) == ["fourth", "second"]
    made.log.govern()
    made.look(10.0, times=2)
    assert running() == "fourth"


@pytest.mark.parametrize(("seconds", "told"), [(8, 1), (14, 2)])
def test_what_failed_before_an_update_is_not_told_of_the_new_config_at_once(
    made: MemoryConnector, seconds: int, told: int
) -> None:
    """Connect may show the failure of a task that it has not replaced yet."""
    made.add()
    made.look(times=2)
    made.api.fail(NAME, TRACE)
    made.look(1.0)
    made.log.say(ConnectorUpdated, "east", **story.connector(more={"poll.interval.ms": "5"}))
    made.log.govern()
    made.look(1.0, times=seconds)
    assert made.said().count("task_failed") == told
    made.api.mend(NAME)
    made.api.restart(NAME, failed_only=True)
    made.look(1.0, times=20)
    assert made.connector.state is ConnectorState.ACTIVE


def test_what_was_just_helped_and_fails_once_more_is_not_told_of_the_new_config(
    made: MemoryConnector,
) -> None:
    """At the update it was just started again, and fails a moment later under the old config."""
    made.add()
    made.look(times=2)
    made.api.fail(NAME, TRACE)
    made.look(1.0)
    made.api.mend(NAME)
    made.api.restart(NAME, failed_only=True)
    made.log.say(ConnectorUpdated, "east", **story.connector(more={"poll.interval.ms": "5"}))
    made.log.govern()
    made.look(1.0)
    made.api.fail(NAME, TRACE)
    made.look(1.0, times=5)
    assert made.said().count("task_failed") == 1


def test_what_fails_otherwise_after_an_update_is_told(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.fail(NAME, TRACE)
    made.look(1.0)
    made.api.fails[NAME] = TRACE.replace("DataException", "ConfigException")
    made.log.say(ConnectorUpdated, "east", **story.connector(more={"poll.interval.ms": "5"}))
    made.log.govern()
    made.look(1.0, times=4)
    assert made.said().count("task_failed") == 2


def test_a_dropped_connector_leaves_nothing(made: MemoryConnector, tmp_path: Path) -> None:
    made.add({"database.password": made.secrets.store(NAME, "s3cret")})
    made.look(times=2)
    made.say(ConnectorDeleted)
    made.look(times=3)
    assert NAME not in made.api.found
    assert not made.east.rights(principal=PRINCIPAL)
    assert made.east.open_logins() == set()
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []
    assert made.connector.state is ConnectorState.DELETED
    assert [kind.name for kind, *_ in made.lineage.told] == ["START", "COMPLETE"]
    made.api.calls.clear()
    made.look(times=3)
    assert made.api.calls == []


@pytest.mark.parametrize("has_run", [False, True])
def test_a_dropped_connector_closes_the_login_that_the_mesh_has_made_and_no_other(
    made: MemoryConnector, has_run: bool
) -> None:
    if not has_run:
        made.east.set_password(PRINCIPAL, "of-somebody-else")
    made.add()
    made.look(times=2)
    assert made.said() == (["Activated"] if has_run else ["login_taken"])
    # an administrator has changed it since
    made.east.set_password(PRINCIPAL, "of-somebody-else")
    made.say(ConnectorDeleted)
    made.look(30, times=3)
    assert made.connector.state is ConnectorState.DELETED
    assert made.east.lets_in(PRINCIPAL, "of-somebody-else") is not has_run


def test_connect_that_refuses_is_told_and_asked_again(made: MemoryConnector) -> None:
    made.api.refusal = RefusedError("invalid_connector", "the database does not answer")
    made.add()
    made.look(times=3)
    assert made.said() == ["invalid_connector"]
    made.api.refusal = None
    made.look(30, times=3)
    assert made.said() == ["invalid_connector", "Activated"]


def test_connect_that_is_silent_for_a_moment_is_nothing_to_tell(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.down = True
    made.look(3, times=3)
    assert made.said() == ["Activated"]
    made.look(3, times=5)
    assert made.said() == ["Activated", "connect_unavailable"]
    made.api.down = False
    made.look(times=6)
    assert made.said() == ["Activated", "connect_unavailable", "Activated"]


def test_without_a_connect_cluster_no_connector_is_active(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    connects, made.connects = made.connects, Connects()
    made.controller = made.new_controller()
    made.look(times=3)
    assert made.said() == ["Activated", "connect_unavailable"]
    assert "SDM_CONNECT_URL" in (made.connector.failure or "")
    made.connects = connects
    made.controller = made.new_controller()
    made.look(times=6)
    assert made.said() == ["Activated", "connect_unavailable", "Activated"]


def test_a_connector_waits_for_a_worker_that_is_being_started_and_has_not_failed(
    made: MemoryConnector,
) -> None:
    made.api.starts = True
    made.add()
    made.look(10, times=10)
    assert made.said() == []
    made.api.starts = False
    made.look(times=2)
    assert made.said() == ["Activated"]


def test_what_ran_on_a_worker_that_is_started_again_is_not_active_meanwhile(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    made.api.starts = True
    made.look(3, times=2)
    assert made.said() == ["Activated"]
    made.look(3, times=4)
    assert made.said() == ["Activated", "connect_unavailable"]
    made.api.starts = False
    made.look(times=6)
    assert made.said() == ["Activated", "connect_unavailable", "Activated"]


def test_what_ran_is_told_at_once_where_a_new_governor_finds_its_worker_being_started(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    made.api.starts = True
    made.log.start_governor()
    made.controller = made.new_controller()
    made.look()
    assert made.said() == ["Activated", "connect_unavailable"]


def test_a_worker_that_is_stopped_is_not_started_for_connectors_that_stand_still(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    made.say(ConnectorStopped)
    made.look(times=3)
    assert made.connector.state is ConnectorState.STOPPED
    made.api.stopped, looks = True, made.api.looks
    made.look(10, times=5)
    made.log.start_governor()
    made.controller = made.new_controller()
    made.look(10, times=5)
    assert made.api.looks == looks
    made.say(ConnectorStarted)
    made.look(times=2)
    assert made.connector.state is ConnectorState.ACTIVE


def test_what_is_asked_for_after_a_worker_was_stopped_is_done(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.say(ConnectorStopped)
    made.look(times=3)
    made.api.stopped = True
    made.look(10, times=3)
    made.say(ConnectorDeleted)
    made.look(10, times=3)
    assert made.connector.state is ConnectorState.DELETED
    assert NAME not in made.api.found


def test_what_is_asked_for_while_a_domain_is_in_quarantine_is_done(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    quarantine(made)
    made.look(10, times=3)
    made.api.stopped = True
    made.look(10, times=3)
    made.log.operator(ConnectorStopped, connector=NAME)
    made.log.govern()
    made.look(10, times=3)
    assert made.connector.state is ConnectorState.STOPPED


def test_a_worker_that_is_stopped_is_not_started_for_a_domain_in_quarantine(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    # it was lost, and may still run
    made.api.stopped = True
    quarantine(made)
    looks = made.api.looks
    made.look(times=3)
    assert made.api.found[NAME].is_still
    assert made.api.looks > looks
    looks = made.api.looks
    made.look(10, times=5)
    assert made.api.looks == looks
    # the last look before it was stopped found it gone
    made.api.stopped, made.api.down = False, True
    made.look(10)
    made.api.stopped, made.api.down = True, False
    looks = made.api.looks
    made.look(10, times=5)
    assert made.api.looks == looks
    made.log.start_governor()
    made.controller = made.new_controller()
    # a new governor has not seen that nothing runs
    made.look(10, times=3)
    assert made.api.looks > looks


def test_a_domains_connectors_leave_the_cluster_that_it_shared(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    other = "north.users"
    made.api.found[other] = replace(made.api.found[NAME], name=other)
    own = MemoryConnect()
    domain = made.connector.domain
    of_domain = replace(made.connect, api=own, group=f"connect.{domain}")
    made.connects = Connects(made.connect, lambda one: of_domain if one == domain else None)
    made.api.down = True
    made.controller = made.new_controller()
    made.look(10, times=2)
    assert not own.found
    made.api.down = False
    made.look(10, times=2)
    assert (list(made.api.found), list(own.found)) == ([other], [NAME])


def quarantine(made: MemoryConnector) -> None:
    made.log.operator(intents.DomainQuarantined, domain="east", reason="stolen")
    made.log.govern()


def test_a_domain_in_quarantine_has_no_connector_that_runs(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    quarantine(made)
    made.look(times=3)
    assert made.api.found[NAME].is_still
    assert not made.east.rights(principal=PRINCIPAL)
    assert made.connector.failure_code == "domain_quarantined"
    made.log.operator(intents.DomainReleased, domain="east", reason="found")
    made.log.govern()
    made.look(times=3)
    assert made.api.found[NAME].runs
    assert made.connector.state is ConnectorState.ACTIVE


def test_a_connector_of_before_that_reaches_tables_of_postgres_itself_is_ended(
    made: MemoryConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(system_tables, "fault", lambda _: None)
        made.add({"table.include.list": "pg_catalog.pg_authid"})
        made.look(times=2)
        assert made.said() == ["Activated"]
        assert made.east.rights(principal=PRINCIPAL)
    made.look(times=2)
    assert not made.east.rights(principal=PRINCIPAL)
    assert made.api.found[NAME].is_still
    assert made.said() == ["Activated", "invalid_connector"]
    assert made.connector.failure is not None
    assert "pg_catalog.pg_authid" in made.connector.failure


def test_a_source_that_loses_its_rights_leaves_no_transaction_open(
    made: MemoryConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[str, bool]] = []

    def end(transactional_id: str) -> None:
        ended.append((transactional_id, bool(made.east.rights(principal=PRINCIPAL))))

    monkeypatch.setattr(made.east, "end_transactions", end)
    made.add()
    made.look(times=2)
    made.api.down = True
    made.say(ConnectorStopped)
    made.look(times=2)
    assert ended == [(f"workers-{NAME}-0", False)]


def test_rights_go_although_connect_is_silent(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.down = True
    made.log.operator(intents.DomainQuarantined, domain="east", reason="stolen")
    made.log.govern()
    made.look()
    assert not made.east.rights(principal=PRINCIPAL)
    made.log.operator(intents.DomainReleased, domain="east", reason="found")
    made.say(ConnectorDeleted)
    made.look()
    assert not made.east.rights(principal=PRINCIPAL)
    assert made.connector.state is ConnectorState.DELETING


def test_what_was_just_made_is_not_taken_for_gone(made: MemoryConnector) -> None:
    """Connect lists a connector some time after it took its config."""
    made.time += 60
    made.add()
    made.look()
    unlisted = made.api.found.pop(NAME)
    made.say(ConnectorDeleted)
    made.api.calls.clear()
    made.look()
    assert made.connector.state is ConnectorState.DELETING
    assert f"drop {NAME}" in made.api.calls
    made.api.found[NAME] = unlisted
    made.look(times=6)
    assert NAME not in made.api.found
    assert made.connector.state is ConnectorState.DELETED


@pytest.mark.parametrize(
    ("asked", "end", "state"),
    [
        (ConnectorDeleted, "drop", ConnectorState.DELETED),
        (ConnectorStopped, "stop", ConnectorState.STOPPED),
    ],
)
def test_what_a_worker_that_starts_does_not_list_is_ended_before_it_is_told_gone(
    made: MemoryConnector, asked: type[Event], end: str, state: ConnectorState
) -> None:
    made.add()
    made.look(times=2)
    made.time += 60
    made.api.reads = True
    made.say(asked)
    made.api.calls.clear()
    made.look()
    assert f"{end} {NAME}" in made.api.calls
    assert made.said() == ["Activated"]
    made.api.reads = False
    made.look(times=2)
    assert made.connector.state is state
    assert NAME not in made.api.found or made.api.found[NAME].is_still


def test_what_is_at_rest_is_looked_after(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.say(ConnectorStopped, reason="r")
    made.look(times=3)
    late = Binding(PRINCIPAL, Operation.WRITE, Resource.TOPIC, "east.", prefixed=True)
    made.east.bindings.add(late)
    made.api.resume(NAME)
    made.look(10, times=2)
    assert late not in made.east.bindings
    assert made.api.found[NAME].is_still
    assert made.said() == ["Activated", "Halted"]


def test_a_failure_whose_words_change_is_not_told_without_end(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    for second in range(600):
        made.api.fail(NAME, f"org.A: failed at {second}")
        made.look(1.0)
    assert made.said().count("task_failed") <= 3


def test_a_cluster_that_is_silent_for_a_moment_is_nothing_to_tell(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.east.down = True
    made.look(3, times=3)
    assert made.said() == ["Activated"]
    made.look(3, times=3)
    assert made.said() == ["Activated", "infrastructure"]
    made.east.down = False
    made.look(3, times=10)
    assert made.said() == ["Activated", "infrastructure", "Activated"]
    made.say(ConnectorStopped, reason="r")
    made.look(times=3)
    made.east.down = True
    made.look(3, times=10)
    assert made.said()[-1] == "Halted"


def test_tasks_that_nobody_runs_are_told(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    found = made.api.found[NAME]
    made.api.found[NAME] = replace(found, tasks=(Part(0, "UNASSIGNED"),))
    made.look(3, times=10)
    assert made.said() == ["Activated", "tasks_waiting"]


@pytest.mark.parametrize(("planned", "code"), [(1, "tasks_waiting"), (0, "no_tasks")])
def test_a_task_that_hangs_in_its_start_is_told_from_none(
    made: MemoryConnector, planned: int, code: str
) -> None:
    made.add()
    made.look(times=2)
    made.api.found[NAME] = replace(made.api.found[NAME], tasks=(), planned=planned)
    made.look(3, times=10)
    assert made.said() == ["Activated", code]
    told = made.log.image.connectors[NAME].failure
    assert told is not None
    assert ("may not answer" in told) == bool(planned)


def test_a_task_that_starts_anew_and_hangs_is_told_with_what_may_hold_it(
    made: MemoryConnector,
) -> None:
    made.add()
    made.look(times=2)
    _has(made, Part(0, "RESTARTING"))
    made.look(3, times=10)
    assert made.said() == ["Activated", "tasks_waiting"]
    assert "may not answer" in (made.log.image.connectors[NAME].failure or "")


@pytest.mark.parametrize(("planned", "code"), [(1, "tasks_waiting"), (0, "no_tasks")])
def test_what_has_not_run_yet_may_take_longer_than_what_ran(
    made: MemoryConnector, planned: int, code: str
) -> None:
    made.add()
    made.look()
    made.api.found[NAME] = replace(made.api.found[NAME], tasks=(), planned=planned)
    made.look(5, times=11)
    assert made.said() == []
    made.look(5, times=3)
    assert made.said() == [code]


def test_a_task_that_takes_half_a_minute_to_start_is_no_failure(made: MemoryConnector) -> None:
    made.add()
    made.look()
    found = made.api.found[NAME]
    made.api.found[NAME] = replace(found, tasks=(Part(0, "UNASSIGNED"),))
    made.look(3, times=10)
    made.api.found[NAME] = found
    made.look(3, times=2)
    assert made.said() == ["Activated"]


def _has(made: MemoryConnector, *tasks: Part) -> None:
    made.api.found[NAME] = replace(made.api.found[NAME], tasks=tasks)


def _is_silent(made: MemoryConnector) -> None:
    made.api.down = True


NOT_RUNNING: dict[str, tuple[str, Callable[[MemoryConnector], None]]] = {
    "silent": ("connect_unavailable", _is_silent),
    "not started": ("tasks_waiting", lambda made: _has(made, Part(0, "UNASSIGNED"))),
    "no task": ("tasks_waiting", _has),
    "lost": ("connector_failed", lambda made: made.api.found.clear()),
    "failed": ("task_failed", lambda made: made.api.fail(NAME, TRACE)),
}


@pytest.mark.parametrize("case", NOT_RUNNING)
def test_the_first_look_of_a_worker_reports_what_does_not_run(
    made: MemoryConnector, case: str
) -> None:
    made.add()
    made.look(times=2)
    code, change = NOT_RUNNING[case]
    change(made)
    made.controller = made.new_controller()
    made.look()
    assert made.said() == ["Activated", code]
    assert made.connector.state is ConnectorState.FAILED


def test_the_first_look_of_a_leadership_reports_what_does_not_run(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.down = True
    made.look()
    assert made.said() == ["Activated"]
    made.log.start_governor()
    made.look()
    assert made.said() == ["Activated", "connect_unavailable"]


@pytest.mark.parametrize("case", ["silent", "not started"])
def test_what_goes_on_with_connect_is_not_started_twice(made: MemoryConnector, case: str) -> None:
    made.add()
    made.look(times=2)
    found = made.api.found[NAME]
    NOT_RUNNING[case][1](made)
    made.controller = made.new_controller()
    made.look()
    made.api.down, made.api.found[NAME] = False, found
    made.api.calls.clear()
    made.look(times=6)
    assert made.api.calls == []
    assert made.said()[-1] == "Activated"
    assert made.connector.state is ConnectorState.ACTIVE
    assert made.connector.restarts == 0


def test_what_runs_at_the_first_look_of_a_worker_is_left_alone(made: MemoryConnector) -> None:
    made.add()
    made.look(times=2)
    made.api.calls.clear()
    made.controller = made.new_controller()
    made.look()
    assert made.api.patience_s < 5
    made.look(times=5)
    assert made.api.patience_s > 5
    assert made.api.calls == []
    assert made.said() == ["Activated"]


def test_one_connector_that_cannot_be_settled_does_not_hold_up_the_next(
    made: MemoryConnector,
) -> None:
    made.add()
    second = story.connector(connector="east.second", more={"table.include.list": "public.b"})
    made.log.say(ConnectorAdded, "east", **second)
    made.log.govern()
    made.api.broken.add(NAME)
    made.look(times=4)
    assert made.api.found["east.second"].runs
    assert made.log.image.connectors["east.second"].state is ConnectorState.ACTIVE
    assert "unexpected_error" in made.said()


def test_a_removed_link_ends_what_reads_its_copy(made: MemoryConnector) -> None:
    story.granted(made.log)
    story.settle(made.log)
    config = {"connector.class": "some.Sink", "topics": "east.users"}
    fields = {"connector": "west.files", "application": "west.app", "config": config}
    made.log.say(ConnectorAdded, "west", **fields)
    made.log.govern()
    found = made.log.image.connectors["west.files"]
    assert look.withheld(found, made.log.image) is None
    link = {"product": story.PRODUCT, "cluster": "west"}
    made.log.say(intents.LinkDeleted, "west", **link, reason="r")
    made.log.govern()
    reason = look.withheld(found, made.log.image)
    assert reason is not None
    assert reason.code == "source_not_granted"
    [wish] = [one for one in desired(made.log.image) if one.principal == "west.app" and one.through]
    assert wish.through == "west"
    assert job_of(made.log.image, "mesh.connect.west.files") == found
    assert may_not_read(made.log.image, found, wish.cluster, "east.users")


def sink(made: MemoryConnector) -> str:
    """A sink of north's over the product of east's, which it was granted; the request's id."""
    asked = story.granted(made.log, "north")
    config = {"connector.class": "some.Sink", "topics": "east.users"}
    fields = {"connector": "north.files", "application": "north.app", "config": config}
    made.log.say(ConnectorAdded, "north", **fields)
    made.log.govern()
    made.look(times=3)
    return asked


def test_a_sink_reads_what_is_granted_and_stops_when_it_is_not_any_more(
    made: MemoryConnector,
) -> None:
    asked, principal = sink(made), "mesh.connect.north.files"
    topic = Binding(principal, Operation.READ, Resource.TOPIC, "east.users")
    group = Binding(principal, Operation.READ, Resource.GROUP, "connect-north.files")
    assert {topic, group} <= made.east.bindings
    assert not [one for one in made.east.bindings if one.operation is Operation.WRITE]
    story.answer(made.log, intents.AccessRevoked, asked)
    made.look(times=3)
    assert made.api.found["north.files"].is_still
    assert not made.east.rights(principal=principal)
    found = made.log.image.connectors["north.files"]
    assert (found.state, found.failure_code) == (ConnectorState.FAILED, "source_not_granted")


def test_a_right_is_not_given_again_by_an_older_state(made: MemoryConnector) -> None:
    """The grant ends while the controller looks: what the rights controller took stays taken."""
    asked, principal = sink(made), "mesh.connect.north.files"
    old = made.log.image
    story.answer(made.log, intents.AccessRevoked, asked)
    made.east.withdraw(made.east.rights(principal=principal))
    made.time += 60
    made.controller.reconcile(old, made.leadership)
    assert not made.east.rights(principal=principal)


@pytest.mark.parametrize("place", PLACES)
def test_a_controller_that_dies_anywhere_is_followed_by_one_that_ends_the_same(
    made: MemoryConnector, crashes: Crashes, place: str
) -> None:
    steps: list[Any] = [
        made.add,
        lambda: made.say(ConnectorStopped, reason="r"),
        lambda: made.say(ConnectorStarted),
        lambda: made.say(ConnectorDeleted),
        made.add,
    ]
    died = 0
    for step in steps:
        step()
        crashes.place = place
        for _ in range(3):
            try:
                made.look(times=3)
            except DiedError:
                died += 1
                crashes.place = None
                made.controller = made.new_controller()
        crashes.place = None
        made.look(times=4)
    assert died
    assert made.api.found[NAME].runs
    assert made.connector.state is ConnectorState.ACTIVE
    assert made.connector.config["database.password"] == OWN_SECRET
    assert made.said().count("Halted") == 2
