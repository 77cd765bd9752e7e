"""Waiting for a decision on a log that others write too."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError

from mesh_events import emit, intents, outcome
from mesh_events.decisions import GovernorStarted, MeshRole
from mesh_events.emit import Emitter, Outcome, decision_in
from mesh_events.errors import ConfigurationError, MeshError, RefusedError
from mesh_events.kafka.connection import Connection
from mesh_events.meta import MESH_DOMAIN, require_actor
from mesh_events.outcome import LOOK_BACK, DecisionWatch
from mesh_events.record import FaultCode, Record
from mesh_events.signing import MeshKeys
from mesh_events.topics import MAX_INTENT_BYTES
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, resigned

if TYPE_CHECKING:
    from mesh_events.schema.registry import Registry


class Asked(Mapping[int, str]):
    """Schemas that note which of them was asked for."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas, self.ids = schemas, set[int]()

    def __getitem__(self, schema_id: int) -> str:
        self.ids.add(schema_id)
        return self._schemas[schema_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)


def decided() -> tuple[MemoryLog, int, Record]:
    """A log, the offset of an intent on it, and the record of the decision."""
    log = MemoryLog()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.accept(offset)
    return log, offset, log.records[-1]


NOWHERE = Connection("127.0.0.1:1", "west.intents", "none")
KEYS = MeshKeys(key("root").public, key("governor").public)


def test_the_governors_decision_is_found() -> None:
    log, offset, record = decided()
    found = decision_in(record, log.image.schemas, KEYS)
    assert found is not None
    assert found.offset == offset


def test_nothing_that_a_stranger_wrote_is_decoded() -> None:
    log, _, record = decided()
    forged = replace(record, headers={**record.headers, "mesh_signature": bytes(64)})
    for one in (resigned(record, key("stranger")), forged, replace(record, headers={})):
        asked = Asked(log.image.schemas)
        assert decision_in(one, asked, KEYS) is None
        assert not asked.ids


def test_without_a_governors_key_nothing_is_a_decision() -> None:
    log, _, record = decided()
    assert decision_in(record, log.image.schemas, MeshKeys(KEYS.root)) is None


def watched(
    log: MemoryLog,
    offset: int,
    read: list[tuple[int, int]] | None = None,
    asked: list[str] | None = None,
) -> Outcome | None:
    """What somebody is told who waits for the decision on a record.

    `read` takes the ranges of offsets that were asked for before the start, `asked` the starts that
    were looked for on the log before.
    """

    def is_copy(name: str, before: int) -> bool:
        (asked if asked is not None else []).append(name)
        ids = [one.headers["ce_id"] for one in log.records[:before]]
        return name.encode() in ids

    def earlier(first: int, end: int) -> list[Record]:
        (read if read is not None else []).append((first, end))
        return log.records[first:end]

    watch = DecisionWatch(offset, log.image.schemas, KEYS, is_copy, earlier)
    found = (watch.take(one) for one in log.records[watch.start :])
    return next((one for one in found if one is not None), None)


REFUSED = Rejected("not_your_domain", "it is another's")
SET_ASIDE = Quarantined(FaultCode.FORGED, "it is not the controller's")


@pytest.mark.parametrize("verdict", [Accepted(), REFUSED, SET_ASIDE])
def test_the_decision_of_a_governor_that_was_replaced_is_not_told(verdict: Verdict) -> None:
    log = MemoryLog()
    replaced = log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.start_governor()
    log.rule(offset, verdict, epoch=replaced)
    assert watched(log, offset) is None
    decision = log.rule(offset, SET_ASIDE)
    found = watched(log, offset)
    assert found is not None
    assert (found.offset, found.code) == (decision, "forged")


@pytest.mark.parametrize("revoked_first", [True, False])
def test_nothing_counts_behind_the_revocation_of_the_governors_key(revoked_first: bool) -> None:
    """Who holds the key that was revoked starts an epoch with it, and accepts."""
    log = MemoryLog()
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    application = {"application": "east.app"}
    offset = -1 if revoked_first else log.say(intents.ApplicationRegistered, "east", **application)
    log.revoke_key("governor")
    log.governor = "governor-2"
    log.start_governor()
    if revoked_first:
        offset = log.say(intents.ApplicationRegistered, "east", **application)
    start = log.make(GovernorStarted, MESH_DOMAIN, version="1")
    epoch = log.append(start, by="governor")
    accepted = log.decision(offset, Accepted())
    behind = {"epoch": epoch, "basis": epoch, "follows": start.meta.id}
    log.append(accepted.model_copy(update=behind), by="governor")
    with pytest.raises(ConfigurationError, match=r"was revoked at offset \d+ .* new mesh\.json"):
        watched(log, offset)


