"""The fold: the image after one more record of the log.

`apply` is pure. Only decisions under the latest epoch change rights, ownership and existence;
facts under the controller's key change status; anything else waits, undecided, for the governor.
"""

from dataclasses import replace

from immutables import Map

from mesh_events import facts
from mesh_events.connectors import ConnectorFact
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    MeshFounded,
    MeshKeyIntroduced,
    MeshKeyRevoked,
    RecordsSetAside,
    SchemaIntroduced,
)
from mesh_events.errors import StateFaultError
from mesh_events.intents import Intent
from mesh_events.meta import Event, Kind, milliseconds
from mesh_events.record import Entry, Fault, FaultCode
from mesh_events.rows import AccessRow, ConnectorRow, LinkRow, StatementRow
from mesh_events.statements import StatementFact
from projections import access, drift, identity, links, statements
from projections.access import Accesses
from projections.connectors import state
from projections.connectors.table_use import with_table_use
from projections.connectors.task_use import with_task_use
from projections.deciding import intents as pending
from projections.deciding import unusable
from projections.deciding.apply_accepted import Acceptance, apply_accepted
from projections.deciding.intents import Intents
from projections.deciding.named_keys import unfit
from projections.identity import Role
from projections.image import MESH_BOUNDS, TOLERANCE_MS, Bounds, Image
from projections.lineage.topic_use import with_topic_use
from projections.quotas.counting import counted
from projections.quotas.kinds import Quotas


def apply(image: Image, entry: Entry) -> Image:
    """The image after `entry`, which must be the next readable record of the log.

    Raises:
        StateFaultError: the entry stands at or before the image's offset, or a decision accepts
            what this version cannot read.
    """
    if entry.offset <= image.offset:
        raise StateFaultError(f"offset {entry.offset} was folded already, up to {image.offset}")
    skew = _skew(image, entry)
    time = max(image.time, _time(image, entry, skew))
    before = image._replace(offset=entry.offset, time=time, skew=skew, touched=())
    image = _applied(before, entry)
    intents = image.intents
    if intents.unusable.newest < 0:
        return image
    between = unusable.passed(intents.unusable, entry.offset)
    return image._replace(intents=intents._replace(unusable=between))


def _applied(image: Image, entry: Entry) -> Image:
    event = entry.event
    if event is None or isinstance(event, Intent):
        return _waiting(image, entry)
    if event.kind is Kind.FOUNDATION:
        return _foundation(image, entry, event)
    needed = Role.CONTROLLER if isinstance(event, facts.Fact) else Role.GOVERNOR
    if not image.identity.has_role(entry.signer, needed):
        return _forged(image, entry, event, needed)
    if isinstance(event, GovernorStarted):
        return _started(image, entry, event)
    if isinstance(event, Decision):
        return _decided(image, entry, event)
    after = _reported(image, entry, event)
    return _indexed(image, counted(image, after))


def _indexed(before: Image, after: Image) -> Image:
    """The image after a record, with what finds the things that the record has changed."""
    return with_task_use(before, with_topic_use(before, with_table_use(before, after)))


def _skew(image: Image, entry: Entry) -> int:
    """How far append times are ahead of the mesh's clock, as far as a record tells, ms.

    The mesh's clock never goes back: a broker that is behind the last decision is wrong, or has
    been set right behind a clock that was ahead.
    """
    behind = entry.time - image.clock
    return min(image.skew, behind) if behind < -TOLERANCE_MS else image.skew


def _time(image: Image, entry: Entry, skew: int) -> int:
    """When a record came, by the mesh's clock, ms.

    Where the append time of a fact and the time of its controller differ, one of the two clocks was
    set since the last decision: the earlier time counts.
    """
    by_broker = entry.time - skew
    if not isinstance(entry.event, facts.Fact):
        return by_broker
    if not image.identity.has_role(entry.signer, Role.CONTROLLER):
        return by_broker
    by_worker = milliseconds(entry.event.meta.time) - image.worker_skew
    return min(by_broker, by_worker) if abs(by_broker - by_worker) > TOLERANCE_MS else by_broker


def _waiting(image: Image, entry: Entry) -> Image:
    """A record waits for its decision; its time is not before that of the last decision."""
    if entry.time < image.clock:
        entry = replace(entry, time=image.clock)
    party_of = image.identity.party_of
    fault = unusable.untrusted(image.identity, entry)
    intents = image.intents
    if fault is None:
        if not image.clocks_disagree:
            in_force = image.identity.is_in_force
            intents = pending.expired(intents, image.clock, party_of, in_force)
        fault = pending.repeated(intents, entry, image.clock) or _excess(image, intents, entry)
    if fault is not None:
        runs = unusable.arrived(intents.unusable, entry.offset, fault)
        return image._replace(intents=intents._replace(unusable=runs))
    intents = pending.arrived(intents, entry, image.clock, party_of)
    return image._replace(intents=intents)


