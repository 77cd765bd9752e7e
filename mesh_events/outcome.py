"""Waiting for what the governor makes of a record.

A decision counts under the latest start of a governor only. A governor that was paused and replaced
may still answer once: between the record and its answer then stands the start of another. It cannot
answer on a record behind that start, since who reads so far learns that it was replaced. And it
counts only if it follows the last one that counted, see `decision_chain`.

Of several records with the same bytes one is judged: its answer is that of the others, see
`repeats`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mesh_events.codec import decode, has_valid_signature
from mesh_events.decision_chain import DecisionChain
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    MeshKeyRevoked,
    RecordsSetAside,
)
from mesh_events.errors import ConfigurationError, InfrastructureError, WaitTimeoutError
from mesh_events.kafka.connection import Connection
from mesh_events.meta import MESH_DOMAIN, Event
from mesh_events.read import LogReader
from mesh_events.record import CE_ID, CE_TYPE, SIGNER, Record
from mesh_events.repeats import Found, first_answer, is_repeat
from mesh_events.signing import MeshKeys

if TYPE_CHECKING:
    from mesh_events.schema.registry import Registry

_DECISIONS = (IntentAccepted, IntentRejected, IntentQuarantined, RecordsSetAside)
LOOK_BACK = 64
"""Records that a wait reads at once, up to the record that it waits for."""
_STARTED = GovernorStarted.cloud_event_type().encode()
_REVOKED = MeshKeyRevoked.cloud_event_type().encode()


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where an event stands: Kafka has acknowledged it at `offset`."""

    id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided: `accepted`, or a code and a reason; `offset` is the decision's.

    `clock` is the mesh's at the decision.
    """

    accepted: bool
    offset: int
    code: str = ""
    reason: str = ""
    clock: datetime | None = field(default=None, compare=False)


class DecisionWatch:
    """Takes the records from `start` on, in order, until the decision on one of them that counts.

    Args:
        offset: where the record stands.
        schemas: schema id -> text.
        keys: of the mesh; the governor's decisions count.
        is_copy: whether the start of a governor with this id stands before an offset already;
            anybody can append a copy of a signed record. Asked only of a start that does not name
            the one before it.
        earlier: the records of the log in [first, end); asked only where a decision follows one
            that stands before `start`.
    """

    def __init__(
        self,
        offset: int,
        schemas: Mapping[int, str],
        keys: MeshKeys,
        is_copy: Callable[[str, int], bool],
        earlier: Callable[[int, int], Iterable[Record]],
    ) -> None:
        self._offset, self._schemas, self._keys = offset, schemas, keys
        self._is_copy, self._earlier = is_copy, earlier
        self.start = max(0, offset + 1 - LOOK_BACK)
        # offset -> start behind the record
        self._starts: dict[int, GovernorStarted] = {}
        self._chain = DecisionChain()
        # what stands from `_first` on is in the chain, but for what is kept here
        self._first, self._window = self.start, LOOK_BACK
        self._unread: list[Record] = []

    def take(self, record: Record) -> Outcome | None:
        """The outcome, once the record is the decision that counts."""
        event = self.decision(record)
        return _outcome(event, record.offset) if event is not None else None

    def decision(self, record: Record) -> Decision | None:
        """As `take`, the decision itself.

        Raises ConfigurationError where the record revokes the governor's key: what that signs
        behind it does not count, and another key's decisions are not known.
        """
        _require_in_force(record, self._keys)
        if record.offset <= self._offset:
            self._unread.append(record)
            return None
        event = self._add(record)
        if isinstance(event, GovernorStarted):
            self._starts[record.offset] = event
        if not isinstance(event, _DECISIONS) or not event.decides(self._offset):
            return None
        if self._is_over(event.epoch) or not self._follows_last(record.offset, event):
            return None
        return event

    def _add(self, record: Record) -> Event | None:
        event = _of_governor(record, self._schemas, self._keys)
        if isinstance(event, GovernorStarted | Decision):
            self._chain.add(record.offset, event)
        return event

    def _follows_last(self, offset: int, event: Decision) -> bool:
        """Whether a decision follows the last one that counts, read back as far as it takes."""
        while True:
            found = self._chain.follows_last(offset, event)
            if found is not None:
                return found
            if not self._unread and self._first <= event.epoch:
                return False
            self._read_back(event.epoch)

    def _read_back(self, epoch: int) -> None:
        """Take more of the log before the record, not further than to the epoch's start."""
        unread, self._unread = self._unread, []
        if not unread:
            self._window *= 8
            first = max(epoch, self._first - self._window)
            unread, self._first = list(self._earlier(first, self._first)), first
        for record in unread:
            self._add(record)

    def _is_over(self, epoch: int) -> bool:
        """Whether another governor has started behind an epoch."""
        later = {at: start for at, start in self._starts.items() if at > epoch}
        for at, start in later.items():
            if not self._starts_nothing(start, at, epoch):
                return True
            del self._starts[at]
        return False

    def _starts_nothing(self, start: GovernorStarted, at: int, epoch: int) -> bool:
        """Whether a start behind an epoch that counts is a copy, or stands beside that one."""
        if start.previous_epoch is None:
            return self._is_copy(start.meta.id, at)
        return start.previous_epoch < epoch


