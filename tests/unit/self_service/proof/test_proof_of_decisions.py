"""A proof tells what was decided on its record, and by whom; nobody can make it tell otherwise."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesh_events import avro, intents
from mesh_events.codec import decode
from mesh_events.decisions import GovernorStarted, IntentAccepted, MeshKeyIntroduced, MeshRole
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.intents import AccessGranted
from mesh_events.meta import MESH_DOMAIN, Event
from mesh_events.record import Record
from projections.deciding.verdict import Accepted
from projections.integrity.chain import chained
from projections.integrity.tree import Paths
from projections.replay import fold
from self_service.cli.app import app
from self_service.cli.framework.exits import FindingError
from self_service.cli.proof.checking import Proven, State, check
from self_service.cli.proof.file import Authority, Decided, Legible, Placed, Proof, read, written
from self_service.cli.proof.search import Search, place
from tests import sample_history as story
from tests.memory_log import SCHEMA_IDS, MemoryLog, introduction, key, resigned
from tests.signed_log import ORIGIN, signed_over, trusting

CONTROLLER = key("controller").public


@dataclass(frozen=True)
class Told:
    """A log and where its records of each outcome stand."""

    records: list[Record]
    rejected: int
    accepted: int
    forged: int
    garbage: int
    stray: dict[str, int]
    fact: int
    undecided: int

    def proof(self, offset: int) -> Proof:
        signed = signed_over(self.records, 10)
        return Search(f"#{offset}").run(self.records, trusting(signed), chained(ORIGIN, signed))[0]

    def checked(self, offset: int) -> Proven:
        return check(read(written(self.proof(offset))), CONTROLLER)


def told() -> Told:
    """West grants its own request, which is refused; east does, which is accepted."""
    log = MemoryLog()
    story.published(log)
    asked = story.request(log)
    grant = {"product": story.PRODUCT, "request": asked, "reason": "agreed"}
    rejected = log.say(AccessGranted, "west", **grant)
    # governor's words of a domain, which has read all of the log
    event = log.decision(rejected, Accepted())
    start = log.make(GovernorStarted, MESH_DOMAIN, version="2")
    mine = log.make(
        MeshKeyIntroduced,
        MESH_DOMAIN,
        role=MeshRole.GOVERNOR,
        public_key=key("west").public,
        proof="",
    )
    rejected_text = avro.text_of("IntentRejected")
    other = rejected_text.replace('"offset"', '"epoch"', 1)
    stray = {
        "accepted": log.append(event, by="west"),
        "start": log.append(start, by="west"),
        "key": log.append(mine, by="west"),
        "schema": log.append(
            introduction(SCHEMA_IDS["IntentRejected"], "mesh.IntentRejected", other), by="west"
        ),
        "copy": log.put(log.records[log.epoch]),
    }
    log.govern()
    accepted = log.say(AccessGranted, "east", **grant)
    log.govern()
    forged = log.append(event, by="west")
    log.govern()
    garbage = log.put(replace(log.records[-1], value=b"garbage"))
    log.govern()
    story.settle(log)
    fact = log.records[-1].offset
    undecided = log.say(
        intents.LinkPaused, "east", product=story.PRODUCT, cluster="west", reason=""
    )
    return Told(log.records, rejected, accepted, forged, garbage, stray, fact, undecided)


LOG = told()


def events() -> dict[int, Event | None]:
    """Offset -> what a record says."""
    schemas = list(fold(LOG.records))[-1].schemas
    return {one.offset: decode(one, schemas, key("root").public).event for one in LOG.records}


EVENTS_BY_OFFSET = events()


def test_an_accepted_and_a_rejected_grant_are_told_apart() -> None:
    accepted, rejected = LOG.checked(LOG.accepted), LOG.checked(LOG.rejected)
    assert isinstance(accepted.event, AccessGranted)
    assert isinstance(rejected.event, AccessGranted)
    assert str(accepted.outcome) == "ACCEPTED"
    assert str(rejected.outcome) == "REJECTED own_request"
    for one in accepted, rejected:
        assert one.outcome.signer == key("governor").public
        assert one.outcome.offset is not None
        assert one.outcome.offset > one.proof.subject.offset
        assert one.root == key("root").public
    assert "own request" in rejected.outcome.reason


def test_what_was_set_aside_is_told_as_such() -> None:
    for offset, code in (
        (LOG.forged, "forged"),
        (LOG.garbage, "garbage"),
        (LOG.stray["start"], "forged"),
    ):
        assert str(LOG.checked(offset).outcome) == f"QUARANTINED {code}"


def test_each_record_of_a_range_is_proven_as_set_aside() -> None:
    log = MemoryLog()
    story.domains(log)
    garbage = log.put(replace(log.records[-1], value=b"garbage"))
    good = log.say(intents.ApplicationRegistered, "west", application="west.new")
    unknown = log.append(log.event_at(good), by="stranger")
    log.govern()
    signed = signed_over(log.records, 10)

    def proven(offset: int) -> Proven:
        search = Search(f"#{offset}")
        proof = search.run(log.records, trusting(signed), chained(ORIGIN, signed))[0]
        return check(read(written(proof)), CONTROLLER)

    for offset in garbage, unknown:
        outcome = proven(offset).outcome
        assert str(outcome) == "QUARANTINED records_set_aside"
        assert "1 garbage, 1 unknown_key" in outcome.reason
    assert str(proven(good).outcome) == "ACCEPTED"
    # the range is no decision on its exceptions
    proof, other = proven(garbage).proof, proven(good).proof
    swapped = replace(other, decided=proof.decided, checkpoint=proof.checkpoint)
    with pytest.raises(FindingError):
        check(swapped, CONTROLLER)


def test_what_nobody_has_decided_is_told_as_of_the_newest_checkpoint() -> None:
    found = LOG.checked(LOG.undecided)
    assert str(found.outcome) == "UNDECIDED"
    assert found.proof.checkpoint.body.size == len(LOG.records)


@pytest.mark.parametrize("offset", [LOG.fact, 0, 5, LOG.stray["copy"]])
def test_facts_starts_and_the_foundation_need_no_decision(offset: int) -> None:
    assert LOG.checked(offset).outcome.state is State.NONE_NEEDED


def test_a_fact_of_a_key_without_the_role_is_undecided_at_most() -> None:
    log = MemoryLog()
    story.published(log)
    log.put(resigned(log.records[-1], key("west")))
    later = log.append(
        log.make(GovernorStarted, MESH_DOMAIN, version="1"),
        by="governor-2",
    )
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    signed = signed_over(log.records, 10)
    for offset in (later - 1, later):
        found = Search(f"#{offset}").run(log.records, None, chained(ORIGIN, signed))[0]
        # the key came to its role only behind the record
        assert check(found, CONTROLLER).outcome.state is State.UNDECIDED


@pytest.mark.parametrize("record", LOG.records[::2], ids=lambda one: str(one.offset))
def test_the_decision_in_a_proof_is_the_one_that_the_log_shows(record: Record) -> None:
    found = LOG.checked(record.offset)
    decisions = [
        (one.offset, type(event))
        for one in LOG.records
        if isinstance(event := EVENTS_BY_OFFSET[one.offset], IntentAccepted)
        and event.offset == record.offset
        and one.headers["mesh_key"] == key("governor").public.encode()
    ]
    assert (found.outcome.state is State.ACCEPTED) is bool(decisions)
    if decisions:
        assert found.outcome.offset == decisions[0][0]


# --- what somebody with the proof and the log could try ----------------------------------------


def placed(offset: int) -> Placed:
    """Any record of the log, with its true path."""
    leaves = [leaf_hash(one) for one in LOG.records]
    return place(dict(enumerate(LOG.records)), Paths(leaves), offset)


def legible(offset: int, schema: int | None = None) -> Legible:
    """The same with the schema of the log, or one introduced elsewhere."""
    value = LOG.records[offset].value or b""
    known = int.from_bytes(value[1:5], "big") - 1
    return Legible(placed(offset), placed(known if schema is None else schema))


def genuine(offset: int) -> Proof:
    """The proof of a record under the checkpoint over the whole log."""
    found = LOG.proof(offset)
    assert found.decided is not None
    assert found.authority is not None
    decided = found.decided
    return Proof(
        legible(offset),
        Decided(
            legible(decided.decision.offset),
            legible(decided.start.offset),
            [legible(one.offset) for one in decided.before],
        ),
        Authority(placed(0), [legible(one.offset) for one in found.authority.keys]),
        signed_over(LOG.records, len(LOG.records))[-1],
    )


def deciding(proof: Proof, **changes: Any) -> Proof:
    assert proof.decided is not None
    return replace(proof, decided=replace(proof.decided, **changes))


def knowing(proof: Proof, **changes: Any) -> Proof:
    assert proof.authority is not None
    return replace(proof, authority=replace(proof.authority, **changes))


def other_decision(proof: Proof) -> Proof:
    return deciding(proof, decision=legible(decision_of(LOG.accepted)))


def decision_of(offset: int) -> int:
    found = LOG.proof(offset).decided
    assert found is not None
    return found.decision.offset


ATTEMPTS: dict[str, tuple[str, Callable[[Proof], Proof]]] = {
    "the decision on another record": ("not a decision on the record", other_decision),
    "a domain's own decision": (
        "not signed by a governor",
        lambda one: deciding(one, decision=legible(LOG.stray["accepted"])),
    ),
    "no decision at all in its place": (
        "not a decision on the record",
        lambda one: deciding(one, decision=legible(LOG.fact)),
    ),
    "a domain's own start": (
        "not signed by a governor",
        lambda one: deciding(one, start=legible(LOG.stray["start"])),
    ),
    "a copy of the start": (
        "not the start of that epoch",
        lambda one: deciding(one, start=legible(LOG.stray["copy"])),
    ),
    "a schema that a domain introduced": (
        "not signed by the root or a governor",
        lambda one: deciding(
            one, decision=legible(decision_of(LOG.rejected), schema=LOG.stray["schema"])
        ),
    ),
    "a key that a domain named": (
        "is not from the root",
        lambda one: knowing(one, keys=[legible(LOG.stray["key"])]),
    ),
    "no decisions in front": (
        "has no effect",
        lambda one: deciding(one, before=[]),
    ),
    "another decision in front": (
        "has no effect",
        lambda one: deciding(one, before=[legible(decision_of(LOG.accepted))]),
    ),
    "a domain's own decision in front": (
        "not signed by a governor",
        lambda one: deciding(one, before=[legible(LOG.stray["accepted"])]),
    ),
    "no keys": ("not signed by a governor", lambda one: knowing(one, keys=[])),
    "another first record": (
        "not the signed first record",
        lambda one: knowing(one, first=placed(1)),
    ),
    "a record that cannot be read": (
        "cannot be read with this proof",
        lambda one: replace(one, subject=replace(one.subject, schema=None)),
    ),
}


def test_what_is_tried_below_begins_with_a_proof_that_holds() -> None:
    assert str(check(genuine(LOG.rejected), CONTROLLER).outcome) == "REJECTED own_request"


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_proof_with_other_parts_of_the_same_log_is_refused(name: str) -> None:
    text, attempt = ATTEMPTS[name]
    with pytest.raises(FindingError, match=text):
        check(read(written(attempt(genuine(LOG.rejected)))), CONTROLLER)


def test_an_edited_decision_is_refused() -> None:
    document = json.loads(written(LOG.proof(LOG.rejected)))
    accepted = json.loads(written(LOG.proof(LOG.accepted)))
    for name in ("value", "key", "headers"):
        edited = json.loads(json.dumps(document))
        edited["decision"]["record"][name] = accepted["decision"]["record"][name]
        with pytest.raises(FindingError, match="is not covered by the checkpoint"):
            check(read(json.dumps(edited)), CONTROLLER)


def test_a_decision_that_was_left_out_makes_no_acceptance() -> None:
    document = json.loads(written(LOG.proof(LOG.rejected)))
    document["decision"] = None
    assert check(read(json.dumps(document)), CONTROLLER).outcome.state is State.UNDECIDED


def one_step(count: int) -> tuple[MemoryLog, list[int], list[int]]:
    """A log with intents that were decided in one step: their offsets and the decisions'."""
    log = MemoryLog()
    story.domains(log)
    said = [
        log.say(intents.ApplicationRegistered, "east", application=f"east.app-{number}")
        for number in range(count)
    ]
    basis, follows = log.image.offset, log.image.last_decision
    decisions = []
    for offset in said:
        event = log.decision(offset, Accepted(), basis=basis, follows=follows)
        decisions.append(event)
        follows = event.meta.id
    return log, said, [log.append(one, by="governor") for one in decisions]


