"""Who can read a product: the same as the rights controller gives, and what jobs read beside."""

from dataclasses import replace

import pytest

from mesh_events import connectors, facts, intents, statements
from mesh_events.meta import Event
from mesh_events.record import Record
from mesh_events.rows import StatementState
from processors.clusters.rights import Operation, Resource
from processors.controllers.connectors.connectors import WITHHELD
from processors.controllers.rights.wishes import desired
from projections.catalog import Product
from projections.connectors import config as connector_config
from projections.image import Image
from projections.lineage.readers import RUNS_ON, STOPPED, Via, readers
from projections.lineage.runs import open_run
from projections.replay import fold
from spark_streams.errors import RETRIABLE
from tests import sample_history as story
from tests.fixtures import recording
from tests.memory_log import MemoryLog


def kept(image: Image, product: Product) -> set[tuple[str, str, str]]:
    """(principal, cluster, topic) of those whom the rights controller lets read the product."""
    copies = [(one.cluster, one.topic) for one in image.links.values() if one.product == product.id]
    return {
        (right.principal, cluster, topic)
        for cluster, topic in ((product.cluster, product.topic), *copies)
        for wish in desired(image)
        if wish.wanted and wish.cluster == cluster
        for right in wish.bindings
        if right.resource is Resource.TOPIC and right.operation in (Operation.READ, Operation.ALL)
        if (topic.startswith(right.name) if right.prefixed else topic == right.name)
    }


def told(image: Image, product: Product) -> set[tuple[str, str, str]]:
    """The same of `readers`."""
    by_rights = (Via.DOMAIN, Via.OWN, Via.GRANT)
    return {
        (one.principal or "", *one.place)
        for one in readers(image, product)
        if one.via in by_rights and one.entitled
    }


def settled() -> list[Record]:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.granted(log, "north")
    story.settle(log)
    return log.records


@pytest.mark.parametrize("name", recording.names())
def test_readers_are_those_whom_the_rights_controller_lets_read(name: str) -> None:
    """At every offset of every recorded log."""
    for image in fold(recording.load(name)):
        for product in image.catalog.values():
            assert told(image, product) == kept(image, product), image.offset


def test_most_recorded_logs_have_products_whose_readers_are_compared() -> None:
    with_products = {
        name for name in recording.names() if list(fold(recording.load(name)))[-1].catalog
    }
    assert with_products >= set(recording.names()) - {"set-aside"}


def test_owner_grants_links_and_copies_are_told_with_what_gives_the_right() -> None:
    image = list(fold(settled()))[-1]
    found = readers(image, image.catalog[story.PRODUCT])
    assert {(one.principal, one.via, one.place[0]) for one in found} == {
        ("east", Via.DOMAIN, "east"),
        ("north.app", Via.GRANT, "east"),
        ("west.app", Via.GRANT, "west"),
        ("link-1", Via.LINK, "east"),
    }
    grants = {one.right for one in found if one.via is Via.GRANT}
    assert grants == set(image.access.requests)


def test_a_revoked_reader_is_told_until_its_right_was_seen_gone() -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    before, product = log.image, log.image.catalog[story.PRODUCT]
    states = {
        one.principal: (one.entitled, one.enforced)
        for one in readers(before, product)
        if one.via is Via.GRANT
    }
    assert states == {"west.app": (False, True)}
    story.settle(log)
    assert not [one for one in readers(log.image, product) if one.via is Via.GRANT]


def test_a_statement_that_reads_it_is_told() -> None:
    log = MemoryLog()
    story.published(log)
    log.say(intents.ApplicationRegistered, "east", application="east.own")
    log.say(story.statements.StatementAdded, "east", **story.statement())
    story.settle(log)
    found = readers(log.image, log.image.catalog[story.PRODUCT])
    jobs = [one for one in found if one.via is Via.STATEMENT]
    assert [(one.right, one.enforced) for one in jobs] == [(story.STATEMENT, True)]
    assert "east.own" in {one.principal for one in found if one.via is Via.OWN}


