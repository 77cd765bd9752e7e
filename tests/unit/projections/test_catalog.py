"""The fold of products: state 1 + event = state 2."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events import facts, intents
from projections import catalog
from projections.catalog import SCHEMA_REGISTERED, Product
from tests import sample_history as story
from tests.memory_log import MemoryLog

LOG = MemoryLog(founded=False)
PUBLISHED = LOG.make(intents.ProductPublished, "east", **story.product())
USERS = Product(
    id="east.users",
    cluster="one",
    topic="east.users",
    description="everyone who has an account",
    owner="team-east",
    quality=intents.Quality.STANDARD,
    sla=2,
    tags=("people",),
    version="1.0.0",
    schema_subject="east.users-value",
    schema_id=7,
    generation=60,
    published_at=6000,
    updated_at=6000,
    changed=60,
)


def seen(**evidence: str) -> Map[str, facts.Check]:
    passed = LOG.make(
        facts.CheckPassed, "mesh", offset=59, check=SCHEMA_REGISTERED, evidence=evidence
    )
    return Map({SCHEMA_REGISTERED: passed})


def publish(checks: Map[str, facts.Check]) -> Product:
    return catalog.published(catalog.EMPTY, PUBLISHED, "one", checks, 60, 6000)["east.users"]


def test_a_published_product_has_the_schema_that_the_check_found() -> None:
    assert publish(seen(subject="east.users-value", schema_id="7")) == USERS


def test_a_product_accepted_without_the_check_has_no_schema() -> None:
    assert publish(Map()) == replace(USERS, schema_subject="", schema_id=0)


@pytest.mark.parametrize("found", ["", "seven", "-1", "7.0", "\u0667", "9" * 5000])
def test_evidence_that_is_no_id_does_not_stop_the_fold(found: str) -> None:
    assert publish(seen(subject="east.users-value", schema_id=found)).schema_id == 0


def test_an_update_leaves_what_it_does_not_name() -> None:
    event = LOG.make(intents.ProductUpdated, "east", product="east.users", sla=1)
    after = catalog.updated(Map({"east.users": USERS}), event, Map(), 70, 7000)
    assert dict(after) == {
        "east.users": replace(USERS, sla=1, generation=70, updated_at=7000, changed=70)
    }


def test_an_update_can_change_everything_that_describes_the_product() -> None:
    event = LOG.make(
        intents.ProductUpdated,
        "east",
        product="east.users",
        description="users",
        owner="team-b",
        quality=intents.Quality.ENRICHED,
        sla=3,
        tags=[],
        version="2.0.0",
    )
    after = catalog.updated(Map({"east.users": USERS}), event, Map(), 70, 7000)
    assert after["east.users"] == replace(
        USERS,
        description="users",
        owner="team-b",
        quality=intents.Quality.ENRICHED,
        sla=3,
        tags=(),
        version="2.0.0",
        generation=70,
        updated_at=7000,
        changed=70,
    )


def test_an_update_of_one_product_leaves_the_others_alone() -> None:
    other = replace(USERS, id="east.orders")
    event = LOG.make(intents.ProductUpdated, "east", product="east.users", sla=1)
    before = Map({"east.users": USERS, "east.orders": other})
    assert catalog.updated(before, event, Map(), 70, 7000)["east.orders"] is other


def test_a_product_belongs_to_the_domain_in_its_id() -> None:
    assert USERS.domain == "east"


def test_an_update_with_a_replaced_topic_takes_the_schema_that_the_check_found() -> None:
    event = LOG.make(intents.ProductUpdated, "east", product="east.users", topic_replaced=True)
    checks = seen(subject="east.users-value", schema_id="9")
    after = catalog.updated(Map({"east.users": USERS}), event, checks, 70, 7000)
    assert after["east.users"] == replace(
        USERS, schema_id=9, generation=70, updated_at=7000, changed=70
    )
