"""Verifying a log from its first record: tree, signatures, schemas, decisions. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mesh_events import avro
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentQuarantined,
    RecordsSetAside,
    SchemaIntroduced,
)
from mesh_events.errors import StateFaultError
from mesh_events.record import Entry, Fault, Record
from projections.fold import apply
from projections.identity import Role
from projections.image import EMPTY, Image
from projections.integrity.chain import Chain
from projections.integrity.trusted_prefix import TrustedCheckpoints
from self_service.cli.framework.finding import Finding, ordered
from self_service.cli.verification.rejudging import (
    LONGEST_VERSION,
    NOT_JUDGED,
    RULES_DIFFER,
    Judgements,
    doubted,
)
from self_service.cli.verification.scope import ONCE, WHOLE, Kept, Reading, Scope, Source
from self_service.cli.verification.tree_check import TreeCheck


@dataclass(slots=True)
class Report:
    """What was verified and what was found.

    last: offset of the last record
    findings: what an unaltered log cannot hold
    gaps: offsets without a record; Kafka's own marks of transactions leave them too
    differing: decisions that today's rules would have made otherwise; no fault by itself
    not_judged: version -> decisions against these rules whose governor named that other version
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
    not_judged: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    differing: list[Finding] = field(default_factory=list)
    gaps: list[Finding] = field(default_factory=list)
    tree: TreeCheck = field(default_factory=TreeCheck)


MOST_FAULTY = 1000
"""So many undecided unreadable records are looked at in the end, at most."""