def test_a_decision_in_front_of_the_revocation_of_its_key_is_told() -> None:
    log = MemoryLog()
    log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    decision = log.rule(offset, REFUSED)
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    log.revoke_key("governor")
    found = watched(log, offset)
    assert found is not None
    assert (found.offset, found.code) == (decision, REFUSED.code)


@pytest.mark.parametrize("names", [True, False])
def test_a_copy_of_an_earlier_start_ends_no_epoch(names: bool) -> None:
    log, asked = MemoryLog(), list[str]()
    first = log.start_governor(names=names)
    second = log.start_governor(names=names)
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    for copied in (first, second):
        log.put(log.records[copied])
    log.put(resigned(log.records[second], key("stranger")))
    decision = log.rule(offset, REFUSED)
    told = watched(log, offset, asked=asked)
    assert told == Outcome(False, decision, REFUSED.code, REFUSED.reason)
    # what would read the log from its begin is asked only where the start itself does not tell
    assert bool(asked) is not names


def test_a_start_beside_the_one_that_counts_ends_no_epoch() -> None:
    log = MemoryLog()
    first = log.start_governor()
    second = log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    beside = log.make(GovernorStarted, "mesh", version="1", previous_epoch=first)
    log.append(beside, by="governor")
    assert log.image.epoch == second
    decision = log.rule(offset, REFUSED)
    assert watched(log, offset) == Outcome(False, decision, REFUSED.code, REFUSED.reason)


def test_starts_are_looked_for_once_however_many_copies_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, read = MemoryLog(), list[int]()
    first, second = log.start_governor(), log.start_governor()
    for copied in (first, second) * 50:
        log.put(log.records[copied])
    forged = resigned(log.records[second], key("stranger"))
    log.put(replace(forged, headers={**forged.headers, "ce_id": b"forged"}))
    third = log.start_governor()

    def between(_: Any, start: int, end: int, __: float) -> Iterator[Record]:
        read.extend(range(start, end))
        return iter(log.records[start:end])

    monkeypatch.setattr(outcome, "_between", between)
    starts = outcome._Starts(NOWHERE, KEYS, 0)
    names = [log.records[one].headers["ce_id"].decode() for one in (first, second, third)]
    for before in range(second + 1, third + 1):
        assert [starts.has(one, before) for one in names] == [True, True, False]
        assert not starts.has("forged", before)
    assert not starts.has(names[1], second)
    assert starts.has(names[2], third + 1)
    assert sorted(set(read)) == read


def test_a_decision_under_a_start_behind_the_record_counts() -> None:
    log = MemoryLog()
    log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.start_governor()
    decision = log.rule(offset, REFUSED)
    assert watched(log, offset) == Outcome(False, decision, REFUSED.code, REFUSED.reason)


def asked(log: MemoryLog, count: int) -> list[int]:
    """Offsets of as many intents."""
    return [
        log.operator(intents.ApplicationRegistered, application=f"east.app{number}")
        for number in range(count)
    ]


def test_a_decision_behind_a_lost_one_is_not_told() -> None:
    log = MemoryLog()
    log.start_governor()
    first, second, third = asked(log, 3)
    basis = log.image.offset
    lost = log.decision(first, REFUSED)
    behind = log.decision(second, REFUSED, follows=lost.meta.id, basis=basis)
    log.append(behind, by="governor")
    log.rule(third, REFUSED, follows=behind.meta.id, basis=basis)
    assert {second, third} <= set(log.image.intents.undecided)
    assert watched(log, second) is None
    assert watched(log, third) is None
    log.start_governor()
    decision = log.rule(third, REFUSED)
    assert watched(log, third) == Outcome(False, decision, REFUSED.code, REFUSED.reason)


