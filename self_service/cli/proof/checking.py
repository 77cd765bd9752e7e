"""Checking a proof that one record stands on the log, and what was decided on it. Pure.

It needs no log: whoever checks it brings the controller's public key. What is shown is what stands
there, not what is missing: that no other record stands between, such as the revocation of a key or
the start of a later governor, only the whole log can tell (`sdm audit verify`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

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
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.meta import Event, Kind, milliseconds
from projections.deciding.named_keys import unfit
from projections.identity import Role
from projections.integrity.tree import is_included
from self_service.cli.framework.exits import FindingError
from self_service.cli.proof.file import Authority, Decided, Legible, Placed, Proof
from self_service.cli.proof.reading import (
    Read,
    Roles,
    introduction_of,
    read,
    require_governor,
    signer_of,
)

_AT_ONCE_MS = 300_000
"""A governor appends a decision within so long, clocks that differ a little included."""


class State(StrEnum):
    """What a proof says of the decision on its record."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    QUARANTINED = "QUARANTINED"
    UNDECIDED = "UNDECIDED"
    NONE_NEEDED = "NONE NEEDED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided: the code and the reason of a refusal; the decision's place and signer.

    Times are in ms: `time` is the mesh's, as the governor signed it, `appended` Kafka's of the
    record. Anybody who may write to the log may append a copy of a decision later.
    """

    state: State
    code: str = ""
    reason: str = ""
    offset: int | None = None
    time: int | None = None
    appended: int | None = None
    epoch: int | None = None
    signer: str | None = None

    def __str__(self) -> str:
        return f"{self.state} {self.code}".rstrip()

    @property
    def may_be_copy(self) -> bool:
        """Whether the record came to the log at another time than that of the decision."""
        if self.time is None or self.appended is None:
            return False
        return abs(self.appended - self.time) > _AT_ONCE_MS


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


def check(proof: Proof, key: str) -> Proven:
    """Check everything with the controller's public key; raises FindingError for what is wrong."""
    _require_places(proof, key)
    roles = _roles(proof.authority)
    subject = read(proof.subject, roles)
    outcome = _outcome(proof, subject, roles)
    return Proven(
        proof, subject.event, subject.fault, subject.signer, subject.introducer, outcome, roles.root
    )


def _require_places(proof: Proof, key: str) -> None:
    """Does every record stand under the root that the controller signed?"""
    body = proof.checkpoint.body
    if proof.checkpoint.signer([key]) is None:
        raise FindingError(
            f"the checkpoint of {body.origin} over {body.size} records is not signed by {key}: "
            "it was edited, or the key is not that of its controller"
        )
    for one in proof.places():
        leaf = leaf_hash(one.record)
        if not is_included(leaf, one.index, body.size, one.path, body.root):
            raise FindingError(
                f"the record at offset {one.record.offset} is not covered by the checkpoint "
                f"over {body.size} records: the record, its place or its path was edited"
            )
        if one.record.offset > body.offset:
            raise FindingError(
                f"the proof puts the record at offset {one.record.offset}, but the checkpoint "
                f"ends at {body.offset}"
            )


def _roles(authority: Authority) -> Roles:
    """The roles of the root and of those that it named."""
    first = authority.first
    root = signer_of(first.record, None)
    introduction_of(first.record)
    if first.index or root is None:
        raise FindingError(
            f"the record at offset {first.record.offset} is not the signed first record of the "
            "log: the keys of the log are unknown"
        )
    roles = Roles(root, {root: (Role.ROOT, 0)})
    for one in sorted(authority.keys, key=lambda found: found.placed.index):
        found = read(one, roles)
        named = _named(found.event, root)
        if found.signer != root or not named:
            raise FindingError(
                f"the record at offset {one.offset} is not from the root, or names no key: it "
                "gives no key a role"
            )
        since = one.placed.index
        # a key keeps the role that it was given first
        given = {public: (role, since) for public, role in named.items()}
        roles = Roles(root, {**given, **roles.named})
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
                event.controller_key: Role.CONTROLLER,
            }
        case MeshKeyIntroduced() if event.role is not MeshRole.UNKNOWN:
            return {event.public_key: Role[event.role.name]}
        case _:
            return {}


