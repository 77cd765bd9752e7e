"""The governor's steps, with a log in memory and nothing behind it."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mesh_events import intents, signing
from mesh_events.decisions import (
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    MeshRole,
    RecordsSetAside,
)
from mesh_events.emit import Receipt
from mesh_events.errors import ConfigurationError
from mesh_events.facts import CheckPassed
from mesh_events.meta import Event
from mesh_events.record import Entry, Record
from mesh_events.rows import Row
from processors.governor import governor as module
from processors.governor.decision import decision_on
from processors.governor.governor import Governor
from processors.governor.quarantine import SAMPLES, Copy
from processors.governor.waiting import AGAIN
from projections.access import State
from projections.deciding.decide import CHECK_TIMEOUT_MS
from projections.deciding.verdict import Quarantined, Verdict
from projections.image import DEFAULT_BOUNDS, Bounds, Image
from projections.quotas.kinds import Quotas
from tests import sample_history as story
from tests.memory_log import MemoryLog, Never, at, key


class PaperWriter:
    """Appends under the governor's key to a log in memory."""

    def __init__(self, log: MemoryLog, sender: str = "governor") -> None:
        self._log, self._sender, self.key = log, sender, key(sender)

    def append(self, event: Event) -> Receipt:
        return Receipt(event.meta.id, self._log.append(event, by=self._sender))

    def append_record(self, event: Event) -> Record:
        return self.append_records([event])[0]

    def append_records(self, events: Sequence[Event]) -> list[Record]:
        offsets = [self.append(event).offset for event in events]
        return [self._log.records[offset] for offset in offsets]


class PaperRows:
    def __init__(self) -> None:
        self.lock = threading.RLock()

    def write(self, rows: Iterable[Row]) -> None:
        list(rows)


