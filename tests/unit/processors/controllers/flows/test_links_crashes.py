"""A worker dies at any named place of a link's life, again and again, and the copy stays exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.facts import CopyPurged
from processors.controllers.flows import starting
from processors.controllers.flows import stopping as flow_stopping
from processors.controllers.links import stopping as link_stopping
from projections.links import State
from tests.links.memory import MemoryLink

PLACES = [
    "link-after-fence",
    "link-after-tail",
    "link-after-grant",
    "link-after-start",
    "link-after-stop",
    "link-after-purge",
]
ORDERS = ["produce", "pause", "resume", "remove", "create", "move", "take", "land", "die", "look"]


class DiedError(BaseException):
    """As abrupt as a kill: nothing in the controller may catch it."""


class Crashes:
    """Stands in for `crash_point`; dies where it was told to."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.passed: list[str] = []

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        if name == self.place:
            self.place = None
            raise DiedError(name)


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Crashes:
    made = Crashes()
    monkeypatch.setattr(starting, "crash_point", made)
    monkeypatch.setattr(flow_stopping, "crash_point", made)
    monkeypatch.setattr(link_stopping, "crash_point", made)
    return made


def look(link: MemoryLink) -> None:
    """Let the controller look; a worker that dies is followed by another one."""
    try:
        link.reconcile()
    except DiedError:
        link.controller = link.new_controller()


@pytest.mark.parametrize("place", PLACES[:4])
def test_a_start_that_was_cut_off_is_made_up_for(place: str, crashes: Crashes) -> None:
    link = MemoryLink()
    link.produce(6)
    crashes.place = place
    look(link)
    assert crashes.passed[-1] == place
    # whatever the dead worker started goes on meanwhile
    link.engine.take()
    link.produce(6)
    link.engine.land(2)
    look(link)
    link.engine.land()
    link.settle()
    assert link.findings() == []
    assert link.harness.link.state is State.ACTIVE


def test_a_pause_that_was_cut_off_is_made_up_for(crashes: Crashes) -> None:
    link = MemoryLink()
    link.produce(6)
    link.settle()
    link.harness.pause()
    crashes.place = "link-after-stop"
    look(link)
    assert link.harness.link.state is State.PAUSING
    link.settle()
    assert link.harness.link.state is State.PAUSED


@pytest.mark.parametrize("place", PLACES[4:])
def test_a_removal_that_was_cut_off_is_made_up_for(place: str, crashes: Crashes) -> None:
    link = MemoryLink()
    link.produce(6)
    link.settle()
    topic_id = link.destination.described.id
    link.harness.remove()
    crashes.place = place
    look(link)
    link.settle()
    assert link.harness.link.state is State.DELETED
    assert {fact.topic_id for fact in link.harness.said(CopyPurged)} == {topic_id}
    assert link.west.bindings == link.east.bindings == set()


@pytest.mark.parametrize("place", PLACES[4:])
def test_a_removal_that_was_cut_off_and_overtaken_copies_anew(place: str, crashes: Crashes) -> None:
    link = MemoryLink()
    link.produce(6)
    link.settle()
    link.harness.remove()
    crashes.place = place
    look(link)
    link.harness.create()
    # and the start of the new copy is cut off as well
    crashes.place = "link-after-start"
    look(link)
    link.produce(6)
    link.settle()
    assert link.findings() == []


@given(st.lists(st.tuples(st.sampled_from(ORDERS), st.sampled_from([None, *PLACES])), max_size=30))
def test_whatever_happens_in_whatever_order_the_copy_is_a_prefix_and_then_complete(
    steps: list[tuple[str, str | None]],
) -> None:
    crashes = Crashes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starting, "crash_point", crashes)
        patch.setattr(flow_stopping, "crash_point", crashes)
        patch.setattr(link_stopping, "crash_point", crashes)
        link = MemoryLink()
        for order, place in steps:
            obey(link, order)
            crashes.place = place
            look(link)
            if link.topic in link.west.topics:
                assert link.findings(complete=False) == []
        crashes.place = None
        finish(link)
        assert link.findings() == []


def obey(link: MemoryLink, order: str) -> None:
    """Give an order that the governor would let through now, or let something happen."""
    desired = link.harness.link.desired.name
    match order:
        case "pause" if desired == "RUNNING":
            link.harness.pause()
        case "resume" if desired == "PAUSED":
            link.harness.resume()
        case "remove" if desired != "DELETED":
            link.harness.remove()
        case "create" if desired == "DELETED":
            link.harness.create()
        case "produce":
            link.produce(3)
        case "move":
            link.engine.move()
        case "take":
            link.engine.take()
        case "land":
            link.engine.land(1)
        case "die":
            link.engine.die()


def finish(link: MemoryLink) -> None:
    """In the end the link is wanted, and there is time enough."""
    desired = link.harness.link.desired.name
    if desired == "PAUSED":
        link.harness.resume()
    if desired == "DELETED":
        link.harness.create()
    link.settle(8)