def outcome_of(
    receipt: Receipt,
    connection: Connection,
    registry: "Registry",
    keys: MeshKeys,
    *,
    timeout: float,
) -> Outcome:
    """Wait until the governor has decided the intent at `receipt`.

    Only a decision under the latest epoch is told; a replaced governor's has no effect. Where the
    very same record stood on the log before, the answer to that one is told.

    Raises WaitTimeoutError after `timeout` seconds; the intent is still undecided then. Raises
    ConfigurationError where the governor's key is revoked on the part of the log that is read.
    """
    wait = _Wait(receipt, connection, registry, keys, timeout)
    found = wait.decision_on(receipt.offset)
    if is_repeat(found.decision) and (own := wait.records.get(receipt.offset)) is not None:
        found = first_answer(own, wait.between, wait.decision_on) or found
    return _outcome(found.decision, found.offset)


class _Wait:
    """Reads the log for one receipt, until a time; `records` has those that were waited for."""

    def __init__(
        self,
        receipt: Receipt,
        connection: Connection,
        registry: "Registry",
        keys: MeshKeys,
        timeout: float,
    ) -> None:
        self._receipt, self._connection, self._keys = receipt, connection, keys
        self._schemas = _KnownSchemas(registry)
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        self._starts = _Starts(connection, keys, self._deadline)
        self.records: dict[int, Record] = {}

    def decision_on(self, offset: int) -> Found:
        """Wait for the decision on the record at an offset."""
        watch = DecisionWatch(offset, self._schemas, self._keys, self._is_copy, self._earlier)
        left = max(0.1, self._deadline - time.monotonic())
        with LogReader(self._connection, watch.start) as reader:
            for record in reader.follow(left):
                if record.offset == offset:
                    self.records[offset] = record
                decision = watch.decision(record)
                if decision is not None:
                    return Found(decision, record.offset)
        receipt = self._receipt
        raise WaitTimeoutError(
            f"no decision on {receipt.id} at offset {offset} within {self._timeout:g} s: see "
            f"that the governor runs (`sdm status`), then look again with `sdm trace {receipt.id}`"
        )

    def between(self, first: int, end: int) -> Iterator[Record]:
        """The records in [first, end)."""
        return _between(self._connection, first, end, self._deadline)

    def _earlier(self, first: int, end: int) -> Iterator[Record]:
        signer = (self._keys.governor or "").encode()
        return (one for one in self.between(first, end) if one.headers.get(SIGNER) == signer)

    def _is_copy(self, name: str, before: int) -> bool:
        return self._starts.has(name, before)


def _of_governor(record: Record, schemas: Mapping[int, str], keys: MeshKeys) -> Event | None:
    """The event in a record that the governor's key has signed, None for any other record.

    Nothing of a stranger's record is decoded: its writer could have registered a schema that keeps
    a reader busy for ever.
    """
    named = record.headers.get(SIGNER)
    if keys.governor is None or named != keys.governor.encode():
        return None
    if not has_valid_signature(record, keys.root):
        return None
    return decode(record, schemas, keys.root, verify=False).event


def _require_in_force(record: Record, keys: MeshKeys) -> None:
    headers = record.headers
    if headers.get(CE_TYPE) != _REVOKED or headers.get(SIGNER) != keys.root.encode():
        return
    if record.key != f"key/{MESH_DOMAIN}/{keys.governor}".encode():
        return
    if has_valid_signature(record, keys.root):
        raise ConfigurationError(
            f"the governor's key {keys.governor} was revoked at offset {record.offset} of the "
            "log: take the mesh's new mesh.json"
        )


def decision_in(record: Record, schemas: Mapping[int, str], keys: MeshKeys) -> Decision | None:
    """The decision in a record that the governor's key has signed, whether it counts or not."""
    event = _of_governor(record, schemas, keys)
    return event if isinstance(event, _DECISIONS) else None


class _Starts:
    """Where each governor's start stands first; the log is read once, as far as was asked."""

    def __init__(self, connection: Connection, keys: MeshKeys, deadline: float) -> None:
        self._connection, self._keys, self._deadline = connection, keys, deadline
        self._first: dict[str, int] = {}
        self._read_to = 0

    def has(self, name: str, before: int) -> bool:
        """Whether the start with this id stands before an offset; reads headers only."""
        if self._read_to < before and name not in self._first:
            self._read(before)
        return self._first.get(name, before) < before

    def _read(self, end: int) -> None:
        signer = (self._keys.governor or "").encode()
        for record in _between(self._connection, self._read_to, end, self._deadline):
            headers = record.headers
            if headers.get(CE_TYPE) != _STARTED or headers.get(SIGNER) != signer:
                continue
            name = (headers.get(CE_ID) or b"").decode(errors="replace")
            if name not in self._first and has_valid_signature(record, self._keys.root):
                self._first[name] = record.offset
        self._read_to = end


def _between(connection: Connection, first: int, end: int, deadline: float) -> Iterator[Record]:
    with LogReader(connection, first) as reader:
        for record in reader.to_end():
            if record.offset >= end:
                return
            if time.monotonic() > deadline:
                raise WaitTimeoutError(
                    "it takes longer to read the log back to what a decision follows, to a "
                    "governor's first start, or to the first record of several that are the same: "
                    "wait for longer"
                )
            yield record


class _KnownSchemas(dict[int, str]):
    """Schema id -> text, asked from the registry when first met; never empty, never guessing."""

    def __init__(self, registry: "Registry") -> None:
        super().__init__({-1: ""})
        self._registry = registry

    def get(self, schema_id: int, default: Any = None) -> Any:
        """The schema's text, or `default` if the registry has none."""
        try:
            return self._registry.schema_text(schema_id)
        except InfrastructureError as error:
            if error.retriable:
                raise
            return default


def _outcome(event: Decision, offset: int) -> Outcome:
    if isinstance(event, IntentRejected | IntentQuarantined | RecordsSetAside):
        return Outcome(False, offset, event.code, event.reason, event.clock)
    return Outcome(True, offset, clock=event.clock)