def reading(log: MemoryLog, via: Via) -> list[tuple[bool, bool, str]]:
    """(entitled, enforced, state) of the jobs of a kind that read the product."""
    found = readers(log.image, log.image.catalog[story.PRODUCT])
    return [(one.entitled, one.enforced, one.state) for one in found if one.via is via]


@pytest.mark.parametrize(
    ("kind", "state"),
    [(intents.LinkPaused, "PAUSING"), (intents.LinkDeleted, "DELETING")],
)
def test_a_link_is_told_until_its_controller_has_stopped_it(kind: type[Event], state: str) -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    log.say(kind, "west", product=story.PRODUCT, cluster="west", reason="quiet")
    log.govern()
    assert reading(log, Via.LINK) == [(False, True, state)]
    # it could not be stopped: nobody knows whether it still reads
    failed = {"code": "cluster_unavailable", "reason": "no answer", "retriable": True}
    story.told(log, facts.LinkFailed, **failed)
    assert reading(log, Via.LINK) == [(False, True, "FAILED")]


@pytest.mark.parametrize("kind", [intents.LinkPaused, intents.LinkDeleted])
def test_a_link_that_was_stopped_reads_no_more(kind: type[Event]) -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    log.say(kind, "west", product=story.PRODUCT, cluster="west", reason="quiet")
    log.govern()
    story.told(log, facts.LinkStopped, positions=story.POSITIONS)
    assert reading(log, Via.LINK) == []


def test_a_dropped_statement_is_told_until_its_controller_has_stopped_it() -> None:
    log = MemoryLog()
    story.published(log)
    log.say(story.statements.StatementAdded, "east", **story.statement())
    story.settle(log)
    deleted = story.statements.StatementDeleted
    log.say(deleted, "east", statement=story.STATEMENT, reason="done")
    log.govern()
    assert reading(log, Via.STATEMENT) == [(False, True, "DELETING")]
    story.settle(log)
    assert reading(log, Via.STATEMENT) == []


def test_a_statement_with_a_new_text_is_told_until_the_run_of_the_old_one_has_ended() -> None:
    log = MemoryLog()
    story.published(log)
    first = story.statement(stream="east.clicks", tables=["east.users"])
    log.say(statements.StatementAdded, "east", **first)
    story.settle(log)
    assert reading(log, Via.STATEMENT) == [(True, True, "ACTIVE")]
    text = {"sql": "SELECT 1", "stream": "east.clicks", "tables": [], "application": None}
    for kind in (statements.StatementUpdated, statements.StatementDeleted):
        log.say(kind, "east", statement=story.STATEMENT, **(text if "Upd" in str(kind) else {}))
        log.govern()
        [(entitled, enforced, _)] = reading(log, Via.STATEMENT)
        assert (entitled, enforced) == (False, True), kind
    story.settle(log)
    assert reading(log, Via.STATEMENT) == []


def test_a_query_may_live_on_behind_no_failure_before_which_it_is_stopped() -> None:
    assert RUNS_ON < RETRIABLE


def test_a_connector_is_stopped_before_the_failures_that_say_so() -> None:
    assert STOPPED == WITHHELD


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("engine_unavailable", True),
        ("engine_starting", True),
        ("query_stalled", True),
        ("no_schema", True),
        ("query_failed", False),
    ],
)
def test_what_could_not_be_asked_is_told_as_it_may_run_on(code: str, told: bool) -> None:
    log = MemoryLog()
    story.published(log)
    log.say(statements.StatementAdded, "east", **story.statement())
    story.settle(log)
    image = log.image
    failed = replace(
        image.statements[story.STATEMENT], state=StatementState.FAILED, failure_code=code, run=None
    )
    image = image._replace(
        statements=image.statements.set(story.STATEMENT, failed),
        identity=replace(image.identity, quarantines=image.identity.quarantines.set("east", 0)),
    )
    found = [
        one for one in readers(image, image.catalog[story.PRODUCT]) if one.via is Via.STATEMENT
    ]
    assert bool(found) is told


