"""Verifying a log from its first record: tree, signatures, schemas, decisions. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mesh_events import avro
from mesh_events.codec import decode
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    SchemaIntroduced,
)
from mesh_events.errors import StateFaultError
from mesh_events.meta import milliseconds
from mesh_events.record import Entry, Record
from processors.decision import version
from projections.chain import Chain
from projections.decide import CHECK_TIMEOUT, decide
from projections.fold import apply
from projections.identity import Role
from projections.image import EMPTY, Image
from projections.trust import Trusted
from projections.verdict import Accepted, Quarantined, Rejected, Verdict, Waiting
from self_service.cli.finding import Finding, ordered
from self_service.cli.rejudging import Judgements
from self_service.cli.tree_check import TreeCheck


@dataclass(slots=True)
class Report:
    """What was verified and what was found.

    last: offset of the last record
    findings: what an unaltered log cannot hold
    gaps: offsets without a record; Kafka's own marks of transactions leave them too
    differing: decisions that today's rules would have made otherwise; no fault by itself
    schemas: introduced ones that took effect; copies and forged introductions do not
    set_aside: records without effect: they could not be understood or trusted
    governor_version: of the software that started the latest epoch
    marked: gaps that were there already when a checkpoint was signed over them
    """

    last: int = -1
    records: int = 0
    signatures: int = 0
    schemas: int = 0
    decisions: int = 0
    ignored: int = 0
    set_aside: int = 0
    undecided: int = 0
    marked: int = 0
    governor_version: str = ""
    findings: list[Finding] = field(default_factory=list)
    differing: list[Finding] = field(default_factory=list)
    gaps: list[Finding] = field(default_factory=list)
    tree: TreeCheck = field(default_factory=TreeCheck)


@dataclass(frozen=True, slots=True)
class Scope:
    """Offsets whose signatures and decisions are doubted; of the others only the hashes are."""

    first: int = 0
    last: int | None = None

    def holds(self, offset: int) -> bool:
        """Whether an offset is in it."""
        return offset >= self.first and (self.last is None or offset <= self.last)


WHOLE = Scope()


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a log at one of its records as it was read before, and the tree up to there."""

    image: Image
    size: int
    root: bytes


def verify(
    records: Iterable[Record],
    root_key: str,
    governor_key: str,
    *,
    chain: Chain | None = None,
    scope: Scope = WHOLE,
    end: int | None = None,
    kept: Kept | None = None,
) -> Report:
    """Fold the log and doubt every record of it that has an effect.

    What a record without effect says is never judged: anybody who can log in may append one.

    Args:
        records: the whole log, in offset order.
        root_key: the root that the caller trusts, from the profile, not from the log.
        governor_key: the governor whose decisions count for the caller.
        chain: checkpoints that were signed over the log.
        scope: where signatures and decisions are doubted. Elsewhere a record is believed where a
            checkpoint covers it, and reading ends behind the scope.
        end: the offset behind the log's last record, which need not be read up to.
        kept: what was kept elsewhere of this log.
    """
    report, image, faulty = Report(tree=TreeCheck(chain)), EMPTY, dict[int, Entry]()
    judgements = Judgements()
    trusted = Trusted(chain.path() if chain else (), root_key)
    passed_over, faulted, stopped = -1, False, False
    for record in records:
        # before the foundation nobody knows whose checkpoints count
        founded = bool(image.identity.mesh)
        if founded and _is_over(record.offset, scope, report.tree, faulted=faulted):
            stopped = True
            break
        inside = scope.holds(record.offset)
        doubted = inside or not trusted.vouches_for(record)
        entry = decode(record, image.schemas, image.identity.root, verify=doubted)
        report.tree.take(record, entry, image.identity, checked=doubted)
        _doubt_position(report, entry)
        _count(report, entry, checked=doubted)
        if faulted:
            continue
        before = image
        try:
            image = apply(image, entry)
        except StateFaultError as error:
            report.findings.append(Finding(entry.offset, "state_fault", str(error)))
            faulted = True
            continue
        judgements.take(image)
        if image.epoch != before.epoch and isinstance(entry.event, GovernorStarted):
            report.governor_version = entry.event.version
        _doubt_kept(report, image, kept)
        report.schemas += image.schemas is not before.schemas
        if inside:
            if entry.fault is not None:
                faulty[entry.offset] = entry
            _doubt_root(report, entry, root_key)
            passed = _doubt_effect(report, judgements, before, image, entry)
            passed_over = max(passed_over, passed)
        if image.last_decision != before.last_decision and isinstance(entry.event, Decision):
            judgements.counted(entry.event, entry.signer or "")
    if not stopped and not faulted:
        _doubt_governor(report, image, governor_key)
        _doubt_length(report, kept)
    _doubt_end(report, image, faulty, passed_over)
    _doubt_tree(report, image, end if stopped else report.last + 1)
    return report


