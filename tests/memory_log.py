"""A governance log in memory: real signed records in memory, with governor and controllers at hand.

    log = MemoryLog()                          # founded, no governor yet
    log.start_governor()
    log.operator(ClusterRegistered, cluster="east", ...)
    log.govern()                              # decides all that can be decided
    log.image                                 # what the log says, folded with real verification

Everything is deterministic: keys come from names, ids and times from counters.
"""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mesh_events import avro
from mesh_events.codec import Wire, decode, encode
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    MeshFounded,
    MeshKeyIntroduced,
    MeshKeyRevoked,
    MeshRole,
    SchemaIntroduced,
)
from mesh_events.facts import CheckFailed, CheckPassed, Fact
from mesh_events.intents import Intent
from mesh_events.meta import MESH_DOMAIN, Event, Meta, derived_id
from mesh_events.record import Record
from mesh_events.signing import SigningKey
from mesh_events.vocabulary import EVENTS
from processors.governor.decision import Basis, set_aside
from projections.deciding.decide import decide
from projections.deciding.derived import derived_intents
from projections.deciding.named_keys import owner
from projections.deciding.unusable import Run
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict, Waiting
from projections.fold import apply
from projections.image import EMPTY, Image
from projections.replay import entry_of

AnyEvent = TypeVar("AnyEvent", bound=Event)

EPOCH_MS = 1_790_000_000_000
"""Append time of the first record."""
TICK_MS = 1000
"""Time from one record to the next."""
SCHEMA_IDS = {name: number for number, name in enumerate(EVENTS, start=1)}
"""Event name -> schema id; SchemaIntroduced comes first in the vocabulary and on the log."""
FOUNDATION_RECORDS = len(EVENTS) + 1
"""Records of a founded log: a schema for each event, and MeshFounded."""


@dataclass(frozen=True)
class Passes:
    """A check that comes out well, with its evidence."""

    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fails:
    """A check that comes out badly."""

    code: str
    reason: str = "the world is not as it should be"


class Never:
    """A check that nobody looks at."""


CheckTable = Mapping[str, Passes | Fails | Never]
ALL_PASS: CheckTable = {
    "schema_registered": Passes({"subject": "east.users-value", "schema_id": "7"}),
}
"""Checks that are not in a table pass without evidence."""


@cache
def key(name: str) -> SigningKey:
    """The signing key of that name: `root`, `operator`, `governor`, `controller` or any other."""
    seed = hashlib.sha256(f"paper {name}".encode()).digest()
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed))


def at(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as a UTC datetime."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def uuid7(milliseconds: int, number: int) -> str:
    """The `number`-th UUIDv7 of a time."""
    return str(uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62 | number))


def record_of(wire: Wire, offset: int, time: int) -> Record:
    """Produced bytes as Kafka would hand them out again."""
    return Record(offset, time, wire.key, wire.value, dict(wire.headers))


def sign(event: Event, by: SigningKey, root: str = "root") -> Wire:
    """The signed record of an event, under the schema ids of the log in memory and a root."""
    return encode(event, SCHEMA_IDS[event.type_name()], by, key(root).public)


def resigned(record: Record, by: SigningKey, root: str = "root", **changes: Any) -> Record:
    """The record with other bytes, signed as it stands now by `by`."""
    record = replace(record, **changes)
    headers = {
        **record.headers,
        "mesh_key": by.public.encode(),
        "mesh_signature": by.sign(key(root).public, record.key or b"", record.value or b""),
    }
    return replace(record, headers=headers)