def test_a_dropped_sink_is_told_until_its_controller_has_stopped_it() -> None:
    log = MemoryLog()
    story.published(log)
    sink = {
        "connector.class": connector_config.JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": connectors.OWN_SECRET,
        "topics": "east.users",
    }
    log.say(connectors.ConnectorAdded, "east", connector="east.out", config=sink)
    story.settle(log)
    assert reading(log, Via.CONNECTOR) == [(True, True, "ACTIVE")]
    log.say(connectors.ConnectorDeleted, "east", connector="east.out", reason="done")
    log.govern()
    assert reading(log, Via.CONNECTOR) == [(False, True, "DELETING")]
    story.settle(log)
    assert reading(log, Via.CONNECTOR) == []


@pytest.mark.parametrize("name", recording.names())
def test_whatever_has_started_and_not_ended_is_told(name: str) -> None:
    """At every offset of every recorded log."""
    for image in fold(recording.load(name)):
        for product in image.catalog.values():
            home = (product.cluster, product.topic)
            jobs = (image.links, image.statements, image.connectors)
            running = {
                name
                for table in jobs
                for name, one in table.items()
                if open_run(one) is not None
                and home[1] in one.reads
                and home[0] == getattr(one, "source_cluster", one.cluster)
            }
            enforced = {one.right for one in readers(image, product) if one.enforced}
            assert running <= enforced, image.offset


def test_a_sink_with_a_new_config_is_told_until_the_run_of_the_old_one_has_ended() -> None:
    log = MemoryLog()
    story.published(log)
    config = {
        "connector.class": connector_config.JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": connectors.OWN_SECRET,
    }
    about = {"connector": "east.sink"}
    both = {**config, "topics": "east.users,east.clicks"}
    log.say(connectors.ConnectorAdded, "east", **about, config=both)
    story.settle(log)
    assert reading(log, Via.CONNECTOR) == [(True, True, "ACTIVE")]
    other = {**config, "topics": "east.clicks"}
    log.say(connectors.ConnectorUpdated, "east", **about, config=other)
    log.govern()
    [(entitled, enforced, _)] = reading(log, Via.CONNECTOR)
    assert (entitled, enforced) == (False, True)
    story.settle(log)
    assert reading(log, Via.CONNECTOR) == []


def test_a_sink_whose_server_does_not_answer_is_told_with_its_earlier_config() -> None:
    """Its tasks may go on with it."""
    log = MemoryLog()
    story.published(log)
    config = {
        "connector.class": connector_config.JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": connectors.OWN_SECRET,
    }
    both = {**config, "topics": "east.users,east.clicks"}
    log.say(connectors.ConnectorAdded, "east", connector="east.sink", config=both)
    story.settle(log)
    log.say(
        connectors.ConnectorUpdated,
        "east",
        connector="east.sink",
        config={**config, "topics": "east.clicks"},
    )
    log.govern()
    log.report(
        connectors.ConnectorFailed,
        connector="east.sink",
        generation=log.image.connectors["east.sink"].generation,
        code="connect_unavailable",
        reason="no answer",
    )
    [(entitled, enforced, _)] = reading(log, Via.CONNECTOR)
    assert (entitled, enforced) == (False, True)


@pytest.mark.parametrize(
    ("code", "told"), [("task_failed", True), ("partitions_added", False), ("keys_moved", False)]
)
def test_the_tasks_of_a_sink_that_have_not_failed_read_on(code: str, told: bool) -> None:
    log = MemoryLog()
    story.published(log)
    config = {
        "connector.class": connector_config.JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": connectors.OWN_SECRET,
        "topics": "east.users",
    }
    log.say(connectors.ConnectorAdded, "east", connector="east.sink", config=config)
    story.settle(log)
    assert [enforced for _, enforced, _ in reading(log, Via.CONNECTOR)] == [True]
    log.report(
        connectors.ConnectorFailed,
        connector="east.sink",
        generation=log.image.connectors["east.sink"].generation,
        code=code,
        reason="one of three",
    )
    assert [enforced for _, enforced, _ in reading(log, Via.CONNECTOR)] == [told]
    log.operator(intents.DomainQuarantined, domain="east", reason="leaked")
    log.govern()
    # its rights are still to be taken
    assert [both for *both, _ in reading(log, Via.CONNECTOR)] == ([[False, True]] if told else [])
