"""`sdm audit verify`: is the log the one that was signed, and does each record of it hold?"""

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import InfrastructureError
from mesh_events.integrity.checkpoint import origin_of
from mesh_events.integrity.places import Found, read_file, read_topic
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from mesh_events.settings import notes_path
from self_service.cli.audit.noun import app
from self_service.cli.framework.exits import FindingError, UsageError
from self_service.cli.framework.finding import OF_CHECKPOINTS, Finding, ordered
from self_service.cli.framework.options import Shown, command
from self_service.cli.framework.output import Detail, Format, Listing, note, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.verification.checkpoint_audit import WHOLE, Evidence, behind, is_behind, judge
from self_service.cli.verification.rejudging import NOT_JUDGED
from self_service.cli.verification.scope import Kept, Scope, Source
from self_service.cli.verification.verifier import Report, verify
from snapshots.place import open_store, store_path
from snapshots.store import ORIGIN, SnapshotError

_FINDING = ("offset", "last", "code", "text")
_IN_FLIGHT_S = 5.0
"""A checkpoint goes to the file first: so long the topic may lack the last one."""


@dataclass(frozen=True, kw_only=True)
class Doubted:
    """What is doubted."""

    first: Annotated[
        int | None,
        typer.Option("--from", metavar="N", min=0, help="Check signatures from this offset."),
    ] = None
    last: Annotated[
        int | None,
        typer.Option("--to", metavar="M", min=0, help="Check signatures up to this offset."),
    ] = None
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            "--checkpoints",
            metavar="FILE",
            help="Checkpoint file to compare; default: the one in this home.",
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Also fail on gaps and on decisions that today's rules would change."
        ),
    ] = False

    other_versions: Annotated[
        list[str] | None,
        typer.Option(
            "--other-version",
            metavar="VERSION",
            help="An earlier version of the mesh's software that governed here; repeatable. "
            "Its decisions against today's rules are listed and do not fail.",
        ),
    ] = None

    require_file: Annotated[
        bool,
        typer.Option(
            "--require-file", help="Also fail if the checkpoint file is missing or truncated."
        ),
    ] = False

    @property
    def scope(self) -> Scope:
        """The offsets; raises UsageError for none."""
        if self.last is not None and (self.first or 0) > self.last:
            raise UsageError(f"--from {self.first} is after --to {self.last}")
        return Scope(self.first or 0, self.last, frozenset(self.other_versions or ()))


@command(
    app,
    "verify",
    "sdm audit verify",
    "sdm audit verify --strict -o json",
    "sdm audit verify --require-file",
    "sdm audit verify --other-version 0.1.0",
    "sdm audit verify --from 1000 --to 2000",
    "sdm audit verify --checkpoints /mnt/witness/local.notes",
)
def verify_log(shown: Shown, doubted: Doubted) -> None:
    """Verify the log against its checkpoints, and every signature, schema and decision.

    Exit code 8 comes with the first bad offset or range. Records that were set aside are no fault
    of the log: they have no effect. With --from or --to, only the hashes of the other records are
    verified. NOT_JUDGED counts, by version, decisions against today's rules whose governor named
    another version: the rules may have changed since, or a thief of the governor's key named it.
    """
    mesh, scope = Mesh(), doubted.scope
    connection = mesh.governance(mesh.reader)
    path = doubted.checkpoints or notes_path(mesh.home, mesh.profile.mesh)
    if doubted.checkpoints is not None and not path.exists():
        raise UsageError(f"there is no file {path}: leave out --checkpoints, or name another")
    evidence = _evidence(connection, path, origin_of(mesh.profile.mesh))
    evidence.findings += _lacking(path, evidence, doubted)
    began = time.monotonic()
    with LogReader(connection) as reader, LogReader(connection, start=None) as again:
        report = _verified(mesh, reader, again, evidence, scope)
    seconds = time.monotonic() - began
    report.findings = ordered([*report.findings, *evidence.findings])
    _tell(report, evidence, seconds, shown, strict=doubted.strict)
    if scope.first > report.last:
        raise UsageError(
            f"--from {scope.first} is after the log's last record, offset {report.last}: only "
            "hashes were checked, no signatures"
        )
    if scope.last is not None and scope.last > report.last:
        note(f"--to {scope.last} is after the log's last record: checked up to {report.last}")


def _evidence(connection: Connection, path: Path, origin: str) -> Evidence:
    """Both places, given time to be equal; the file is left out where there is none."""
    file = read_file(path) if path.exists() else None
    if file is None:
        note(f"{path} does not exist: only mesh.checkpoints is compared")
    topic, deadline = _topic(connection), time.monotonic() + _IN_FLIGHT_S
    while is_behind(topic, file) and time.monotonic() < deadline:
        time.sleep(0.2)
        topic = _topic(connection)
    if late := behind(topic, file):
        note(
            f"{path} lacks the last {late} checkpoints of mesh.checkpoints: it was truncated, or "
            "no worker of this home has led since; the next worker that starts writes them again"
        )
    found = judge(origin, topic, file)
    if file is None:
        found.file = "missing"
    elif late:
        found.file = f"behind by {late}"
    return found


