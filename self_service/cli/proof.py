"""Checking a proof that one record stands on the log, and what was decided on it. Pure.

It needs no log: whoever checks it brings the keeper's public key. What is shown is what stands
there, not what is missing: that no other record stands between, such as the revocation of a key or
the start of a later governor, only the whole log can tell (`sdm audit verify`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mesh_events import avro
from mesh_events.codec import decode, has_valid_signature, schema_id_of
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentQuarantined,
    IntentRejected,
    MeshFounded,
    MeshKeyIntroduced,
    MeshRole,
    RecordsSetAside,
    SchemaIntroduced,
)
from mesh_events.errors import UnusableRecordError
from mesh_events.leaf import leaf_hash
from mesh_events.meta import Event, Kind
from mesh_events.record import SIGNER, Record
from projections.identity import Role
from projections.named_keys import unfit
from projections.tree import is_included
from self_service.cli.exits import FindingError
from self_service.cli.proof_file import Authority, Decided, Legible, Placed, Proof


class State(StrEnum):
    """What a proof says of the decision on its record."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    QUARANTINED = "QUARANTINED"
    UNDECIDED = "UNDECIDED"
    NONE_NEEDED = "NONE NEEDED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided: the code and the reason of a refusal; the decision's place and signer."""

    state: State
    code: str = ""
    reason: str = ""
    offset: int | None = None
    time: int | None = None
    epoch: int | None = None
    signer: str | None = None

    def __str__(self) -> str:
        return f"{self.state} {self.code}".rstrip()


@dataclass(frozen=True, slots=True)
class Proven:
    """What a valid proof shows.

    `event` is None for a record that says nothing, and `fault` tells why. `signer` is the key that
    signed the record, None if its signature does not verify; `introducer` that of the schema.
    `root` is the signer of the log's first record: the mesh's root.
    """

    proof: Proof
    event: Event | None
    fault: str
    signer: str | None
    introducer: str | None
    outcome: Outcome
    root: str


@dataclass(frozen=True, slots=True)
class _Read:
    """A record as its schema lets it be read; `signer` and `introducer` as of `Proven`."""

    event: Event | None
    fault: str
    signer: str | None
    introducer: str | None


@dataclass(frozen=True, slots=True)
class _Roles:
    """The mesh's root, and key -> (what it may do, number of the record that says so)."""

    root: str
    named: Mapping[str, tuple[Role, int]]

    def has(self, key: str | None, placed: Placed, *roles: Role) -> bool:
        """Whether a key had one of the roles when a record was appended."""
        role, since = self.named.get(key or "", (None, 0))
        return role in roles and since <= placed.index


def check(proof: Proof, key: str) -> Proven:
    """Check everything with the keeper's public key; raises FindingError for what is wrong."""
    _require_places(proof, key)
    roles = _roles(proof.authority)
    subject = _read(proof.subject, roles.root)
    _require_introducer(proof.subject, subject, roles)
    outcome = _outcome(proof, subject, roles)
    return Proven(
        proof, subject.event, subject.fault, subject.signer, subject.introducer, outcome, roles.root
    )


def _require_places(proof: Proof, key: str) -> None:
    """Does every record stand under the root that the keeper signed?"""
    body = proof.checkpoint.body
    if proof.checkpoint.signer([key]) is None:
        raise FindingError(
            f"the checkpoint of {body.origin} over {body.size} records is not signed by {key}: "
            "it was edited, or the key is not that of its keeper"
        )
    for one in proof.places():
        leaf = leaf_hash(one.record)
        if not is_included(leaf, one.index, body.size, one.path, body.root):
            raise FindingError(
                f"the record at offset {one.record.offset} does not stand under the checkpoint "
                f"over {body.size} records: the record, its place or its path was edited"
            )
        if one.record.offset > body.offset:
            raise FindingError(
                f"the record is said to stand at offset {one.record.offset}, and the checkpoint "
                f"ends at {body.offset}"
            )


