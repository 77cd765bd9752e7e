from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from mesh_events import intents
from mesh_events.decisions import GovernorStarted, IntentAccepted, MeshRole
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.record import Record
from processors.governor.decision import version
from projections.deciding.decide import CHECK_TIMEOUT_MS
from projections.deciding.unusable import Run
from projections.deciding.verdict import Accepted, Quarantined, Rejected
from projections.integrity.tree import CompactRange
from projections.replay import fold
from self_service.cli.verification.scope import Kept, Scope
from self_service.cli.verification.verifier import Report, verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, resigned, sign


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    story.granted(found)
    story.settle(found)
    return found


def verified(records: list[Record], *known_versions: str) -> Report:
    """What was found; the governor of a log in memory is of version 1 until another one starts."""
    scope = Scope(known_versions=frozenset(known_versions))
    return verify(records, key("root").public, key("governor").public, scope=scope)


def offset_of(log: MemoryLog, name: str) -> int:
    """Where the first event of a type stands."""
    offsets = (record.offset for record in log.records)
    return next(one for one in offsets if type(log.event_at(one)).__name__ == name)


def altered(log: MemoryLog, offset: int, old: bytes, new: bytes) -> list[Record]:
    """The log with other bytes of the same length in one value, under the old signature."""
    value = log.records[offset].value
    assert value is not None
    assert old in value
    records = list(log.records)
    records[offset] = replace(records[offset], value=value.replace(old, new))
    return records


def test_an_untouched_log_holds(log: MemoryLog) -> None:
    report = verified(log.records)
    assert not report.findings
    assert not report.differing
    assert report.records == len(log.records)
    assert report.decisions >= 8


def test_a_state_that_was_kept_is_held_against_the_log(log: MemoryLog) -> None:
    kept = [
        Kept(image, len(leaves), CompactRange().extend(leaves).root)
        for image in fold(log.records)
        if (leaves := [leaf_hash(one) for one in log.records if one.offset <= image.offset])
    ]

    def found(held: Kept, records: list[Record]) -> list[tuple[str, int]]:
        report = verify(records, key("root").public, key("governor").public, kept=held)
        return [(one.code, one.offset) for one in report.findings]

    for held in kept[-1], kept[20]:
        assert found(held, log.records) == []
    altered_state = replace(kept[-3], image=kept[-3].image._replace(catalog=Map()))
    assert found(altered_state, log.records) == [("snapshot_differs", log.records[-3].offset)]
    assert found(kept[-1], log.records[:-2]) == [("log_changed", log.records[-2].offset)]
    later = [*log.records[:-4], replace(log.records[-4], time=log.records[-4].time + 1)]
    assert ("log_changed", later[-1].offset) in found(kept[-4], later)


def test_an_altered_intent_is_found_at_the_decision_that_accepted_it(log: MemoryLog) -> None:
    offset = offset_of(log, "ProductPublished")
    report = verified(altered(log, offset, b"team-east", b"team-evil"))
    decision = next(
        record.offset
        for record in log.records
        if isinstance(event := log.event_at(record.offset), IntentAccepted)
        and event.offset == offset
    )
    assert (report.findings[0].offset, report.findings[0].code) == (decision, "state_fault")


def test_an_altered_decision_is_found_by_the_intents_that_came_after_it(log: MemoryLog) -> None:
    offset = offset_of(log, "IntentAccepted")
    intent = log.event_at(offset)
    assert isinstance(intent, IntentAccepted)
    old = intent.intent.encode()
    report = verified(altered(log, offset, old, old[:-1] + (b"0" if old[-1:] != b"0" else b"1")))
    assert (report.findings[0].offset, report.findings[0].code) == (offset, "bad_signature")


def test_a_removed_record_is_a_gap(log: MemoryLog) -> None:
    offset = offset_of(log, "AccessRequested")
    report = verified([record for record in log.records if record.offset != offset])
    first = report.gaps[0]
    assert (first.offset, first.code) == (offset + 1, "gap")
    assert str(offset) in first.text


