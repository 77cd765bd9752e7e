"""Deciding one record: can it be trusted, is it new, may the sender speak, how long to wait."""

import uuid
from dataclasses import replace
from typing import ClassVar

import pytest

from mesh_events import intents
from mesh_events.intents import Intent
from mesh_events.meta import Event
from mesh_events.record import Entry, FaultCode
from projections.deciding.decide import CHECK_TIMEOUT_MS, decide
from projections.deciding.intents import AHEAD_MS, WINDOW_MS
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict, Waiting
from tests import sample_history as story
from tests.memory_log import EPOCH_MS, MemoryLog, Never, at, key

PAUSE = {"product": story.PRODUCT, "cluster": "west"}


@pytest.fixture
def log() -> MemoryLog:
    """A link that runs, with nothing left to decide."""
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    return log


def code(verdict: Verdict) -> str:
    assert isinstance(verdict, Rejected | Quarantined), verdict
    assert verdict.reason
    return verdict.code


def pause(log: MemoryLog, **meta: object) -> Event:
    event = log.make(intents.LinkPaused, "east", **PAUSE)
    return event.model_copy(update={"meta": event.meta.model_copy(update=meta)})


def test_a_fresh_intent_of_the_owner_is_accepted(log: MemoryLog) -> None:
    assert log.verdict(log.append(pause(log), by="east")) == Accepted()


def test_garbage_is_set_aside_with_its_own_code(log: MemoryLog) -> None:
    offset = log.put(replace(log.records[-1], value=b"?"))
    assert code(log.verdict(offset)) == FaultCode.GARBAGE


@pytest.mark.parametrize("stranger", ["stranger", "root"])
def test_a_key_that_speaks_for_no_domain_is_unknown(log: MemoryLog, stranger: str) -> None:
    offset = log.append(pause(log), by=stranger)
    assert code(log.verdict(offset)) == FaultCode.UNKNOWN_KEY


def test_a_revoked_key_is_no_longer_heard(log: MemoryLog) -> None:
    log.say(intents.KeyRevoked, "east", domain="east", public_key=key("east").public, reason="lost")
    log.govern()
    offset = log.append(pause(log), by="east")
    assert code(log.verdict(offset)) == FaultCode.REVOKED_KEY
    log.govern()
    assert log.image.links[story.LINK].desired == "RUNNING"


def test_a_domain_revoked_key_ends_what_still_waits(log: MemoryLog) -> None:
    """Intent n+1 is decided on a state that holds decision n."""
    log.say(intents.KeyRevoked, "east", domain="east", public_key=key("east").public, reason="lost")
    offset = log.append(pause(log), by="east")
    assert log.verdict(offset) == Accepted()
    log.govern()
    assert log.image.links[story.LINK].desired == "RUNNING"


@pytest.mark.parametrize("sender", ["west", "mesh", "nobody", ""])
def test_a_key_speaks_for_its_own_domain_only(log: MemoryLog, sender: str) -> None:
    offset = log.append(pause(log, domain=sender), by="east")
    assert code(log.verdict(offset)) == "not_your_domain"


FREEZE = {"domain": "mesh", "until": at(EPOCH_MS + 86_400_000), "reason": "silence"}
REVOCATION = {"domain": "east", "public_key": key("east").public, "reason": "lost"}


@pytest.mark.parametrize("sender", ["controller", "governor"])
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (intents.DomainFrozen, FREEZE),
        (intents.KeyRevoked, REVOCATION),
        (intents.LinkPaused, PAUSE),
        (intents.ApplicationRegistered, {"application": "mesh.x"}),
        (intents.CredentialsRequested, {"principal": "mesh.governor", "cluster": "east"}),
    ],
)
def test_the_keys_of_the_worker_ask_for_nothing_but_what_follows_from_the_state(
    log: MemoryLog, sender: str, kind: type[Event], fields: dict[str, object]
) -> None:
    offset = log.append(log.make(kind, "mesh", **fields), by=sender)
    assert code(log.verdict(offset)) == "wrong_role"


def test_a_controllers_key_says_not_even_what_follows_from_the_state(log: MemoryLog) -> None:
    offset = log.append(log.make(intents.LinkDeleted, "mesh", **PAUSE), by="controller")
    assert code(log.verdict(offset)) == "wrong_role"