def proof_of(log: MemoryLog, offset: int) -> Proof:
    signed = signed_over(log.records, 10)
    return Search(f"#{offset}").run(log.records, trusting(signed), chained(ORIGIN, signed))[0]


def test_a_proof_holds_the_decisions_that_its_governor_had_not_read() -> None:
    log, said, decisions = one_step(4)
    later = log.say(intents.ApplicationRegistered, "east", application="east.later")
    log.govern()
    for number, offset in enumerate(said):
        found = proof_of(log, offset)
        assert str(check(read(written(found)), CONTROLLER).outcome) == "ACCEPTED"
        assert found.decided is not None
        # the last one that was read, and those of the step in front
        assert [one.offset for one in found.decided.before][1:] == decisions[:number]
    read_all = proof_of(log, later).decided
    assert read_all is not None
    assert [one.offset for one in read_all.before] == [decisions[-1]]


@pytest.mark.parametrize("left", [0, 1])
def test_a_decision_behind_a_lost_one_proves_nothing(left: int) -> None:
    """It stands on the log, and the fold does not count it."""
    whole, said, decisions = one_step(3)
    log = MemoryLog()
    log.records = [one for one in whole.records if one.offset < decisions[0]]
    kept = [whole.records[one] for number, one in enumerate(decisions) if number != left]
    for one in kept:
        log.put(one)
    decision = log.records[-1].offset
    assert said[2] in log.image.intents.undecided
    proof = proof_of(log, said[2])
    assert proof.decided is None
    paths = Paths([leaf_hash(one) for one in log.records])
    numbered = dict(enumerate(log.records))

    def shown(offset: int) -> Legible:
        schema = int.from_bytes((log.records[offset].value or b"")[1:5], "big") - 1
        return Legible(place(numbered, paths, offset), place(numbered, paths, schema))

    signed = signed_over(log.records, len(log.records))[-1]
    keys = [shown(one.offset) for one in proof_of(log, said[0] - 3).authority.keys]
    for before in ([], [shown(decision - 1)], [shown(one) for one in (decision - 2, decision - 1)]):
        decided = Decided(shown(decision), shown(log.image.epoch), before)
        authority = Authority(place(numbered, paths, 0), keys)
        with pytest.raises(FindingError):
            check(Proof(shown(said[2]), decided, authority, signed), CONTROLLER)


