"""Bad input: too late, too early, twice, too long, and what cannot be published."""

from datetime import UTC, datetime, timedelta
from typing import Any

from mesh_events.intents import (
    KeyRegistered,
    ProductPublished,
)
from mesh_events.meta import new_id
from tests.integration.governance.cases import case, of_stranger, update
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import fresh, publication

# --- repeated, late, early -------------------------------------------------------------------


@case("duplicate_intent")
def an_earlier_intent_copied_byte_by_byte(scene):
    found = min(
        offset
        for offset, entry in scene.kit.entries.items()
        if isinstance(entry.event, KeyRegistered) and entry.signer == scene.owner.key.public
    )
    record = scene.kit.records[found]
    return scene.stranger.raw.write(record.value, record.key, list(record.headers.items()))


@case("stale_intent")
def an_intent_made_two_hours_ago(scene):
    return owners(scene, time=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2))


@case("clock_ahead")
def an_intent_from_the_future(scene):
    return owners(scene, time=datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1))


@case("stale_intent")
def an_intent_from_the_year_one(scene):
    return owners(scene, time=datetime(1, 1, 1, tzinfo=UTC))


@case("invalid_id")
def an_id_that_is_no_uuid(scene):
    return owners(scene, id="1")


@case("invalid_id")
def a_second_spelling_of_an_id(scene):
    return owners(scene, id=new_id().upper())


@case("invalid_id")
def an_id_of_100_000_characters(scene):
    return owners(scene, id="x" * 100_000)


@case("text_too_long")
def a_correlation_of_110_000_characters(scene):
    return owners(scene, correlation="x" * 110_000)


@case("text_too_long")
def an_actor_of_120_000_characters(scene):
    return owners(scene, actor="x" * 120_000)


@case("invalid_name")
def a_name_of_50_000_control_characters(scene):
    made = scene.owner.make(ProductPublished, **publication("\x00" * 50_000, "t"))
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


def owners(scene: Scene, **meta: Any) -> int:
    """An intent of the owner itself, well signed, with something wrong in `meta`."""
    return scene.write(scene.wire(update(scene, scene.owner, **meta), scene.owner.key))


# --- publications ----------------------------------------------------------------------------


@case("internal_topic")
def a_publication_of_the_log_itself(scene):
    return published(scene, "mesh.governance")


@case("internal_topic")
def a_publication_of_kafkas_own_topic(scene):
    return published(scene, "__consumer_offsets")


@case("foreign_topic")
def a_publication_of_somebody_elses_topic(scene):
    return published(scene, scene.kit.image().catalog[scene.product].topic)


@case("foreign_topic")
def a_publication_under_a_prefix_without_delimiter(scene):
    return published(scene, f"{scene.stranger.name}2.orders")


@case("unknown_topic")
def a_publication_of_a_topic_that_does_not_exist(scene):
    return published(scene, f"{scene.stranger.name}.nothing")


@case("no_schema")
def a_publication_of_a_topic_without_schema(scene):
    return published(scene, scene.stranger.topic(schema=None))


@case("not_acknowledged")
def a_publication_without_the_promise(scene):
    return published(scene, f"{scene.stranger.name}.orders", acknowledged=False)


@case("product_exists")
def a_publication_of_a_published_product(scene):
    topic = scene.kit.image().catalog[scene.product].topic
    made = scene.owner.make(ProductPublished, **publication(scene.product, topic))
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


@case("topic_taken")
def a_publication_of_another_products_topic(scene):
    topic = scene.kit.image().catalog[scene.product].topic
    made = scene.owner.make(ProductPublished, **publication(f"{scene.product}-again", topic))
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


def published(scene: Scene, topic: str, **more: Any) -> int:
    fields = {**publication(f"{scene.stranger.name}.{fresh('new')}", topic), **more}
    return of_stranger(scene, scene.stranger.make(ProductPublished, **fields))