def test_somebody_must_have_said_it(log: MemoryLog) -> None:
    assert code(log.verdict(log.append(pause(log, actor=" "), by="east"))) == "missing_text"


@pytest.mark.parametrize("actor", ["mesh.governor", "mesh", "Mesh.Controller", "MESH.operator"])
def test_a_domain_cannot_speak_as_a_part_of_the_mesh(log: MemoryLog, actor: str) -> None:
    offset = log.append(pause(log, actor=actor), by="east")
    assert code(log.verdict(offset)) == "reserved_actor"


@pytest.mark.parametrize(
    "actor",
    [
        " mesh.governor",
        "mesh.governor ",
        "mesh\u034f.governor",
        "\u2800mesh.controller",
        "\u115fmesh.operator",
        "m\u0435sh.governor",
        "uid-0\nIntentAccepted",
        "uid-0\n",
        "uid-0\x1b[2K",
        "\u202euid-0",
        "Ana Maria",
        "ana\u0301",
    ],
)
@pytest.mark.parametrize("sender", ["east", "operator"])
def test_an_actor_has_letters_that_look_like_no_others(
    log: MemoryLog, actor: str, sender: str
) -> None:
    domain = "mesh" if sender == "operator" else sender
    offset = log.append(pause(log, actor=actor, domain=domain), by=sender)
    verdict = log.verdict(offset)
    assert code(verdict) == "invalid_actor"
    reason = verdict.reason  # type: ignore[union-attr]
    assert reason.isascii()
    assert reason.isprintable()


@pytest.mark.parametrize(
    "actor", ["uid-0", "ana-7", "ana.b+x@example.org", "svc:ci/deploy", "meshed", "A_1", "7"]
)
def test_ids_of_accounts_and_services_are_actors(log: MemoryLog, actor: str) -> None:
    assert log.verdict(log.append(pause(log, actor=actor), by="east")) == Accepted()


def test_an_actor_of_any_letters_that_was_accepted_stays_on_the_log(log: MemoryLog) -> None:
    asked = log.append(pause(log, actor="Ana Maria"), by="east")
    log.accept(asked)
    assert log.image.links[story.LINK].desired == "PAUSED"


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "1",
        "not-a-uuid",
        "{018f0000-0000-7000-8000-000000000001}",
        "urn:uuid:018f0000-0000-7000-8000-000000000001",
        "018F0000-0000-7000-8000-00000000000A",
        "018f0000000070008000000000000001",
    ],
)
def test_an_id_has_one_spelling(log: MemoryLog, identity: str) -> None:
    before = log.image.intents
    offset = log.append(pause(log, id=identity), by="east")
    assert code(log.verdict(offset)) == "invalid_id"
    assert log.image.intents.remembered == before.remembered, "an id of any length is kept"


def test_the_same_intent_again_is_refused_by_its_first_offset(log: MemoryLog) -> None:
    event = pause(log)
    first, second = log.append(event, by="east"), log.append(event, by="east")
    assert log.verdict(first) == Accepted()
    verdict = log.verdict(second)
    assert code(verdict) == "duplicate_intent"
    assert str(first) in verdict.reason  # type: ignore[union-attr]


def test_a_copied_intent_does_nothing_after_the_first_is_decided(log: MemoryLog) -> None:
    first = log.append(pause(log), by="east")
    log.govern()
    log.say(intents.LinkResumed, "east", **PAUSE)
    log.govern()
    copy = log.put(log.records[first])
    assert code(log.verdict(copy)) == "duplicate_intent"
    log.govern()
    assert log.image.links[story.LINK].desired == "RUNNING"


def test_nobody_uses_up_the_id_of_somebody_elses_intent(log: MemoryLog) -> None:
    event = pause(log)
    log.append(event, by="west")
    assert log.verdict(log.append(event, by="east")) == Accepted()


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (WINDOW_MS, None),
        (WINDOW_MS + 1, "stale_intent"),
        (0, None),
        (-AHEAD_MS, None),
        (-AHEAD_MS - 1, "clock_ahead"),
    ],
)
def test_an_intent_reaches_the_log_within_the_window(
    log: MemoryLog, age: int, expected: str | None
) -> None:
    offset = log.append(pause(log, time=at(log.now - age)), by="east")
    verdict = log.verdict(offset)
    assert (verdict == Accepted()) if expected is None else (code(verdict) == expected)