def _is_over(offset: int, scope: Scope, tree: TreeCheck, *, faulted: bool) -> bool:
    """Whether the record at an offset, and those behind it, can tell nothing more."""
    if scope.last is not None and offset > scope.last and tree.covers(scope.last):
        return True
    # what made the fold stop is perhaps told more exactly by the next checkpoint
    return faulted and tree.covers(offset - 1)


def _doubt_tree(report: Report, image: Image, end: int | None) -> None:
    """What the tree tells, and which gaps a checkpoint explains."""
    # of two that stand at the same offset the tree's says more
    report.findings = ordered([*report.tree.close(image.identity, end), *report.findings])
    explained = report.tree.confirmed_offset
    marked = [one for one in report.gaps if one.offset <= explained]
    report.marked = len(marked)
    report.gaps = [one for one in report.gaps if one not in marked]


def _count(report: Report, entry: Entry, *, checked: bool) -> None:
    report.records += 1
    report.signatures += checked and entry.signer is not None


def _doubt_position(report: Report, entry: Entry) -> None:
    expected, report.last = report.last + 1, entry.offset
    if entry.offset != expected:
        text = (
            f"offsets {expected} to {entry.offset - 1} hold no record: the end of a "
            "transaction that somebody wrote, or records that were deleted"
        )
        report.gaps.append(Finding(entry.offset, "gap", text))


def _doubt_length(report: Report, kept: Kept | None) -> None:
    """What was read once must be there."""
    if kept is not None and (end := kept.image.offset) > report.last:
        text = f"records up to {end} were read here once, the log ends at {report.last}"
        report.findings.append(Finding(report.last + 1, "log_changed", text, end))


def _doubt_kept(report: Report, image: Image, kept: Kept | None) -> None:
    """Reads are answered out of what was kept: it must be what the log gives."""
    if kept is None or kept.image.offset != image.offset:
        return
    if (kept.size, kept.root) != (report.tree.size, report.tree.root):
        text = f"up to {image.offset} this home has read other records once"
        report.findings.append(Finding(image.offset, "log_changed", text))
    elif image != kept.image:
        text = (
            "the newest snapshot of this home holds another state than the log gives: move its "
            "`snapshots` folder away, and see who can write there"
        )
        report.findings.append(Finding(image.offset, "snapshot_differs", text))


def _doubt_governor(report: Report, image: Image, governor_key: str) -> None:
    """The caller waits for decisions of a governor whose word counts at the log's end."""
    if not image.identity.has_role(governor_key, Role.GOVERNOR):
        text = f"the profile names a governor's key that does not count here ({governor_key})"
        report.findings.append(Finding(report.last, "foreign_governor", text))


def _doubt_root(report: Report, entry: Entry, root_key: str) -> None:
    if entry.offset == 0 and entry.signer != root_key:
        text = "the first record is not signed by this mesh's root"
        report.findings.append(Finding(0, "foreign_root", text))