def _excess(image: Image, intents: Intents, entry: Entry) -> Fault | None:
    """Whether a party is above one of its bounds.

    The governor has none: each of its intents follows from the state, and it appends one that was
    set aside again.
    """
    party, key = image.identity.party_of(entry.signer), image.identity.key_of(entry.signer)
    if key is None or key.role is Role.GOVERNOR:
        return None
    bounds = image.bounds if key.role is Role.DOMAIN else MESH_BOUNDS
    if intents.waiting.get(party, 0) >= bounds.undecided:
        reason = f"{bounds.undecided} intents of {party} are undecided: emit it again later"
        return Fault(FaultCode.TOO_MANY_UNDECIDED, reason)
    if intents.remembered.get(party, 0) >= bounds.ids:
        reason = (
            f"{bounds.ids} intents of {party} reached the log within about an hour: "
            "emit it again later"
        )
        return Fault(FaultCode.TOO_MANY_IDS, reason)
    return None


def _forged(image: Image, entry: Entry, event: Event, needed: Role) -> Image:
    """Somebody spoke in the name of the governor or a controller: it waits to be set aside."""
    reason = f"{event.type_name()} must be signed by the {needed}'s key"
    return _faulty(image, entry, Fault(FaultCode.FORGED, reason))


def _faulty(image: Image, entry: Entry, fault: Fault) -> Image:
    return _waiting(image, replace(entry, event=None, fault=fault))


def _foundation(image: Image, entry: Entry, event: Event) -> Image:
    if isinstance(event, SchemaIntroduced):
        return _introduced(image, entry, event)
    if not image.identity.has_role(entry.signer, Role.ROOT):
        return _forged(image, entry, event, Role.ROOT)
    fault = unfit(event, entry.signer or "")
    if fault is not None:
        return _faulty(image, entry, fault)
    match event:
        case MeshFounded() if not image.identity.mesh:
            after = identity.founded(image.identity, event, entry.offset)
        case MeshKeyIntroduced():
            after = identity.mesh_key_introduced(image.identity, event, entry.offset)
        case MeshKeyRevoked():
            after = identity.mesh_key_revoked(image.identity, event, entry.offset)
        case _:
            return _forged(image, entry, event, Role.ROOT)
    return counted(image, image._replace(identity=after), event)


def _introduced(image: Image, entry: Entry, event: SchemaIntroduced) -> Image:
    """A schema, from the root or the governor; the first record of the log names the root."""
    if image.identity.root is None and entry.signer:
        image = image._replace(identity=identity.rooted(image.identity, entry.signer))
    known = image.identity.has_role
    if not known(entry.signer, Role.ROOT) and not known(entry.signer, Role.GOVERNOR):
        return _forged(image, entry, event, Role.GOVERNOR)
    if event.schema_id in image.schemas:
        return image
    return image._replace(schemas=image.schemas.set(event.schema_id, event.schema_text))


def _started(image: Image, entry: Entry, event: GovernorStarted) -> Image:
    """A governor starts its epoch, once: anybody can append a copy of a signed record."""
    follows = event.previous_epoch in (None, image.epoch)
    if not follows or event.meta.id in image.starts:
        return image._replace(ignored=image.ignored + 1)
    return image._replace(
        epoch=entry.offset,
        last_decision=event.meta.id,
        starts=image.starts.set(event.meta.id, entry.offset),
        bounds=Bounds(event.undecided_per_domain, event.ids_per_domain, Quotas.read(event)),
    )