def _roles(authority: Authority) -> _Roles:
    """The roles of the root and of those that it named."""
    first = authority.first
    root = _signer(first.record, None)
    _introduction(first.record)
    if first.index or root is None:
        raise FindingError(
            f"the record at offset {first.record.offset} is not the signed first one of the log: "
            "nobody can tell whose word counts there"
        )
    roles = _Roles(root, {root: (Role.ROOT, 0)})
    for one in sorted(authority.keys, key=lambda found: found.placed.index):
        found = _read(one, root)
        _require_introducer(one, found, roles)
        named = _named(found.event, root)
        if found.signer != root or not named:
            raise FindingError(
                f"the record at offset {one.offset} is not the root's, or names no key: nobody is "
                "a governor or keeper by it"
            )
        since = one.placed.index
        # a key keeps the role that it was given first
        given = {public: (role, since) for public, role in named.items()}
        roles = _Roles(root, {**given, **roles.named})
    return roles


def _named(event: Event | None, root: str) -> Mapping[str, Role]:
    """The keys to which an event of the root gives a role."""
    if event is not None and unfit(event, root) is not None:
        return {}
    match event:
        case MeshFounded():
            return {
                event.operator_key: Role.OPERATOR,
                event.governor_key: Role.GOVERNOR,
                event.keeper_key: Role.KEEPER,
            }
        case MeshKeyIntroduced() if event.role is not MeshRole.UNKNOWN:
            return {event.public_key: Role[event.role.name]}
        case _:
            return {}


def _require_introducer(one: Legible, found: _Read, roles: _Roles) -> None:
    """A schema of a stranger's would make the same bytes say something else."""
    if one.schema is None or roles.has(found.introducer, one.schema, Role.ROOT, Role.GOVERNOR):
        return
    raise FindingError(
        f"the record at offset {one.schema.record.offset}, which is said to introduce the schema "
        f"of the one at {one.offset}, is not signed by the root or a governor that the proof names"
    )


_SPEAKERS = {
    Kind.INTENT: (),
    Kind.FACT: (Role.KEEPER,),
    Kind.DECISION: (Role.GOVERNOR,),
    Kind.FOUNDATION: (Role.ROOT,),
}
"""Whose word counts without a decision."""


def _outcome(proof: Proof, subject: _Read, roles: _Roles) -> Outcome:
    if proof.decided is not None:
        return _decision(proof.decided, proof.subject.placed, subject, roles)
    event = subject.event
    speakers = () if event is None else _SPEAKERS[event.kind]
    if isinstance(event, SchemaIntroduced):
        speakers = (Role.ROOT, Role.GOVERNOR)
    counts = roles.has(subject.signer, proof.subject.placed, *speakers)
    return Outcome(State.NONE_NEEDED if counts else State.UNDECIDED)


def _decision(decided: Decided, placed: Placed, subject: _Read, roles: _Roles) -> Outcome:
    """The decision on the record, once all is right about it; raises FindingError."""
    one, start = decided.decision, decided.start
    place = f"the record at offset {one.offset}"
    found = _read_introduced(one, roles)
    began = _read_introduced(start, roles)
    event = found.event
    if not isinstance(event, Decision) or not event.decides(placed.record.offset):
        raise FindingError(f"{place} is no decision on the one at {placed.record.offset}")
    for read, at in ((found, one), (began, start)):
        _require_governor(read, at, roles)
    if not isinstance(began.event, GovernorStarted) or start.offset != event.epoch:
        raise FindingError(
            f"{place} decides under the epoch {event.epoch}, and the one at {start.offset} is not "
            "the start of that epoch"
        )
    if one.placed.index <= max(placed.index, start.placed.index):
        raise FindingError(f"{place} decides what stands behind it")
    _require_counted(decided, event, began.event, roles)
    state, code, reason = State.ACCEPTED, "", ""
    if isinstance(event, IntentRejected):
        state, code, reason = State.REJECTED, event.code, event.reason
    elif isinstance(event, IntentQuarantined | RecordsSetAside):
        state, code, reason = State.QUARANTINED, event.code, event.reason
    if subject.event is None and state is not State.QUARANTINED:
        raise FindingError(
            f"{place} says {state} of the one at {placed.record.offset}, which this proof does not "
            f"let be read: {subject.fault}"
        )
    time = one.placed.record.time
    return Outcome(state, code, reason, one.offset, time, event.epoch, found.signer)


