"""What the log tells, step by step: who said what, what was decided, what was done. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mesh_events import facts
from mesh_events.decisions import (
    Decision,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    RecordsSetAside,
)
from mesh_events.meta import MESH_DOMAIN, Event, Kind, derived_id
from mesh_events.record import Entry, Record
from projections.image import EMPTY, Image
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import walk
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.mesh.lookup import offset_of

UNREADABLE = "unreadable"
"""The kind of a record that could not be understood or trusted."""
IGNORED = "ignored"
"""The outcome of what did not count: a decision of an old epoch, or of what was decided already; a
record of the mesh's own that stands there again, which anybody may append."""
UNDECIDED, QUARANTINED = "undecided", "quarantined"
"""Outcomes of a record that waits for its decision, and of one that was set aside."""
LINK_STEPS = ("create-link", "remove-link")
"""Steps from which the governor derives the ids of its own intents, see `effects`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One record of the log and what became of it.

    `outcome` of an intent: accepted, rejected or quarantined with the code, or undecided;
    `decided_at` is the offset of the decision that counted. `about` is the offset that a
    decision or a check is about; of a range it is the first one.
    `time` is when it counts from, ms by the mesh's clock, as `replay(as_of=...)` has it; `appended`
    is its append time, ms by the broker's.
    `domain` is the one that the record names, `signed_by` the one whose key signed it, "" if none.
    """

    offset: int
    time: int
    kind: str
    type: str
    id: str = ""
    actor: str = ""
    domain: str = ""
    key: str = ""
    correlation: str = ""
    signer: str = ""
    signed_by: str = ""
    about: int | None = None
    outcome: str = ""
    code: str = ""
    detail: str = ""
    decided_at: int | None = None
    event: Event | None = None
    appended: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Every step of a log, in order, and the image after the last one."""

    steps: list[Step]
    image: Image


def steps(
    records: Iterable[Record],
    trusted: TrustedCheckpoints | None = None,
    *,
    until: int | None = None,
) -> list[Step]:
    """The steps of `read`."""
    return read(records, trusted, until=until).steps


def read(
    records: Iterable[Record],
    trusted: TrustedCheckpoints | None = None,
    *,
    until: int | None = None,
    start: Image = EMPTY,
) -> History:
    """Every step of the log, in order; intents know their decision.

    Args:
        records: the log in offset order.
        trusted: checkpoints that make checking unnecessary for what they cover.
        until: the last offset that counts.
        start: the state before the first record; then `trusted` is None.

    Raises:
        IntegrityError: the log is not what the checkpoints say.
    """
    if until is not None:
        records = (record for record in records if record.offset <= until)
        trusted = trusted.until(until) if trusted else None
    found: dict[int, Step] = {}
    told = set[tuple[str | None, str]]()
    before = start
    for entry, after in walk(records, start, trusted=trusted):
        found[entry.offset] = _step(entry, after)
        event = entry.event
        if event is not None and not (event.kind is Kind.INTENT or isinstance(event, Decision)):
            name = entry.signer, event.meta.id
            if name in told:
                found[entry.offset] = replace(found[entry.offset], outcome=IGNORED)
            told.add(name)
        if isinstance(event, Decision):
            if after.last_decision == event.meta.id != before.last_decision:
                _settle(found, event, entry.offset)
            else:
                found[entry.offset] = replace(found[entry.offset], outcome=IGNORED)
        before = after
    return History(_by_mesh_clock(list(found.values())), before)


def _by_mesh_clock(found: list[Step]) -> list[Step]:
    """The steps, none of them later than one behind it.

    A record whose decision has an earlier time was appended by a clock that was ahead.
    """
    for at in range(len(found) - 2, -1, -1):
        if found[at].time > found[at + 1].time:
            found[at] = replace(found[at], time=found[at + 1].time)
    return found


def _settle(found: dict[int, Step], event: Decision, offset: int) -> None:
    if isinstance(event, RecordsSetAside):
        spared = frozenset(event.exceptions)
        for number in range(event.offset, event.last + 1):
            asked = found.get(number)
            # what a range does not hold has another outcome or none
            if asked is not None and asked.outcome == UNDECIDED and number not in spared:
                found[number] = replace(asked, outcome=QUARANTINED, decided_at=offset)
        return
    outcome, code, reason = "accepted", "", ""
    if isinstance(event, IntentRejected):
        outcome, code, reason = "rejected", event.code, event.reason
    if isinstance(event, IntentQuarantined):
        outcome, code, reason = QUARANTINED, event.code, event.reason
    asked = found.get(event.offset)
    if asked is None:
        # it stands before the first record
        return
    found[event.offset] = replace(
        asked, outcome=outcome, code=code, detail=reason or asked.detail, decided_at=offset
    )


def _step(entry: Entry, after: Image) -> Step:
    event = entry.event
    intents = after.intents
    key = after.identity.key_of(entry.signer)
    outcome = UNDECIDED if intents.is_open(entry.offset) else ""
    fault = intents.unusable.fault_at(entry.offset)
    if event is None:
        return Step(
            entry.offset,
            after.time,
            UNREADABLE,
            UNREADABLE,
            appended=entry.time,
            outcome=outcome,
            code=fault.code.value if fault else "",
            detail=fault.reason if fault else "",
        )
    return Step(
        offset=entry.offset,
        time=after.time,
        appended=entry.time,
        kind=event.kind.value,
        type=event.type_name(),
        id=event.meta.id,
        actor=event.meta.actor,
        domain=event.meta.domain,
        key=event.key,
        correlation=event.meta.correlation,
        signer=entry.signer or "",
        signed_by=key.domain if key else "",
        about=event.offset if isinstance(event, Decision | facts.Check) else None,
        outcome=outcome,
        code=fault.code.value if fault else "",
        detail=fault.reason if fault else _detail(event),
        event=event,
    )


def _detail(event: Event) -> str:
    """The sentence that an event carries, or what it did, in a few words."""
    match event:
        case facts.CheckPassed() | facts.CheckFailed():
            evidence = ", ".join(f"{name} {value}" for name, value in event.evidence.items())
            reason = f": {event.reason}" if isinstance(event, facts.CheckFailed) else ""
            return f"{event.check} ({evidence}){reason}"
        case facts.RightsFact():
            return f"{event.cluster}: {'; '.join(event.bindings)}"
        case facts.LinkActivated():
            return f"{event.destination_topic}, incarnation {event.incarnation}"
        case facts.LinkStopped() | facts.LinkAdvanced():
            positions = ", ".join(f"{number}@{at}" for number, at in event.positions.items())
            return f"copied up to {positions}" if positions else "nothing copied"
        case facts.CopyPurged() | facts.CopyRetained():
            readers = ", ".join(getattr(event, "unexpected_readers", ()))
            return event.topic + (f", which {readers} could read until then" * bool(readers))
        case facts.CredentialsIssued():
            return f"{event.principal} on {event.cluster}"
        case IntentRejected() | IntentQuarantined():
            return f"{event.code}: {event.reason}"
        case _:
            return str(getattr(event, "reason", ""))


def conversation(
    every: Sequence[Step], start: Step, parties: Collection[str] | None = None
) -> list[Step]:
    """The whole conversation of a step, with its checks, decisions and effects, in order.

    It is what stands under the same correlation, and what names the same request: a program need
    not carry the request's correlation on when it grants or revokes. What others said that had an
    effect on it belongs to it: a quarantine of the reader, a link that was paused.

    Anybody can write a correlation and a request's id. With `parties`, only what these domains and
    the mesh have signed, and what followed from that.
    """
    request = getattr(start.event, "request", start.correlation)
    threads = {start.correlation, request}
    seeds = {
        one.offset
        for one in every
        if one.kind != UNREADABLE
        and (one.correlation in threads or request in _named(one))
        and (parties is None or one.signed_by in parties or _is_of_the_mesh(one, request))
    }
    found = _followed(every, start, seeds)
    offsets = {one.offset for one in found} | _causes(every, found)
    return [one for one in every if one.offset in offsets]


def _is_of_the_mesh(one: Step, request: str) -> bool:
    """Whether the mesh said it of itself, or of this request.

    A decision, a check and an effect carry on the correlation of what they follow from, whoever
    wrote that; they belong to what they follow from.
    """
    says = one.kind == Kind.INTENT or request in _named(one)
    return one.signed_by == MESH_DOMAIN and says


def _named(one: Step) -> tuple[str | None, str | None]:
    """The request that an intent names, and the subject whose rights a fact is about."""
    return getattr(one.event, "request", None), getattr(one.event, "subject", None)


def _causes(every: Sequence[Step], effects: Iterable[Step]) -> set[int]:
    """Offsets of the acceptances that effects name as their generation, and of the intents."""
    generations = {getattr(one.event, "generation", None) for one in effects}
    accepted = [one for one in every if one.offset in generations and one.about is not None]
    return {offset for one in accepted for offset in (one.offset, one.about) if offset is not None}


def effects(every: Sequence[Step], start: Step) -> list[Step]:
    """A step, its checks and decision, and what followed from that decision, in order.

    What followed: facts that name the decision's generation, and the governor's own intents
    whose ids are derived from it, with what followed from those.
    """
    return _followed(every, start, set())


def _followed(every: Sequence[Step], start: Step, seeds: set[int]) -> list[Step]:
    """A step, those at the offsets `seeds`, and what followed: one walk over the log."""
    found: dict[int, Step] = {}
    generations, expected, decisions = set[int](), set[str](), set[int | None]()
    for one in every:
        follows = (
            one.offset == start.offset
            or one.offset in seeds
            or one.about in found
            or one.offset in decisions
            or (one.id in expected and one.signed_by == MESH_DOMAIN)
            or getattr(one.event, "generation", None) in generations
        )
        # what is asked for is shown, also where it counts for nothing
        is_nothing = one.kind == Kind.FACT and one.outcome == IGNORED and one.offset != start.offset
        if not follows or is_nothing:
            continue
        found[one.offset] = one
        decisions.add(one.decided_at)
        if one.type == IntentAccepted.type_name() and one.outcome != IGNORED:
            generations.add(one.offset)
            asked = found.get(-1 if one.about is None else one.about)
            request = getattr(asked.event, "request", None) if asked else None
            expected |= {derived_id(request, step, one.offset) for step in LINK_STEPS if request}
    return list(found.values())


def find(every: Sequence[Step], reference: str) -> Step:
    """The step meant by `offset`, an id, or a unique prefix of one.

    A decision or a check stands for the record that it is about, an effect for the intent whose
    acceptance it satisfies.

    Raises:
        NotFoundError: the log has no such record.
        UsageError: nothing is named, or several ids begin so.
    """
    if not reference.strip("# "):
        raise UsageError("which record? Give its id, a unique prefix of it, or its offset")
    offset = offset_of(reference)
    if offset is None:
        wanted = reference.lower()
        fitting = [one for one in every if one.id and one.id.startswith(wanted)]
        # a longer id makes a whole one not ambiguous: anybody can write it
        fitting = [one for one in fitting if one.id == wanted] or fitting
        # the same id twice on the log: the mesh's own, which others can derive, or else the first
        fitting.sort(key=lambda one: one.signed_by != MESH_DOMAIN)
        if len({one.id for one in fitting}) > 1:
            several = ", ".join(f"{one.offset} {one.id}" for one in fitting[:4])
            raise UsageError(f"{len(fitting)} ids begin with {reference}: use one of {several}")
    else:
        fitting = [one for one in every if one.offset == offset]
    if not fitting:
        end = every[-1].offset if every else -1
        raise NotFoundError(
            f"the log has no record {reference}: see `sdm audit log`, it ends at offset {end}"
        )
    return _cause(every, fitting[0])


def _cause(every: Sequence[Step], one: Step) -> Step:
    """The record that a check, a decision or an effect is about; the step itself otherwise."""
    by_offset = {step.offset: step for step in every}
    about = one.about
    if about is None:
        decision = by_offset.get(getattr(one.event, "generation", -1))
        about = None if decision is None else decision.about
    return one if about is None else by_offset.get(about, one)
