"""The checkpoints controller over a log in memory: what it signs and believes, when it stops."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mesh_events.codec import decode, has_valid_signature
from mesh_events.errors import InfrastructureError, StateFaultError
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.integrity.places import file_text
from mesh_events.kafka.connection import Connection
from mesh_events.record import Record
from processors.controllers import checkpoints as module
from processors.controllers.checkpoints import CheckpointsController
from processors.controllers.controller import NotLeaderError
from processors.log.checkpoint_store import CheckpointStore
from processors.log.fold_start import Beginning, FirstRecord, Start
from processors.log.watch import LogWatch
from projections.fold import apply
from projections.image import EMPTY, Image
from projections.integrity.chain import Chain, chained
from projections.integrity.tree import CompactRange
from projections.integrity.trusted_prefix import IntegrityError
from projections.replay import replay
from snapshots.history import OtherLogError
from tests.memory_log import key, resigned
from tests.signed_log import ORIGIN, busy_log, signed_over, trusting

RECORDS = busy_log()
SIGNED = signed_over(RECORDS, 6)
ROOT = key("root").public


class PaperStore:
    """Both places as one list, which may fail."""

    origin = ORIGIN

    def __init__(self, signed: Sequence[SignedCheckpoint] = ()) -> None:
        self.signed = list(signed)
        self.equalized = 0
        self.broken = False

    def _answer(self) -> None:
        if self.broken:
            raise InfrastructureError("no answer", retriable=True)

    def read(self) -> Chain:
        self._answer()
        return chained(ORIGIN, self.signed)

    def equalize(self, chain: Chain) -> None:
        assert list(chain) == self.signed
        self._answer()
        self.equalized += 1

    def append(self, checkpoint: SignedCheckpoint) -> None:
        self.signed.append(checkpoint)
        self._answer()


class MemoryLeadership:
    def __init__(self, epoch: int = 1) -> None:
        self.epoch, self.over = epoch, False

    def check(self) -> None:
        if self.over:
            raise NotLeaderError("over")


class Fold:
    """Folds as a governor does, and counts the signatures that it checks."""

    def __init__(self, store: PaperStore, root: str | None = ROOT) -> None:
        self.watch = LogWatch(store, root)  # type: ignore[arg-type]
        self.store, self.image, self.checked = store, EMPTY, 0

    def take(self, records: Sequence[Record]) -> Image:
        for record in records:
            doubted = self.watch.needs_verification(record)
            self.checked += doubted
            entry = decode(record, self.image.schemas, self.image.identity.root, verify=doubted)
            self.image = apply(self.image, entry)
            self.watch.took(record, entry, self.image)
        self.watch.caught_up()
        return self.image

    def controller(self, records: int = 6, seconds: float = 0) -> CheckpointsController:
        return CheckpointsController(
            self.watch,
            self.store,  # type: ignore[arg-type]
            key("controller"),
            records,
            seconds,
        )


def begin(fold: Fold, beginning: Beginning) -> None:
    """Begin as a governor does that has folded nothing."""
    if (opening := fold.watch.look(beginning)) is not None:
        fold.watch.begin(opening)


def begun(signed: Sequence[SignedCheckpoint] = (), root: str | None = ROOT) -> Fold:
    fold = Fold(PaperStore(signed), root)
    begin(fold, FirstRecord())
    return fold


def reconcile(fold: Fold, controller: CheckpointsController, leadership: Any = None) -> None:
    controller.reconcile(fold.image, leadership or MemoryLeadership())


def test_all_that_is_due_is_signed_in_pieces() -> None:
    fold = begun()
    fold.take(RECORDS)
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED
    assert fold.watch.describe() == {
        "checkpoint": {"size": len(RECORDS), "offset": RECORDS[-1].offset},
        "finding": None,
    }


@pytest.mark.parametrize("known", [1, 12, len(SIGNED)])
def test_a_later_worker_goes_on_and_checks_few_signatures(known: int) -> None:
    fold = begun(SIGNED[:known])
    fold.take(RECORDS)
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED
    # those in the foundation are the root's, and checked always
    assert (fold.checked < len(RECORDS)) is (known > 1)
    everything = Fold(PaperStore())
    assert fold.image == everything.take(RECORDS)


def test_without_the_root_nothing_is_believed_and_signing_goes_on() -> None:
    fold = begun(SIGNED[:4], root=None)
    fold.take(RECORDS)
    assert fold.checked == len(RECORDS)
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED


def test_few_records_wait_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    fold = begun()
    fold.take(RECORDS[:-1])
    controller = fold.controller(records=1000, seconds=5)
    reconcile(fold, controller)
    clock[0] += 4.9
    reconcile(fold, controller)
    assert fold.store.signed == []
    clock[0] += 0.1
    reconcile(fold, controller)
    assert [one.body.size for one in fold.store.signed] == [len(RECORDS) - 1]
    # the next one waits anew, from when there is something to sign
    clock[0] += 60
    reconcile(fold, controller)
    fold.take(RECORDS[-1:])
    reconcile(fold, controller)
    assert len(fold.store.signed) == 1
    clock[0] += 5
    reconcile(fold, controller)
    assert len(fold.store.signed) == 2


def test_nobody_signs_whose_leadership_is_over_or_whose_key_is_no_controllers() -> None:
    fold = begun()
    fold.take(RECORDS)
    over = MemoryLeadership()
    over.over = True
    with pytest.raises(NotLeaderError):
        reconcile(fold, fold.controller(), over)
    stranger = CheckpointsController(fold.watch, fold.store, key("governor"), 6, 0)  # type: ignore[arg-type]
    reconcile(fold, stranger)
    assert fold.store.signed == []


def test_a_place_that_fails_is_read_again_before_the_next_signature() -> None:
    fold = begun()
    fold.take(RECORDS)
    controller = fold.controller()
    reconcile(fold, controller)
    fold.store.signed.clear()
    again = begun()
    again.take(RECORDS)
    controller = again.controller()
    again.store.broken = True
    reconcile(again, controller)
    assert again.store.signed == []
    again.store.broken = False
    failing = again.store.append

    def half(checkpoint: SignedCheckpoint) -> None:
        again.store.broken = len(again.store.signed) == 1
        failing(checkpoint)

    again.store.append = half  # type: ignore[method-assign]
    reconcile(again, controller)
    assert again.store.signed == SIGNED[:2]
    again.store.broken = False
    again.store.append = failing  # type: ignore[method-assign]
    reconcile(again, controller)
    assert again.store.signed == SIGNED
    assert again.store.equalized == 2


def test_what_another_worker_signed_meanwhile_is_gone_on_from() -> None:
    """A standby that folds on learns of the checkpoints when it leads."""
    standby = begun()
    standby.take(RECORDS)
    standby.store.signed += SIGNED[:5]
    reconcile(standby, standby.controller())
    assert standby.store.signed == SIGNED


def altered(offset: int) -> list[Record]:
    return [replace(one, time=one.time + 1) if one.offset == offset else one for one in RECORDS]


def test_an_altered_log_is_folded_anew_and_never_signed_over() -> None:
    fold = begun(SIGNED)
    with pytest.raises(IntegrityError):
        fold.take(altered(SIGNED[-2].body.offset))
    fold.image, fold.checked = EMPTY, 0
    fold.take(altered(SIGNED[-2].body.offset))
    assert fold.checked == len(RECORDS)
    controller = fold.controller()
    reconcile(fold, controller)
    reconcile(fold, controller, MemoryLeadership(2))
    assert fold.store.signed == SIGNED
    finding = fold.watch.describe()["finding"]
    assert finding["code"] == "record_edited"
    assert finding["first"] <= SIGNED[-2].body.offset <= finding["last"]


def test_where_nothing_was_believed_the_fold_goes_on_with_the_finding() -> None:
    fold = begun(SIGNED, root=None)
    fold.take(altered(SIGNED[-2].body.offset))
    assert fold.watch.describe()["finding"]["code"] == "record_edited"
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED


def test_a_cut_log_is_found_and_never_signed_over() -> None:
    fold = begun(SIGNED)
    with pytest.raises(IntegrityError):
        fold.take(RECORDS[:-1])
    late = begun(root=None)
    late.take(RECORDS[:-1])
    late.store.signed += SIGNED
    reconcile(late, late.controller())
    for one in (fold, late):
        assert one.watch.describe()["finding"]["code"] == "tail_cut"
    assert late.store.signed == SIGNED


def replaced(records: Sequence[Record]) -> list[Record]:
    """Records that came to the offsets of others, as a governor's start after a restore."""
    return [resigned(one, key("stranger")) for one in records]


