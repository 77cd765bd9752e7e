"""Identity, keys and kinds of events."""

import itertools
import time
import uuid
from datetime import UTC

import pytest
from pydantic import ValidationError

from mesh_events import facts, intents, vocabulary
from mesh_events.decisions import DECISIONS, FOUNDATION
from mesh_events.meta import Event, Kind, derived_id, new_id, now
from mesh_events.vocabulary import ALL, EVENTS, ROW_TYPES
from tests.memory_log import MemoryLog

LOG = MemoryLog(founded=False)


def test_a_fresh_id_is_a_uuid7_of_now() -> None:
    first, second = uuid.UUID(new_id()), uuid.UUID(new_id())
    assert first != second
    for found in (first, second):
        assert (found.version, found.variant) == (7, uuid.RFC_4122)
        assert abs((found.int >> 80) / 1000 - now().timestamp()) < 60


def test_fresh_ids_order_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1_800_000_000_000_000_000, 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    ids = [new_id() for _ in range(50)]
    assert ids == sorted(ids)


def test_a_derived_id_follows_from_all_of_cause_step_and_generation() -> None:
    ids = {derived_id(*parts) for parts in (("a", "s", 1), ("b", "s", 1), ("a", "t", 1))}
    ids.add(derived_id("a", "s", 2))
    assert len(ids) == 4
    assert derived_id("a", "s", 1) == derived_id("a", "s", 1)
    assert uuid.UUID(derived_id("a", "s", 1)).version == 5


def test_a_derived_id_is_the_same_on_every_machine_and_version() -> None:
    assert derived_id("cause", "step", 7) == "2552444a-ca2a-55c6-b5c6-5483989254e3"


def test_now_is_what_avro_can_hold() -> None:
    assert now().tzinfo is UTC
    assert now().microsecond % 1000 == 0


def test_kinds_partition_the_vocabulary() -> None:
    by_kind: dict[Kind, set[str]] = {kind: set() for kind in Kind}
    for name, event in EVENTS.items():
        by_kind[event.kind].add(name)
    assert by_kind[Kind.INTENT] == {event.type_name() for event in vocabulary.INTENTS}
    assert by_kind[Kind.FACT] == {event.type_name() for event in vocabulary.FACTS}
    assert by_kind[Kind.DECISION] == {event.type_name() for event in DECISIONS}
    assert by_kind[Kind.FOUNDATION] == {event.type_name() for event in FOUNDATION}
    assert len(ALL) == len(EVENTS) + len(ROW_TYPES)


def leaves(kind: type[Event]) -> set[type[Event]]:
    below = kind.__subclasses__()
    return {kind} if not below else set().union(*(leaves(found) for found in below))


def test_no_event_type_was_forgotten_in_the_vocabulary() -> None:
    ours = {kind for kind in leaves(Event) if kind.__module__.startswith("mesh_events.")}
    assert ours == set(EVENTS.values())


def test_events_are_values() -> None:
    event = LOG.make(intents.LinkPaused, "east", product="east.users", cluster="west")
    with pytest.raises(ValidationError):
        event.product = "east.orders"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        intents.LinkPaused(meta=event.meta, product="p", cluster="c", mood="good")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            LOG.make(intents.LinkPaused, "east", product="east.users", cluster="west"),
            "link/east/users@west",
        ),
        (
            LOG.make(
                facts.LinkAdvanced, "mesh", link="east.users@west", generation=1, positions={}
            ),
            "link/east/users@west",
        ),
        (
            LOG.make(intents.AccessRequested, "west", product="east.a", application="b", reason=""),
            "access/east/a",
        ),
        (
            LOG.make(intents.AccessGranted, "east", product="east.a", request="r"),
            "access/east/a",
        ),
        (
            LOG.make(intents.ApplicationRegistered, "west", application="nodot"),
            "application/nodot",
        ),
        (
            LOG.make(facts.AclApplied, "mesh", subject="s", cluster="c", generation=1, bindings=[]),
            "rights/c/s",
        ),
    ],
)
def test_what_is_about_one_thing_has_one_key(event: Event, expected: str) -> None:
    assert event.key == expected


@pytest.mark.parametrize(("dotted", "domain"), [("a.b", "a"), ("a.b.c", "a"), ("a", "a"), ("", "")])
def test_the_domain_is_what_stands_before_the_first_dot(dotted: str, domain: str) -> None:
    assert intents.domain_of(dotted) == domain
