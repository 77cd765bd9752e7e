"""What earlier texts and configs have filled: counted step by step, and found by its place."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from mesh_events.connectors import OWN_SECRET, ConnectorAdded, ConnectorUpdated
from mesh_events.statements import StatementAdded, StatementDeleted, StatementUpdated
from projections.connectors.state import Connector
from projections.lineage.steps import (
    DELETED,
    EMPTY,
    Key,
    Place,
    Replaced,
    Step,
    emptied,
    leaves,
    replaced,
)
from projections.table import PairsMapping
from snapshots.image_tables import put_together, take_apart
from tests import sample_history as story
from tests.memory_log import MemoryLog

TOPICS = st.sampled_from([("east", f"east.{name}") for name in "abc"])
STEPS = st.builds(
    Step,
    st.just("statement"),
    st.sampled_from(["east.s", "east.t"]),
    st.just("ACTIVE"),
    st.lists(TOPICS, min_size=1, max_size=2).map(tuple),
    TOPICS,
    dead_letters=st.lists(TOPICS, max_size=2, unique=True).map(tuple),
)


def found_anew(known: Replaced) -> dict[Place, set[Key]]:
    """The index by places, from the steps alone."""
    found: dict[Place, set[Key]] = {}
    for key, step in known.steps.items():
        for place in step.dead_letters if step.state == DELETED else step.writes:
            found.setdefault(place, set()).add(key)
    return found


def emptied_one_by_one(known: Replaced, place: Place) -> dict[Key, Step]:
    """What `emptied` gives, by a look at every step."""
    return {
        key: replace(step, state=DELETED)
        if step.fills == place
        else replace(step, dead_letters=tuple(one for one in step.dead_letters if one != place))
        for key, step in known.steps.items()
    }


def index(known: Replaced) -> dict[Place, set[Key]]:
    return {place: set(keys) for place, keys in known.at.items()}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(STEPS, TOPICS), max_size=12))
def test_the_index_by_places_is_what_the_steps_have(acts: list[Any]) -> None:
    known = EMPTY
    for act in acts:
        if isinstance(act, Step):
            known = replaced(known, [act], [])
        else:
            expected = emptied_one_by_one(known, act)
            known = emptied(known, act)
            assert dict(known.steps) == expected
        assert index(known) == found_anew(known)


class FoundByKey(PairsMapping[Key, Step]):
    """A table that raises where it is read as a whole; keeps what it was asked for."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asked = inner, set[Key]()

    def __getitem__(self, key: Key) -> Step:
        self.asked.add(key)
        found: Step = self.inner[key]
        return found

    def set(self, key: Key, value: Step) -> "FoundByKey":
        self.inner = self.inner.set(key, value)
        return self

    def pairs(self) -> Iterator[NoReturn]:
        raise AssertionError("it is read as a whole")


def test_a_topic_that_is_made_anew_costs_its_own_steps_alone() -> None:
    """Each new statement once walked all that any domain had ever replaced."""
    place = ("west", "west.new")
    steps = [
        Step("connector", f"east.s{at}", "ACTIVE", (("east", "east.t"),), ("east", f"east.{at}"))
        for at in range(50)
    ]
    mine = replace(steps[0], name="west.w", fills=place)
    known = replaced(EMPTY, [*steps, mine], [])
    table = FoundByKey(known.steps)
    emptied(replace(known, steps=table), place)  # type: ignore[arg-type]
    assert {name for _, name, *_ in table.asked} == {"west.w"}


def test_a_topic_that_was_made_anew_is_looked_at_no_more() -> None:
    step = Step("statement", "east.s", "ACTIVE", (("east", "east.t"),), ("east", "east.a"))
    known = emptied(replaced(EMPTY, [step], []), step.fills)
    assert not known.left_at(step.fills)
    again = replaced(known, [step], [])
    assert [one.name for one in again.left_at(step.fills)] == ["east.s"]


def sink(topics: int, tables: str = "raw_${topic}") -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": ",".join(f"east.t{at}" for at in range(topics)),
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "connection.username": "u",
        "connection.password": OWN_SECRET,
        "insert.mode": "upsert",
        "primary.key.mode": "record_key",
        "collection.name.format": tables,
    }


def connector(config: dict[str, str]) -> Connector:
    log = MemoryLog()
    story.domains(log)
    log.say(ConnectorAdded, "east", **story.connector())
    log.govern()
    return replace(log.image.connectors["east.shop"], config=Map(config))


def test_a_change_leaves_as_many_steps_as_it_does_not_fill_any_more() -> None:
    before, after = connector(sink(20)), connector(sink(20, "other_${topic}"))
    fewer = connector(sink(15))
    assert leaves(EMPTY, before, after) == 20
    assert leaves(EMPTY, before, fewer) == 5
    assert leaves(EMPTY, fewer, before) == leaves(EMPTY, before, before) == 0


TEXTS = st.tuples(
    st.sampled_from(["state", "text", "drop", "sink", "config", "settle"]),
    st.sampled_from(["east.a", "east.b"]),
    st.integers(1, 3),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(TEXTS, max_size=12))
def test_the_index_by_places_is_right_after_any_story(acts: list[tuple[str, str, int]]) -> None:
    log = MemoryLog()
    story.published(log)
    for act, name, number in acts:
        text = {"sql": "SELECT 1", "stream": "east.users", "tables": [f"east.t{number}"]}
        config = sink(number) | {"errors.deadletterqueue.topic.name": f"east.dead{number}"}
        match act:
            case "state":
                fields = story.statement(statement=name, destination=f"east.out{number}")
                log.say(StatementAdded, "east", **fields)
            case "text":
                log.say(StatementUpdated, "east", statement=name, **text)
            case "drop":
                log.say(StatementDeleted, "east", statement=name)
            case "sink":
                log.say(ConnectorAdded, "east", connector=f"{name}s", config=config)
            case "config":
                log.say(ConnectorUpdated, "east", connector=f"{name}s", config=config)
            case _:
                story.settle(log)
        log.govern()
        assert index(log.image.replaced) == found_anew(log.image.replaced)
        assert put_together(*take_apart(log.image)) == log.image