@pytest.mark.parametrize("lost", [1, 4])
def test_a_start_in_the_place_of_what_was_cut_is_told_as_a_cut(lost: int) -> None:
    """The worker appends its start before it compares both places."""
    left, new = RECORDS[20:-lost], replaced(RECORDS[-lost:])
    fold = begun_at(20, SIGNED)
    fold.take(left)
    fold.take(new[:1])
    reconcile(fold, fold.controller())

    finding = fold.watch.finding
    assert finding is not None
    assert (finding["code"], finding["first"]) == ("tail_cut", left[-1].offset + 1)
    assert finding["last"] == RECORDS[-1].offset
    assert fold.store.signed == SIGNED


def test_a_log_whose_end_is_seen_late_is_no_cut_one() -> None:
    fold = begun_at(20, SIGNED)
    fold.take(RECORDS[20:-4])
    fold.take(RECORDS[-4:])
    reconcile(fold, fold.controller())
    assert fold.watch.finding is None


def test_a_record_that_was_edited_before_the_end_is_no_cut() -> None:
    fold = begun_at(20, SIGNED)
    fold.take([*RECORDS[20:-1], *replaced(RECORDS[-1:])])
    finding = fold.watch.finding
    assert finding is not None
    assert finding["code"] == "record_edited"


def test_checkpoints_that_contradict_each_other_are_found() -> None:
    wrong = replace(SIGNED[2].body, root=bytes(32)).sign(key("controller"))
    fold = begun([*SIGNED, wrong])
    fold.take(RECORDS)
    assert fold.checked == len(RECORDS)
    assert fold.watch.describe()["finding"]["code"] == "checkpoints_differ"


