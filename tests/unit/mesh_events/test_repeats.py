"""What somebody is told whose record stands on the log more than once."""

from dataclasses import replace

import pytest

from mesh_events import intents
from mesh_events.decisions import Decision, IntentAccepted, IntentRejected
from mesh_events.record import Record
from mesh_events.repeats import WINDOW, Found, first_answer, is_repeat, is_same
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, resigned
from tests.unit.projections.deciding.test_bounds import start


class Reader:
    """Reads a log in memory; `waited` are the offsets whose decision was asked for."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.waited: list[int] = []

    def between(self, first: int, end: int) -> list[Record]:
        return self._log.records[first:end]

    def decision_on(self, offset: int) -> Found:
        self.waited.append(offset)
        return decision_on(self._log, offset)


def decision_on(log: MemoryLog, offset: int) -> Found:
    for record in log.records[offset + 1 :]:
        if record.headers["ce_type"].endswith(b".decision"):  # type: ignore[union-attr]
            event = log.event_at(record.offset)
            if isinstance(event, Decision) and event.decides(offset):
                return Found(event, record.offset)
    raise AssertionError(f"nothing is decided on {offset}")


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def registered(log: MemoryLog, name: str = "west.new") -> int:
    return log.say(intents.ApplicationRegistered, "west", application=name)


def answer(log: MemoryLog, copy: int) -> tuple[Found | None, list[int]]:
    """(what is told, the offsets whose decision was waited for)."""
    assert is_repeat(decision_on(log, copy).decision)
    reader = Reader(log)
    return first_answer(log.records[copy], reader.between, reader.decision_on), reader.waited


@pytest.mark.parametrize("between", [0, 3 * WINDOW])
def test_the_answer_to_a_second_record_is_that_to_the_first(log: MemoryLog, between: int) -> None:
    first = registered(log)
    log.govern()
    for _ in range(between):
        log.put(log.records[0])
    copy = log.put(log.records[first])
    log.govern()
    found, waited = answer(log, copy)
    assert found == decision_on(log, first)
    assert isinstance(found.decision, IntentAccepted)
    assert waited == [first]


def test_a_refusal_of_the_first_is_told_as_well(log: MemoryLog) -> None:
    first = registered(log, "east.not-wests")
    copy = log.put(log.records[first])
    log.govern()
    found, _ = answer(log, copy)
    assert found is not None
    assert isinstance(found.decision, IntentRejected)
    assert found.decision.code == "not_your_domain"


def test_a_flood_of_copies_is_waited_for_once(log: MemoryLog) -> None:
    first = registered(log)
    copies = [log.put(log.records[first]) for _ in range(5 * WINDOW)]
    log.put(replace(log.records[-1], value=b"garbage"))
    log.govern()
    found, waited = answer(log, copies[-1])
    assert found == decision_on(log, first)
    assert len(waited) == 2


def test_of_earlier_records_that_were_set_aside_none_is_the_answer(log: MemoryLog) -> None:
    """The first was above the domain's bound; the second was judged."""
    start(log, undecided=1)
    registered(log, "west.other")
    above = registered(log)
    log.govern()
    second = log.put(log.records[above])
    copy = log.put(log.records[above])
    log.govern()
    found, waited = answer(log, copy)
    assert found == decision_on(log, second)
    assert waited == [above, second]


def test_another_intent_with_the_same_id_is_not_answered_for_the_first(log: MemoryLog) -> None:
    first = registered(log)
    event = log.event_at(first)
    other = log.append(event.model_copy(update={"application": "west.else"}), by="west")
    log.govern()
    assert answer(log, other) == (None, [])


def test_a_record_is_the_same_by_key_value_and_signer() -> None:
    log = MemoryLog()
    record = log.records[-1]
    assert is_same(record, replace(record, offset=9, time=9))
    assert not is_same(record, replace(record, key=b"?"))
    assert not is_same(record, replace(record, value=b"?"))
    assert not is_same(record, resigned(record, key("stranger")))