def _doubt_effect(
    report: Report, judgements: Judgements, before: Image, after: Image, entry: Entry
) -> int:
    """Judge what a record has changed.

    Returns the offset before which its governor can have left no unreadable record undecided, -1 if
    it does not tell: those are set aside in their order, and what a decision follows was readable.
    """
    event = entry.event
    if after.schemas is not before.schemas:
        _doubt_schema(report, entry)
    if not isinstance(event, Decision) or entry.offset in after.intents.undecided:
        return -1
    if after.ignored > before.ignored:
        report.ignored += 1
        # what is still undecided under its epoch follows a decision that is lost or altered
        unchained = event.epoch == after.epoch and event.offset in after.intents.undecided
        return entry.offset if unchained else -1
    _doubt_decision(report, judgements.state(event), event, entry)
    return event.offset if before.intents.undecided[event.offset].fault is not None else -1


def _doubt_schema(report: Report, entry: Entry) -> None:
    """Is a schema that the log took in the one that its introduction says?

    Only such a one: what a key without the right to it introduces has no effect, and neither has a
    copy. Its text may be anything.
    """
    event = entry.event
    if isinstance(event, SchemaIntroduced) and avro.fingerprint(event.schema_text) != (
        event.fingerprint
    ):
        text = f"the text of {event.name} is another one"
        report.findings.append(Finding(entry.offset, "bad_fingerprint", text))


def _doubt_decision(report: Report, state: Image | None, event: Decision, entry: Entry) -> None:
    """Judge again what was decided, on the state and at the time of the decision."""
    report.decisions += 1
    report.set_aside += isinstance(event, IntentQuarantined)
    asked = state.intents.undecided.get(event.offset) if state is not None else None
    if state is None or asked is None:
        text = (
            f"the decision on {event.offset} names basis {event.basis}, which does not hold what "
            "it decides or follows"
        )
        report.findings.append(Finding(entry.offset, "bad_basis", text))
        return
    verdict = decide(state, asked, milliseconds(event.clock), worker_skew=event.worker_skew)
    if _code(verdict) == _decided(event) or _timed_out(verdict, event):
        return
    accepted = isinstance(event, IntentAccepted)
    if accepted and isinstance(verdict, Quarantined):
        text = f"the record at {event.offset} was accepted, but: {verdict.reason}"
        report.findings.append(Finding(entry.offset, "accepted_untrusted", text))
    elif accepted and report.governor_version == version():
        text = (
            f"the record at {event.offset} was accepted, but the rules of the same version "
            f"({version()}) say {_code(verdict)}"
        )
        report.findings.append(Finding(entry.offset, "accepted_against_rules", text))
    else:
        text = (
            f"the record at {event.offset} was {_decided(event)}, "
            f"today's rules say {_code(verdict)}"
        )
        report.differing.append(Finding(entry.offset, "rules_differ", text))


def _timed_out(verdict: Verdict, event: Decision) -> bool:
    """Whether a governor gave up waiting: how long it had waited is not on the log."""
    return isinstance(verdict, Waiting) and _decided(event) == CHECK_TIMEOUT


def _code(verdict: Verdict) -> str:
    match verdict:
        case Accepted():
            return "accepted"
        case Rejected() | Quarantined():
            return verdict.code
        case _:
            return f"waiting for {', '.join(verdict.checks)}"


def _decided(event: Decision) -> str:
    return event.code if isinstance(event, IntentRejected | IntentQuarantined) else "accepted"


def _doubt_end(report: Report, image: Image, faulty: dict[int, Entry], passed_over: int) -> None:
    """An unreadable record that the governor passed over was readable when it passed."""
    open_now = image.intents.undecided
    report.undecided = len(open_now)
    for offset, entry in sorted(faulty.items()):
        if offset in open_now and offset < passed_over and entry.fault is not None:
            text = f"{entry.fault.reason}, and the governor did not set it aside"
            report.findings.append(Finding(offset, entry.fault.code.value, text))
    report.findings.sort(key=lambda one: one.offset)