def test_decisions_of_one_step_that_are_all_there_are_told() -> None:
    log = MemoryLog()
    log.start_governor()
    offsets = asked(log, 3)
    basis = log.image.offset
    decisions = [log.rule(one, REFUSED, basis=basis) for one in offsets]
    assert not log.image.intents.undecided
    found = [watched(log, one) for one in offsets]
    assert found == [Outcome(False, one, REFUSED.code, REFUSED.reason) for one in decisions]


def test_a_decision_that_follows_an_earlier_one_than_the_last_is_not_told() -> None:
    """It has no effect either: the one that came before it has taken its place."""
    log = MemoryLog()
    log.start_governor()
    first, second, third = asked(log, 3)
    log.rule(first, REFUSED)
    before = log.image.last_decision
    log.rule(second, REFUSED)
    log.rule(third, REFUSED, follows=before)
    assert third in log.image.intents.undecided
    assert watched(log, third) is None


@pytest.mark.parametrize("between", [0, LOOK_BACK, 20 * LOOK_BACK])
def test_the_last_decision_is_looked_for_however_far_before_the_record(between: int) -> None:
    log = MemoryLog()
    epoch = log.start_governor()
    (first,) = asked(log, 1)
    log.rule(first, REFUSED)
    filler = log.records[0]
    for _ in range(between):
        log.put(filler)
    (offset,) = asked(log, 1)
    read: list[tuple[int, int]] = []
    decision = log.rule(offset, REFUSED)
    assert watched(log, offset, read) == Outcome(False, decision, REFUSED.code, REFUSED.reason)
    assert all(first >= epoch for first, _ in read)
    assert bool(read) == (between > 0)


def test_a_decision_that_follows_nothing_is_looked_for_up_to_its_epoch_and_not_further() -> None:
    log = MemoryLog()
    asked(log, 2 * LOOK_BACK)
    epoch = log.start_governor()
    asked(log, 2 * LOOK_BACK)
    (offset,) = asked(log, 1)
    read: list[tuple[int, int]] = []
    log.rule(offset, REFUSED, follows="nothing")
    assert watched(log, offset, read) is None
    assert min(first for first, _ in read) == epoch


def test_a_decision_with_a_basis_outside_of_its_epoch_is_not_told() -> None:
    log = MemoryLog()
    epoch = log.start_governor()
    (offset,) = asked(log, 1)
    for basis in (epoch - 1, offset + 2, offset + 10):
        log.rule(offset, REFUSED, basis=basis)
    assert offset in log.image.intents.undecided
    assert watched(log, offset) is None


def test_a_record_with_the_name_of_the_last_decision_in_a_header_only_is_none() -> None:
    """A header is not signed, and the id of a decision can be guessed before it is made."""
    log = MemoryLog()
    log.start_governor()
    first, second = asked(log, 2)
    lost = log.decision(first, REFUSED)
    copied = log.records[log.epoch]
    log.put(replace(copied, headers={**copied.headers, "ce_id": lost.meta.id.encode()}))
    log.rule(second, REFUSED, follows=lost.meta.id)
    assert second in log.image.intents.undecided
    assert watched(log, second) is None


def test_a_record_of_a_range_is_told_its_codes_and_an_exception_is_not() -> None:
    log = MemoryLog()
    story.domains(log)
    stranger = log.append(
        log.make(intents.ApplicationRegistered, "west", application="west.app"), by="stranger"
    )
    good = log.say(intents.ApplicationRegistered, "west", application="west.app")
    garbage = log.put(replace(log.records[-1], value=b"garbage"))
    (run,) = log.image.intents.unusable.in_order()
    decision = log.set_aside(run)
    for offset in stranger, garbage:
        found = watched(log, offset)
        assert found is not None
        assert (found.accepted, found.offset, found.code) == (False, decision, "records_set_aside")
        assert found.reason.endswith("1 garbage, 1 unknown_key")
    assert watched(log, good) is None


def test_a_record_of_a_range_with_one_code_is_told_that_code() -> None:
    log = MemoryLog()
    story.domains(log)
    event = log.make(intents.ApplicationRegistered, "west", application="west.app")
    offsets = [log.append(event, by="stranger") for _ in range(2)]
    (run,) = log.image.intents.unusable.in_order()
    log.set_aside(run)
    assert {found.code for one in offsets if (found := watched(log, one))} == {"unknown_key"}