def test_staleness_counts_to_the_log_not_to_the_decision(log: MemoryLog) -> None:
    offset = log.append(pause(log), by="east")
    assert log.verdict(offset, clock=log.now + 10 * WINDOW_MS) == Accepted()


def test_a_copy_made_with_a_fast_clock_is_still_refused(log: MemoryLog) -> None:
    """Its creation time lies ahead, so it grows stale later."""
    first = log.append(pause(log, time=at(log.now + AHEAD_MS)), by="east")
    resumed = log.say(intents.LinkResumed, "east", **PAUSE)
    log.govern()
    log.now = log.records[resumed].time + WINDOW_MS + 1
    copy = log.put(log.records[first])
    assert code(log.verdict(copy)) == "duplicate_intent"


@pytest.mark.parametrize("ahead_ms", [AHEAD_MS + 1, WINDOW_MS + 60_000, 10 * WINDOW_MS])
def test_what_was_refused_for_its_clock_never_counts_later(log: MemoryLog, ahead_ms: int) -> None:
    """Whoever may write the log can append the same bytes when their time has come."""
    made = log.now + ahead_ms
    first = log.append(pause(log, time=at(made)), by="east")
    assert code(log.verdict(first)) == "clock_ahead"
    log.govern()
    for later in (made - AHEAD_MS, made, made + WINDOW_MS):
        log.now = later - 10_000
        log.say(intents.LinkResumed, "east", **PAUSE)
        log.govern()
        copy = log.put(log.records[first])
        assert code(log.verdict(copy)) == "duplicate_intent"
        log.govern()
    log.now = made + 4 * WINDOW_MS
    for _ in range(2):
        log.say(intents.LinkResumed, "east", **PAUSE)
        log.govern()
    refused = log.event_at(first).meta.id
    assert all(one.id != refused for one in log.image.intents.line.values())


def publish(log: MemoryLog) -> int:
    return log.say(
        intents.ProductPublished, "east", **story.product(product="east.b", topic="east.b")
    )


def test_an_intent_waits_for_its_checks_and_then_gives_up(log: MemoryLog) -> None:
    offset = publish(log)
    waiting = Waiting(("topic_exists", "schema_registered"))
    assert log.verdict(offset) == waiting
    assert log.verdict(offset, waited=CHECK_TIMEOUT_MS) == waiting
    verdict = log.verdict(offset, waited=CHECK_TIMEOUT_MS + 1)
    assert code(verdict) == "check_timeout"
    assert "topic_exists, schema_registered" in verdict.reason  # type: ignore[union-attr]


def test_waiting_is_counted_by_the_governor_and_by_no_clock(log: MemoryLog) -> None:
    """Nobody could look while none ran: that is no reason to refuse."""
    offset = publish(log)
    log.now += 20 * CHECK_TIMEOUT_MS
    log.start_governor()
    assert isinstance(log.verdict(offset, waited=0), Waiting)


def test_a_waiting_intent_holds_up_nobody(log: MemoryLog) -> None:
    waiting = publish(log)
    log.checks = {"topic_exists": Never(), "schema_registered": Never()}
    log.append(pause(log), by="east")
    log.govern()
    assert list(log.image.intents.undecided) == [waiting]
    assert log.image.links[story.LINK].desired == "PAUSED"


def test_an_intent_without_a_rule_is_refused(log: MemoryLog) -> None:
    class Danced(Intent):
        """An intent that nobody has thought of."""

        steps: ClassVar[int] = 3

    event = Danced(meta=pause(log).meta)
    entry = Entry(log.image.offset + 1, log.now, key("east").public, event, None)
    assert code(decide(log.image, entry, log.now)) == "no_rule"


def test_what_is_no_intent_is_set_aside(log: MemoryLog) -> None:
    start = log.event_at(log.epoch)
    entry = Entry(log.image.offset + 1, log.now, key("east").public, start, None)
    assert code(decide(log.image, entry, log.now)) == FaultCode.INVALID_EVENT


def test_deciding_changes_no_image(log: MemoryLog) -> None:
    offset = log.append(pause(log), by="east")
    before = log.image
    log.verdict(offset)
    assert log.image == before
    assert uuid.UUID(log.image.intents.undecided[offset].event.meta.id).version == 7  # type: ignore[union-attr]
