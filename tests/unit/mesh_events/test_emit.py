"""Waiting for a decision on a log that others write too."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mesh_events import intents
from mesh_events.emit import decision_in
from mesh_events.record import Record
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


GOVERNOR = key("governor").public


def test_the_governors_decision_is_found() -> None:
    log, offset, record = decided()
    found = decision_in(record, log.image.schemas, GOVERNOR)
    assert found is not None
    assert found.offset == offset


def test_nothing_that_a_stranger_wrote_is_decoded() -> None:
    log, _, record = decided()
    forged = replace(record, headers={**record.headers, "mesh_signature": bytes(64)})
    for one in (resigned(record, key("stranger")), forged, replace(record, headers={})):
        asked = Asked(log.image.schemas)
        assert decision_in(one, asked, GOVERNOR) is None
        assert not asked.ids


def test_without_a_governors_key_nothing_is_a_decision() -> None:
    log, _, record = decided()
    assert decision_in(record, log.image.schemas, None) is None