def leading(
    log: MemoryLog,
    copy: Callable[[Copy], None] = lambda _: None,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Governor:
    found = Governor(PaperWriter(log), PaperRows(), copy, bounds=bounds)  # type: ignore[arg-type]
    found.fold(log.records)
    found.start()
    found.fold(log.records)
    return found


def settle(governor: Governor, log: MemoryLog) -> None:
    while governor.step():
        governor.fold(log.records)


def test_what_arrives_during_a_step_is_decided_by_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records are folded on the event loop while a step runs in its thread."""
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    waiting = log.say(intents.ProductPublished, "east", **story.product())
    governor.fold(log.records)
    late: list[int] = []

    def decide_and_let_one_in(*judged: Any) -> Any:
        if not late:
            late.append(log.say(intents.ApplicationRegistered, "east", application="east.late"))
            governor.fold(log.records)
        return real(*judged)

    real = module.decide
    monkeypatch.setattr(module, "decide", decide_and_let_one_in)

    settle(governor, log)
    # the worker steps again, since the log went on meanwhile
    settle(governor, log)

    assert sorted(governor.image.intents.undecided) == [waiting]
    assert "east.late" in governor.image.identity.applications


def test_a_new_leadership_takes_up_what_the_last_one_had_in_hand() -> None:
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    log.say(intents.ApplicationRegistered, "east", application="east.open")
    governor.fold(log.records)
    governor._turns.clear()

    governor.start()
    governor.fold(log.records)
    settle(governor, log)

    assert not governor.image.intents.undecided
    assert "east.open" in governor.image.identity.applications


def test_the_governors_image_is_the_replay() -> None:
    log = MemoryLog()
    governor = leading(log)
    story.published(log)
    governor.fold(log.records)
    again = leading(log)
    assert again.image.catalog == governor.image.catalog


def publications(log: MemoryLog, count: int) -> list[int]:
    """So many good publications of east, not decided yet; returns their offsets."""
    offsets = []
    for number in range(count):
        name = f"east.p{number}"
        changes = {"product": name, "topic": name}
        offsets.append(log.say(intents.ProductPublished, "east", **{**story.product(), **changes}))
    return offsets


def test_a_step_costs_the_same_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    publications(log, 5 * AGAIN)
    governor.fold(log.records)
    settle(governor, log)
    judged: list[int] = []
    real = module.decide
    monkeypatch.setattr(module, "decide", lambda *given: judged.append(1) or real(*given))
    assert governor.step() == []
    assert 0 < len(judged) <= AGAIN


class Dear:
    """Judgements that take longer than a step may last; keeps whose they were."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[int] = []
        # from now on: what waits already does so since then, by the real clock
        self._now, self._real = module.monotonic(), module.decide
        monkeypatch.setattr(module, "monotonic", lambda: self._now)
        monkeypatch.setattr(module, "decide", self._decide)

    def _decide(self, image: Image, entry: Entry, *more: Any) -> Verdict:
        self._now += 2 * module.BATCH_S
        self.judged.append(entry.offset)
        return self._real(image, entry, *more)


def test_what_an_operator_says_is_judged_next_however_dear_the_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand intents of one domain, each of which waits, once were judged in one step."""
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    publications(log, 40)
    governor.fold(log.records)
    dear, freeze = Dear(monkeypatch), list[int]()

    def judge_and_freeze(*given: Any) -> Any:
        if len(dear.judged) == 10:
            until = at(log.now + 3_600_000)
            freeze.append(
                log.operator(intents.DomainFrozen, domain="east", until=until, reason="it leaks")
            )
            governor.fold(log.records)
        return dear._decide(*given)

    monkeypatch.setattr(module, "decide", judge_and_freeze)
    assert governor.step()
    assert dear.judged[-1] == freeze[0]
    assert len(dear.judged) == 12


def test_dear_intents_that_wait_and_those_that_arrive_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    waiting = publications(log, 5)
    governor.fold(log.records)
    settle(governor, log)
    log.say(intents.ApplicationRegistered, "west", application="west.a")
    log.say(intents.ApplicationRegistered, "west", application="west.b")
    governor.fold(log.records)
    dear = Dear(monkeypatch)
    settle(governor, log)
    assert len(set(dear.judged) - set(waiting)) == 2
    assert 2 <= sum(offset in waiting for offset in dear.judged) <= 4


def test_a_check_that_came_out_is_looked_at_before_all_that_wait() -> None:
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    governor = leading(log)
    offsets = publications(log, 3 * AGAIN)
    governor.fold(log.records)
    settle(governor, log)
    last = offsets[-1]
    for check in ("topic_exists", "schema_registered"):
        log.report(CheckPassed, offset=last, check=check, evidence={})
    governor.fold(log.records)
    assert governor.step()
    governor.fold(log.records)
    assert last not in governor.image.intents.undecided


def dear_checks(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryLog, Governor, Dear]:
    """East's publications, a check of each of which came out; every judgement is dear."""
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    governor = leading(log)
    offsets = publications(log, count)
    governor.fold(log.records)
    settle(governor, log)
    # nothing that waits is looked at in turn beside what this is about
    monkeypatch.setattr("processors.governor.waiting.AGAIN", 0)
    for offset in offsets:
        log.report(CheckPassed, offset=offset, check="topic_exists", evidence={})
    governor.fold(log.records)
    return log, governor, Dear(monkeypatch)


def test_dear_checks_of_one_domain_take_turns_with_other_domains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them once were judged before whatever else had arrived."""
    log, governor, dear = dear_checks(20, monkeypatch)
    late = log.say(intents.ApplicationRegistered, "west", application="west.late")
    governor.fold(log.records)
    assert governor.step()
    assert late in dear.judged
    assert len(dear.judged) <= 2


def test_all_checks_that_came_out_are_looked_at_where_nothing_else_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, governor, dear = dear_checks(20, monkeypatch)
    assert governor.step() == []
    assert len(set(dear.judged)) == 20


def test_a_copy_of_a_check_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody who may append can copy one; each was a judgement before all others."""
    log, governor, dear = dear_checks(1, monkeypatch)
    assert governor.step() == []
    count, passed = len(dear.judged), log.records[-1]
    for _ in range(5):
        log.put(passed)
    governor.fold(log.records)
    assert governor.step() == []
    assert len(dear.judged) == count


def test_a_check_that_is_folded_during_a_step_is_looked_at_by_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, governor, dear = dear_checks(1, monkeypatch)
    (offset,) = governor.image.intents.undecided

    def judge_and_report(*given: Any) -> Any:
        if not dear.judged:
            log.report(CheckPassed, offset=offset, check="schema_registered", evidence={})
            governor.fold(log.records)
        return dear._decide(*given)

    monkeypatch.setattr(module, "decide", judge_and_report)
    assert governor.step() == []
    assert governor.step()
    assert dear.judged == [offset, offset]


def test_what_this_process_has_signed_is_not_verified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    log.say(intents.ApplicationRegistered, "west", application="west.a")
    governor.fold(log.records)
    records, verified = governor.step(), list[bytes]()
    real = signing.verifies
    monkeypatch.setattr(signing, "verifies", lambda *given: verified.append(1) or real(*given))
    governor.fold(records, ours=True)
    assert governor.image.offset == records[-1].offset
    assert governor.image.identity.applications["west.a"]
    assert not verified


def test_a_governor_whose_key_the_log_does_not_know_does_not_start() -> None:
    log = MemoryLog()
    stranger = PaperWriter(log, "stranger")
    governor = Governor(stranger, PaperRows(), lambda *_: None)  # type: ignore[arg-type]
    governor.fold(log.records)
    end = len(log.records)
    with pytest.raises(ConfigurationError, match="does not count this governor's key"):
        governor.start()
    assert len(log.records) == end


def test_a_governor_whose_key_was_revoked_says_no_more() -> None:
    """Each of its words would be set aside by the next one, and that one's too."""
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    log.introduce_key(MeshRole.GOVERNOR, "second governor")
    log.revoke_key("governor")
    log.say(intents.ApplicationRegistered, "east", application="east.late")
    governor.fold(log.records)
    end = len(log.records)
    with pytest.raises(ConfigurationError, match="start the worker with the new one"):
        governor.step()
    assert len(log.records) == end


def test_times_run_out_one_after_the_other_however_many_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    governor = leading(log)
    publications(log, 3 * AGAIN)
    governor.fold(log.records)
    settle(governor, log)
    later(monkeypatch, 61_000)
    settle(governor, log)
    assert not governor.image.intents.undecided


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_machine_whose_clock_is_an_hour_off_waits_for_a_check_as_long_as_others(
    hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ahead, it once refused with check_timeout all that needed a check; behind, it waited on."""
    log = MemoryLog(checks={"topic_exists": Never()})
    story.domains(log)
    wrong = time.time() + hours * 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    governor = leading(log)
    (waiting,) = publications(log, 1)
    governor.fold(log.records)
    settle(governor, log)
    assert waiting in governor.image.intents.undecided

    later(monkeypatch, 62_000)
    settle(governor, log)
    assert not governor.image.intents.undecided


def later(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """Let so much time pass, as every machine measures it."""
    now = module.monotonic() + milliseconds / 1000
    monkeypatch.setattr(module, "monotonic", lambda: now)


def test_a_fold_that_began_before_everything_was_forgotten_takes_no_more() -> None:
    """It was cancelled in its thread: what it still has would leave a hole behind it."""
    log = MemoryLog()
    governor = Governor(PaperWriter(log), PaperRows(), lambda *_: None)  # type: ignore[arg-type]

    def forgotten_on_the_way() -> Iterable[Record]:
        yield from log.records[:5]
        governor.forget()
        yield from log.records[5:]

    governor.fold(forgotten_on_the_way())
    assert governor.image.offset == -1
    governor.fold(log.records)
    assert governor.image == log.image


def test_one_step_decides_many_records_each_on_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a busy machine takes longer for one judgement than a step has
    monkeypatch.setattr(module, "BATCH_S", 60)
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    for name in ("one", "two", "one"):
        log.say(intents.ApplicationRegistered, "east", application=f"east.{name}")
    governor.fold(log.records)
    end = len(log.records)

    governor.step()

    kinds = [type(log.event_at(offset)).__name__ for offset in range(end, len(log.records))]
    bases = {log.event_at(offset).basis for offset in range(end, len(log.records))}  # type: ignore[attr-defined]
    assert len(kinds) == 3
    assert bases == {end - 1}
    assert not log.image.intents.undecided


def test_a_freeze_is_decided_before_what_the_domain_has_said() -> None:
    """The domain writes more than is decided at once; what was undecided is then refused."""
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    said = [
        log.say(intents.ApplicationRegistered, "east", application=f"east.a{number}")
        for number in range(20)
    ]
    until = at(log.now + 3_600_000)
    frozen = log.operator(intents.DomainFrozen, domain="east", until=until, reason="it floods")
    governor.fold(log.records)
    end = len(log.records)
    settle(governor, log)
    decided = [log.event_at(offset) for offset in range(end, len(log.records))]
    assert decided[0].offset == frozen  # type: ignore[attr-defined]
    assert {getattr(one, "code", "") for one in decided[1:]} == {"domain_frozen"}
    assert len(decided) == 1 + len(said)


def test_a_domain_that_floods_delays_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    # a batch ends with its time, too, which a busy machine needs for one decision
    monkeypatch.setattr(module, "BATCH_S", 60.0)
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    for number in range(20):
        log.say(intents.ApplicationRegistered, "east", application=f"east.a{number}")
    quiet = log.say(intents.ApplicationRegistered, "west", application="west.quiet")
    governor.fold(log.records)
    governor.step()
    governor.fold(log.records)
    assert quiet not in governor.image.intents.undecided
    assert len(governor.image.intents.undecided) == 19


def garbage(log: MemoryLog) -> int:
    return log.put(replace(log.records[-1], value=b"garbage"))


def test_a_flood_of_garbage_is_one_decision_and_a_few_copies() -> None:
    log, copies = MemoryLog(), list[Copy]()
    story.domains(log)
    governor = leading(log, copies.append)
    offsets = [garbage(log) for _ in range(300)]
    good = log.say(intents.ApplicationRegistered, "east", application="east.good")
    governor.fold(log.records)
    settle(governor, log)

    decided = [log.event_at(at) for at in range(good + 1, len(log.records))]
    (event,) = (one for one in decided if isinstance(one, RecordsSetAside))
    assert (event.offset, event.last, event.counts) == (offsets[0], offsets[-1], {"garbage": 300})
    assert len(decided) == 2
    assert [one.record.offset for one in copies] == offsets[:SAMPLES]
    assert {(one.code, one.left_out) for one in copies} == {("garbage", 300 - SAMPLES)}
    assert not governor.image.intents.open_count
    assert not governor._open
    assert "east.good" in governor.image.identity.applications


def test_a_single_unusable_record_is_copied_with_its_reason() -> None:
    log, copies = MemoryLog(), list[Copy]()
    governor = leading(log, copies.append)
    offset = garbage(log)
    governor.fold(log.records)
    settle(governor, log)
    event = log.event_at(log.records[-1].offset)
    assert isinstance(event, IntentQuarantined)
    (copy,) = copies
    assert (copy.record.offset, copy.code, copy.left_out) == (offset, "garbage", 0)
    assert copy.reason == event.reason


def test_undecided_garbage_costs_the_governor_no_bytes_for_each_record() -> None:
    """Who stands by folds the flood, and another governor decides it."""
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    for _ in range(100):
        garbage(log)
    governor.fold(log.records)
    assert len(governor._open) == 0
    assert len(governor._samples) == SAMPLES
    log.epoch = governor.image.epoch
    log.govern()
    governor.fold(log.records)
    assert len(governor._samples) == 0


def test_a_range_of_another_governor_frees_what_it_swallows() -> None:
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    garbage(log)
    log.say(intents.ApplicationRegistered, "east", application="east.good")
    garbage(log)
    governor.fold(log.records)
    assert len(governor._open) == 1
    (run,) = governor.image.intents.unusable.in_order()
    log.epoch = governor.epoch or 0
    log.set_aside(run._replace(exceptions=()))
    governor.fold(log.records)
    assert not governor._open
    assert not governor.step()


def test_a_governor_says_at_its_start_what_a_domain_may_have() -> None:
    log = MemoryLog()
    story.domains(log)
    bounds = Bounds(undecided=2, ids=1000, quotas=Quotas(1, 2, 3, 4, 5, 6, 7))
    governor = leading(log, bounds=bounds)
    assert governor.image.bounds == bounds
    for name in ("one", "two", "three"):
        log.say(intents.ApplicationRegistered, "east", application=f"east.{name}")
    governor.fold(log.records)
    settle(governor, log)
    assert "east.one" in governor.image.identity.applications
    assert not {"east.two", "east.three"} & set(governor.image.identity.applications)
    decided = [log.event_at(one.offset) for one in log.records[-3:]]
    codes = [getattr(one, "code", "") for one in decided]
    assert "too_many_undecided" in codes
    assert "quota_exceeded" in codes


def test_ranges_do_not_delay_what_an_operator_signs() -> None:
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    for _ in range(100):
        garbage(log)
    until = at(log.now + 3_600_000)
    frozen = log.operator(intents.DomainFrozen, domain="east", until=until, reason="it floods")
    governor.fold(log.records)
    governor.step()
    governor.fold(log.records)
    assert frozen not in governor.image.intents.undecided


class Meanwhile:
    """Runs a governor's step in the middle of each fold, as its thread may.

    Args:
        place: what the fold calls just then.
    """

    def __init__(self, governor: Governor, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._governor = governor
        self._found = False
        self.missed: list[int] = []
        owner: Any = governor
        *path, name = place.split(".")
        for one in path:
            owner = getattr(owner, one)
        real = getattr(owner, name)

        def stepped(*given: Any, **named: Any) -> Any:
            self._step()
            found = real(*given, **named)
            self._step()
            return found

        monkeypatch.setattr(owner, name, stepped)

    def _step(self) -> None:
        """A step that finds nothing has seen all up to its image: the next one waits for more."""
        seen = self._governor.image.offset
        self._found = self._found or bool(self._governor.step())
        if not self._found:
            self.missed.append(seen)


@pytest.mark.parametrize(
    "place",
    ["_derived.folded", "_queue", "_samples.add", "metrics.folded", "watch.took"],
)
@pytest.mark.parametrize("what", ["intent", "garbage", "consequence"])
def test_a_step_beside_the_fold_finds_all_that_its_image_calls_for(
    place: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    story.published(log)
    request = story.request(log)
    governor = leading(log)
    settle(governor, log)
    match what:
        case "intent":
            offset = log.say(intents.ApplicationRegistered, "east", application="east.new")
        case "garbage":
            offset = garbage(log)
        case _:
            log.epoch = governor.image.epoch
            asked = log.say(intents.AccessGranted, "east", product=story.PRODUCT, request=request)
            offset = log.accept(asked)
    assert offset == len(log.records) - 1
    until = log.records[: offset + 1]
    governor.fold(until[:-1])
    meanwhile = Meanwhile(governor, place, monkeypatch)
    governor.fold(until[-1:])
    assert offset not in meanwhile.missed
    monkeypatch.undo()
    settle(governor, log)


class WatchedLock:
    """A lock that shows when somebody waits for it."""

    def __init__(self) -> None:
        self._lock, self.asked = threading.RLock(), threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.asked.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_a_start_beside_the_fold_queues_what_is_half_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fold has noted a record for the epoch before, and not published it yet."""
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    lock = governor._rows.lock = WatchedLock()  # type: ignore[assignment]
    offset = log.say(intents.ApplicationRegistered, "east", application="east.new")
    starting = threading.Thread(target=lambda: (governor.start(), lock.asked.set()))
    real = governor._remember

    def start_and_remember(*given: Any) -> None:
        real(*given)
        starting.start()
        assert lock.asked.wait(30), "the start neither ended nor waits for the fold"

    monkeypatch.setattr(governor, "_remember", start_and_remember)
    governor.fold(log.records[: offset + 1])
    starting.join()
    monkeypatch.undo()
    governor.fold(log.records)
    settle(governor, log)
    assert offset not in governor.image.intents.undecided


def test_a_step_passes_over_what_another_governor_has_decided_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog()
    story.domains(log)
    governor = leading(log)
    wrong = log.make(intents.ApplicationRegistered, "west", application="west.new")
    offset = log.append(wrong, by="east")
    governor.fold(log.records)
    real = module.decide

    def another_decides_first(*given: Any) -> Any:
        verdict = real(*given)
        log.start_governor()
        log.rule(offset, verdict)
        governor.fold(log.records)
        return verdict

    monkeypatch.setattr(module, "decide", another_decides_first)
    monkeypatch.setattr(module, "decision_on", quarantined)
    assert governor.step() == []


def quarantined(entry: Entry, _: Verdict, basis: Any) -> Any:
    """A decision of which people are given a copy."""
    return decision_on(entry, Quarantined("garbage", "cannot be read"), basis)


SLOW = {"topic_exists": Never(), "schema_registered": Never(), "target_free": Never()}


def waiting_for_checks() -> tuple[MemoryLog, Governor]:
    """A published product; from now on no check comes out by itself."""
    log = MemoryLog()
    story.published(log)
    log.checks = SLOW
    return log, leading(log)


def passed(governor: Governor, log: MemoryLog, offset: int, *checks: str) -> None:
    """The checks of one intent come out, and everything that follows is decided."""
    for check in checks:
        log.report(CheckPassed, offset=offset, check=check, evidence={})
    governor.fold(log.records)
    settle(governor, log)


def words(log: MemoryLog, waiting: str, domain: str = "east") -> list[int]:
    """Updates of one product; those that are `w` have to wait for checks."""
    return [
        log.say(
            intents.ProductUpdated,
            domain,
            product=story.PRODUCT,
            topic_replaced=one == "w",
            description=f"word {number}",
        )
        for number, one in enumerate(waiting)
    ]


def decided_of(log: MemoryLog, offsets: Sequence[int]) -> list[tuple[int, str]]:
    found = [log.event_at(one.offset) for one in log.records]
    return [
        (one.offset, type(one).__name__)
        for one in found
        if isinstance(one, IntentAccepted | IntentRejected) and one.offset in offsets
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_domain_says_about_one_product_is_decided_in_its_order(restarted: bool) -> None:
    log, governor = waiting_for_checks()
    said = words(log, "w..w.")
    governor.fold(log.records)
    settle(governor, log)
    assert decided_of(log, said) == []
    if restarted:
        governor = leading(log)
        settle(governor, log)
    assert governor.waiting().keys() == {said[0]}, "the check of the fourth is not begun"
    said += words(log, "..")
    passed(governor, log, said[0], "topic_exists", "schema_registered")
    assert [at for at, _ in decided_of(log, said)] == said[:3]
    passed(governor, log, said[3], "topic_exists", "schema_registered")
    assert decided_of(log, said) == [(one, "IntentAccepted") for one in said]
    assert governor.image.catalog[story.PRODUCT].description == "word 1"


def test_what_was_held_is_judged_before_what_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log, governor = waiting_for_checks()
    said = words(log, "w.")
    governor.fold(log.records)
    settle(governor, log)
    said += words(log, ".")
    # a step judges one of them, so that the last one stands in the queue when the first is decided
    Dear(monkeypatch)
    passed(governor, log, said[0], "topic_exists", "schema_registered")
    assert [at for at, _ in decided_of(log, said)] == said


def test_a_revocation_behind_a_grant_that_waits_ends_it() -> None:
    log = MemoryLog()
    story.published(log)
    asked = [story.request(log, consumer) for consumer in ("west", "north")]
    log.checks = SLOW
    governor = leading(log)
    about = [{"product": story.PRODUCT, "request": one, "reason": "so"} for one in asked]
    grants = [log.say(intents.AccessGranted, "east", **one) for one in about]
    revoked = log.say(intents.AccessRevoked, "east", **about[0])
    governor.fold(log.records)
    settle(governor, log)
    passed(governor, log, grants[1], "target_free")
    assert decided_of(log, [*grants, revoked]) == [(grants[1], "IntentAccepted")], "another request"
    passed(governor, log, grants[0], "target_free")
    order = [grants[1], grants[0], revoked]
    assert decided_of(log, order) == [(one, "IntentAccepted") for one in order]
    assert governor.image.access.requests[asked[0]].state is State.REVOKING


def test_an_intent_that_waits_holds_no_other_domains_back_nor_other_things() -> None:
    log, governor = waiting_for_checks()
    first = words(log, "w")
    others = words(log, "w", "west")
    others.append(log.say(intents.ApplicationRegistered, "east", application="east.app"))
    governor.fold(log.records)
    settle(governor, log)
    found = decided_of(log, [*first, *others])
    assert sorted(found) == [(others[0], "IntentRejected"), (others[1], "IntentAccepted")]


def test_what_was_held_is_decided_when_the_time_of_the_first_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, governor = waiting_for_checks()
    said = words(log, "w..")
    governor.fold(log.records)
    settle(governor, log)
    later(monkeypatch, CHECK_TIMEOUT_MS + 1000)
    settle(governor, log)
    kinds = ["IntentRejected", "IntentAccepted", "IntentAccepted"]
    assert decided_of(log, said) == list(zip(said, kinds, strict=True))
