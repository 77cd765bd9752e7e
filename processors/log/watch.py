"""What the fold tells of each record: the tree over the log, held against its checkpoints.

At a worker's start it also says which signatures need not be checked again, because a checkpoint
vouches for them. Where the log is not what was signed, a finding stands, and nothing more is
signed by this worker.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from mesh_events.codec import holds_signature
from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import Checkpoint
from mesh_events.record import Entry, Record
from processors.log.checkpoint_store import CheckpointStore
from processors.log.fold_start import Beginning, Start
from projections.image import Image
from projections.integrity.chain import Chain, ChainBreakError
from projections.integrity.log_verifier import Before, LogVerifier, MismatchError
from projections.integrity.trusted_prefix import IntegrityError, TrustedCheckpoints, TrustedPrefix
from snapshots.history import OtherLogError

log = structlog.get_logger(__name__)
LOOK_BACK_S = 60.0
"""So long at once, what stands before the start is looked at."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a log before it is read.

    Args:
        start: where its fold can begin, None for its first record.
        chain: its checkpoints.
        contradiction: why what is known of it cannot be right.
    """

    start: Start | None
    chain: Chain
    contradiction: OtherLogError | None = None


class Watch(Protocol):
    """What a fold tells, and what it asks."""

    def look(self, beginning: Beginning) -> Opening | None:
        """Before the log is read: what is known of it, if that can be learned. Changes nothing."""

    def begin(self, opening: Opening) -> bool:
        """The fold begins where the opening says; False where it has begun already."""

    def needs_verification(self, record: Record) -> bool:
        """Whether the signature of the next record must be checked."""

    def took(self, record: Record, entry: Entry, image: Image) -> None:
        """A record was folded; raises IntegrityError if all that was folded must be forgotten."""

    def caught_up(self) -> None:
        """The end of the log was reached; raises as `took`."""

    def is_to_blame(self, error: MeshError) -> bool:
        """Whether the fold failed, or may have, since records were believed."""

    def describe(self) -> dict[str, Any]:
        """What the readiness page tells of it."""


class NoWatch:
    """Checks every signature and keeps nothing."""

    def look(self, beginning: Beginning) -> Opening | None:
        """Nothing is known."""
        del beginning
        return None

    def begin(self, opening: Opening) -> bool:
        """Nothing to expect."""
        del opening
        return True

    def needs_verification(self, record: Record) -> bool:
        """Every one."""
        del record
        return True

    def took(self, record: Record, entry: Entry, image: Image) -> None:
        """Nothing to keep."""

    def caught_up(self) -> None:
        """Nothing was believed."""

    def is_to_blame(self, error: MeshError) -> bool:
        """Never."""
        del error
        return False

    def describe(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {}


class LogWatch:
    """The verifier of one worker's fold. Safe to use from its threads.

    Args:
        store: where checkpoints are kept.
        root_key: the mesh's root; without it nothing is believed.
    """

    def __init__(self, store: CheckpointStore, root_key: str | None) -> None:
        self._store, self._root_key = store, root_key
        self._lock = threading.RLock()
        self._verifier = LogVerifier()
        self._prefix: TrustedPrefix | None = None
        # what stands before the start, until it was looked at
        self._before: Before | None = None
        self._known: set[str] = set()
        # the log's last record when its end was reached before a checkpoint that covers more
        self._short: int | None = None
        self.finding: dict[str, Any] | None = None

    def look(self, beginning: Beginning) -> Opening | None:
        """Before the log is read: learn what was signed over it, and where its fold can begin.

        Blocks on both places, and changes nothing but the finding. A place that does not answer is
        asked again when this worker leads, and so are both where records were taken already.
        """
        if self._has_begun() or self.finding:
            return None
        try:
            chain = self._chain()
        except MeshError as error:
            log.warning("checkpoints_not_read", error=str(error))
            return None
        if chain is None:
            return None
        if not self._root_key:
            return Opening(None, chain)
        try:
            return Opening(beginning.find(self._root_key), chain)
        except OtherLogError as error:
            return Opening(None, chain, error)

    def begin(self, opening: Opening) -> bool:
        """Expect what was signed, and go on from the start; not once something was expected."""
        start, chain = opening.start, opening.chain
        with self._lock:
            if self._has_begun() or self._known or self.finding:
                return False
            if opening.contradiction is not None:
                self.contradicted(opening.contradiction)
                return False
            if start is not None:
                self._go_on(start, chain)
            self._expect(chain)
            if start is None and not self.finding and self._root_key and chain.head is not None:
                self._prefix = TrustedPrefix(
                    TrustedCheckpoints(chain.path(), self._root_key), self._verifier
                )
            return True

    def contradicted(self, error: OtherLogError) -> None:
        """The log holds other records than when the snapshots of this home were made."""
        with self._lock:
            if not self.finding:
                self._found("log_changed", error.first, error.last, str(error))

    @property
    def looks_back(self) -> bool:
        """Whether what stands before the start is still to be looked at; nothing is signed then."""
        return self._before is not None

    @property
    def looked_back_to(self) -> int:
        """The last offset before the start that was looked at; -1 before the first."""
        return -1 if self._before is None else self._before.held

    def look_back(self, records: Iterable[Record], seconds: float = LOOK_BACK_S) -> None:
        """Hold the log, behind `looked_back_to`, against what was known of it at the start.

        It is left for the next call after so many seconds: a long log takes many of them.
        """
        before = self._before
        if before is None:
            return
        until = time.monotonic() + seconds
        try:
            if not before.hold(records, lambda: time.monotonic() > until):
                return
        except MismatchError as error:
            with self._lock:
                self._found(error.code, error.first, error.last, str(error))
            return
        self._before = None
        log.info("history_read", offset=before.offset, size=before.tree.size)

    def beginning_gone(self, text: str) -> None:
        """Records before the start are not on the log any more."""
        with self._lock:
            if self._before is not None:
                self._found("log_start_truncated", 0, self._before.offset, text)

    def equalize(self) -> None:
        """At a leadership's start: learn what was signed meanwhile, make both places equal.

        Raises MeshError where a place does not answer.
        """
        # the fold goes on meanwhile: nothing is waited for under the lock
        chain = self._chain()
        with self._lock:
            if chain is None or self.finding:
                return
            self._expect(chain)
            ahead = self._verifier.expected
            if ahead is not None:
                self._found_cut(self._verifier.offset, ahead.offset)
                return
        self._store.equalize(chain)

    def needs_verification(self, record: Record) -> bool:
        """Whether the signature of the next record must be checked."""
        with self._lock:
            return self._prefix is None or self._prefix.needs_verification(record)

    def took(self, record: Record, entry: Entry, image: Image) -> None:
        """A record was folded; raises IntegrityError if all that was folded must be forgotten."""
        with self._lock:
            if self.finding:
                return
            verified = holds_signature(record, entry, image.identity.root)
            try:
                if self._prefix is None:
                    self._verifier.take(record, verified=verified)
                    return
                self._prefix.take(record, verified=verified, identity=image.identity)
                if not self._prefix.is_needed:
                    log.info("prefix_trusted", offset=record.offset, size=self._verifier.size)
                    self._prefix = None
            except MismatchError as error:
                self._mismatched(error)
            except IntegrityError as error:
                self._found(error.code, error.first, error.last, str(error))
                raise

    def caught_up(self) -> None:
        """The end of the log was reached; raises IntegrityError as `took`."""
        with self._lock:
            prefix, self._prefix = self._prefix, None
            self._note_end()
            try:
                if prefix is not None:
                    prefix.close()
            except IntegrityError as error:
                self._found(error.code, error.first, error.last, str(error))
                raise

    def is_to_blame(self, error: MeshError) -> bool:
        """Whether the fold failed, or may have, since records were believed; none are any more."""
        with self._lock:
            if isinstance(error, IntegrityError):
                return True
            if self._prefix is None or not self._prefix.is_open:
                return False
            first, last = self._verifier.offset + 1, self._verifier.offset + 1
            self._found("state_fault", first, last, str(error))
            return True

    def due(self, origin: str, most: int) -> Checkpoint | None:
        """The next checkpoint to sign over at most `most` records, None where there is nothing."""
        with self._lock:
            if self.finding or self._prefix or self._before or not self._verifier.unconfirmed:
                return None
            return self._verifier.head(origin, most)

    @property
    def unconfirmed(self) -> int:
        """How many records stand behind the last checkpoint."""
        return self._verifier.unconfirmed

    def signed(self, checkpoint: Checkpoint) -> None:
        """A checkpoint stands in both places."""
        with self._lock:
            self._known.add(checkpoint.digest)
            self._verifier.confirm(checkpoint)

    def describe(self) -> dict[str, Any]:
        """What the readiness page tells of it; `finding` is null while all is well."""
        with self._lock:
            last = self._verifier.confirmed
            head = {"size": last.size, "offset": last.offset} if last else None
            return {"checkpoint": head, "finding": self.finding}

    def _chain(self) -> Chain | None:
        """What both places hold; None where it contradicts itself. Raises MeshError."""
        try:
            return self._store.read()
        except ChainBreakError as error:
            with self._lock:
                self._found(error.code, error.offset, error.offset, str(error))
            return None

    def _has_begun(self) -> bool:
        return self._verifier.size > 0

    def _go_on(self, start: Start, chain: Chain) -> None:
        """Begin behind a start: the tree goes on from there."""
        offset = start.image.offset
        signed = [one.body for one in chain.by_size() if one.body.offset <= offset]
        last = signed[-1] if signed else None
        behind = last.offset if last else -1
        unverified = [one for one in start.unverified if one > behind]
        self._verifier = LogVerifier(start.tree, offset, last, unverified)
        self._before = Before(offset, start.tree, signed)

    def _expect(self, chain: Chain) -> None:
        """Hold the log against checkpoints that are new here."""
        behind = self._verifier.based_on
        news = [one.body for one in chain.by_size() if one.note.digest not in self._known]
        self._known |= {one.digest for one in news}
        try:
            self._verifier.expect(one for one in news if one.size > behind)
        except MismatchError as error:
            self._found(error.code, error.first, error.last, str(error))

    def _note_end(self) -> None:
        """Remember where the log ended before a checkpoint: what comes now takes the place of more.

        That is no finding yet: for a moment, a broker that begins to lead may show less.
        """
        if self._verifier.expected is None:
            self._short = None
        elif self._short is None:
            self._short = self._verifier.offset

    def _mismatched(self, error: MismatchError) -> None:
        ahead, confirmed = self._verifier.expected, self._verifier.confirmed
        proven = confirmed.offset if confirmed is not None else -1
        if self._short is not None and ahead is not None and proven <= self._short < ahead.offset:
            self._found_cut(self._short, ahead.offset)
        else:
            self._found(error.code, error.first, error.last, str(error))

    def _found_cut(self, last: int, covered: int) -> None:
        """The log ended at an offset, and a checkpoint covers more: what stands there is new."""
        last = last if self._short is None else min(last, self._short)
        text = f"the log ended at offset {last}, a checkpoint covers it up to {covered}"
        self._found("tail_cut", last + 1, covered, text)

    def _found(self, code: str, first: int, last: int, text: str) -> None:
        """Something that must not be: nothing is signed over it."""
        log.error(
            "log_mismatch", code=code, first=first, last=last, text=text, next="sdm audit verify"
        )
        self.finding = {"code": code, "first": first, "last": last, "text": text}
        self._verifier, self._prefix, self._before = LogVerifier(), None, None
