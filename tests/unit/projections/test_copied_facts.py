"""A copy of a controller's fact changes nothing: whoever may write to the log can append one."""

from dataclasses import replace

import pytest

from mesh_events.codec import decode
from mesh_events.facts import Fact
from mesh_events.record import Entry
from projections.copied_facts import REMEMBERED, remembered
from projections.deciding import unusable
from projections.fold import apply
from projections.identity import Role
from projections.image import EMPTY, Image
from tests.fixtures import recording


def without_position(image: Image) -> Image:
    """The state but for where and when it is.

    A run of unusable records goes on behind any fact, which becomes one of its exceptions.
    """
    pending = image.intents._replace(unusable=unusable.EMPTY)
    return image._replace(offset=0, time=0, skew=0, touched=(), intents=pending)


@pytest.mark.parametrize("name", recording.names())
def test_a_copy_of_a_fact_behind_any_later_record_changes_nothing(name: str) -> None:
    image, facts, wrong = EMPTY, list[Entry](), dict[tuple[int, str], list[int]]()
    for record in recording.load(name):
        entry = decode(record, image.schemas, image.identity.root)
        image = apply(image, entry)
        if isinstance(entry.event, Fact):
            facts.append(entry)
        before = without_position(image)
        counting = [one for one in facts if image.identity.has_role(one.signer, Role.CONTROLLER)]
        for one in counting:
            copy = replace(one, offset=image.offset + 1, time=image.time)
            if without_position(apply(image, copy)) != before:
                kind = type(one.event).__name__
                wrong.setdefault((one.offset, kind), []).append(image.offset)
    assert not wrong


def test_a_thing_that_fails_and_recovers_for_ever_keeps_a_bounded_number_of_ids() -> None:
    told: tuple[str, ...] = ()
    for number in range(3 * REMEMBERED):
        told = remembered(told, str(number))
    assert len(told) == REMEMBERED
    assert told[-1] == str(3 * REMEMBERED - 1)
