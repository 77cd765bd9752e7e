"""Snapshots give the image of a full replay, at every offset and time, or say that they cannot."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from immutables import Map

from mesh_events import codec, intents, statements
from mesh_events.errors import StateFaultError
from mesh_events.record import Record
from projections.access import Accesses
from projections.checksum import checksum
from projections.deciding.intents import Intents
from projections.identity import Identity
from projections.image import Image
from projections.integrity.tree import CompactRange
from projections.integrity.trusted_prefix import IntegrityError
from projections.replay import fold, replay
from projections.table import OverlayMap
from snapshots import history, place
from snapshots.history import OtherLogError, Read, extend, image_at
from snapshots.image_tables import TABLES, Rest, put_together, take_apart
from snapshots.store import ORIGIN, BusyError, DamagedError, SnapshotError, Store, StoredTable
from tests import sample_history as story
from tests.fixtures import recording
from tests.memory_log import MemoryLog, Never
from tests.signed_log import busy_log, signed_over, trusting

RECORDS = busy_log()
IMAGES = {image.offset: image for image in fold(RECORDS)}
OFFSETS = sorted(IMAGES)
LAST = OFFSETS[-1]


def log_of(records: list[Record]) -> Read:
    """The log that holds these records."""

    def read(start: int) -> Iterator[Record]:
        return (record for record in records if record.offset >= start)

    return read


READ = log_of(RECORDS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "snapshots" / "log.db") as store:
        yield store


def stored(path: Path, every: int, records: list[Record] = RECORDS) -> Store:
    store = Store(path)
    extend(store, log_of(records), every=every)
    return store


@pytest.mark.parametrize("every", [1, 2, 7, 40])
def test_at_every_offset_and_time_the_image_is_that_of_a_full_replay(
    every: int, tmp_path: Path
) -> None:
    store = stored(tmp_path / "log.db", every)
    assert store.count() == len(RECORDS) // every
    for offset, image in IMAGES.items():
        assert image_at(store, READ, at_offset=offset) == image
        last = max(at for at, one in IMAGES.items() if one.time <= image.time)
        assert image_at(store, READ, as_of=image.time) == IMAGES[last]
    assert image_at(store, READ) == IMAGES[LAST]
    assert image_at(store, READ, at_offset=-1) == replay([])
    assert image_at(store, READ, as_of=0) == replay([])


def log_with_a_jump(*, decided: bool) -> list[Record]:
    """Applications that register each 5 s; the broker's clock is 10 min ahead for a few records."""
    log = MemoryLog()
    story.published(log)
    for at in range(5):
        ahead = log.make(intents.ApplicationRegistered, "east", application=f"east.ahead{at}")
        log.append(ahead, by="east", time=log.now + 600_000)
        if decided:
            log.govern()
    # a decision whose signature does not verify: believed, it would count
    log.accept(log.say(intents.ApplicationRegistered, "east", application="east.forged"))
    forged = log.records.pop()
    log.put(replace(forged, headers={**forged.headers, "mesh_signature": bytes(64)}))
    for at in range(6):
        log.now += 5000
        log.say(intents.ApplicationRegistered, "east", application=f"east.behind{at}")
        log.govern()
    return log.records


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("every", [1, 3])
def test_a_broker_that_was_ahead_hides_no_later_state_from_as_of(
    every: int, decided: bool, tmp_path: Path
) -> None:
    records = log_with_a_jump(decided=decided)
    store = stored(tmp_path / "log.db", every, records)
    times = {image.time for image in fold(records)}
    assert max(times) - min(times) >= 600_000
    for time in sorted({one + more for one in times for more in (0, 60_000)}):
        assert image_at(store, log_of(records), as_of=time) == replay(records, as_of=time), time


