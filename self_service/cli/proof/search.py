"""One walk over the log for a proof: the wanted record, the decision on it, and all leaves. Pure.

Kept on the way are few records: those that may be wanted, introductions of schemas, starts of
governors, the root's namings of keys, and the decisions of the latest step.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mesh_events.codec import schema_id_of
from mesh_events.decisions import Decision
from mesh_events.errors import UnusableRecordError
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.meta import MESH_DOMAIN, Kind
from mesh_events.record import SIGNER, Entry, Record
from projections.identity import Key, Role
from projections.image import EMPTY, Image
from projections.integrity.chain import Chain
from projections.integrity.tree import Paths, root_of
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import walk
from self_service.cli.framework.exits import FindingError, NotFoundError, UsageError
from self_service.cli.mesh.lookup import offset_of
from self_service.cli.proof.file import Authority, Decided, Legible, Placed, Proof


class Search:
    """Finds the record that a reference means; see `run`."""

    def __init__(self, reference: str) -> None:
        if not reference.strip("# "):
            raise UsageError("which record? Give the id of its event, or its offset")
        self._reference, self._offset = reference.lower(), offset_of(reference)

    def run(
        self, log: Iterable[Record], trusted: TrustedCheckpoints | None, signed: Chain
    ) -> tuple[Proof, Key]:
        """The proof, and the controller's key that signed its checkpoint.

        Raises NotFoundError for a record that is not there or not covered yet, FindingError for a
        log that is not what was signed.
        """
        seen = _Seen()
        found, before = list[_Found](), EMPTY
        for entry, image in walk(seen.hashed(log), trusted=trusted):
            fits = self._fits(entry)
            seen.take(entry, before, image, wanted=fits)
            if fits:
                key = image.identity.key_of(entry.signer)
                name = entry.event.meta.id if entry.event else ""
                found.append(_Found(seen.last, name, key is not None and key.domain == MESH_DOMAIN))
            before = image
        return _proof(seen, self._single(found), signed, before)

    def _fits(self, entry: Entry) -> bool:
        if self._offset is not None:
            return entry.offset == self._offset
        return entry.event is not None and entry.event.meta.id.startswith(self._reference)

    def _single(self, found: list["_Found"]) -> int:
        if not found:
            raise NotFoundError(f"the log has no record {self._reference}: see `sdm audit log`")
        # a longer id makes a whole one not ambiguous: anybody can write it
        found = [one for one in found if one.id == self._reference] or found
        if len({one.id for one in found}) > 1:
            raise UsageError(f"{len(found)} ids begin with {self._reference}: give a longer prefix")
        # the same id twice on the log: the mesh's own, which others can derive, or else the first
        return next((one for one in found if one.is_mesh), found[0]).number


class _Found(NamedTuple):
    """A record that fits: the number of its leaf, its id, whether a part of the mesh signed it."""

    number: int
    id: str
    is_mesh: bool


@dataclass(slots=True)
class _Seen:
    """What a walk has kept; numbers are those of leaves.

    records: the records that may stand in the proof
    introduced: schema id -> where it was introduced
    starts: epoch -> its GovernorStarted
    named: public key -> where the root named it
    decided: offset of a wanted record -> (the decision on it, its epoch, those in front of it)
    """

    leaves: list[bytes] = field(default_factory=list)
    records: dict[int, Record] = field(default_factory=dict)
    introduced: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    decided: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)
    _open: set[int] = field(default_factory=set)
    # (number, offset) of decisions that counted in this epoch: the last one up to the basis of the
    # latest, and those behind it
    _step: deque[tuple[int, int]] = field(default_factory=deque)
    _pinned: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        """The number of the last leaf."""
        return len(self.leaves) - 1

    def hashed(self, log: Iterable[Record]) -> Iterator[Record]:
        """The records of the log, each taken into the tree before it is handed on."""
        for record in log:
            self.records[len(self.leaves)] = record
            self.leaves.append(leaf_hash(record))
            yield record

    def take(self, entry: Entry, before: Image, after: Image, *, wanted: bool) -> None:
        """Keep the last record or forget it; the images are those around it."""
        if after.epoch != before.epoch:
            self._forget(len(self._step))
        counted = after.last_decision != before.last_decision and isinstance(entry.event, Decision)
        if counted and isinstance(entry.event, Decision):
            while len(self._step) > 1 and self._step[1][1] <= entry.event.basis:
                self._forget(1)
        kept = (wanted, self._names(entry, before, after), self._decides(entry, after))
        if not self.last or any(kept):
            self._pinned.add(self.last)
        elif not counted:
            del self.records[self.last]
        if counted:
            self._step.append((self.last, entry.offset))
        if wanted and after.intents.is_open(entry.offset):
            self._open.add(entry.offset)

    def _names(self, entry: Entry, before: Image, after: Image) -> bool:
        """Whether the record tells who is who, or how others are to be read."""
        if after.epoch != before.epoch:
            self.starts[after.epoch] = self.last
            return True
        if after.schemas is not before.schemas:
            new = set(after.schemas) - set(before.schemas)
            self.introduced |= dict.fromkeys(new, self.last)
            return True
        event = entry.event
        if event is None or event.kind is not Kind.FOUNDATION or after.identity is before.identity:
            return False
        keys = after.identity.keys.values()
        new_keys = [one.public for one in keys if one.since == entry.offset]
        self.named |= dict.fromkeys(new_keys, self.last)
        return bool(new_keys)

    def _decides(self, entry: Entry, after: Image) -> bool:
        """Whether the record is the decision that counts on a wanted one."""
        if entry.event is None or entry.event.kind is not Kind.DECISION:
            return False
        settled = {one for one in self._open if not after.intents.is_open(one)}
        self._open -= settled
        front = tuple(number for number, _ in self._step)
        self.decided |= dict.fromkeys(settled, (self.last, after.epoch, front))
        if settled:
            self._pinned.update(front)
        return bool(settled)

    def _forget(self, count: int) -> None:
        """Forget the first decisions of the step but for those that stand in the proof."""
        for _ in range(count):
            number, _ = self._step.popleft()
            if number not in self._pinned:
                del self.records[number]


def _proof(seen: _Seen, index: int, signed: Chain, image: Image) -> tuple[Proof, Key]:
    record = seen.records[index]
    decision = seen.decided.get(record.offset)
    wanted = record.offset if decision is None else seen.records[decision[0]].offset
    # what is undecided is said of as long a log as can be shown
    newest = image.intents.is_open(record.offset)
    one, controller = _covering(wanted, signed, image, newest=newest)
    leaves = seen.leaves[: one.body.size]
    if root_of(leaves) != one.body.root:
        raise FindingError(
            f"the log differs from the one that the checkpoint over {one.body.size} records "
            "was signed for: see `sdm audit verify`"
        )
    write = _Writer(seen, Paths(leaves), len(leaves))
    subject, decided = write.legible(index), None
    shown = [subject]
    if decision is not None:
        number, epoch, front = decision
        before = [write.legible(one) for one in front]
        decided = Decided(write.legible(number), write.legible(seen.starts[epoch]), before)
        shown += [decided.decision, decided.start, *before]
    authority = Authority(write.placed(0), write.keys(shown))
    return Proof(subject, decided, authority, one), controller


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes the parts of a proof of what was seen, in the tree over the first `size` leaves."""

    seen: _Seen
    paths: Paths
    size: int

    def placed(self, index: int) -> Placed:
        """A record with its path in the tree."""
        return place(self.seen.records, self.paths, index)

    def legible(self, index: int) -> Legible:
        """A record with what introduced its schema."""
        schema = self.seen.introduced.get(_schema_id(self.seen.records[index]), index + 1)
        # what was introduced later does not let it be read
        return Legible(self.placed(index), self.placed(schema) if schema <= index else None)

    def keys(self, shown: Sequence[Legible]) -> list[Legible]:
        """Where the root named the keys that signed some records and their schemas."""
        named = {number for one in shown for number in self._named(one)}
        found = [self.legible(number) for number in sorted(named)]
        more = {number for one in found for number in self._named(one)} - named
        return found if not more else self.keys([*shown, *found])

    def _named(self, one: Legible) -> Iterator[int]:
        for placed in (one.placed, one.schema):
            signer = placed.record.headers.get(SIGNER) if placed else None
            number = self.seen.named.get((signer or b"").decode("ascii", "replace"))
            if number is not None and number < self.size:
                yield number


def place(records: Mapping[int, Record], paths: Paths, index: int) -> Placed:
    """A record with its path in the tree; `records` is by leaf number."""
    return Placed(records[index], index, paths.to(index))


def _covering(
    offset: int, signed: Chain, image: Image, *, newest: bool
) -> tuple[SignedCheckpoint, Key]:
    """The first or the newest checkpoint over a record, of a key in force if there is one.

    Whoever checks the proof may not believe a revoked key any more, whatever it signed before.
    """
    controllers = [one for one in image.identity.keys.values() if one.role is Role.CONTROLLER]
    controllers.sort(key=lambda one: one.revoked is not None)
    by_size = signed.by_size()
    for controller in controllers:
        for one in reversed(by_size) if newest else by_size:
            if one.body.offset >= offset and one.signer([controller.public]):
                return one, controller
    raise NotFoundError(
        f"no checkpoint covers offset {offset} yet: the worker signs one within seconds; "
        "see `sdm status`, then try again"
    )


def _schema_id(record: Record) -> int:
    """The schema that a record names, -1 for none."""
    try:
        return schema_id_of(record.value or b"")
    except UnusableRecordError:
        return -1