def verify(
    records: Iterable[Record],
    root_key: str,
    governor_key: str,
    *,
    chain: Chain | None = None,
    scope: Scope = WHOLE,
    kept: Kept | None = None,
    source: Source = ONCE,
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
        kept: what was kept elsewhere of this log.
        source: where the records come from.
    """
    report, image, faulty = Report(tree=TreeCheck(chain)), EMPTY, dict[int, Fault]()
    trusted = TrustedCheckpoints(chain.path() if chain else (), root_key)
    read = Reading(trusted, scope)
    judgements = Judgements(read.refold(source.reread) if source.reread is not None else None)
    passed_over, faulted, stopped = -1, False, False
    for record in records:
        # before the foundation nobody knows whose checkpoints count
        founded = bool(image.identity.mesh)
        if founded and _is_over(record.offset, scope, report.tree, faulted=faulted):
            stopped = True
            break
        inside, doubted = scope.holds(record.offset), read.needs_verification(record)
        entry = read.entry(record, image)
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
            _note_fault(faulty, entry)
            _doubt_root(report, entry, root_key)
            passed = _doubt_effect(report, judgements, scope, (before, image), entry)
            passed_over = max(passed_over, passed)
        if image.last_decision != before.last_decision and isinstance(entry.event, Decision):
            judgements.counted(entry.event, entry.signer or "")
            faulty = {at: one for at, one in faulty.items() if image.intents.is_open(at)}
    if not stopped and not faulted:
        _doubt_governor(report, image, governor_key)
        _doubt_length(report, kept)
    _doubt_end(report, image, faulty, passed_over)
    _doubt_tree(report, image, source.end if stopped else report.last + 1)
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
            f"offsets {expected} to {entry.offset - 1} hold no record: the marker of a "
            "client's transaction, or records that were deleted"
        )
        report.gaps.append(Finding(entry.offset, "gap", text))


def _doubt_length(report: Report, kept: Kept | None) -> None:
    """What was read once must be there."""
    if kept is not None and (end := kept.image.offset) > report.last:
        text = f"this home has read records up to {end}, the log ends at {report.last}"
        report.findings.append(Finding(report.last + 1, "log_changed", text, end))


def _doubt_kept(report: Report, image: Image, kept: Kept | None) -> None:
    """Reads are answered out of what was kept: it must be what the log gives."""
    if kept is None or kept.image.offset != image.offset:
        return
    if (kept.size, kept.root) != (report.tree.size, report.tree.root):
        text = f"this home has read other records up to {image.offset}"
        report.findings.append(Finding(image.offset, "log_changed", text))
    elif image != kept.image:
        text = (
            "the newest snapshot of this home differs from the state of the log: move its "
            "`snapshots` folder away, and check who can write there"
        )
        report.findings.append(Finding(image.offset, "snapshot_differs", text))


def _doubt_governor(report: Report, image: Image, governor_key: str) -> None:
    """The caller waits for decisions of a governor whose word counts at the log's end."""
    if not image.identity.has_role(governor_key, Role.GOVERNOR):
        text = f"the profile names a governor's key that is not valid here ({governor_key})"
        report.findings.append(Finding(report.last, "foreign_governor", text))


def _doubt_root(report: Report, entry: Entry, root_key: str) -> None:
    if entry.offset == 0 and entry.signer != root_key:
        text = "the first record is not signed by this mesh's root"
        report.findings.append(Finding(0, "foreign_root", text))


def _doubt_effect(
    report: Report,
    judgements: Judgements,
    scope: Scope,
    around: tuple[Image, Image],
    entry: Entry,
) -> int:
    """Judge what a record has changed; `around` are the images before and behind it.

    Returns the offset before which its governor can have left no unreadable record undecided, -1 if
    it does not tell: those are set aside in their order, and what a decision follows was readable.
    """
    event, (before, after) = entry.event, around
    if after.schemas is not before.schemas:
        _doubt_schema(report, entry)
    if not isinstance(event, Decision) or after.intents.is_open(entry.offset):
        return -1
    if after.ignored > before.ignored:
        report.ignored += 1
        # what is still undecided under its epoch follows a decision that is lost or altered
        unchained = event.epoch == after.epoch and after.intents.is_open(event.offset)
        return entry.offset if unchained else -1
    report.decisions += 1
    if isinstance(event, RecordsSetAside):
        report.set_aside += sum(event.counts.values())
    report.set_aside += isinstance(event, IntentQuarantined)
    _doubt_decision(report, judgements.state(event), scope, event, entry.offset)
    if isinstance(event, RecordsSetAside):
        return event.last
    return event.offset if before.intents.unusable.holds(event.offset) else -1


def _doubt_decision(
    report: Report, state: Image | None, scope: Scope, event: Decision, offset: int
) -> None:
    """Judge a decision that counts again."""
    governor = report.governor_version
    found = doubted(state, event, offset, governor_version=governor)
    if found is None:
        return
    known = found.code == RULES_DIFFER
    if found.code == NOT_JUDGED:
        report.not_judged[governor[:LONGEST_VERSION]] += 1
        known = governor in scope.known_versions
    (report.differing if known else report.findings).append(found)


def _doubt_schema(report: Report, entry: Entry) -> None:
    """Is a schema that the log took in the one that its introduction says?

    Only such a one: what a key without the right to it introduces has no effect, and neither has a
    copy. Its text may be anything.
    """
    event = entry.event
    if isinstance(event, SchemaIntroduced) and avro.fingerprint(event.schema_text) != (
        event.fingerprint
    ):
        text = f"the text of {event.name} differs"
        report.findings.append(Finding(entry.offset, "bad_fingerprint", text))


def _note_fault(faulty: dict[int, Fault], entry: Entry) -> None:
    if entry.fault is not None and len(faulty) < MOST_FAULTY:
        faulty[entry.offset] = entry.fault


def _doubt_end(report: Report, image: Image, faulty: dict[int, Fault], passed_over: int) -> None:
    """An unreadable record that the governor passed over was readable when it passed."""
    report.undecided = image.intents.open_count
    for offset, fault in sorted(faulty.items()):
        if offset < passed_over and image.intents.is_open(offset):
            text = f"{fault.reason}, and the governor did not set it aside"
            report.findings.append(Finding(offset, fault.code.value, text))
    report.findings.sort(key=lambda one: one.offset)
