"""A record that counts for nothing changes no verdict on the log, whoever appends it."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mesh_events import intents
from mesh_events.decisions import MeshRole, SchemaIntroduced
from mesh_events.meta import MESH_DOMAIN, Event
from mesh_events.record import Record
from mesh_events.vocabulary import EVENTS
from projections.deciding.verdict import Accepted
from projections.integrity.chain import chained
from self_service.cli.verification.scope import Scope
from self_service.cli.verification.verifier import Report, verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, record_of, resigned, sign
from tests.signed_log import ORIGIN, signed_over
from tests.unit.mesh_events.values import any_of


def whole_story() -> MemoryLog:
    """A log on which governor and controller were given other keys, with a copy and its readers."""
    log = MemoryLog()
    story.published(log)
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    log.revoke_key("governor")
    log.governor = "governor-2"
    log.introduce_key(MeshRole.CONTROLLER, "controller-2")
    log.revoke_key("controller")
    log.controller = "controller-2"
    log.start_governor()
    story.granted(log)
    story.settle(log)
    return log


LOG = whole_story()
WITHOUT_ROLE: dict[str, tuple[str, ...]] = {
    "foundation": ("stranger", "west", "operator", "controller-2", "governor", "controller"),
    "decision": ("stranger", "west", "operator", "controller-2", "governor", "controller", "root"),
    "fact": ("stranger", "west", "operator", "governor-2", "governor", "controller", "root"),
    "intent": ("stranger", "west", "operator", "governor-2", "controller-2", "governor", "root"),
}
"""Kind of event -> keys that may not say it. Anybody may say an intent: it waits for a decision."""


def verdict(records: list[Record], **how: Any) -> tuple[Any, ...]:
    """What `sdm audit verify` concludes, and what it counts as having held."""
    return told(verify(records, key("root").public, key("governor-2").public, **how))


@cache
def without(count: int) -> tuple[Any, ...]:
    """The verdict on that many records of the log."""
    return verdict(LOG.records[:count])


def told(report: Report) -> tuple[Any, ...]:
    kinds = (report.findings, report.differing, report.gaps)
    found = [[(one.offset, one.code, one.text) for one in kind] for kind in kinds]
    return (*found, report.schemas, report.decisions, report.set_aside)


def behind(records: list[Record], one: Record) -> list[Record]:
    """The records with one more, appended as Kafka would."""
    last = records[-1]
    return [*records, replace(one, offset=last.offset + 1, time=last.time + 1)]


@st.composite
def forged(draw: st.DrawFn) -> Record:
    """Any event, signed by a key that may not say it."""
    kind = draw(st.sampled_from(list(EVENTS.values())))
    event: Event = draw(any_of(kind))
    by = draw(st.sampled_from(WITHOUT_ROLE[kind.kind.value]))
    return record_of(sign(event, key(by)), 0, 0)


@st.composite
def bent(draw: st.DrawFn) -> Record:
    """A record of the log with other bytes, signed by a stranger or by nobody."""
    found = draw(st.sampled_from(LOG.records))
    value = draw(st.one_of(st.none(), st.binary(max_size=40)))
    other = replace(found, value=value)
    return other if draw(st.booleans()) else resigned(other, key("stranger"))


COPIES = st.sampled_from(LOG.records)
# before, the replaced keys may still say what they sign
PREFIXES = st.integers(LOG.epoch, len(LOG.records))


@settings(max_examples=200, deadline=None)
@given(PREFIXES, st.one_of(forged(), COPIES, bent()))
def test_a_record_of_a_key_without_the_role_changes_no_verdict(count: int, one: Record) -> None:
    records = LOG.records[:count]
    # what stands there in truth is no copy
    assume(one not in LOG.records[count:])
    assert verdict(behind(records, one)) == without(count)


@settings(max_examples=60, deadline=None)
@given(st.one_of(forged(), COPIES, bent()), st.integers(1, 40))
def test_nor_under_checkpoints_that_cover_it(one: Record, every: int) -> None:
    records = behind(LOG.records, one)
    chain = chained(ORIGIN, signed_over(records, every, by="controller-2"))
    plain = without(len(LOG.records))
    assert verdict(records, chain=chain) == plain
    # the rest of the log is believed by its hashes
    assert verdict(records, chain=chain, scope=Scope(len(records) - 1))[0] == plain[0]


@pytest.mark.parametrize("name", ["west", "stranger", "controller", "governor"])
@pytest.mark.parametrize("text", ['"string"', "no schema", "{", "[" * 3000])
def test_a_schema_that_nobody_may_introduce_is_not_judged(name: str, text: str) -> None:
    log = whole_story()
    before = verdict(log.records)
    event = log.make(
        SchemaIntroduced,
        MESH_DOMAIN,
        schema_id=9000,
        name="held.HeldOrder",
        fingerprint="0" * 64,
        schema_text=text,
    )
    offset = log.append(event, by=name)
    assert verdict(log.records) == before
    log.govern()
    assert offset not in log.image.intents.undecided
    findings, differing, _, schemas, *_ = verdict(log.records)
    assert (findings, differing, schemas) == ([], [], before[3])


def test_a_copy_of_an_introduction_is_not_counted_as_a_schema() -> None:
    log = whole_story()
    before = verdict(log.records)
    log.put(log.records[3])
    assert verdict(log.records) == before


def test_a_schema_that_the_governor_introduces_must_have_its_fingerprint() -> None:
    log = whole_story()
    event = log.make(
        SchemaIntroduced,
        MESH_DOMAIN,
        schema_id=9000,
        name="held.HeldOrder",
        fingerprint="0" * 64,
        schema_text='"string"',
    )
    offset = log.append(event, by="governor-2")
    assert [(one[0], one[1]) for one in verdict(log.records)[0]] == [(offset, "bad_fingerprint")]


def test_a_decision_of_an_earlier_epoch_does_not_hide_that_others_wait() -> None:
    """The governor has passed nothing over that only a replaced one says it has decided."""
    log = whole_story()
    earlier = log.epoch
    log.start_governor()
    log.put(replace(log.records[-1], value=b"garbage"))
    offset = log.say(intents.LinkPaused, "east", product=story.PRODUCT, cluster="west", reason="x")
    before = verdict(log.records)
    log.rule(offset, Accepted(), epoch=earlier)
    assert verdict(log.records) == before
    assert before[0] == []


def test_every_kind_of_event_has_keys_that_may_not_say_it() -> None:
    assert {one.kind.value for one in EVENTS.values()} == set(WITHOUT_ROLE)