def test_another_root_or_governor_than_the_profiles_is_found(log: MemoryLog) -> None:
    foreign = verify(log.records, key("stranger").public, key("governor").public)
    assert foreign.findings[0].code == "foreign_root"
    other = verify(log.records, key("root").public, key("stranger").public)
    assert other.findings[0].code == "foreign_governor"


def test_the_profile_names_the_governor_of_now_not_of_the_foundation(log: MemoryLog) -> None:
    log.introduce_key(MeshRole.GOVERNOR, "new")
    log.revoke_key("governor")
    assert not verify(log.records, key("root").public, key("new").public).findings
    old = verify(log.records, key("root").public, key("governor").public)
    assert [one.code for one in old.findings] == ["foreign_governor"]


def test_records_that_were_set_aside_are_no_fault_of_the_log(log: MemoryLog) -> None:
    last = log.records[-1]
    log.put(replace(last, value=b"garbage"))
    log.put(resigned(last, key("stranger")))
    intent = log.make(intents.LinkPaused, "east", product=story.PRODUCT, cluster="west", reason="x")
    wire = sign(intent, key("west"))
    log.put(Record(0, 0, wire.key, wire.value, dict(wire.headers)))
    log.govern()
    report = verified(log.records)
    assert not report.findings
    assert report.set_aside == 2


def test_what_nobody_has_decided_yet_is_no_fault(log: MemoryLog) -> None:
    log.put(replace(log.records[-1], value=b"garbage"))
    report = verified(log.records)
    assert not report.findings
    assert report.undecided == 1


def test_a_decision_that_rules_would_make_otherwise_is_told_apart(log: MemoryLog) -> None:
    offset = log.say(intents.LinkPaused, "east", product=story.PRODUCT, cluster="west", reason="x")
    decision = log.rule(offset, Rejected("not_running", "an older rule"))
    report = verified(log.records)
    assert not report.findings
    assert [(one.offset, one.code) for one in report.differing] == [(decision, "rules_differ")]


@pytest.mark.parametrize("code", ["invalid_name", "accepted"])
def test_a_refusal_against_the_rules_of_its_own_version_is_found(log: MemoryLog, code: str) -> None:
    """Who has the governor's key could refuse an operator, and the log would hold."""
    log.append(log.make(GovernorStarted, "mesh", version=version()), by="governor")
    log.epoch = log.image.offset
    offset = log.say(intents.ApplicationRegistered, "west", application="west.new")
    decision = log.rule(offset, Rejected(code, "x"))
    report = verified(log.records)
    assert not report.differing
    [found] = report.findings
    assert (found.offset, found.code) == (decision, "refused_against_rules")


@pytest.mark.parametrize(
    ("waited", "found"), [(0, ["refused_against_rules"]), (CHECK_TIMEOUT_MS + 1, [])]
)
def test_an_intent_times_out_only_after_the_wait_that_the_decision_tells(
    log: MemoryLog, waited: int, found: list[str]
) -> None:
    log.append(log.make(GovernorStarted, "mesh", version=version()), by="governor")
    log.epoch = log.image.offset
    fields = story.product(product="east.b", topic="east.b")
    offset = log.say(intents.ProductPublished, "east", **fields)
    log.rule(offset, Rejected("check_timeout", "x"), waited=waited)
    report = verified(log.records)
    assert [one.code for one in report.findings] == found
    assert not report.differing


def test_a_refusal_with_the_code_accepted_is_told_apart(log: MemoryLog) -> None:
    """Who has the governor's key signs any code."""
    offset = log.say(intents.ApplicationRegistered, "west", application="west.new")
    assert log.verdict(offset) == Accepted()
    decision = log.rule(offset, Rejected("accepted", "x"))
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.differing] == [(decision, "rules_differ")]
    assert "refused as 'accepted', today's rules say accepted" in report.differing[0].text


@pytest.mark.parametrize("code", ["accepted", "garbage"])
def test_a_usable_record_that_is_set_aside_alone_is_found(log: MemoryLog, code: str) -> None:
    _, good = unusable_and_not(log)
    decision = log.rule(good, Quarantined(code, "x"))
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.findings] == [(decision, "usable_set_aside")]
    assert f"the record at {good} was set aside as '{code}'" in report.findings[0].text