def test_places_that_do_not_answer_hold_nothing_up() -> None:
    fold = Fold(PaperStore(SIGNED[:3]))
    fold.store.broken = True
    begin(fold, FirstRecord())
    fold.take(RECORDS)
    controller = fold.controller()
    reconcile(fold, controller)
    assert fold.watch.describe()["finding"] is None
    fold.store.broken = False
    reconcile(fold, controller)
    assert fold.store.signed == SIGNED


def test_a_fold_that_fails_on_believed_records_is_done_again() -> None:
    fold = begun(SIGNED)
    error = StateFaultError("the log contradicts itself")
    assert not fold.watch.is_to_blame(error)
    for record in RECORDS[:-3]:
        doubted = fold.watch.needs_verification(record)
        entry = decode(record, fold.image.schemas, fold.image.identity.root, verify=doubted)
        fold.image = apply(fold.image, entry)
        fold.watch.took(record, entry, fold.image)
    assert fold.watch.is_to_blame(error)
    assert all(fold.watch.needs_verification(record) for record in RECORDS)
    assert not fold.watch.is_to_blame(error)
    assert has_valid_signature(RECORDS[0], key("root").public)


ROOT = key("root").public


class At:
    """A beginning behind some records that were folded before."""

    def __init__(self, count: int) -> None:
        records = RECORDS[:count]
        image = replay(records)
        undecided = {one.offset: one for one in records if one.offset in image.intents.undecided}
        unverified = [one.offset for one in records if not has_valid_signature(one, ROOT)]
        tree = CompactRange().extend(map(leaf_hash, records))
        self.start = Start(image, undecided, tree, unverified)

    def find(self, root_key: str) -> Start | None:
        return self.start if root_key == ROOT else None

    def discard(self) -> None:
        raise AssertionError("the start fits")


def begun_at(count: int, signed: Sequence[SignedCheckpoint]) -> Fold:
    fold = Fold(PaperStore(signed))
    opening = fold.watch.look(At(count))
    assert opening is not None
    assert opening.start is not None
    fold.watch.begin(opening)
    fold.image = opening.start.image
    return fold