def _decided(image: Image, entry: Entry, event: Decision) -> Image:
    if not _counts(image, entry, event):
        return image._replace(ignored=image.ignored + 1)
    intents = image.intents
    decided = intents.undecided.get(event.offset)
    checks = intents.checks.get(event.offset, Map())
    image = _at_clock(image, entry, event)
    party_of = image.identity.party_of
    if isinstance(event, RecordsSetAside) or decided is None:
        if isinstance(event, IntentAccepted):
            raise _unreadable(intents, entry, event)
        return image._replace(intents=pending.set_aside(intents, event, party_of))
    image = image._replace(intents=pending.decided(intents, event.offset, party_of))
    if not isinstance(event, IntentAccepted) or decided.event is None:
        return image
    signer = image.identity.keys.get(decided.signer or "")
    by_operator = signer is not None and signer.role is identity.Role.OPERATOR
    acceptance = Acceptance(event.offset, checks, entry.offset, image.clock, by_operator)
    try:
        after = apply_accepted(decided.event, image, acceptance)
        return _indexed(image, counted(image, after, decided.event))
    except KeyError as missing:
        raise StateFaultError(
            f"the decision at offset {entry.offset} accepts the {decided.event.type_name()} at "
            f"{event.offset}, but {missing} does not exist there: the log contradicts itself"
        ) from missing


def _at_clock(image: Image, entry: Entry, event: Decision) -> Image:
    """The image at a decision's clock, with how far the other clocks were off it.

    What is over where they agreed as it was judged, before its own append time, stays over.
    """
    clock = max(image.clock, milliseconds(event.clock))
    judged = image._replace(worker_skew=event.worker_skew)
    after = judged._replace(
        clock=clock, time=clock, skew=entry.time - clock, last_decision=event.meta.id
    )
    if judged.clocks_disagree and after.clocks_disagree:
        return after
    return after._replace(agreed=clock)


def _counts(image: Image, entry: Entry, event: Decision) -> bool:
    """Whether a decision is the next one of the latest epoch, made on what stands before it."""
    return (
        0 <= image.epoch == event.epoch
        and event.follows == image.last_decision
        and image.epoch <= event.basis < entry.offset
        and (
            event.last <= event.basis
            if isinstance(event, RecordsSetAside)
            else image.intents.is_open(event.offset) and _is_of(event, image.intents)
        )
    )


def _is_of(event: Decision, intents: Intents) -> bool:
    """Whether the intent that a decision names stands at its offset: it is what was judged."""
    decided, named = intents.undecided.get(event.offset), getattr(event, "intent", None)
    if decided is None or decided.event is None or named is None:
        return True
    return bool(named == decided.event.meta.id)


def _unreadable(intents: Intents, entry: Entry, event: Decision) -> StateFaultError:
    fault = intents.unusable.fault_at(event.offset)
    return StateFaultError(
        f"the decision at offset {entry.offset} accepts the record at {event.offset}, which "
        f"this version cannot read ({fault.reason if fault else 'it is unusable'}): "
        "replay with the version that wrote it or a newer one"
    )


def _reported(image: Image, entry: Entry, event: Event) -> Image:
    """Facts: they change status only."""
    match event:
        case facts.Check():
            return image._replace(intents=pending.checked(image.intents, event))
        case facts.CredentialsIssued():
            return image._replace(identity=identity.credentials_issued(image.identity, event))
        case facts.EffectFailed():
            return image._replace(identity=identity.credentials_failed(image.identity, event))
        case facts.AclApplied():
            after = access.applied(image.access, event, entry.offset, image.time)
            own = identity.rights_applied(image.identity, event)
            return _access_reported(image._replace(identity=own), after, event)
        case facts.AclRemoved():
            after = access.removed(image.access, event, entry.offset, image.time)
            own = identity.rights_removed(image.identity, event)
            return _access_reported(image._replace(identity=own), after, event)
        case facts.DriftFound():
            left = drift.reported(image.drifts, event, entry.offset, image.time)
            return image._replace(drifts=left)
    return _job_reported(image, entry, event)


def _job_reported(image: Image, entry: Entry, event: Event) -> Image:
    """Facts about links, statements and connectors."""
    match event:
        case facts.LinkFact():
            moved = links.reported(image.links, event, entry.offset, image.time)
            touched = ((LinkRow.topic, event.link),) if moved is not image.links else ()
            return image._replace(links=moved, touched=touched)
        case ConnectorFact():
            told = state.reported(image.connectors, event, entry.offset, image.time)
            touched = ((ConnectorRow.topic, event.connector),)
            return image._replace(
                connectors=told, touched=touched if told is not image.connectors else ()
            )
        case StatementFact():
            stated = statements.reported(image.statements, event, entry.offset, image.time)
            touched = ((StatementRow.topic, event.statement),)
            return image._replace(
                statements=stated, touched=touched if stated is not image.statements else ()
            )
    return image


def _access_reported(image: Image, after: Accesses, event: facts.RightsFact) -> Image:
    touched = ((AccessRow.topic, event.subject),) if after is not image.access else ()
    return image._replace(access=after, touched=touched)
