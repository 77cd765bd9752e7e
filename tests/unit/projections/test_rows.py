"""Rows: what subscribers see of products, accesses and links."""

from dataclasses import replace

import pytest

from mesh_events import intents
from mesh_events.rows import AccessRow, LinkRow, ProductRow, Row
from projections.image import Image
from projections.replay import fold
from projections.rows import access_row, all_rows, link_row, row, touched_rows
from tests import sample_history as story
from tests.memory_log import MemoryLog, at


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log, on_revoke=intents.OnRevoke.RETAIN)
    story.granted(log, "north")
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked, by="west", reason="done")
    story.settle(log)
    return log


def test_a_products_row_says_what_the_catalog_says(log: MemoryLog) -> None:
    found = row(log.image, (ProductRow.topic, story.PRODUCT))
    product = log.image.catalog[story.PRODUCT]
    assert found == ProductRow(
        as_of_offset=product.generation,
        generation=product.generation,
        product="east.users",
        domain="east",
        cluster="east",
        kafka_topic="east.users",
        description="everyone who has an account",
        owner="team-east",
        quality=intents.Quality.STANDARD,
        sla=2,
        tags=["people"],
        version="1.0.0",
        state="PUBLISHED",
        schema_subject="east.users-value",
        schema_id=7,
        published_at=at(log.records[product.generation].time),
        updated_at=at(log.records[product.generation].time),
    )


def test_a_revoked_accesss_row_keeps_the_whole_story(log: MemoryLog) -> None:
    [access] = [found for found in log.image.access.requests.values() if found.link]
    found = access_row(access)
    times = {record.offset: at(record.time) for record in log.records}
    assert (found.state, found.kafka_topic, found.cluster) == ("REVOKED", "east.users", "west")
    assert (found.decided_at, found.decision_reason) == (
        times[access.granted_generation],
        "agreed",
    )
    assert (found.revoked_by, found.revoke_reason) == ("west.somebody", "done")
    assert (found.removed_at, found.as_of_offset) == (times[access.changed], access.changed)
    assert found.active_at is not None
    assert found.revoked_at is not None
    assert found.requested_at < found.active_at < found.revoked_at


def test_a_row_without_a_time_has_null_there(log: MemoryLog) -> None:
    access = next(iter(log.image.access.requests.values()))
    fresh = replace(access, decided_at=None, active_at=None, revoked_at=None, removed_at=None)
    found = access_row(fresh)
    assert (found.decided_at, found.active_at, found.revoked_at, found.removed_at) == (None,) * 4


def test_a_links_row_tells_what_became_of_the_copy(log: MemoryLog) -> None:
    link = log.image.links[story.LINK]
    found = link_row(link)
    assert (found.state, found.copy_state, found.incarnation) == ("DELETED", "RETAINED", 1)
    assert (found.source_cluster, found.cluster, found.run) == ("east", "west", "run-1")
    assert found.changed_at == at(log.records[link.changed].time)


def test_ended_things_are_rows_with_a_state(log: MemoryLog) -> None:
    states = {found.key: getattr(found, "state", "") for found in all_rows(log.image)}
    assert sorted(states.values()) == ["ACTIVE", "DELETED", "PUBLISHED", "REVOKED"]


def test_all_rows_come_by_topic_and_key(log: MemoryLog) -> None:
    keys = [(found.topic, found.key) for found in all_rows(log.image)]
    assert [topic for topic, _ in keys] == [
        "mesh.catalog",
        "mesh.access",
        "mesh.access",
        "mesh.links",
    ]
    assert keys[1:3] == sorted(keys[1:3])


@pytest.mark.parametrize("topic", [ProductRow.topic, AccessRow.topic, LinkRow.topic])
def test_there_is_no_row_for_what_does_not_exist(log: MemoryLog, topic: str) -> None:
    assert row(log.image, (topic, "nothing")) is None


def test_every_change_of_a_row_is_touched_by_the_record_that_made_it(log: MemoryLog) -> None:
    """A subscriber who gets the touched rows only ends with the same table."""
    table: dict[tuple[str, str], Row] = {}
    for image in fold(log.records):
        for found in touched_rows(image):
            table[found.topic, found.key] = found
        assert table == {(found.topic, found.key): found for found in all_rows(image)}


def test_a_row_is_true_up_to_the_offset_that_changed_it(log: MemoryLog) -> None:
    def rows_of(image: Image) -> dict[str, Row]:
        return {found.key: found for found in all_rows(image)}

    before: dict[str, Row] = {}
    for image in fold(log.records):
        now = rows_of(image)
        for name, found in now.items():
            changed = before.get(name) != found
            assert (found.as_of_offset == image.offset) == changed
        before = now
