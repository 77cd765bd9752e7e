"""Copies of signed intents, which anybody with a login for the log can append without a key."""

import tracemalloc
from dataclasses import replace

import pytest

from mesh_events import intents
from mesh_events.record import FaultCode, Record
from processors.governor.governor import Governor
from projections.image import Bounds
from tests import sample_history as story
from tests.memory_log import MemoryLog, at, key
from tests.unit.processors.governor.test_governor import leading, settle

COPIES = 1000


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def copied(log: MemoryLog, offset: int, count: int = COPIES) -> list[int]:
    return [log.put(log.records[offset]) for _ in range(count)]


def freeze(log: MemoryLog, **fields: str) -> int:
    until = at(log.now + 3_600_000)
    return log.operator(
        intents.DomainFrozen, **{"domain": "east", "reason": "r", **fields}, until=until
    )


def settled(governor: Governor, log: MemoryLog) -> None:
    governor.fold(log.records)
    settle(governor, log)


def test_copies_of_a_domains_intent_leave_its_bound_to_the_domain(log: MemoryLog) -> None:
    governor = leading(log, bounds=Bounds(COPIES, 100 * COPIES))
    first = log.say(intents.ApplicationRegistered, "west", application="west.one")
    settled(governor, log)
    copies = copied(log, first)
    honest = log.say(intents.ApplicationRegistered, "west", application="west.two")
    governor.fold(log.records)

    assert sorted(governor.image.intents.undecided) == [honest]
    (run,) = governor.image.intents.unusable.in_order()
    assert (run.first, run.last) == (copies[0], copies[-1])
    assert dict(run.counts) == {"duplicate_intent": COPIES}
    settled(governor, log)
    assert "west.two" in governor.image.identity.applications


def test_copies_of_an_undecided_intent_are_set_aside_as_well(log: MemoryLog) -> None:
    governor = leading(log)
    first = log.say(intents.ApplicationRegistered, "west", application="west.one")
    copied(log, first, 10)
    governor.fold(log.records)
    assert sorted(governor.image.intents.undecided) == [first]
    settled(governor, log)
    assert "west.one" in governor.image.identity.applications


def test_copies_of_the_operators_intents_do_not_delay_its_freeze(log: MemoryLog) -> None:
    governor = leading(log)
    operators = [
        record.offset
        for record in log.records
        if record.headers["mesh_key"] == key("operator").public.encode()
    ]
    for offset in operators:
        copied(log, offset, COPIES // len(operators))
    frozen = freeze(log)
    governor.fold(log.records)

    decided = governor.step()
    events = [log.event_at(record.offset) for record in decided]
    # one range of copies, and the freeze
    assert len(events) == 2
    assert events[-1].offset == frozen  # type: ignore[attr-defined]


def test_a_copy_costs_the_governor_no_memory(log: MemoryLog) -> None:
    governor = leading(log)
    record = log.records[freeze(log, reason="r" * 4000)]
    settled(governor, log)
    end = log.records[-1].offset + 1
    copied(log, record.offset, 1)
    governor.fold(log.records)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        governor.fold(fresh(record, end + number) for number in range(1, COPIES))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / COPIES < 200


def fresh(record: Record, offset: int) -> Record:
    """The record at another offset, in bytes of its own."""
    assert record.value is not None
    return replace(record, offset=offset, value=bytes(bytearray(record.value)))


def test_a_freeze_is_not_refused_for_what_others_append(log: MemoryLog) -> None:
    """A bound of one undecided intent is for domains; copies do not count to the operator's."""
    governor = leading(log, bounds=Bounds(1, 1))
    first = freeze(log, domain="west")
    copied(log, first, 10)
    second = freeze(log)
    governor.fold(log.records)
    assert {first, second} == set(governor.image.intents.undecided)
    assert governor.image.intents.waiting["mesh/operator"] == 2


def test_a_copy_is_set_aside_with_the_offset_of_the_first(log: MemoryLog) -> None:
    governor = leading(log)
    first = log.say(intents.ApplicationRegistered, "west", application="west.one")
    settled(governor, log)
    (copy,) = copied(log, first, 1)
    governor.fold(log.records)
    fault = governor.image.intents.unusable.fault_at(copy)
    assert fault is not None
    assert fault.code is FaultCode.DUPLICATE_INTENT
    assert str(first) in fault.reason


def test_a_copy_of_a_forgotten_intent_of_the_governor_is_too_old(log: MemoryLog) -> None:
    """The rules find none of the governor's intents too old."""
    story.published(log)
    story.granted(log)
    story.settle(log)
    created = next(
        record.offset
        for record in log.records
        if record.headers["ce_type"] == b"mesh.LinkCreated.intent"
    )
    for number in range(3):
        log.now += 2 * 3_600_000
        log.say(intents.ApplicationRegistered, "west", application=f"west.later{number}")
        log.govern()
    (copy,) = copied(log, created, 1)
    fault = log.image.intents.unusable.fault_at(copy)
    assert fault is not None
    assert fault.code is FaultCode.STALE_INTENT