class MemoryLog:
    """A log that grows by the methods below; `now` is the append time (ms) of the next record.

    `root` is the name of the root's key: another mesh has another one.
    """

    def __init__(
        self, *, founded: bool = True, checks: CheckTable = ALL_PASS, root: str = "root"
    ) -> None:
        self.root = root
        self.records: list[Record] = []
        self.now = EPOCH_MS
        self.epoch = -1
        self.governor, self.controller = "governor", "controller"
        self.checks = checks
        self._ids = 0
        self._folded: tuple[int, Image] = (0, EMPTY)
        if founded:
            self.records, self.now, self._folded = _foundation(root)
            self.records = list(self.records)

    @property
    def image(self) -> Image:
        """The image at the end of the log."""
        count, image = self._folded
        for record in self.records[count:]:
            image = apply(image, entry_of(record, image))
        self._folded = len(self.records), image
        return image

    def found(self) -> None:
        """Introduce every schema, then name the keys of operator, governor and controller."""
        for name, number in SCHEMA_IDS.items():
            self.append(introduction(number, avro.subject(name), avro.text_of(name)), by=self.root)
        event = MeshFounded(
            meta=meta(MESH_DOMAIN, derived_id("found", "mesh", 0), self.now, actor="installer"),
            mesh="paper",
            governance_cluster="east",
            operator_key=key("operator").public,
            governor_key=key("governor").public,
            controller_key=key("controller").public,
        )
        self.append(event, by=self.root)

    def put(self, record: Record, *, time: int | None = None) -> int:
        """Append any bytes; `time` may lie before the record in front. Returns the offset."""
        offset = self.records[-1].offset + 1 if self.records else 0
        self.records.append(replace(record, offset=offset, time=self.now if time is None else time))
        self.now += TICK_MS
        return offset

    def append(self, event: Event, *, by: str, time: int | None = None) -> int:
        """Append an event signed with the key named `by`; returns the offset."""
        return self.put(record_of(sign(event, key(by), self.root), 0, 0), time=time)

    def make(self, kind: type[AnyEvent], sender: str, /, **fields: Any) -> AnyEvent:
        """An event of the domain `sender`, made now, not appended."""
        self._ids += 1
        identity = uuid7(self.now, self._ids)
        return kind(meta=meta(sender, identity, self.now), **fields)

    def say(self, kind: type[Event], sender: str, /, **fields: Any) -> int:
        """A domain's intent, signed with the domain's key; returns the offset."""
        return self.append(self.make(kind, sender, **fields), by=sender)

    def operator(self, kind: type[Event], **fields: Any) -> int:
        """The operator's intent; returns the offset."""
        return self.append(self.make(kind, MESH_DOMAIN, **fields), by="operator")

    def report(self, kind: type[Fact], **fields: Any) -> int:
        """A controller's fact; returns the offset."""
        return self.append(self.make(kind, MESH_DOMAIN, **fields), by=self.controller)

    def introduce_key(self, role: MeshRole, name: str, *, by: str = "root") -> int:
        """The root gives a part of the mesh the key of that name; returns the offset."""
        made = key(name)
        fields = {"role": role, "public_key": made.public, "proof": self.proof(name, owner(role))}
        return self.append(self.make(MeshKeyIntroduced, MESH_DOMAIN, **fields), by=by)

    def proof(self, name: str, owner: str) -> str:
        """The proof that the key of that name is held, for a domain or `mesh/<role>`."""
        return key(name).prove(key(self.root).public, owner)

    def revoke_key(self, name: str, *, by: str = "root") -> int:
        """The root takes the key of that name away; returns the offset."""
        fields = {"public_key": key(name).public, "reason": "it was seen elsewhere"}
        return self.append(self.make(MeshKeyRevoked, MESH_DOMAIN, **fields), by=by)

    def start_governor(self, *, names: bool = True) -> int:
        """A governor starts; its epoch is returned and used for the decisions to come.

        names: it names the start before it, as it does since that is a field.
        """
        before = self.image.epoch if names else None
        event = self.make(GovernorStarted, MESH_DOMAIN, version="1", previous_epoch=before)
        self.epoch = self.append(event, by=self.governor)
        return self.epoch

    def accept(self, offset: int, *, by: str | None = None, **fields: Any) -> int:
        """Append that the intent at `offset` is accepted, whatever the rules say; see `rule`."""
        return self.rule(offset, Accepted(), by=by, **fields)

    def rule(self, offset: int, verdict: Verdict, *, by: str | None = None, **fields: Any) -> int:
        """Append a decision on the record at `offset`; returns the decision's offset.

        `fields` are those of the decision: `epoch`, `basis`, `clock`, `follows`.
        """
        return self.append(self.decision(offset, verdict, **fields), by=by or self.governor)

    def verdict(self, offset: int, *, clock: int | None = None, waited: int = 0) -> Verdict:
        """What a governor would decide about the undecided record at `offset`."""
        image = self.image
        when = image.time if clock is None else clock
        if (fault := image.intents.unusable.fault_at(offset)) is not None:
            return Quarantined(fault.code, fault.reason)
        return decide(image, image.intents.undecided[offset], when, waited)

    def govern(self) -> None:
        """Decide the oldest record that can be decided, again and again, until all is quiet.

        Nothing is decided while no governor, or a later one, has started.
        """
        while self.image.epoch == self.epoch >= 0 and self._step():
            pass

    def event_at(self, offset: int) -> Event:
        """The event that was appended at `offset`."""
        found = next(record for record in self.records if record.offset == offset)
        event = decode(found, self.image.schemas, self.image.identity.root).event
        assert event is not None
        return event

    def set_aside(self, run: Run, *, by: str | None = None) -> int:
        """Append the decision on a run of unusable records; returns its offset."""
        image = self.image
        clock = max(image.clock, self.now)
        basis = Basis(self.epoch, image.offset, clock, image.last_decision)
        return self.append(set_aside(run, basis), by=by or self.governor)

    def _step(self) -> bool:
        for run in self.image.intents.unusable.in_order(1):
            self.set_aside(run)
            return True
        for offset in sorted(self.image.intents.undecided):
            verdict = self.verdict(offset, clock=max(self.image.clock, self.now))
            if not isinstance(verdict, Waiting):
                self.rule(offset, verdict)
                return True
            if self._look(offset, verdict.checks):
                return True
        said = derived_intents(self.image, "paper/1")
        for intent in said:
            self.append(intent, by=self.governor)
        return bool(said)

    def _look(self, offset: int, names: tuple[str, ...]) -> bool:
        """Report the outcomes that the table gives; whether there was one."""
        found = [(name, self.checks.get(name, Passes())) for name in names]
        for name, outcome in found:
            match outcome:
                case Passes(evidence):
                    self.report(CheckPassed, offset=offset, check=name, evidence=dict(evidence))
                case Fails(code, reason):
                    self.report(CheckFailed, offset=offset, check=name, code=code, reason=reason)
        return any(not isinstance(outcome, Never) for _, outcome in found)

    def decision(self, offset: int, verdict: Verdict, **fields: Any) -> Decision:
        """What `rule` appends."""
        image = self.image
        epoch = fields.setdefault("epoch", self.epoch)
        entry = image.intents.undecided.get(offset)
        intent = entry.event.meta.id if entry and isinstance(entry.event, Intent) else "unread"
        about = meta(MESH_DOMAIN, derived_id(str(offset), "decide", epoch), self.now)
        if entry and entry.event:
            about = about.model_copy(update={"correlation": entry.event.meta.correlation})
        common: dict[str, Any] = {
            "meta": about,
            "offset": offset,
            "basis": image.offset,
            "clock": at(max(image.clock, self.now)),
            "follows": image.last_decision,
            **fields,
        }
        match verdict:
            case Accepted():
                return IntentAccepted(**common, intent=intent)
            case Rejected(code, reason):
                return IntentRejected(**common, intent=intent, code=code, reason=reason)
            case Quarantined(code, reason):
                return IntentQuarantined(**common, code=code, reason=reason)
        raise AssertionError(f"no decision is {verdict}")


def open_offsets(image: Image) -> list[int]:
    """Offsets of all undecided records, those that are unusable among them."""
    runs = image.intents.unusable.runs.values()
    unusable = {one for run in runs for one in range(run.first, run.last + 1) if run.holds(one)}
    return sorted(unusable | set(image.intents.undecided))


def meta(domain: str, identity: str, time: int, actor: str = "") -> Meta:
    """An event's `meta`, made at `time` (ms)."""
    return Meta(
        id=identity,
        time=at(time),
        actor=actor or f"{domain}.somebody",
        domain=domain,
        correlation=identity,
        producer="paper/1",
    )


def introduction(number: int, name: str, text: str) -> SchemaIntroduced:
    """The event that introduces the schema `text` under the id `number`."""
    return SchemaIntroduced(
        meta=meta(MESH_DOMAIN, derived_id(name, "introduce", number), EPOCH_MS, "installer"),
        schema_id=number,
        name=name,
        fingerprint=avro.fingerprint(text),
        schema_text=text,
    )


@cache
def _foundation(root: str) -> tuple[list[Record], int, tuple[int, Image]]:
    log = MemoryLog(founded=False, root=root)
    log.found()
    image = log.image
    return log.records, log.now, (len(log.records), image)