def test_a_large_field_is_in_the_file_once_however_often_its_row_changes(store: Store) -> None:
    log = MemoryLog()
    story.domains(log)
    story.connector_added(log)
    ((name, connector),) = replay(log.records).connectors.items()
    configs = [Map({"transforms": letter * 60_000}) for letter in "ab"]
    image = store.image(ORIGIN)
    seen = {}
    with store.writing():
        for offset in range(40):
            row = replace(connector, config=configs[offset // 20], restarts=offset)
            seen[offset] = row
            image = image._replace(offset=offset, connectors=image.connectors.set(name, row))
            image = store.append(image, CompactRange(), b"", ())
    for offset, row in seen.items():
        found = store.image(store.until(offset))
        assert found.connectors[name] == row
        assert dict(found.connectors.items()) == {name: row}
    assert sum(one.stat().st_size for one in store.path.parent.iterdir()) < 8 * 60_000


def test_far_behind_the_log_is_its_end(store: Store) -> None:
    extend(store, READ, every=7)
    for far in (LAST + 1, 2**63, 10**30):
        assert image_at(store, READ, at_offset=far) == IMAGES[LAST]
        assert image_at(store, READ, as_of=RECORDS[-1].time + far) == IMAGES[LAST]


@pytest.mark.parametrize("name", recording.names())
def test_recorded_logs_have_their_checksums(name: str, tmp_path: Path) -> None:
    records = recording.load(name)
    store = stored(tmp_path / "log.db", 5, records)
    for image in fold(records):
        assert checksum(image_at(store, log_of(records), at_offset=image.offset)) == checksum(image)
    newest = store.newest()
    assert store.whole_image(newest) == replay(records, at_offset=newest.offset)


def test_the_logs_of_these_tests_fill_every_table() -> None:
    # a log of which the fixtures have none: a statement that had another text
    reworded = MemoryLog()
    story.published(reworded)
    reworded.say(statements.StatementAdded, "east", **story.statement(tables=["east.other"]))
    story.settle(reworded)
    text = {"sql": "SELECT * FROM east.users", "stream": "east.users"}
    reworded.say(statements.StatementUpdated, "east", statement=story.STATEMENT, **text)
    reworded.govern()
    logs = [RECORDS, reworded.records, *(recording.load(name) for name in recording.names())]
    filled = {
        name
        for records in logs
        for image in fold(records)
        for name, table in take_apart(image)[1].items()
        if table
    }
    assert filled >= set(TABLES)


def test_nothing_of_an_image_is_left_out() -> None:
    inside = {"identity": fields(Identity), "access": fields(Accesses)}
    names = [name for name in Image._fields if name not in {*inside, "intents"}]
    names += [field.name for found in inside.values() for field in found]
    names += [name for name in Intents._fields if name != "unusable"]
    names += ["runs", "newest_run", "between", "first_runs", "replaced_at"]
    assert sorted(names) == sorted([*TABLES, *(field.name for field in fields(Rest))])
    for image in IMAGES.values():
        assert put_together(*take_apart(image)) == image


def test_the_ids_of_an_hour_ago_are_forgotten_alike(tmp_path: Path) -> None:
    log = MemoryLog()
    story.published(log)
    for number in range(4):
        log.now += 4_000_000
        log.say(intents.ApplicationRegistered, "east", application=f"east.later{number}")
        log.govern()
    hours = log.records
    images = list(fold(hours))
    assert any(image.intents.line_first for image in images)
    store = stored(tmp_path / "log.db", 4, hours)
    for image in images:
        assert image_at(store, log_of(hours), at_offset=image.offset) == image


def test_the_ids_of_who_is_hours_ahead_are_kept(tmp_path: Path) -> None:
    early = [
        replace(one, time=one.time - 10_000_000 + 4_000_000 * (one.offset // 30)) for one in RECORDS
    ]
    images = list(fold(early))
    assert any(one.until for image in images for one in image.intents.line.values())
    store = stored(tmp_path / "log.db", 4, early)
    for image in images:
        assert image_at(store, log_of(early), at_offset=image.offset) == image


UNSUITED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""A slow machine is no finding about the code, see `tests`."""


@settings(max_examples=25, suppress_health_check=UNSUITED)
@given(cuts=st.lists(st.sampled_from(OFFSETS), max_size=4), every=st.integers(1, 9))
def test_a_log_that_grows_gives_the_same_snapshots(
    cuts: list[int], every: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Store(tmp_path_factory.mktemp("grown") / "log.db") as store:
        for cut in [*sorted(cuts), LAST]:
            extend(store, log_of(RECORDS[: OFFSETS.index(cut) + 1]), every=every)
        assert store.count() == len(RECORDS) // every
        for offset in OFFSETS[::7]:
            assert image_at(store, READ, at_offset=offset) == IMAGES[offset]


def test_signatures_are_checked_once_and_behind_the_newest_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = 0

    def counted(*given: bytes) -> bool:
        nonlocal checked
        checked += 1
        return real(*given)

    store = stored(tmp_path / "log.db", 30)
    real = codec.signing.verifies
    monkeypatch.setattr(codec.signing, "verifies", counted)
    newest = store.newest().offset
    unverified = store.unverified(store.newest())
    assert unverified
    for offset in OFFSETS:
        checked = 0
        assert image_at(store, READ, at_offset=offset) == IMAGES[offset]
        behind = [one for one in OFFSETS if newest < one <= offset]
        assert checked <= max(len(unverified), len(behind))
        if offset < min(unverified):
            assert not checked


def told_by(question: Callable[[], Image]) -> Image | None:
    """The answer; None where the log contradicts itself by now."""
    try:
        return question()
    except StateFaultError:
        return None


@settings(max_examples=80, suppress_health_check=UNSUITED)
@given(
    altered=st.sampled_from(OFFSETS),
    part=st.sampled_from(("value", "time", "gone")),
    asked=st.sampled_from(OFFSETS),
    every=st.integers(1, 30),
)
def test_of_an_altered_log_nothing_else_is_told_than_was_read(
    altered: int, part: str, asked: int, every: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record, at = RECORDS[OFFSETS.index(altered)], OFFSETS.index(altered)
    other = {
        "value": [replace(record, value=(record.value or b"") + b"x")],
        "time": [replace(record, time=record.time + 1)],
        "gone": [],
    }[part]
    log = [*RECORDS[:at], *other, *RECORDS[at + 1 :]]
    with stored(tmp_path_factory.mktemp("altered") / "log.db", every) as store:
        newest = store.newest().offset
        if altered > newest:
            expected = told_by(lambda: replay(log, at_offset=asked))
        else:
            expected = IMAGES[asked]
        try:
            told = None
            found = told_by(lambda: image_at(store, log_of(log), at_offset=asked))
            assert found == expected
        except OtherLogError as error:
            told = error
    assert told is None or told.first <= altered <= told.last <= newest


def test_a_log_that_was_cut_or_is_new_is_another(tmp_path: Path) -> None:
    store = stored(tmp_path / "log.db", 10)
    cut = [one for one in RECORDS if one.offset < store.newest().offset]
    for log in (cut, [], busy_log()[::-1]):
        with pytest.raises(OtherLogError):
            image_at(store, log_of(log))
        with pytest.raises(OtherLogError):
            extend(store, log_of(log))


@pytest.mark.parametrize("stands", [0, 3])
def test_checkpoints_spare_the_signatures_also_behind_a_snapshot(
    store: Store, stands: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = signed_over(RECORDS, 6)
    extend(store, log_of(RECORDS[: 20 * stands]), every=20)
    before = store.newest().offset
    checked: list[bytes] = []
    real = codec.signing.verifies
    monkeypatch.setattr(
        codec.signing, "verifies", lambda *given: checked.append(given[0]) or real(*given)
    )
    extend(store, READ, trusting(signed), every=20)
    assert len(checked) < sum(one.offset > before for one in RECORDS)
    assert store.newest().offset > before
    for offset in OFFSETS[::5]:
        assert image_at(store, READ, at_offset=offset) == IMAGES[offset]


def test_where_the_checkpoints_do_not_hold_no_snapshot_is_made(store: Store) -> None:
    signed = signed_over(RECORDS, 6)
    bad = RECORDS[40]
    log = [*RECORDS[:40], replace(bad, time=bad.time + 1), *RECORDS[41:]]
    with pytest.raises(IntegrityError):
        extend(store, log_of(log), trusting(signed), every=5)
    assert (store.count(), store.newest()) == (0, ORIGIN)
    extend(store, log_of(log), every=5)
    assert image_at(store, log_of(log)) == replay(log)


def test_who_reads_is_not_disturbed_by_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    half = RECORDS[: len(RECORDS) // 2]
    reader = stored(path, 5, half)
    image = image_at(reader, log_of(half))
    with Store(path) as writer, writer.writing():
        with pytest.raises(BusyError):
            extend(reader, READ)
        assert image_at(reader, log_of(half)) == image
    with Store(path) as writer:
        assert extend(writer, READ, every=5)
    assert image == IMAGES[half[-1].offset]


def test_other_software_has_another_file_and_a_stale_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.open_store(tmp_path, "paper", "root") as store:
        extend(store, READ, every=5)
        image = image_at(store, READ)
        monkeypatch.setattr(place, "software", lambda: "newer")
        with place.open_store(tmp_path, "paper", "root") as other:
            assert other.newest() == ORIGIN
            assert other.path != store.path
        assert image == IMAGES[LAST]
    os.utime(store.path, (0, 0))
    monkeypatch.setattr(place, "software", lambda: "newest")
    place.open_store(tmp_path, "paper", "root").close()
    assert not store.path.exists()
    assert other.path.exists()


@pytest.mark.parametrize("trusting_them", [False, True])
def test_slices_give_the_same_snapshots(
    trusting_them: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SLICE", 10)
    trusted = trusting(signed_over(RECORDS, 6)) if trusting_them else None
    with Store(tmp_path / "log.db") as store:
        assert extend(store, READ, trusted, 4, seconds=0) == 0
        assert extend(store, READ, trusted, 4) == len(RECORDS) // 4
        for offset in OFFSETS:
            assert image_at(store, READ, at_offset=offset) == IMAGES[offset]


def test_what_was_made_before_an_interruption_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(start: int) -> Iterator[Record]:
        for record in READ(start):
            if record.offset > 40:
                raise KeyboardInterrupt
            yield record

    monkeypatch.setattr(history, "SLICE", 10)
    with pytest.raises(KeyboardInterrupt):
        extend(store, torn, every=4)
    assert 20 <= store.newest().offset <= 40
    extend(store, READ, every=4)
    assert image_at(store, READ) == IMAGES[LAST]


@pytest.mark.parametrize("trusting_them", [False, True])
def test_slow_records_are_written_after_a_while(
    trusting_them: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that takes too long is killed, and the next one would come no further."""
    monkeypatch.setattr(history, "SLICE_S", 0.0)
    every, trusted = 4, trusting(signed_over(RECORDS, 6)) if trusting_them else None
    checked = 0

    def verifies(*args: Any) -> bool:
        nonlocal checked
        checked += 1
        return real(*args)

    real = codec.signing.verifies
    monkeypatch.setattr(codec.signing, "verifies", verifies)

    def torn(start: int) -> Iterator[Record]:
        for record in READ(start):
            if record.offset > 80:
                raise KeyboardInterrupt
            yield record

    with Store(tmp_path / "log.db") as store:
        with pytest.raises(KeyboardInterrupt):
            extend(store, torn, trusted, every)
        # the checkpoint behind a snapshot proves it
        assert store.newest().offset == (75 if trusting_them else 79)
        assert not trusting_them or checked < 80, "what checkpoints cover is believed"
        extend(store, READ, trusted, every)
        assert store.count() == len(RECORDS) // every
        for offset in OFFSETS:
            assert image_at(store, READ, at_offset=offset) == IMAGES[offset]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(DamagedError, match=f"{path} cannot be read") as told:
        Store(path)
    damaged = told.value.path, told.value.inode
    assert place.put_aside(*damaged) == Path(f"{path}.bad")
    extend(Store(path), READ, every=5)
    assert Store(path).count() == len(RECORDS) // 5
    assert place.put_aside(*damaged) is None, "that file is another one"


def test_rows_that_cannot_be_read_are_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = stored(path, 5)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE versions SET value = x'c1' WHERE length(value) > 0")
    with pytest.raises(DamagedError, match="cannot be read"):
        checksum(image_at(store, READ))


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    store = stored(tmp_path / "log.db", 5, RECORDS[:20])
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(SnapshotError, match="disk is full"):
        extend(store, READ, every=5)
    assert store.count() == 4
    assert image_at(store, READ) == IMAGES[LAST]


def test_a_name_that_utf_8_cannot_hold_is_not_there(tmp_path: Path) -> None:
    """Such as an argument of a command line in another encoding."""
    image = image_at(stored(tmp_path / "log.db", 5), READ)
    assert image.catalog.get("east.\udcff") is None
    assert "east.\udcff" not in image.catalog


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = stored(tmp_path / "made" / "log.db", 5)
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_length_of_a_table_is_that_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[bool, int]], asked: bool
) -> None:
    """Whether it was asked for before the rows changed, or not."""
    base = Map({number: str(number) for number in range(6)})
    table, rows = OverlayMap(base), dict(base)
    assert not asked or len(table) == len(rows)
    for is_set, key in acts:
        if is_set:
            table, rows = table.set(key, "x"), {**rows, key: "x"}
        elif key in rows:
            table = table.delete(key)
            del rows[key]
        assert not asked or len(table) == len(rows)
    assert (len(table), bool(table), dict(table)) == (len(rows), bool(rows), rows)


def test_records_behind_a_snapshot_are_folded_without_reading_a_table_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of unusable records that are decided while many intents wait."""
    log = MemoryLog()
    story.published(log)
    log.checks = {"topic_exists": Never(), "schema_registered": Never()}
    for number in range(40):
        name = f"east.waits{number}"
        log.say(intents.ProductPublished, "east", **story.product(product=name, topic=name))
    before = len(log.records)
    for _ in range(5):
        for _ in range(3):
            log.put(replace(log.records[-1], value=b"not avro at all"))
        log.govern()
    assert log.image.intents.unusable.size == 0
    with stored(tmp_path / "log.db", before, log.records) as store:
        image = image_at(store, log_of(log.records), at_offset=before - 1)
        assert len(image.intents.undecided) >= 40
        monkeypatch.setattr(StoredTable, "pairs", lambda _: pytest.fail("a table was read whole"))
        found = replay(log.records[before:], image)
        monkeypatch.undo()
        assert found == replay(log.records)
