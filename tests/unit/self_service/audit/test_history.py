from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mesh_events import facts, intents
from mesh_events.errors import InvalidValueError
from mesh_events.meta import MESH_DOMAIN, derived_id
from projections.deciding.verdict import Accepted
from projections.image import EMPTY
from projections.replay import fold, replay
from self_service.cli.access import explanation
from self_service.cli.audit import log as audit_log
from self_service.cli.audit import trace
from self_service.cli.audit.history import Step, conversation, effects, find, read, steps
from self_service.cli.audit.log import COLUMNS, Filter, subject
from self_service.cli.audit.trace import items
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.framework.output import note_appended
from self_service.cli.framework.times import parse_time, stamp
from tests import sample_history as story
from tests.fixtures import recording
from tests.memory_log import MemoryLog, key, resigned
from tests.memory_log import at as time_at

HOUR_MS = 3_600_000
NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


EVERY = Filter().compiled(NOW)
OTHER = "018f0000-0000-7000-8000-0000000000ff"


def repeat(log: MemoryLog, identity: str, **fields: str) -> int:
    """North says an AccessRequested under any id; returns its offset."""
    event = log.make(
        intents.AccessRequested,
        "north",
        **{"product": "north.bait", "application": "north.app", "reason": "none", **fields},
    )
    meta = event.meta.model_copy(update={"id": identity})
    return log.append(event.model_copy(update={"meta": meta}), by="north")


def types(found: list[Step]) -> list[str]:
    return [one.type for one in found]


def test_an_intent_knows_its_outcome_and_where_it_was_decided(log: MemoryLog) -> None:
    asked = story.request(log)
    story.answer(log, intents.AccessGranted, asked, by="west")
    every = {one.offset: one for one in steps(log.records)}
    request = every[log.image.access.requests[asked].offset]
    assert (request.outcome, request.decided_at) == ("accepted", request.offset + 1)
    refused = next(one for one in every.values() if one.type == "AccessGranted")
    assert (refused.outcome, refused.code) == ("rejected", "own_request")
    assert "east decides" in refused.detail


def test_the_end_of_a_log_reads_the_same_from_any_offset_on(log: MemoryLog) -> None:
    asked = story.request(log)
    story.answer(log, intents.AccessGranted, asked, by="west")
    log.say(intents.AccessRevoked, "west", product=story.PRODUCT, request=asked, reason="r")
    log.govern()
    whole = read(log.records)
    before = EMPTY
    for at, after in enumerate(fold(log.records)):
        found = read(log.records[at:], start=before)
        assert found.steps == whole.steps[at:]
        assert found.image == whole.image
        before = after


def test_an_undecided_intent_and_an_ignored_decision_say_so(log: MemoryLog) -> None:
    waiting = log.say(
        intents.LinkPaused, "east", product=story.PRODUCT, cluster="west", reason="later"
    )
    stale = log.accept(waiting, epoch=log.epoch - 1)
    every = {one.offset: one for one in steps(log.records)}
    assert (every[waiting].outcome, every[waiting].decided_at) == ("undecided", None)
    assert every[stale].outcome == "ignored"


@pytest.mark.parametrize("name", recording.names())
def test_each_filter_is_asked_about_every_kind_of_record(name: str) -> None:
    """A connector or statement without an application ended `audit log --domain`."""
    found = read(recording.load(name))
    for given in ({"domain": "east"}, {"product": story.PRODUCT}, {"correlation": "x"}):
        wanted = Filter(**given).compiled(NOW)
        assert all(wanted.holds(one, found.image) in (True, False) for one in found.steps)


def test_a_record_that_nobody_can_read_is_a_step_with_its_code(log: MemoryLog) -> None:
    offset = log.put(resigned(replace(log.records[-1], value=b"garbage"), key("east")))
    log.govern()
    found = {one.offset: one for one in steps(log.records)}[offset]
    assert (found.kind, found.outcome, found.code) == ("unreadable", "quarantined", "garbage")


def test_each_record_of_a_range_knows_its_own_code_and_its_decision(log: MemoryLog) -> None:
    garbage = log.put(replace(log.records[-1], value=b"garbage"))
    good = log.say(intents.ApplicationRegistered, "west", application="west.new")
    unknown = log.append(log.event_at(good), by="stranger")
    (run,) = log.image.intents.unusable.in_order()
    assert {one.outcome for one in steps(log.records)[garbage:]} == {"undecided"}
    decision = log.set_aside(run)
    log.govern()
    every = steps(log.records)
    assert [(every[at].outcome, every[at].code) for at in (garbage, good, unknown)] == [
        ("quarantined", "garbage"),
        ("accepted", ""),
        ("quarantined", "unknown_key"),
    ]
    assert "no domain has the key" in every[unknown].detail
    assert every[unknown].decided_at == decision
    assert "1 garbage, 1 unknown_key" in every[decision].detail
    assert subject(every[decision], {}) == f"records {garbage} to {unknown}"
    path = effects(every, find(every, f"#{unknown}"))
    assert [one.offset for one in path] == [unknown, decision]