def test_a_range_says_nothing_of_what_stands_behind_its_basis() -> None:
    log = MemoryLog()
    story.domains(log)
    event = log.make(intents.ApplicationRegistered, "west", application="west.app")
    first = log.append(event, by="stranger")
    (run,) = log.image.intents.unusable.in_order()
    log.set_aside(run._replace(last=first + 100))
    assert watched(log, first + 2) is None


class OneSchema:
    """A registry in which every type has the same schema id."""

    def schema_id(self, _: str) -> int:
        return 7


class Refusing:
    """A producer that was never to be asked."""

    def produce(self, *_: object, **__: object) -> None:
        raise AssertionError("it was given to Kafka")


def test_nothing_is_appended_that_readers_would_not_decode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(emit, "Producer", lambda _: Refusing())
    registry = cast("Registry", OneSchema())
    writer = emit.LogWriter(NOWHERE, registry, key("west"), KEYS.root)
    log = MemoryLog()
    small = log.make(intents.ApplicationRegistered, "west", application="west.app")
    large = small.model_copy(update={"description": "x" * MAX_INTENT_BYTES})
    with pytest.raises(RefusedError, match=f"at most {MAX_INTENT_BYTES} are read") as told:
        writer.append_records([small, large])
    assert told.value.code == "too_large"


class Throttling:
    """A producer whose broker refuses the first requests of a login, as many as are named."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.asked = refusals, list[Callable[..., None]]()
        self.values: list[bytes] = []

    def produce(self, _: str, *, on_delivery: Callable[..., None], **fields: Any) -> None:
        self.asked.append(on_delivery)
        self.values.append(fields["value"])

    def poll(self, _: float) -> None:
        for on_delivery in self.asked:
            if self.refusals > 0:
                on_delivery(KafkaError(KafkaError.THROTTLING_QUOTA_EXCEEDED), None)
            else:
                on_delivery(None, Taken())
        self.asked, self.refusals = [], self.refusals - 1


class Taken:
    """What Kafka says of a record that it has taken."""

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 2, 1000


def test_what_is_refused_for_a_quota_is_appended_once_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = Throttling(refusals=2)
    monkeypatch.setattr(emit, "Producer", lambda _: producer)
    monkeypatch.setattr(emit, "_THROTTLED_S", 0.0)
    writer = emit.LogWriter(NOWHERE, cast("Registry", OneSchema()), key("west"), KEYS.root)
    event = MemoryLog().make(intents.ApplicationRegistered, "west", application="west.app")
    assert writer.append_record(event).offset == 7
    assert len(producer.values) == 3
    assert len(set(producer.values)) == 1


def test_what_stays_refused_for_a_quota_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "Producer", lambda _: Throttling(refusals=1000))
    monkeypatch.setattr(emit, "DELIVERY_TIMEOUT_S", 1)
    monkeypatch.setattr(emit, "_THROTTLED_S", 0.5)
    writer = emit.LogWriter(NOWHERE, cast("Registry", OneSchema()), key("west"), KEYS.root)
    event = MemoryLog().make(intents.ApplicationRegistered, "west", application="west.app")
    with pytest.raises(MeshError, match=r"(?i)quota"):
        writer.append_record(event)


@pytest.mark.parametrize(
    ("actor", "domain", "code"),
    [
        ("mesh.governor", "west", "reserved_actor"),
        (" mesh.governor", "west", "invalid_actor"),
        ("", "west", "invalid_actor"),
        ("Ana Maria", "mesh", "invalid_actor"),
        ("a" * 201, "west", "invalid_actor"),
    ],
)
def test_an_emitter_refuses_an_actor_that_the_governor_would_refuse(
    actor: str, domain: str, code: str
) -> None:
    registry = cast("Registry", None)
    with pytest.raises(RefusedError) as told:
        Emitter(NOWHERE, registry, key("west"), mesh=KEYS, domain=domain, actor=actor)
    assert told.value.code == code


@pytest.mark.parametrize(
    ("actor", "domain"), [("svc:ci/deploy", "west"), ("a" * 200, "west"), ("mesh.tool", "mesh")]
)
def test_an_actor_of_an_account_or_service_can_be_emitted(actor: str, domain: str) -> None:
    require_actor(actor, domain)
