"""Which tables of a statement are copies that are not filled."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events import facts
from mesh_events.intents import OnRevoke
from mesh_events.rows import StatementState
from mesh_events.statements import Begin
from projections import links
from projections.access import put
from projections.image import Image
from projections.lineage.filling import copying, unfilled, waits_for
from projections.links import Desired, Link
from projections.statements import Statement
from tests.links.granted import access_by
from tests.unit.projections import test_links as story

LINK = story.ACTIVE[story.ID]


def filled_at(link: Link, **ends: int) -> Link:
    return replace(link, source_ends=Map({name[1:]: end for name, end in ends.items()}))


def image(link: Link, tables: tuple[str, ...] = ("east.users",)) -> tuple[Image, Statement]:
    """A statement on cluster two that reads the copy under a grant, and a topic of its own."""
    empty, granted = Image(), access_by(link, "west.app")
    found = empty._replace(links=Map({link.id: link}), access=put(empty.access, granted))
    statement = Statement(
        id="west.joined",
        cluster=link.cluster,
        sql="",
        stream="west.clicks",
        tables=tables,
        names=Map(),
        application="west.app",
        destination="west.joined",
        description="",
        begin=Begin.EARLIEST,
        desired=Desired.RUNNING,
        state=StatementState.CREATED,
        generation=4,
        correlation="",
        created_generation=4,
        created_at=0,
        changed=4,
        changed_at=0,
    )
    return found, statement


@pytest.mark.parametrize(
    ("ends", "positions", "missing"),
    [
        ({"0": 5, "1": 0}, {"0": 5, "1": 0}, 0),
        ({"0": 5, "1": 3}, {"0": 9, "1": 2}, 1),
        ({"0": 5, "1": 3}, {"0": 5}, 3),
        ({"0": 0}, {"0": 0}, 0),
    ],
)
def test_a_copy_is_filled_when_each_partition_has_come_to_its_end(
    ends: dict[str, int], positions: dict[str, int], missing: int
) -> None:
    link = replace(LINK, source_ends=Map(ends), positions=Map(positions))
    assert link.missing == missing
    assert link.is_filled is (missing == 0)


def test_a_link_whose_ends_are_not_known_has_filled_nothing() -> None:
    assert not LINK.source_ends
    assert not LINK.is_filled


@pytest.mark.parametrize("state", [links.State.PAUSED, links.State.FAILED, links.State.CREATED])
def test_what_is_filled_stays_so_until_its_link_starts_again(state: links.State) -> None:
    found, statement = image(replace(filled_at(LINK, p0=5), state=state))
    assert unfilled(found, statement) is None
    again = replace(filled_at(LINK, p0=6), state=state)
    found, statement = image(again)
    assert unfilled(found, statement) == again


def test_a_copy_that_is_made_anew_is_not_filled_by_the_one_before() -> None:
    removing = links.redirected(
        Map({story.ID: filled_at(LINK, p0=5)}), story.ID, Desired.DELETED, 30, 3, OnRevoke.RETAIN
    )
    again = links.created(removing, story.CREATE, story.USERS, 40, 4000)
    assert again[story.ID].positions == Map({"0": 5})
    found, statement = image(again[story.ID])
    assert unfilled(found, statement) == again[story.ID]


def test_a_link_that_is_removed_holds_up_nothing() -> None:
    found, statement = image(replace(LINK, desired=Desired.DELETED))
    assert copying(found, statement, "east.users") == []
    assert unfilled(found, statement) is None


def test_a_table_that_is_no_copy_or_the_stream_waits_for_no_link() -> None:
    found, statement = image(LINK, ("west.users",))
    assert unfilled(found, statement) is None
    assert unfilled(found, replace(statement, stream="east.users")) is None
    assert unfilled(found, replace(statement, application=None, tables=("east.users",))) is None


def test_the_reason_names_link_state_and_how_much_is_missing_in_few_steps() -> None:
    link = filled_at(LINK, p0=412_345)
    said = waits_for(link)
    assert "east.users is a copy that the link east.users@two has not filled" in said
    assert "is ACTIVE, at most 500,000 offsets of its source are missing" in said
    assert waits_for(replace(link, positions=Map({"0": 12_000}))) == said
    assert "at most 400,000" in waits_for(replace(link, positions=Map({"0": 13_000})))
    assert "at most 1 offsets" in waits_for(replace(link, positions=Map({"0": 412_344})))
    paused = replace(link, desired=Desired.PAUSED, state=links.State.PAUSED, paused_by="east")
    assert "is PAUSED by east, at most" in waits_for(paused)
    assert waits_for(paused).endswith("; resume the link")
    assert "has not told yet" in waits_for(LINK)


def test_ends_of_an_earlier_start_do_not_count_for_this_one() -> None:
    def advanced(incarnation: int, end: int) -> facts.LinkFact:
        return story.fact(
            facts.LinkAdvanced,
            10,
            positions={"0": 5},
            incarnation=incarnation,
            source_ends={"0": end},
        )

    state = story.report(story.ACTIVE, advanced(1, 9), 12)
    assert state[story.ID].source_ends == Map({"0": 9})
    assert story.report(state, advanced(0, 5), 13)[story.ID].source_ends == Map({"0": 9})
    assert story.report(state, advanced(1, 5), 13)[story.ID].is_filled