def test_a_usable_record_that_another_version_set_aside_is_told_apart(log: MemoryLog) -> None:
    good = log.say(intents.ApplicationRegistered, "west", application="west.new")
    decision = log.rule(good, Quarantined("unknown_type", "x"))
    report = verified(log.records, "1")
    assert not report.findings
    assert [(one.offset, one.code) for one in report.differing] == [(decision, "not_judged")]


@pytest.mark.parametrize(
    ("sender", "code"), [("stranger", "state_fault"), ("west", "accepted_untrusted")]
)
def test_an_accepted_record_of_a_key_without_effect_is_found(
    log: MemoryLog, sender: str, code: str
) -> None:
    """One that nobody knew when it arrived, and one that was revoked before the decision."""
    intent = log.make(intents.LinkPaused, "west", product=story.PRODUCT, cluster="west", reason="x")
    offset = log.append(intent, by=sender)
    lost = {"domain": "west", "public_key": key("west").public, "reason": "lost"}
    log.accept(log.operator(intents.KeyRevoked, **lost))
    decision = log.accept(offset)
    first = verified(log.records).findings[0]
    assert (first.offset, first.code) == (decision, code)


def unusable_and_not(log: MemoryLog) -> tuple[Run, int]:
    """A run of garbage around a usable intent, and where that one stands; by this version."""
    log.append(log.make(GovernorStarted, "mesh", version=version()), by="governor")
    log.epoch = log.image.offset
    log.put(replace(log.records[-1], value=b"garbage"))
    good = log.say(intents.ApplicationRegistered, "west", application="west.new")
    log.put(replace(log.records[-1], value=b"garbage"))
    log.append(log.event_at(good), by="stranger")
    (run,) = log.image.intents.unusable.in_order()
    return run, good


def test_a_range_of_unusable_records_holds(log: MemoryLog) -> None:
    run, good = unusable_and_not(log)
    log.set_aside(run)
    report = verified(log.records)
    assert not report.findings
    assert not report.differing
    assert (report.set_aside, report.undecided) == (3, 1)
    log.govern()
    assert "west.new" in log.image.identity.applications
    assert good in run.exceptions


def test_copies_that_were_set_aside_hold(log: MemoryLog) -> None:
    first = log.say(intents.ApplicationRegistered, "west", application="west.new")
    waiting = log.put(log.records[first])
    log.govern()
    operators = offset_of(log, "ClusterRegistered")
    copies = [log.put(log.records[one]) for one in (first, operators, first)]
    log.govern()
    report = verified(log.records)
    assert not report.findings
    assert not report.differing
    assert (report.set_aside, report.undecided) == (1 + len(copies), 0)
    assert log.event_at(waiting) == log.event_at(first)


def test_a_copy_that_was_accepted_is_found(log: MemoryLog) -> None:
    first = log.say(intents.ApplicationRegistered, "west", application="west.new")
    log.govern()
    copy = log.put(log.records[first])
    decision = log.append(log.decision(copy, Accepted()), by="governor")
    (found,) = verified(log.records).findings
    assert (found.offset, found.code) == (decision, "state_fault")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exceptions": ()}, "usable_set_aside"),
        ({"counts": Map(garbage=3)}, "range_differs"),
        ({"counts": Map(garbage=2, unknown_key=2)}, "range_differs"),
        ({"counts": Map()}, "range_differs"),
    ],
)
def test_a_range_that_is_not_what_stands_there_is_found(
    log: MemoryLog, changes: dict[str, Any], code: str
) -> None:
    run, _ = unusable_and_not(log)
    decision = log.set_aside(run._replace(**changes))
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.findings] == [(decision, code)]


def test_a_range_of_another_version_is_told_apart(log: MemoryLog) -> None:
    """Its rules may not have known what is usable now."""
    log.put(replace(log.records[-1], value=b"garbage"))
    log.say(intents.ApplicationRegistered, "west", application="west.new")
    log.put(replace(log.records[-1], value=b"garbage"))
    (run,) = log.image.intents.unusable.in_order()
    decision = log.set_aside(run._replace(exceptions=()))
    report = verified(log.records, "1")
    assert not report.findings
    assert [(one.offset, one.code) for one in report.differing] == [(decision, "not_judged")]
    log.govern()
    assert "west.new" not in log.image.identity.applications


