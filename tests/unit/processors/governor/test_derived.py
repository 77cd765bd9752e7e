"""What follows from the state is found as by a look at all of it, where something changed."""

from dataclasses import replace

import pytest

from mesh_events import facts, intents
from mesh_events.rows import LinkState
from processors.governor import derived
from processors.governor.derived import DerivedIntents
from projections.deciding.derived import derived_intents
from projections.fold import apply
from projections.image import Image
from projections.replay import entry_of
from tests import sample_history as story
from tests.fixtures.record import STORIES
from tests.memory_log import MemoryLog
from tests.selection import draws

BY = "paper/1"


@pytest.mark.parametrize("name", STORIES)
def test_after_each_record_the_same_is_due_as_for_the_whole_state(name: str) -> None:
    found, image = DerivedIntents(), Image()
    for record in STORIES[name]().records:
        before, image = image, apply(image, entry_of(record, image))
        found.folded(before, image)
        assert found.due(image, BY) == derived_intents(image, BY)


def test_whoever_asks_now_and_then_misses_nothing() -> None:
    chance = draws("asked")
    for make in STORIES.values():
        found, image = DerivedIntents(), Image()
        for record in make().records:
            before, image = image, apply(image, entry_of(record, image))
            found.folded(before, image)
            if chance.random() < 0.1:
                assert found.due(image, BY) == derived_intents(image, BY)


def test_what_changed_behind_an_image_is_found_with_a_later_one() -> None:
    log = MemoryLog()
    story.published(log)
    early, found = log.image, DerivedIntents()
    assert found.due(early, BY) == []
    asked = story.request(log)
    offset = log.say(intents.AccessGranted, "east", product=story.PRODUCT, request=asked)
    log.accept(offset)
    image = early
    for record in log.records[early.offset + 1 :]:
        before, image = image, apply(image, entry_of(record, image))
        found.folded(before, image)
    assert found.due(early, BY) == []
    assert [type(one) for one in found.due(image, BY)] == [intents.LinkCreated]


def test_no_link_is_looked_at_that_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    found, looked = DerivedIntents(), list[str]()
    found.due(log.image, BY)
    real = derived.of_link
    monkeypatch.setattr(
        derived, "of_link", lambda image, name, by: looked.append(name) or real(image, name, by)
    )
    before = log.image
    log.say(intents.ProductUpdated, "east", product=story.PRODUCT, sla=1)
    log.govern()
    image = before
    for record in log.records[before.offset + 1 :]:
        last, image = image, apply(image, entry_of(record, image))
        found.folded(last, image)
    assert found.due(image, BY) == []
    assert looked == []
    found.folded(image, replace_touched(image))
    found.due(image, BY)
    assert looked == [story.LINK]


def replace_touched(image: Image) -> Image:
    """As if a record had changed the link."""
    return image._replace(touched=(("mesh.links", story.LINK),))


def followed(log: MemoryLog, found: DerivedIntents, image: Image) -> Image:
    """Fold what stands behind an image; after each record the same is due as for all of it."""
    for record in log.records[image.offset + 1 :]:
        before, image = image, apply(image, entry_of(record, image))
        found.folded(before, image)
        assert found.due(image, BY) == derived_intents(image, BY)
    return image


def test_a_link_that_another_engine_has_let_go_is_due_by_that_report_alone() -> None:
    """No access changes with it: the grant stood on the log while the copy was being removed."""
    log, found = MemoryLog(), DerivedIntents()
    story.published(log)
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked, by="west")
    story.rights(log, facts.AclRemoved, asked)
    log.govern()
    again = story.request(log)
    offset = log.say(
        intents.AccessGranted,
        "east",
        product=story.PRODUCT,
        request=again,
        engine=intents.Engine.MIRRORMAKER,
    )
    log.accept(offset)
    image = followed(log, found, Image())
    assert found.due(image, BY) == []
    while image.links[story.LINK].state is not LinkState.DELETED:
        end = len(log.records)
        story._move(log, image.links[story.LINK])
        assert len(log.records) > end
        last, image = image, followed(log, found, image)
    (due,) = found.due(image, BY)
    assert isinstance(due, intents.LinkCreated)
    assert due.engine is intents.Engine.MIRRORMAKER
    assert last.access is image.access


def test_what_follows_from_the_end_of_a_quarantine_needs_no_change_of_an_access() -> None:
    """The decision changes its accesses as well today; what is due must not depend on that."""
    log, found = MemoryLog(), DerivedIntents()
    story.published(log)
    asked = story.request(log)
    log.operator(intents.DomainQuarantined, domain="west", reason="it leaks")
    log.govern()
    log.accept(log.say(intents.AccessGranted, "east", product=story.PRODUCT, request=asked))
    image = followed(log, found, Image())
    assert found.due(image, BY) == []
    free = replace(image.identity, quarantines=image.identity.quarantines.delete("west"))
    released = image._replace(identity=free, offset=image.offset + 1, touched=())
    found.folded(image, released)
    (due,) = found.due(released, BY)
    assert isinstance(due, intents.LinkCreated)


def test_a_quarantine_takes_back_what_was_due() -> None:
    log, found = MemoryLog(), DerivedIntents()
    story.published(log)
    asked = story.request(log)
    log.accept(log.say(intents.AccessGranted, "east", product=story.PRODUCT, request=asked))
    log.accept(log.operator(intents.DomainQuarantined, domain="west", reason="it leaks"))
    image = followed(log, found, Image())
    assert found.due(image, BY) == []
    log.accept(log.operator(intents.DomainReleased, domain="west", reason="it is clean"))
    image = followed(log, found, image)
    assert [type(one) for one in found.due(image, BY)] == [intents.LinkCreated]