def test_a_new_governors_decision_is_known_by_the_roots_word() -> None:
    log = MemoryLog()
    story.published(log)
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    log.revoke_key("governor")
    log.governor = "governor-2"
    log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.late")
    log.govern()
    signed = signed_over(log.records, 10)
    found = Search(f"#{offset}").run(log.records, None, chained(ORIGIN, signed))[0]
    proven = check(read(written(found)), CONTROLLER)
    assert str(proven.outcome) == "ACCEPTED"
    assert proven.outcome.signer == key("governor-2").public


def test_a_later_copy_of_a_decision_has_its_time_and_is_told(tmp_path: Path) -> None:
    log, (said,), (decision,) = one_step(1)
    genuine = proof_of(log, said)
    assert genuine.decided is not None
    copy = log.put(log.records[decision], time=log.now + 30 * 86_400_000)
    paths, numbered = Paths([leaf_hash(one) for one in log.records]), dict(enumerate(log.records))

    def shown(one: Legible) -> Legible:
        schema = one.schema and place(numbered, paths, one.schema.index)
        return Legible(place(numbered, paths, one.placed.index), schema)

    decided = Decided(
        replace(shown(genuine.decided.decision), placed=place(numbered, paths, copy)),
        shown(genuine.decided.start),
        [shown(one) for one in genuine.decided.before],
    )
    keys = [shown(one) for one in genuine.authority.keys]
    authority = Authority(place(numbered, paths, 0), keys)
    signed = signed_over(log.records, len(log.records))[-1]
    forged = Proof(shown(genuine.subject), decided, authority, signed)
    found, before = (check(read(written(one)), CONTROLLER).outcome for one in (forged, genuine))
    assert (found.offset, found.time, found.may_be_copy) == (copy, before.time, True)
    assert not before.may_be_copy
    file = tmp_path / "proof.json"
    for proof, is_marked in ((forged, True), (genuine, False)):
        file.write_text(written(proof))
        done = CliRunner().invoke(app, ["audit", "check-proof", str(file), "--key", CONTROLLER])
        assert done.exit_code == 0, done.output
        assert ("may be a copy of the decision" in " ".join(done.stderr.split())) is is_marked