def test_a_record_that_was_altered_inside_a_range_is_found(log: MemoryLog) -> None:
    run, good = unusable_and_not(log)
    log.set_aside(run)
    report = verified(altered(log, good, b"west.new", b"west.old"))
    assert (good, "bad_signature") in [(one.offset, one.code) for one in report.findings]


def test_decisions_of_one_step_are_judged_on_those_before_them(log: MemoryLog) -> None:
    """The second of two that register one application is refused: the first one stands."""
    said = [
        log.say(intents.ApplicationRegistered, "east", application="east.twice") for _ in range(2)
    ]
    basis, follows = log.image.offset, log.image.last_decision
    for offset in said:
        event = log.decision(offset, Accepted(), basis=basis, follows=follows)
        log.append(event, by="governor")
        follows = event.meta.id
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.findings] == [
        (log.records[-1].offset, "not_judged")
    ]


def test_what_the_rules_of_the_same_version_refuse_is_a_finding(log: MemoryLog) -> None:
    started = log.make(GovernorStarted, "mesh", version=version())
    log.epoch = log.append(started, by="governor")
    theft = {"domain": "east", "public_key": key("east").public, "reason": "mine now"}
    asked = log.say(intents.KeyRevoked, "west", **theft)
    assert isinstance(log.verdict(asked), Rejected)
    accepted = log.accept(asked)
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.findings] == [
        (accepted, "accepted_against_rules")
    ]


@pytest.mark.parametrize("known", [False, True])
def test_a_stolen_key_does_not_hide_behind_the_version_that_it_names(
    log: MemoryLog, *, known: bool
) -> None:
    started = log.make(GovernorStarted, "mesh", version="0.0.1")
    log.epoch = log.append(started, by="governor")
    theft = {"domain": "east", "public_key": key("east").public, "reason": "mine now"}
    accepted = log.accept(log.say(intents.KeyRevoked, "west", **theft))
    report = verified(log.records, *(["0.0.1"] if known else []))
    listed, other = report.findings, report.differing
    if known:
        listed, other = other, listed
    assert [(one.offset, one.code) for one in listed] == [(accepted, "not_judged")]
    assert not other
    assert "0.0.1" in listed[0].text
    assert report.not_judged == {"0.0.1": 1}


def test_bounds_are_those_that_the_governor_named_at_its_start(log: MemoryLog) -> None:
    started = log.make(GovernorStarted, "mesh", version=version(), applications_per_domain=2)
    log.epoch = log.append(started, by="governor")
    for name in ("two", "three"):
        log.say(intents.ApplicationRegistered, "west", application=f"west.{name}")
    log.govern()
    assert getattr(log.event_at(log.records[-1].offset), "code", "") == "quota_exceeded"
    report = verified(log.records)
    assert not report.findings
    assert not report.differing
    accepted = log.accept(log.say(intents.ApplicationRegistered, "west", application="west.four"))
    (finding,) = verified(log.records).findings
    assert (finding.offset, finding.code) == (accepted, "accepted_against_rules")
    assert "quota_exceeded" in finding.text


def test_what_another_version_decided_as_these_rules_do_needs_no_name(log: MemoryLog) -> None:
    started = log.make(GovernorStarted, "mesh", version="0.0.1")
    log.epoch = log.append(started, by="governor")
    log.say(intents.ApplicationRegistered, "west", application="west.new")
    log.govern()
    report = verified(log.records)
    assert not report.findings
    assert not report.not_judged


def test_a_decision_on_what_its_basis_does_not_hold_is_a_finding(log: MemoryLog) -> None:
    asked = log.say(intents.ApplicationRegistered, "east", application="east.late")
    accepted = log.accept(asked, basis=asked - 1)
    report = verified(log.records)
    assert [(one.offset, one.code) for one in report.findings] == [(accepted, "bad_basis")]
