"""How much one domain may leave undecided, and how many of its ids are remembered."""

import pytest

from mesh_events import intents
from mesh_events.decisions import IDS_PER_DOMAIN, UNDECIDED_PER_DOMAIN, GovernorStarted
from mesh_events.record import FaultCode
from projections import fold
from projections.deciding.intents import REMEMBERED_MS
from projections.deciding.verdict import Accepted
from projections.image import Bounds
from tests import sample_history as story
from tests.memory_log import MemoryLog, at


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def start(log: MemoryLog, *, undecided: int = 1000, ids: int = 1000) -> None:
    bounds = {"undecided_per_domain": undecided, "ids_per_domain": ids}
    event = log.make(GovernorStarted, "mesh", version="1", **bounds)
    log.epoch = log.append(event, by="governor")


def said(log: MemoryLog, count: int, domain: str = "east") -> list[int]:
    made = (log.make(intents.ApplicationRegistered, domain, application=f"{domain}.a{number}")
            for number in range(count))  # fmt: skip
    return [log.append(event, by=domain) for event in made]


def code(log: MemoryLog, offset: int) -> str | None:
    fault = log.image.intents.unusable.fault_at(offset)
    return fault.code if fault else None


def test_the_default_bounds_are_those_of_the_start_event(log: MemoryLog) -> None:
    log.start_governor()
    assert log.image.bounds[:2] == (UNDECIDED_PER_DOMAIN, IDS_PER_DOMAIN) == (10_000, 100_000)


def test_an_intent_above_its_domains_bound_is_set_aside(log: MemoryLog) -> None:
    start(log, undecided=3)
    offsets = said(log, 4)
    assert sorted(log.image.intents.undecided) == offsets[:3]
    assert code(log, offsets[3]) == FaultCode.TOO_MANY_UNDECIDED
    log.govern()
    assert not log.image.intents.open_count
    assert not log.image.intents.waiting
    assert {"east.a0", "east.a1", "east.a2"} <= set(log.image.identity.applications)
    assert "east.a3" not in log.image.identity.applications


def test_one_domains_bound_leaves_the_others_and_the_operator_alone(log: MemoryLog) -> None:
    start(log, undecided=2, ids=2)
    said(log, 5)
    (west,) = said(log, 1, "west")
    operator = [
        log.operator(intents.DomainFrozen, domain=name, until=at(log.now + 3_600_000), reason="r")
        for name in ("east", "west", "north")
    ]
    assert {west, *operator} <= set(log.image.intents.undecided)


def test_there_is_room_again_where_something_was_decided(log: MemoryLog) -> None:
    start(log, undecided=2)
    first, _ = said(log, 2)
    log.accept(first)
    (third,) = said(log, 1)
    assert third in log.image.intents.undecided


def test_what_was_above_the_bound_may_be_emitted_again(log: MemoryLog) -> None:
    start(log, undecided=2)
    said(log, 2)
    event = log.make(intents.ApplicationRegistered, "east", application="east.again")
    log.append(event, by="east")
    log.govern()
    again = log.append(event, by="east")
    assert isinstance(log.verdict(again), Accepted)


def test_a_flood_above_the_bound_is_one_run(log: MemoryLog) -> None:
    start(log, undecided=2)
    said(log, 200)
    (run,) = log.image.intents.unusable.runs.values()
    assert dict(run.counts) == {"too_many_undecided": 198}
    assert len(log.image.intents.seen) <= 20


def test_an_intent_above_the_bound_of_ids_is_set_aside(log: MemoryLog) -> None:
    known = log.image.intents.remembered.get("east", 0)
    start(log, ids=known + 2)
    offsets = said(log, 3)
    assert code(log, offsets[2]) == FaultCode.TOO_MANY_IDS
    log.govern()
    assert code(log, said(log, 1)[0]) == FaultCode.TOO_MANY_IDS


def test_a_copy_of_a_remembered_intent_is_refused_as_one(log: MemoryLog) -> None:
    known = log.image.intents.remembered.get("east", 0)
    start(log, ids=known + 1)
    (first,) = said(log, 1)
    log.govern()
    copy = log.put(log.records[first])
    assert getattr(log.verdict(copy), "code", "") == "duplicate_intent"


def test_ids_are_counted_no_longer_when_they_are_forgotten(log: MemoryLog) -> None:
    known = log.image.intents.remembered.get("east", 0)
    start(log, ids=known + 2)
    said(log, 2)
    log.govern()
    for _ in range(3):
        log.now += REMEMBERED_MS + 1000
        # the mesh's clock goes on with a decision
        said(log, 1, "west")
        log.govern()
    last = said(log, 1)[0]
    assert log.image.intents.remembered["east"] == 1
    assert last in log.image.intents.undecided


def test_the_counts_are_those_of_the_tables(log: MemoryLog) -> None:
    story.published(log)
    said(log, 3)
    pending, party_of = log.image.intents, log.image.identity.party_of
    for party in ("east", "west", "mesh/operator", "mesh/governor"):
        waits = [one for one in pending.undecided.values() if party_of(one.signer) == party]
        ids = [who for who in pending.seen if party_of(who[0]) == party]
        assert pending.waiting.get(party, 0) == len(waits)
        assert pending.remembered.get(party, 0) == len(ids)
    assert set(pending.waiting) | set(pending.remembered) >= {"east", "mesh/operator"}


def test_the_operator_has_a_bound_of_its_own(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.start_governor()
    known = log.image.intents.remembered["mesh/operator"]
    monkeypatch.setattr(fold, "MESH_BOUNDS", Bounds(2, known + 3))
    offsets = [frozen(log) for _ in range(3)]
    assert sorted(log.image.intents.undecided) == offsets[:2]
    assert code(log, offsets[2]) == FaultCode.TOO_MANY_UNDECIDED
    log.govern()
    frozen(log)
    log.govern()
    assert code(log, frozen(log)) == FaultCode.TOO_MANY_IDS


def test_what_the_governor_appends_has_no_bound_and_uses_nobodys(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(log, undecided=1, ids=1)
    monkeypatch.setattr(fold, "MESH_BOUNDS", Bounds(1, 1000))
    link = {"product": "east.users", "cluster": "west"}
    own = [log.append(log.make(intents.LinkPaused, "mesh", **link), by="governor") for _ in "abc"]
    freeze = frozen(log)
    assert sorted(log.image.intents.undecided) == [*own, freeze]


def frozen(log: MemoryLog) -> int:
    until = at(log.now + 3_600_000)
    return log.operator(intents.DomainFrozen, domain="east", until=until, reason="r")