def test_the_command_says_what_was_decided_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path / "nowhere"))

    def output(text: str, *more: str, code: int = 0) -> tuple[str, str]:
        file = tmp_path / "proof.json"
        file.write_text(text)
        arguments = ["audit", "check-proof", str(file), "--key", CONTROLLER, *more]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code, done.output
        return " ".join(done.stdout.split()), " ".join(done.stderr.split())

    shown, note = output(written(LOG.proof(LOG.accepted)))
    assert shown.startswith("outcome ACCEPTED")
    governor = key("governor").public
    assert f"ACCEPTED it, under the key {governor}: the proof does not show whether" in note
    text, other = written(LOG.proof(LOG.accepted)), key("governor-2").public
    assert output(text, "--governor", other, "--governor", governor)[0] == shown
    assert "which --governor does not name" in output(text, "--governor", other, code=8)[1]
    assert "is not a public key" in output(text, "--governor", "x", code=2)[1]
    shown, note = output(written(LOG.proof(LOG.rejected)))
    assert shown.startswith("outcome REJECTED own_request")
    assert "it has no effect" in note
    assert "holds no decision on it" in output(written(LOG.proof(LOG.undecided)))[1]
    decision = next(
        offset for offset, one in EVENTS_BY_OFFSET.items() if isinstance(one, IntentAccepted)
    )
    text = written(LOG.proof(decision))
    note = output(text)[1]
    assert "counts" not in note
    assert "the proof does not show whether it has an effect" in note
    assert "which --governor does not name" in output(text, "--governor", other, code=8)[1]
    note = output(written(LOG.proof(LOG.fact)))[1]
    assert "counts" not in note
    assert "whether this key was revoked before, or whether the record had an effect" in note