def _lacking(path: Path, evidence: Evidence, doubted: Doubted) -> list[Finding]:
    """That the file is not what the command was told that it is."""
    if doubted.checkpoints is not None and not evidence.in_file:
        # whoever names a copy relies on it: one that says nothing must not pass for a proof
        text = f"the file {path} holds no checkpoint of this mesh: name another copy"
        return [Finding(0, "checkpoint_missing", text)]
    if doubted.require_file and evidence.file != WHOLE:
        return [Finding(0, "checkpoint_missing", f"the file {path} is {evidence.file}")]
    return []


def _topic(connection: Connection) -> list[Found]:
    try:
        return read_topic(connection)
    except InfrastructureError as error:
        if error.retriable:
            raise
        # a topic that is gone holds no checkpoint, which the file tells of
        note(str(error))
        return []


def _verified(
    mesh: Mesh, reader: LogReader, again: LogReader, evidence: Evidence, scope: Scope
) -> Report:
    low, end = reader.partition.bounds()
    if low:
        text = f"offsets 0 to {low - 1} were deleted: the log begins at {low}; restore it"
        return Report(findings=[Finding(0, "log_start_truncated", text, low - 1)])
    return verify(
        reader.to_end(),
        mesh.profile.root_key,
        mesh.profile.governor_key,
        chain=evidence.chain,
        scope=scope,
        kept=_kept(mesh),
        source=Source(end, again.between),
    )


def _kept(mesh: Mesh) -> Kept | None:
    """What this home's newest snapshot of the log says; None where there is none."""
    about = mesh.home, mesh.profile.mesh, mesh.profile.root_key
    if not store_path(*about).exists():
        return None
    try:
        with open_store(*about) as store:
            newest = store.newest()
            if newest == ORIGIN:
                return None
            return Kept(store.whole_image(newest), newest.tree.size, newest.tree.root)
    except SnapshotError as error:
        note(str(error))
        return None


def _tell(
    report: Report, evidence: Evidence, seconds: float, shown: Shown, *, strict: bool
) -> None:
    bad = ordered(report.findings + (report.differing + report.gaps if strict else []))
    parts = {
        "findings": _listing(report.findings),
        "gaps": _listing(report.gaps),
        "differences": _listing(report.differing),
    }
    if shown.output is Format.TABLE:
        parts = {name: part for name, part in parts.items() if part.items}
    show(Detail(_fields(report, evidence, seconds, valid=not bad), parts), shown.output)
    if bad:
        raise FindingError(_sentence(bad, report))
    note(f"all {report.records} records are valid, up to offset {report.last}")


def _fields(report: Report, evidence: Evidence, seconds: float, *, valid: bool) -> dict[str, Any]:
    head, confirmed = evidence.chain.head, report.tree.confirmed
    return {
        "records": report.records,
        "signatures": report.signatures,
        "schemas": report.schemas,
        "decisions": report.decisions,
        "ignored": report.ignored,
        "set_aside": report.set_aside,
        "undecided": report.undecided,
        "differing": len(report.differing),
        "not_judged": dict(report.not_judged),
        "marked_gaps": report.marked,
        "tree_size": report.tree.size,
        "root": base64.b64encode(report.tree.root).decode(),
        "checkpoints": len(evidence.chain),
        "checkpoint_file": evidence.file,
        "checkpoint_size": confirmed.size if confirmed else None,
        "checkpoint_offset": confirmed.offset if confirmed else None,
        "checkpoint_time": stamp(evidence.time_of(head)) if head else None,
        "records_per_second": round(report.records / seconds) if seconds else None,
        "valid": valid,
    }


def _sentence(bad: list[Finding], report: Report) -> str:
    """The first finding; that the log itself is whole must not be missed."""
    first, codes = bad[0], {one.code for one in bad}
    if codes <= OF_CHECKPOINTS:
        return (
            f"every record of the log is valid; one of its checkpoints is not ({first.code}): "
            f"{first.text}"
        )
    if codes == {NOT_JUDGED}:
        versions = ", ".join(f"{count} of {name!r}" for name, count in report.not_judged.items())
        return f"decisions of other versions were not judged: {versions}; {first.text}"
    place = f"offset {first.offset}"
    if first.last is not None:
        place = f"offsets {first.offset} to {first.last}"
    return f"the log is not valid at {place} ({first.code}): {first.text}"


def _listing(findings: list[Finding]) -> Listing:
    items = [
        {"offset": one.offset, "last": one.last, "code": one.code, "text": one.text}
        for one in findings
    ]
    return Listing(_FINDING, items)
