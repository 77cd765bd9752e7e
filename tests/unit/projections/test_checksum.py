"""Checksums: equal for equal states, different when anything that was established differs."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import create_model

from mesh_events import intents
from mesh_events.rows import Row
from projections.checksum import checksum, rows_checksum
from projections.identity import Role
from projections.image import EMPTY, Image
from projections.replay import fold
from projections.rows import all_rows
from tests import sample_history as story
from tests.memory_log import MemoryLog


def told() -> MemoryLog:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    log.say(intents.LinkPaused, "west", product=story.PRODUCT, cluster="west")
    return log


LOG = told()
IMAGE = LOG.image


def test_the_same_log_gives_the_same_checksum() -> None:
    assert checksum(told().image) == checksum(IMAGE)


def test_an_empty_image_has_a_checksum_that_never_changes() -> None:
    assert checksum(EMPTY) == "abf4f4cafaa9af391104507da6f671001d68a83930dc0bfc90b67abfc46cc2b3"


def test_every_record_changes_the_checksum() -> None:
    """At least by its offset: equal checksums mean the same place of the same log."""
    sums = [checksum(image) for image in fold(LOG.records, verify=False)]
    assert len(set(sums)) == len(sums)


def test_rows_have_the_same_checksum_in_any_order() -> None:
    rows = list(all_rows(IMAGE))
    assert rows_checksum(reversed(rows)) == rows_checksum(rows)
    assert rows_checksum(rows[1:]) != rows_checksum(rows)


def test_a_field_that_is_added_to_a_row_changes_nothing() -> None:
    def with_one_more(row: Row) -> Row:
        added = create_model(type(row).__name__, __base__=type(row), added=(str | None, None))
        return added.model_validate(row.model_dump())

    rows = list(all_rows(IMAGE))
    assert rows_checksum(map(with_one_more, rows)) == rows_checksum(rows)


def product_changed(image: Image) -> Image:
    product = replace(image.catalog[story.PRODUCT], description="other")
    return image._replace(catalog=image.catalog.set(story.PRODUCT, product))


def link_failed(image: Image) -> Image:
    link = replace(image.links[story.LINK], failure="gone")
    return image._replace(links=image.links.set(story.LINK, link))


def access_lost(image: Image) -> Image:
    return image._replace(access=EMPTY.access)


def key_revoked(image: Image) -> Image:
    keys = image.identity.keys
    [public] = [name for name, key in keys.items() if key.role is Role.CONTROLLER]
    changed = keys.set(public, replace(keys[public], revoked=9))
    return image._replace(identity=replace(image.identity, keys=changed))


def credentials_asked(image: Image) -> Image:
    wanted = image.identity.credentials
    changed = wanted.set(("west", "west"), replace(wanted["west", "west"], issued=None))
    return image._replace(identity=replace(image.identity, credentials=changed))


def all_decided(image: Image) -> Image:
    return image._replace(intents=EMPTY.intents)


def without_domains(image: Image) -> Image:
    return image._replace(identity=replace(image.identity, domains=EMPTY.identity.domains))


def without_applications(image: Image) -> Image:
    nobody = EMPTY.identity.applications
    return image._replace(identity=replace(image.identity, applications=nobody))


@pytest.mark.parametrize(
    "change",
    [
        product_changed,
        link_failed,
        access_lost,
        key_revoked,
        credentials_asked,
        all_decided,
        without_domains,
        without_applications,
        lambda image: image._replace(epoch=image.epoch + 1),
        lambda image: image._replace(schemas=image.schemas.delete(3)),
    ],
)
def test_any_difference_in_what_was_established_shows(change: Callable[[Image], Image]) -> None:
    assert change(IMAGE) != IMAGE
    assert checksum(change(IMAGE)) != checksum(IMAGE)