_SIGNERS = {
    Kind.INTENT: (),
    Kind.FACT: (Role.CONTROLLER,),
    Kind.DECISION: (Role.GOVERNOR,),
    Kind.FOUNDATION: (Role.ROOT,),
}
"""Whose word counts without a decision."""


def _outcome(proof: Proof, subject: Read, roles: Roles) -> Outcome:
    if proof.decided is not None:
        return _decision(proof.decided, proof.subject.placed, subject, roles)
    event = subject.event
    roles_of = () if event is None else _SIGNERS[event.kind]
    if isinstance(event, SchemaIntroduced):
        roles_of = (Role.ROOT, Role.GOVERNOR)
    counts = roles.has(subject.signer, proof.subject.placed, *roles_of)
    return Outcome(State.NONE_NEEDED if counts else State.UNDECIDED)


def _decision(decided: Decided, placed: Placed, subject: Read, roles: Roles) -> Outcome:
    """The decision on the record, once all is right about it; raises FindingError."""
    one, start = decided.decision, decided.start
    place = f"the record at offset {one.offset}"
    found = read(one, roles)
    began = read(start, roles)
    event = found.event
    if not isinstance(event, Decision) or not event.decides(placed.record.offset):
        raise FindingError(f"{place} is not a decision on the record at {placed.record.offset}")
    for seen, at in ((found, one), (began, start)):
        require_governor(seen, at, roles)
    if not isinstance(began.event, GovernorStarted) or start.offset != event.epoch:
        raise FindingError(
            f"{place} decides under the epoch {event.epoch}, and the record at {start.offset} is "
            "not the start of that epoch"
        )
    if one.placed.index <= max(placed.index, start.placed.index):
        raise FindingError(f"{place} decides a record after it")
    _require_counted(decided, event, began.event, roles)
    state, code, reason = State.ACCEPTED, "", ""
    if isinstance(event, IntentRejected):
        state, code, reason = State.REJECTED, event.code, event.reason
    elif isinstance(event, IntentQuarantined | RecordsSetAside):
        state, code, reason = State.QUARANTINED, event.code, event.reason
    if subject.event is None and state is not State.QUARANTINED:
        raise FindingError(
            f"{place} decides {state} on the record at {placed.record.offset}, which cannot be "
            f"read with this proof: {subject.fault}"
        )
    times = milliseconds(event.clock), one.placed.record.time
    return Outcome(state, code, reason, one.offset, *times, event.epoch, found.signer)


def _require_counted(
    decided: Decided, event: Decision, start: GovernorStarted, roles: Roles
) -> None:
    """Does the decision follow one that counted?

    What stands up to its `basis` its governor had read, and knew which one counted there last;
    those behind must all be in the proof. Where one of them was lost, no later one has any effect.
    """
    behind, follower = decided.decision, event
    for one in reversed(decided.before):
        _require_basis(behind, follower, decided.start)
        found = read(one, roles)
        require_governor(found, one, roles)
        before = found.event
        if not isinstance(before, Decision) or before.meta.id != follower.follows:
            raise _uncounted(behind, follower)
        if before.epoch != event.epoch or one.placed.index >= behind.placed.index:
            raise _uncounted(behind, follower)
        behind, follower = one, before
    _require_basis(behind, follower, decided.start)
    was_read = bool(decided.before) and behind.offset <= event.basis
    if not was_read and follower.follows != start.meta.id:
        raise _uncounted(behind, follower)


def _require_basis(one: Legible, event: Decision, start: Legible) -> None:
    if not start.offset <= event.basis < one.offset:
        raise FindingError(
            f"the record at offset {one.offset} names the basis {event.basis}, which is not "
            "between the start of its epoch and the record"
        )


def _uncounted(one: Legible, event: Decision) -> FindingError:
    return FindingError(
        f"the record at offset {one.offset} follows the decision {event.follows}, which the proof "
        "does not hold before it: a decision after a lost one has no effect"
    )
