"""Waiting for a decision on a log that others write too."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from mesh_events import intents
from mesh_events.emit import Outcome, decision_in
from mesh_events.outcome import DecisionWatch
from mesh_events.record import FaultCode, Record
from mesh_events.signing import MeshKeys
from projections.verdict import Accepted, Quarantined, Rejected, Verdict
from tests.paper_log import PaperLog, key, resigned


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


def decided() -> tuple[PaperLog, int, Record]:
    """A log, the offset of an intent on it, and the record of the decision."""
    log = PaperLog()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.accept(offset)
    return log, offset, log.records[-1]


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


def watched(log: PaperLog, offset: int) -> Outcome | None:
    """What somebody is told who waits for the decision on a record."""

    def is_copy(name: str, before: int) -> bool:
        ids = [one.headers["ce_id"] for one in log.records[:before]]
        return name.encode() in ids

    watch = DecisionWatch(offset, log.image.schemas, KEYS, is_copy)
    found = (watch.take(one) for one in log.records[offset + 1 :])
    return next((one for one in found if one is not None), None)


REFUSED = Rejected("not_your_domain", "it is another's")
SET_ASIDE = Quarantined(FaultCode.FORGED, "it is not the keeper's")


@pytest.mark.parametrize("verdict", [Accepted(), REFUSED, SET_ASIDE])
def test_the_decision_of_a_governor_that_was_replaced_is_not_told(verdict: Verdict) -> None:
    log = PaperLog()
    replaced = log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.start_governor()
    log.rule(offset, verdict, epoch=replaced)
    assert watched(log, offset) is None
    decision = log.rule(offset, SET_ASIDE)
    found = watched(log, offset)
    assert found is not None
    assert (found.offset, found.code) == (decision, "forged")


def test_a_copy_of_an_earlier_start_ends_no_epoch() -> None:
    log = PaperLog()
    first = log.start_governor()
    second = log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    for copied in (first, second):
        log.put(log.records[copied])
    log.put(resigned(log.records[second], key("stranger")))
    decision = log.rule(offset, REFUSED)
    assert watched(log, offset) == Outcome(False, decision, REFUSED.code, REFUSED.reason)


def test_a_decision_under_a_start_behind_the_record_counts() -> None:
    log = PaperLog()
    log.start_governor()
    offset = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.start_governor()
    decision = log.rule(offset, REFUSED)
    assert watched(log, offset) == Outcome(False, decision, REFUSED.code, REFUSED.reason)