@pytest.mark.parametrize("count", range(1, len(RECORDS) + 1))
def test_who_begins_in_the_midst_signs_checkpoints_that_hold(count: int) -> None:
    signed = [one for one in SIGNED if one.body.offset <= RECORDS[count - 1].offset]
    for known in (signed, SIGNED[: len(signed) + 1], SIGNED):
        fold = begun_at(count, known)
        assert fold.take(RECORDS[count:]) == replay(RECORDS)
        controller = fold.controller()
        reconcile(fold, controller)
        assert fold.store.signed == known
        fold.watch.look_back(RECORDS)
        reconcile(fold, controller)
        assert fold.watch.finding is None
        assert fold.store.signed[: len(known)] == known
        trusted = trusting(fold.store.signed)
        assert trusted.offset == RECORDS[-1].offset
        assert replay(RECORDS, trusted=trusted) == replay(RECORDS)


def test_a_long_log_is_looked_at_in_several_turns() -> None:
    fold = begun_at(30, SIGNED[:3])
    fold.take(RECORDS[30:])
    looked = []
    while fold.watch.looks_back:
        looked.append(fold.watch.looked_back_to)
        rest = [one for one in RECORDS if one.offset > looked[-1]]
        fold.watch.look_back(rest, seconds=-1)
    # one record in each turn, and one more that ends
    assert looked == [-1, *(one.offset for one in RECORDS[:30])]
    reconcile(fold, fold.controller())
    assert fold.watch.finding is None
    assert len(fold.store.signed) > len(SIGNED[:3])


@pytest.mark.parametrize("seconds", [-1, 60])
@pytest.mark.parametrize("altered", [0, 7, 29])
def test_what_was_altered_before_the_beginning_is_found(altered: int, seconds: float) -> None:
    fold = begun_at(30, SIGNED[:3])
    fold.take(RECORDS[30:])
    record = RECORDS[altered]
    log = [replace(one, time=one.time + 1) if one is record else one for one in RECORDS]
    while fold.watch.looks_back and fold.watch.finding is None:
        rest = [one for one in log if one.offset > fold.watch.looked_back_to]
        fold.watch.look_back(rest, seconds)
    finding = fold.watch.describe()["finding"]
    assert finding["code"] == "record_edited"
    assert finding["first"] <= record.offset <= finding["last"]
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED[:3]


def test_without_the_roots_word_the_log_is_read_from_its_first_record() -> None:
    fold = Fold(PaperStore(SIGNED), None)
    begin(fold, At(30))
    fold.take(RECORDS)
    assert fold.checked == len(RECORDS)


class OfAnotherLog:
    """A beginning that the log contradicts."""

    def find(self, root_key: str) -> Start | None:
        del root_key
        raise OtherLogError(11, 12)

    def discard(self) -> None:
        raise AssertionError("the file is evidence")


def test_a_log_that_is_not_what_was_read_once_is_a_finding_and_nothing_is_signed() -> None:
    fold = Fold(PaperStore(SIGNED[:2]))
    begin(fold, OfAnotherLog())
    assert fold.take(RECORDS) == replay(RECORDS)
    assert fold.checked == len(RECORDS)
    finding = fold.watch.describe()["finding"]
    assert (finding["code"], finding["first"], finding["last"]) == ("log_changed", 11, 12)
    reconcile(fold, fold.controller())
    assert fold.store.signed == SIGNED[:2]


@pytest.mark.parametrize("damage", ["garbage", "another signature"])
def test_a_damaged_file_is_kept_aside(damage: str, tmp_path: Path) -> None:
    bad = (
        "what\n\n— is this?\n"
        if damage == "garbage"
        else str(SIGNED[1].body.sign(key("stranger")).note)
    )
    for whole in (True, False):
        path = tmp_path / f"{whole}.notes"
        texts = [str(one.note) for one in SIGNED] if whole else [str(SIGNED[0].note), bad]
        path.write_text("".join(map(file_text, texts)))
        store = CheckpointStore(Connection("nowhere", "nobody", ""), path, ORIGIN)
        store._put_aside(chained(ORIGIN, SIGNED))
        assert path.exists() is whole
        assert Path(f"{path}.bad").exists() is not whole


def test_each_damaged_file_is_kept_until_there_are_nine(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    store = CheckpointStore(Connection("nowhere", "nobody", ""), path, ORIGIN)
    damaged = [file_text(f"what {number}\n\n— is this?\n") for number in range(11)]
    for text in damaged:
        path.write_text(text)
        store._put_aside(chained(ORIGIN, SIGNED))
    kept = {one.read_text() for one in tmp_path.glob("*.bad")}
    assert kept == {*damaged[:8], damaged[-1]}
