"""The governor: folds the log, publishes rows, decides what is undecided, many records at once.

A governor is one incarnation. It reads the log to its end, appends GovernorStarted (that record's
offset is its epoch), folds up to it, and only then decides. Deciding is level-triggered: what is
undecided is part of the image, so it does not matter who saw it arrive.

One step judges records for a few milliseconds, each on the state that the decisions before it will
give, and appends these decisions together. They are a chain: where one is lost, those behind it do
not count.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NoReturn

import structlog

from mesh_events.decisions import Decision, GovernorStarted, IntentQuarantined, RecordsSetAside
from mesh_events.emit import LogWriter, software
from mesh_events.errors import MeshError, StateFaultError
from mesh_events.facts import Check
from mesh_events.intents import Intent
from mesh_events.meta import Event, new_id
from mesh_events.record import Entry, Record
from processors.crash_points import crash_point
from processors.governor.decision import Basis, decision_meta, decision_on, set_aside, version
from processors.governor.derived import DerivedIntents
from processors.governor.mesh_clock import MeshClock
from processors.governor.ordering import Ordering, order_of
from processors.governor.quarantine import Copy, Samples
from processors.governor.row_writer import RowWriter
from processors.governor.turns import Turns
from processors.governor.waiting import Awaited, Waits
from processors.log.fold_start import Beginning, FirstRecord
from processors.log.watch import NoWatch, Watch
from processors.worker.leadership import key_without_effect
from processors.worker.leadership import now as monotonic
from processors.worker.metrics import Metrics
from projections.clocks import clock_finding
from projections.deciding.decide import CHECK_TIMEOUT_MS, decide
from projections.deciding.speculation import decided
from projections.deciding.unusable import Run
from projections.deciding.verdict import Waiting
from projections.fold import apply
from projections.identity import Role
from projections.image import DEFAULT_BOUNDS, EMPTY, Bounds, Image
from projections.integrity.trusted_prefix import IntegrityError
from projections.replay import entry_of
from projections.rows import touched_rows

log = structlog.get_logger(__name__)
Listener = Callable[[Copy], None]
BATCH = 256
"""So many decisions are appended together at most."""
BATCH_S = 0.005
"""Seconds after which a step begins no further judgement: what arrives meanwhile waits for it."""
RANGES = 16
"""So many ranges of unusable records are decided in one step at most."""


class Governor:
    """The fold and the decisions of one worker.

    Args:
        writer: appends to the log under the governor's key.
        rows: where changed rows go while this governor leads.
        set_aside: told of records that are quarantined, a few of each range, for the people's copy.
        watch: told of every record that is folded; knows which signatures must be checked.
        beginning: knows what was folded before this worker began.
        bounds: what each domain may have, for the records behind this governor's start.
        metrics: counts what is folded and decided.
    """

    def __init__(
        self,
        writer: LogWriter,
        rows: RowWriter,
        set_aside: Listener,
        watch: Watch | None = None,
        beginning: Beginning | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
        metrics: Metrics | None = None,
    ) -> None:
        self._writer, self._rows, self._set_aside = writer, rows, set_aside
        self.watch: Watch = watch or NoWatch()
        self._beginning: Beginning = beginning or FirstRecord()
        self._bounds = bounds
        self.metrics = metrics or Metrics()
        # counts how often everything was forgotten: what began before is of no use any more
        self._life = 0
        self._waits = Waits(CHECK_TIMEOUT_MS / 1000)
        self._ordering = Ordering()
        # whether the next step begins with those that wait, not with those whose turn it is
        self._again_first = False
        self.forget()

    def forget(self) -> None:
        """Stand before the first record again, with nothing folded."""
        self._life += 1
        self.metrics.forget()
        self.image: Image = EMPTY
        self.epoch: int | None = None
        self._turns = Turns()
        self._waits.clear()
        self._ordering.clear()
        self._open: dict[int, Record] = {}
        self._samples = Samples()
        self._derived = DerivedIntents()
        self._clock: MeshClock | None = None
        # append time of the record folded last, ms
        self._appended = 0

    def begin(self) -> None:
        """Before the log is read: begin where an earlier fold has left off, if it is known.

        Blocks. Changes nothing where records were folded already.
        """
        life = self._life
        opening = self.watch.look(self._beginning)
        with self._rows.lock:
            if opening is None or life != self._life or self.image.offset >= 0:
                return
            if self.watch.begin(opening) and (start := opening.start) is not None:
                self.image = start.image
                self._open = dict(start.undecided)

    @property
    def is_leader(self) -> bool:
        """Whether this governor's start is the latest one on the log."""
        return self.epoch is not None and self.image.epoch == self.epoch

    def start(self) -> int:
        """Append GovernorStarted; the caller then folds up to the returned offset, the epoch.

        Raises:
            ConfigurationError: this worker's key is not, or no longer, a governor's.
        """
        self._require_key(self.image)
        identity = new_id()
        meta = decision_meta(identity, identity, None)
        event = GovernorStarted(
            meta=meta,
            version=version(),
            previous_epoch=self.image.epoch,
            undecided_per_domain=self._bounds.undecided,
            ids_per_domain=self._bounds.ids,
            **self._bounds.quotas.named(),
        )
        started = self._writer.append_record(event)
        with self._rows.lock:
            # no record is half folded: noted for an earlier epoch, and not in the image yet
            self.epoch = started.offset
            self._clock = MeshClock(started.time, self.image.clock)
            # whatever an earlier leadership had in hand: the image alone says what is undecided
            self._turns.clear()
            for offset, entry in sorted(self.image.intents.undecided.items()):
                self._queue(self.image, offset, entry)
            self._waits.clear()
            self._ordering.clear()
        log.info("governor_started", epoch=started.offset, version=event.version)
        return started.offset

    def _require_key(self, image: Image) -> None:
        if not image.identity.has_role(self._writer.key.public, Role.GOVERNOR):
            raise key_without_effect("governor", self._writer.key.public)

    def fold(self, records: Iterable[Record], *, ours: bool = False) -> None:
        """Take records in offset order; those folded before are passed over.

        While this governor leads, changed rows are published at once.

        Args:
            records: from the log, or as it acknowledged them.
            ours: this process has signed them itself, just now.

        Raises:
            StateFaultError: the log contradicts itself.
            IntegrityError: it is not what a checkpoint says, and everything is forgotten: fold it
                again from its first record.
        """
        life = self._life
        for record in records:
            if record.offset <= self.image.offset:
                continue
            doubted = not ours and self.watch.needs_verification(record)
            entry = entry_of(record, self.image, verify=doubted)
            with self._rows.lock:
                # a fold that was cancelled ends in its thread, beside the one that came after it
                if life != self._life:
                    return
                if record.offset <= self.image.offset:
                    continue
                try:
                    self._take(record, entry)
                except (IntegrityError, StateFaultError) as error:
                    self._judge(error)

    def caught_up(self) -> None:
        """The end of the log was reached; raises IntegrityError as `fold`."""
        with self._rows.lock:
            try:
                self.watch.caught_up()
            except IntegrityError as error:
                self._judge(error)

    def _take(self, record: Record, entry: Entry) -> None:
        before, image = self.image, apply(self.image, entry)
        self._appended = record.time
        self._derived.folded(before, image)
        self._remember(record, entry, before, image)
        # a step in another thread looks at what is noted up to the image: an image that came
        # before the notes would be looked at in vain, and what stands in it waited for
        self.image = image
        self._release(entry.event, image)
        self.metrics.folded(entry, before, image, governs=self.is_leader)
        if self.is_leader and before.clocks_disagree != image.clocks_disagree:
            _log_clocks(image)
        self.watch.took(record, entry, image)
        crash_point("after-fold")
        if self.is_leader:
            self._publish()

    def _judge(self, error: MeshError) -> NoReturn:
        """Raise the error, or that what was believed must be forgotten."""
        if not self.watch.is_to_blame(error):
            # a snapshot that does not fit would end the next worker in the same way
            self._beginning.discard()
            raise error
        offset = self.image.offset
        self.forget()
        log.warning("log_not_trusted", reason=str(error), next="checking every signature")
        if isinstance(error, IntegrityError):
            raise error
        raise IntegrityError("state_fault", offset, offset, str(error)) from error

    def _remember(self, record: Record, entry: Entry, before: Image, image: Image) -> None:
        """Note what a step is to look at, once the image has the record.

        An outcome that the log does not count, such as a copy of one, is none to look at.
        """
        undecided, unusable = image.intents.undecided, image.intents.unusable
        # who stands by decides nothing, and begins with what the image holds; a start of ours that
        # was not folded yet is later than the image's
        decides = self.epoch is not None and image.epoch <= self.epoch
        if record.offset in undecided:
            self._open[record.offset] = record
            if decides:
                self._queue(image, record.offset, undecided[record.offset])
        elif (fault := unusable.fault_at(record.offset)) is not None:
            self._samples.add(record, fault)
        elif (
            decides
            and isinstance(entry.event, Check)
            and image.intents.checks is not before.intents.checks
        ):
            about = entry.event.offset
            self._queue(image, about, undecided[about], first=True, since=record.offset)

    def _release(self, event: Event | None, image: Image) -> None:
        """Keep the bytes of what is undecided in the published image, and no longer."""
        undecided = image.intents.undecided
        if not isinstance(event, Decision):
            return
        if isinstance(event, RecordsSetAside):
            for at in event.among(self._open):
                if at not in undecided:
                    del self._open[at]
        elif event.offset not in undecided:
            self._open.pop(event.offset, None)
            self._ordering.decided(event.offset, partial(self._queue_again, image))
        self._samples.keep(image.intents.unusable.holds)

    def _publish(self) -> None:
        for row in touched_rows(self.image):
            self._rows.write([row])
            crash_point("after-row")

    def _queue(
        self,
        image: Image,
        offset: int,
        entry: Entry,
        *,
        first: bool = False,
        since: int | None = None,
    ) -> None:
        """Let an undecided intent wait for the turn of its domain, see `Turns.add`."""
        key = image.identity.key_of(entry.signer)
        operator = key is not None and key.role is Role.OPERATOR and key.revoked is None
        domain = key.domain if key is not None else ""
        self._turns.add(offset, domain, urgent=operator, first=first, since=since)

    def _queue_again(self, image: Image, offsets: list[int]) -> None:
        """Let intents that were held behind another one be the next ones of their domain."""
        for offset in offsets:
            if (entry := image.intents.undecided.get(offset)) is not None:
                self._queue(image, offset, entry, first=True)

    @property
    def waits(self) -> int:
        """Counts the records that have begun to wait for a check."""
        return self._waits.count

    def waiting(self) -> dict[int, Awaited]:
        """Offset -> the checks that a record waits for; some may be decided by now."""
        return self._waits.known()

    def step(self) -> list[Record]:
        """Decide what can be decided, for a moment, and say what follows from the state.

        Returns the appended records, which must be folded before the next step; none when there is
        nothing to do until something arrives or a check comes out. Raises as `start`.
        """
        epoch = self.epoch
        while True:
            # one image for each round: records are folded by another thread meanwhile
            image = self.image
            if epoch is None or image.epoch != epoch or self.epoch != epoch:
                return []
            self._require_key(image)
            events: list[Event] = [*self._derived_intents(image), *self._decisions(image, epoch)]
            if events:
                break
            self._waits.end_step(image.offset)
            if not self._turns.has_next(image.offset):
                return []
        crash_point("before-append")
        records = self._writer.append_records(events)
        crash_point("after-append")
        self._waits.end_step(records[-1].offset)
        _log(image, events)
        return records

    def _decisions(self, image: Image, epoch: int) -> list[Decision]:
        """Decisions on the records whose turn it is, each on the state that the others give."""
        began, state, found = monotonic(), image, list[Decision]()
        clock, worker_skew = self._times(image)
        for run in image.intents.unusable.in_order(RANGES):
            basis = Basis(epoch, image.offset, clock, state.last_decision, worker_skew)
            event = self._set_run_aside(run, basis)
            state = decided(state, event, self._writer.key.public)
            found.append(event)
        for offset in self._candidates(image):
            entry = state.intents.undecided.get(offset)
            if entry is None:
                continue
            order = order_of(state, entry)
            if order is not None and self._ordering.holds(offset, order):
                continue
            now = monotonic()
            waited = round(self._waits.waited(offset, now) * 1000)
            verdict = decide(state, entry, clock, waited, worker_skew)
            if isinstance(verdict, Waiting):
                self._waits.add(offset, verdict.checks, now)
                if order is not None:
                    self._ordering.waits(offset, order)
            else:
                self._waits.remove(offset)
                if (record := self._undecided(offset)) is None:
                    continue
                basis = Basis(epoch, image.offset, clock, state.last_decision, worker_skew)
                event = decision_on(entry, verdict, basis, waited)
                if isinstance(event, IntentQuarantined):
                    self._set_aside(Copy(record, event.code, event.reason))
                state = decided(state, event, self._writer.key.public)
                found.append(event)
            # also behind one that waits: a domain may make each of its judgements dear
            if len(found) == BATCH or monotonic() - began > BATCH_S:
                break
        return found

    def _undecided(self, offset: int) -> Record | None:
        """What stands at an offset; None where another's decision on it was folded meanwhile."""
        record = self._open.get(offset)
        # a record is released once the image says that it is decided
        if record is None and offset in self.image.intents.undecided:
            raise KeyError(offset)
        return record

    @property
    def time(self) -> int:
        """The mesh's time now, ms; while another one governs, that of the last record."""
        if self._clock is None:
            return self.image.time
        return max(self.image.time, self._clock.shown())

    def _times(self, image: Image) -> tuple[int, int]:
        """(the mesh's time now, how far this machine is ahead of it), ms."""
        if self._clock is None:
            return image.clock, image.worker_skew
        clock = max(image.clock, self._clock.now(self._appended))
        return clock, self._clock.worker_skew(clock)

    def _set_run_aside(self, run: Run, basis: Basis) -> Decision:
        """The decision on unusable records; a few of them are copied for people."""
        event = set_aside(run, basis)
        for copy in self._samples.take(event, run.size):
            self._set_aside(copy)
        return event

    def _candidates(self, image: Image) -> Iterator[int]:
        """Offsets to be judged in one step; those whose turn it is are taken out of their queue.

        First what operators said. Then, one of each, so that neither keeps the step from the
        other: by turns of the domains, what arrived and what a check came out for; and those that
        wait. What came behind the image is for the next step: passed over now, it would be lost.
        """
        until, undecided = image.offset, image.intents.undecided
        yield from iter(lambda: self._turns.take_urgent(until), None)
        turns = iter(lambda: self._turns.take(until), None)
        again = self._waits.again(undecided, monotonic())
        self._again_first = not self._again_first
        yield from _in_turn(*((again, turns) if self._again_first else (turns, again)))

    def _derived_intents(self, image: Image) -> list[Intent]:
        """The intents that follow from the state and are not on the log yet."""
        return self._derived.due(image, software())[:BATCH]


def _in_turn(*sources: Iterator[int]) -> Iterator[int]:
    """One of each, as long as they last; nothing is taken that is not asked for."""
    turns = deque(sources)
    while turns:
        source = turns.popleft()
        if (found := next(source, None)) is not None:
            turns.append(source)
            yield found


def _log_clocks(image: Image) -> None:
    """Report that clocks disagree, or agree again."""
    found = clock_finding(image)
    if found is None:
        log.info("clocks_agree", offset=image.offset)
    else:
        log.warning(found.code, offset=image.offset, reason=found.text, next=found.next)


def _log(image: Image, events: Iterable[Event]) -> None:
    """Tell what was appended."""
    for event in events:
        about = event.meta.correlation
        if not isinstance(event, Decision):
            log.info("intent_derived", intent=event.type_name(), correlation_id=about)
            continue
        entry = image.intents.undecided.get(event.offset)
        asked = entry.event if entry is not None else None
        log.info(
            "decided",
            decision=event.type_name(),
            intent=asked.type_name() if asked is not None else None,
            offset=event.offset,
            code=getattr(event, "code", None),
            correlation_id=about,
        )
