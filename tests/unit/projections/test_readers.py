"""Who can read a product: the same as the rights keeper gives, and what jobs read beside them."""

import pytest

from mesh_events import intents
from mesh_events.record import Record
from processors.keepers.rights import desired
from processors.rights import Operation, Resource
from projections.catalog import Product
from projections.image import Image
from projections.readers import Via, readers
from projections.replay import fold
from tests import paper_story as story
from tests.fixtures import recording
from tests.paper_log import PaperLog


def kept(image: Image, product: Product) -> set[tuple[str, str, str]]:
    """(principal, cluster, topic) of those whom the rights keeper lets read the product."""
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
    log = PaperLog()
    story.published(log)
    story.granted(log)
    story.granted(log, "north")
    story.settle(log)
    return log.records


@pytest.mark.parametrize("name", recording.names())
def test_readers_are_those_whom_the_rights_keeper_lets_read(name: str) -> None:
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
    log = PaperLog()
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
    log = PaperLog()
    story.published(log)
    log.say(intents.ApplicationRegistered, "east", application="east.own")
    log.say(story.statements.StatementAdded, "east", **story.statement())
    story.settle(log)
    found = readers(log.image, log.image.catalog[story.PRODUCT])
    jobs = [one for one in found if one.via is Via.STATEMENT]
    assert [(one.right, one.enforced) for one in jobs] == [(story.STATEMENT, True)]
    assert "east.own" in {one.principal for one in found if one.via is Via.OWN}