def _require_counted(
    decided: Decided, event: Decision, start: GovernorStarted, roles: _Roles
) -> None:
    """Does the decision follow one that counted?

    What stands up to its `basis` its governor had read, and knew which one counted there last;
    those behind must all be in the proof. Where one of them was lost, no later one has any effect.
    """
    behind, follower = decided.decision, event
    for one in reversed(decided.before):
        _require_basis(behind, follower, decided.start)
        found = _read_introduced(one, roles)
        _require_governor(found, one, roles)
        before = found.event
        if not isinstance(before, Decision) or before.meta.id != follower.follows:
            raise _uncounted(behind, follower)
        if before.epoch != event.epoch or one.placed.index >= behind.placed.index:
            raise _uncounted(behind, follower)
        behind, follower = one, before
    _require_basis(behind, follower, decided.start)
    read = bool(decided.before) and behind.offset <= event.basis
    if not read and follower.follows != start.meta.id:
        raise _uncounted(behind, follower)


def _require_basis(one: Legible, event: Decision, start: Legible) -> None:
    if not start.offset <= event.basis < one.offset:
        raise FindingError(
            f"the record at offset {one.offset} names the basis {event.basis}, which does not lie "
            "between the start of its epoch and the record"
        )


def _uncounted(one: Legible, event: Decision) -> FindingError:
    return FindingError(
        f"the record at offset {one.offset} follows the decision {event.follows}, which the proof "
        "does not hold in front of it: one behind a lost decision has no effect"
    )


def _require_governor(found: _Read, one: Legible, roles: _Roles) -> None:
    if not roles.has(found.signer, one.placed, Role.GOVERNOR):
        raise FindingError(
            f"the record at offset {one.offset} is not signed by a governor that the proof names"
        )


def _read_introduced(one: Legible, roles: _Roles) -> _Read:
    """What a record says; by a schema of a stranger's the bytes may say anything."""
    found = _read(one, roles.root)
    _require_introducer(one, found, roles)
    return found


def _read(one: Legible, root: str) -> _Read:
    """What a record says, by the schema that the log itself introduced."""
    schemas, introducer = {-1: ""}, None
    if one.schema is not None:
        event = _introduction(one.schema.record)
        schemas[event.schema_id] = event.schema_text
        introducer = _signer(one.schema.record, root)
    record = one.placed.record
    entry = decode(record, schemas, root, verify=False)
    fault = entry.fault.reason if entry.fault else ""
    return _Read(entry.event, fault, _signer(record, root), introducer)


def _introduction(record: Record) -> SchemaIntroduced:
    """The event of the record that is said to introduce the schema; its own schema is known."""
    fault = f"the record at offset {record.offset} introduces no schema"
    try:
        own = {schema_id_of(record.value or b""): avro.text_of(SchemaIntroduced.type_name())}
    except UnusableRecordError as error:
        raise FindingError(f"{fault}: {error.reason}") from error
    event = decode(record, own, None, verify=False).event
    if not isinstance(event, SchemaIntroduced):
        raise FindingError(fault)
    return event


def _signer(record: Record, root: str | None) -> str | None:
    """Who signed a record in the mesh of a root; None for the root of the signer itself."""
    named = record.headers.get(SIGNER)
    return named.decode("ascii") if named and has_valid_signature(record, root) else None