def test_a_copy_of_a_range_is_ignored(log: MemoryLog) -> None:
    for _ in range(2):
        log.put(replace(log.records[-1], value=b"garbage"))
    log.govern()
    copy = log.put(log.records[-1])
    assert steps(log.records)[copy].outcome == "ignored"


def test_a_grants_consequences_lead_to_rights_and_copy_and_no_further(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    every = steps(log.records)
    grant = next(one for one in every if one.type == "AccessGranted")
    found = types(effects(every, grant))
    assert found[:2] == ["AccessGranted", "CheckPassed"]
    assert sorted(found[2:]) == sorted(
        ["IntentAccepted", "LinkCreated", "IntentAccepted", "AclApplied", "LinkActivated"]
    )


def test_a_revocations_consequences_lead_to_the_purged_copy(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    every = steps(log.records)
    revocation = next(one for one in every if one.type == "AccessRevoked")
    found = types(effects(every, revocation))
    assert found[0] == "AccessRevoked"
    assert {"AclRemoved", "LinkDeleted", "LinkStopped", "CopyPurged"} <= set(found)
    assert "LinkActivated" not in found


def test_a_conversation_holds_everything_under_one_correlation(log: MemoryLog) -> None:
    story.granted(log)
    every = steps(log.records)
    created = next(one for one in every if one.type == "LinkCreated")
    # the link's intent carries the request's id as its correlation
    assert types(conversation(every, created))[:2] == ["AccessRequested", "IntentAccepted"]


def test_a_requests_conversation_leads_to_the_purged_copy(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    every = steps(log.records)
    found = conversation(every, find(every, asked))
    said = [one.type for one in found if one.kind == "intent"]
    assert said == [
        "AccessRequested",
        "AccessGranted",
        "LinkCreated",
        "AccessRevoked",
        "LinkDeleted",
    ]
    assert {"CheckPassed", "AclApplied", "LinkActivated", "AclRemoved"} <= set(types(found))
    assert found[-1].type == "CopyPurged"


def test_every_step_of_a_trace_tells_its_durations_and_a_check_its_age(log: MemoryLog) -> None:
    asked = story.granted(log)
    every = steps(log.records)
    path = conversation(every, find(every, asked))
    later = path[-1].time + 3_600_000
    shown = items(path, later)
    assert [one["after_ms"] for one in shown] == [one.time - path[0].time for one in path]
    assert shown[0]["took_ms"] == 0
    assert sum(one["took_ms"] for one in shown) == path[-1].time - path[0].time > 0
    ages = {one["type"]: one["age_ms"] for one in shown if one["age_ms"] is not None}
    check = next(one for one in path if one.type == "CheckPassed")
    assert ages == {"CheckPassed": later - check.time}
    check = next(one for one in shown if one["age_ms"])
    assert check["detail"].endswith(f", seen {check['time']}")


def test_an_effect_stands_for_the_intent_that_it_satisfies(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    every = steps(log.records)
    for effect, intent in (("AclApplied", "AccessGranted"), ("LinkActivated", "LinkCreated")):
        reported = [one for one in every if one.type == effect][-1]
        assert find(every, f"#{reported.offset}").type == intent


def test_a_step_is_found_by_id_prefix_and_offset(log: MemoryLog) -> None:
    asked = story.request(log)
    every = steps(log.records)
    offset = log.image.access.requests[asked].offset
    for reference in (
        asked,
        asked[:-1],
        asked.upper(),
        f"#{offset}",
        f"{offset}",
        f"#{offset + 1}",
    ):
        # the offset behind it is its decision, which stands for it
        assert find(every, reference).offset == offset
    assert find(every, "0").offset == 0


def test_an_ambiguous_prefix_and_an_unknown_id_are_told(log: MemoryLog) -> None:
    every = steps(log.records)
    with pytest.raises(UsageError, match="use one of"):
        find(every, "01")
    for unknown in ("#99999", "ffffffff", "99999"):
        with pytest.raises(NotFoundError, match=f"no record {unknown}.*sdm audit log"):
            find(every, unknown)
    for nothing in ("", " ", "#"):
        with pytest.raises(UsageError, match="which record"):
            find(every, nothing)
    with pytest.raises(InvalidValueError, match="neither an id nor"):
        find(every, "9" * 5000)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(type=["ProductPublished"]), {"ProductPublished"}),
        (Filter(product="east.users", kind="intent"), {"ProductPublished", "AccessRequested"}),
        (Filter(domain="west", kind="intent"), {"ApplicationRegistered", "AccessRequested"}),
        (Filter(until="2001-01-01"), set()),
    ],
)
def test_the_log_is_filtered(log: MemoryLog, wanted: Filter, expected: set[str]) -> None:
    story.request(log)
    found = {one.type for one in steps(log.records) if wanted.compiled(NOW).holds(one, log.image)}
    # west itself was registered by the operator; that is about west as well
    assert found - {"DomainRegistered"} == expected


def test_a_product_is_found_by_its_own_name_only(log: MemoryLog) -> None:
    log.say(intents.ProductPublished, "east", **story.product(product="east.users-eu"))
    log.govern()
    wanted = Filter(product="east.users")
    found = [one for one in steps(log.records) if wanted.compiled(NOW).holds(one, log.image)]
    assert [getattr(one.event, "product", None) for one in found] == ["east.users"]


def test_each_step_says_what_it_is_about() -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    history = read(log.records)
    requests = history.image.access.requests
    about = {one.type: subject(one, requests) for one in history.steps}
    for name in ("AccessRequested", "AccessGranted", "AccessRevoked"):
        assert about[name] == "east.users west.app"
    assert about["ProductPublished"] == "product east.users"
    assert about["IntentAccepted"].startswith("record ")
    rights = [one for one in history.steps if one.type == "AclApplied"]
    assert "east.users west.app" in {subject(one, requests) for one in rights}
    assert "subject" in COLUMNS


def test_a_refused_request_changes_no_others_subject(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)

    def shown() -> list[str]:
        return [one["subject"] for one in audit_log.items(read(log.records), EVERY, whole=False)]

    before = shown()
    assert before.count("east.users west.app") > 2
    spoof = repeat(log, asked, product="east.payroll", application="north.app")
    log.govern()
    assert shown()[: len(before)] == before
    refused = steps(log.records)[spoof]
    assert (refused.outcome, refused.code) == ("rejected", "unknown_product")
    assert shown()[spoof] == "east.payroll north.app"


@pytest.mark.parametrize("columns", [COLUMNS, trace.COLUMNS, explanation.COLUMNS])
def test_each_table_shows_for_which_domain_an_actor_spoke(columns: Sequence[str]) -> None:
    assert columns[columns.index("actor") - 1] == "domain"


def test_an_answer_about_another_product_is_shown_with_its_own_product(log: MemoryLog) -> None:
    asked = story.granted(log)
    offset = log.say(
        intents.AccessGranted, "north", product="north.bait", request=asked, reason="agreed"
    )
    log.govern()
    history = read(log.records)
    refused = history.steps[offset]
    assert refused.code == "unknown_request"
    assert subject(refused, history.image.access.requests) == "access north.bait"


def test_a_longer_id_does_not_make_a_whole_id_ambiguous(log: MemoryLog) -> None:
    asked = story.request(log)
    offset = log.image.access.requests[asked].offset
    repeat(log, f"{asked}0")
    log.govern()
    assert find(steps(log.records), asked).offset == offset


def test_an_id_that_the_mesh_derives_means_the_intent_of_the_mesh(log: MemoryLog) -> None:
    asked = story.request(log)
    # whoever reads the log can derive the id: this record and its decision, then grant, check and
    # acceptance
    acceptance = log.image.offset + 5
    derived = derived_id(asked, "create-link", acceptance)
    spoof = repeat(log, derived)
    log.govern()
    story.answer(log, intents.AccessGranted, asked)
    every = steps(log.records)
    created = next(one for one in every if one.type == "LinkCreated")
    assert (created.id, created.domain) == (derived, "mesh")
    assert find(every, derived) is created
    grant = next(one for one in every if one.type == "AccessGranted")
    late = repeat(log, derived)
    log.govern()
    found = [one.offset for one in effects(steps(log.records), grant)]
    assert created.offset in found
    assert not {spoof, late} & set(found)


def test_a_conversation_of_parties_leaves_out_what_others_say(log: MemoryLog) -> None:
    asked = story.granted(log)
    foreign = log.make(intents.ApplicationRegistered, "north", application="north.spy")
    meta = foreign.meta.model_copy(update={"correlation": asked})
    offset = log.append(foreign.model_copy(update={"meta": meta}), by="north")
    claimed = foreign.meta.model_copy(update={"correlation": asked, "domain": "east", "id": OTHER})
    posing = log.append(foreign.model_copy(update={"meta": claimed}), by="north")
    log.govern()
    spy = log.image.identity.applications["north.spy"]
    rights = {"subject": "application/north.spy", "cluster": "west", "bindings": []}
    effect = log.make(facts.AclApplied, MESH_DOMAIN, generation=spy.generation, **rights)
    claimed = effect.meta.model_copy(update={"correlation": asked})
    log.append(effect.model_copy(update={"meta": claimed}), by=log.controller)
    every = steps(log.records)
    start = find(every, asked)
    everybodys = [one.offset for one in conversation(every, start)]
    assert {offset, posing} <= set(everybodys)
    parties = [one.offset for one in conversation(every, start, parties={"east", "west"})]
    assert parties == [one for one in everybodys if one < offset]


def test_the_times_of_a_filter_are_read_once(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def parse(text: str, now: datetime) -> datetime:
        read.append(text)
        return parse_time(text, now)

    monkeypatch.setattr(audit_log, "parse_time", parse)
    wanted = Filter(since="1000d ago", until="2100-01-01").compiled(NOW)
    found = [one for one in steps(log.records) if wanted.holds(one, log.image)]
    assert len(found) > 50
    assert read == ["1000d ago", "2100-01-01"]


def test_a_history_ends_with_the_image_of_a_replay(log: MemoryLog) -> None:
    assert audit_log.read(log.records).image == log.image
    assert audit_log.read(log.records, until=40).image.offset == 40


def test_what_becomes_of_a_domains_applications_is_about_the_domain(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)

    def types(domain: str) -> set[str]:
        wanted = Filter(domain=domain).compiled(NOW)
        return {one["type"] for one in audit_log.items(read(log.records), wanted, whole=False)}

    both = {"AccessRequested", "AccessGranted", "AccessRevoked", "LinkActivated", "CopyPurged"}
    assert both <= types("west")
    assert both <= types("east")
    assert not both & types("north")


def test_a_copy_of_what_the_mesh_has_said_is_no_news(log: MemoryLog) -> None:
    """Anybody can append it; it changes no state, and no answer about the state either."""
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    before = steps(log.records)
    start = find(before, asked)
    explained = conversation(before, start, {"east", "west"})
    kinds = ("AclApplied", "LinkActivated", "CopyPurged", "GovernorStarted")
    copied = [next(one.offset for one in before if one.type == kind) for kind in kinds]
    for offset in copied:
        log.put(log.records[offset])
    after = steps(log.records)
    assert [(one.type, one.outcome) for one in after[len(before) :]] == [
        (kind, "ignored") for kind in kinds
    ]
    assert conversation(after, start, {"east", "west"}) == explained
    for one in after[len(before) :]:
        assert one in conversation(after, one)
        assert effects(after, one)[0] is one


def test_who_claims_to_be_another_domain_is_found_by_its_own_name(log: MemoryLog) -> None:
    claimed = log.make(intents.ApplicationRegistered, "east", application="east.thief")
    offset = log.append(claimed, by="north")
    log.govern()
    history = read(log.records)
    assert history.steps[offset].code == "not_your_domain"
    wanted = Filter(domain="north").compiled(NOW)
    found = [
        one for one in audit_log.items(history, wanted, whole=False) if one["offset"] == offset
    ]
    assert [(one["domain"], one["signed_by"]) for one in found] == [
        ("east (signed by north)", "north")
    ]


def test_what_is_done_to_a_domains_logins_and_rights_is_listed_for_it_and_no_other(
    log: MemoryLog,
) -> None:
    """The key of such a record has the cluster where a domain stands in others."""
    first = log.operator(intents.CredentialsRequested, principal="north.app", cluster="east")
    log.govern()
    story.settle(log)
    common = {"cluster": "east", "generation": 1, "bindings": ["x"]}
    log.report(facts.AclRemoved, subject="application/north.app", **common)
    drift = {"drift": facts.DriftKind.UNGRANTED_RIGHT, "remedy": facts.Remedy.REPAIRED, "basis": 1}
    stranger = {"subject": "principal/mallory", "principal": "mallory", "topics": ["north.x"]}
    log.report(facts.DriftFound, **common, **drift, **stranger)
    job = {"subject": "principal/mesh.connect.north.sink", "topics": []}
    log.report(facts.DriftFound, **common, **drift, **job, principal="mesh.connect.north.sink")
    log.report(
        facts.EffectFailed,
        subject="product/north.x",
        effect="look",
        cluster="east",
        generation=1,
        reason="none",
    )
    history = read(log.records)

    def listed(domain: str) -> set[int]:
        wanted = Filter(domain=domain).compiled(NOW)
        return {one["offset"] for one in audit_log.items(history, wanted, whole=False)}

    about = {one.offset for one in history.steps if one.offset >= first and "north" in one.key}
    about |= {one.offset for one in history.steps if one.key.endswith("/mallory")}
    kinds = {one.type for one in history.steps if one.offset in about}
    rights = {"AclRemoved", "DriftFound", "EffectFailed"}
    assert kinds == rights | {"CredentialsRequested", "CredentialsIssued"}
    assert about <= listed("north")
    assert not listed("east") & about


def test_credentials_are_of_no_product_that_is_called_as_cluster_and_domain(log: MemoryLog) -> None:
    log.operator(intents.CredentialsRequested, principal="users", cluster="east")
    found = audit_log.items(
        read(log.records), Filter(product="east.users").compiled(NOW), whole=False
    )
    assert {one["type"] for one in found} <= {"ProductPublished", "IntentAccepted", "CheckPassed"}


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_a_governors_start_that_is_older_than_its_record_may_be_a_copy(
    log: MemoryLog, late_ms: int
) -> None:
    [start, *_] = (one for one in steps(log.records) if one.type == "GovernorStarted")
    assert audit_log._is_older([replace(start, appended=start.time + late_ms)]) is (late_ms > 0)


def under_a_wrong_clock(log: MemoryLog, off: int) -> range:
    """Two intents of east, each with its decision and a fact, taken by a broker that is off."""
    first = log.records[-1].offset + 1
    for name in ("one", "two"):
        right = log.now
        intent = log.make(intents.ApplicationRegistered, "east", application=f"east.{name}")
        offset = log.append(intent, by="east", time=right + off)
        decision = log.decision(offset, Accepted(), clock=time_at(right + 500))
        log.append(decision, by="governor", time=right + off + 500)
        fact = log.make(facts.CheckPassed, MESH_DOMAIN, offset=0, check="topic_exists")
        log.append(fact, by="controller", time=log.now + off)
    found = range(first, log.records[-1].offset + 1)
    log.say(intents.ApplicationRegistered, "east", application="east.three")
    log.govern()
    return found


@pytest.mark.parametrize("off", [2 * HOUR_MS, -2 * HOUR_MS])
def test_what_until_shows_is_what_as_of_has_counted(log: MemoryLog, off: int) -> None:
    under_a_wrong_clock(log, off)
    history = read(log.records)
    assert len({one.time for one in history.steps}) > 10
    for moment in sorted({one.time for one in history.steps}):
        until = Filter(until=stamp(moment)).compiled(NOW)
        shown = audit_log.items(history, until, whole=False)
        counted = replay(log.records, as_of=moment)
        assert [one["offset"] for one in shown] == list(range(counted.offset + 1))


@pytest.mark.parametrize("off", [2 * HOUR_MS, -2 * HOUR_MS])
def test_acts_are_found_by_the_meshs_time_and_show_the_brokers_where_it_was_wrong(
    log: MemoryLog, off: int
) -> None:
    since = log.image.time
    wrong = under_a_wrong_clock(log, off)
    meanwhile = Filter(since=stamp(since), until=stamp(log.now)).compiled(NOW)
    found = audit_log.items(read(log.records), meanwhile, whole=False)
    appended = {one["offset"]: one["appended"] for one in found}
    assert set(wrong) < set(appended)
    for offset, shown in appended.items():
        assert shown == (stamp(log.records[offset].time) if offset in wrong else None)


def test_a_trace_counts_by_the_meshs_clock(log: MemoryLog) -> None:
    off = 2 * HOUR_MS
    intent = log.make(intents.ApplicationRegistered, "east", application="east.one")
    offset = log.append(intent, by="east", time=log.now + off)
    # the broker's clock was set right in between
    log.now += 18_000
    log.rule(offset, Accepted())
    every = steps(log.records)
    path = conversation(every, every[offset])
    asked, decided = items(path, log.now)
    assert asked["appended"] == stamp(log.records[offset].time)
    assert decided["appended"] is None
    assert asked["time"] == decided["time"] == stamp(log.image.clock)


def test_how_many_append_times_were_wrong_is_told_beside_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_appended([{"appended": None}])
    assert capsys.readouterr() == ("", "")
    note_appended([{"appended": None}, {"appended": stamp(0)}])
    told = capsys.readouterr()
    assert told.out == ""
    assert "off by more than a minute when 1 of these records were appended" in told.err
