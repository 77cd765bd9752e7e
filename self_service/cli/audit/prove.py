"""`sdm audit prove` and `check-proof`: one record's place on the log, checked without the log."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.decisions import Decision
from mesh_events.errors import ConfigurationError, InvalidValueError
from mesh_events.files import write_atomically
from mesh_events.integrity.checkpoint import origin_of
from mesh_events.integrity.places import checkpoints, read_file, read_topic
from mesh_events.meta import Kind
from mesh_events.settings import notes_path
from mesh_events.signing import is_public_key
from projections.integrity.chain import Chain, ChainBreakError, chained
from self_service.cli.audit.noun import app
from self_service.cli.framework.exits import FindingError, UsageError
from self_service.cli.framework.given_files import read_text
from self_service.cli.framework.options import Shown, command
from self_service.cli.framework.output import Detail, note, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.proof import checking as proofs
from self_service.cli.proof.checking import Proven, State
from self_service.cli.proof.file import read, written
from self_service.cli.proof.search import Search

MOST_PROOF_BYTES = 64 * 1024 * 1024
"""What is read of a proof: a record and its decision with all in front of it have a few MiB."""


@command(
    app,
    "prove",
    "sdm audit prove 41",
    "sdm audit prove 01a1fb69-0000-7000-8000-000000000001 --out proof.json",
)
def prove(
    shown: Shown,
    reference: Annotated[
        str,
        typer.Argument(metavar="OFFSET|EVENT_ID", help="Offset of the record, or id of its event."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write; default: proof-OFFSET.json."),
    ] = None,
) -> None:
    """Write a proof that a record is on the log, and of the decision on it.

    The proof can be checked without the log. A record without a decision is proven to be undecided
    up to the newest checkpoint.
    """
    mesh, search = Mesh(), Search(reference)
    signed = _signed(mesh)
    with mesh.log() as reader:
        found, controller = mesh.fold(reader, lambda log, trusted: search.run(log, trusted, signed))
    placed, body = found.subject.placed, found.checkpoint.body
    proven = proofs.check(found, controller.public)
    file = out or Path(f"proof-{placed.record.offset}.json")
    try:
        # a folder that somebody names and has not made is a slip
        write_atomically(file, written(found), parents=False)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}; name another file with --out"
        ) from error
    fields = {
        "file": str(file),
        "offset": placed.record.offset,
        "outcome": str(proven.outcome),
        "decided_at": proven.outcome.offset,
        "index": placed.index,
        "checkpoint_size": body.size,
        "root": base64.b64encode(body.root).decode(),
        "controller_key": controller.public,
        "controller_key_revoked_at": controller.revoked,
    }
    show(Detail(fields), shown.output)
    if controller.revoked is not None:
        note(
            f"the key that signed it was revoked at offset {controller.revoked}: prove it again "
            "once a checkpoint of another controller key covers it"
        )
    note(f"check it with sdm audit check-proof {file} --key {controller.public}")


@command(app, "check-proof", "sdm audit check-proof proof.json --key CONTROLLER_PUBLIC_KEY")
def check_proof(
    shown: Shown,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that `prove` wrote.")],
    key: Annotated[
        str,
        typer.Option("--key", metavar="CONTROLLER_PUBLIC_KEY", help="The controller's public key."),
    ],
    governor: Annotated[
        list[str] | None,
        typer.Option(
            "--governor",
            metavar="GOVERNOR_PUBLIC_KEY",
            help="Public key of a governor whose decisions to accept; repeatable.",
        ),
    ] = None,
) -> None:
    """Check a proof without Kafka and show its record; exit code 8 if anything is wrong.

    OUTCOME is the decision on the record: rejected records are on the log, too. The proof of a
    decision does not show whether it has an effect: prove the record that it decides. Take the keys
    from a source that you trust, not from the sender of the proof. A proof cannot show that the
    governor's key was valid when it decided: name the keys of that time with --governor.
    """
    for option, given in (("--key", key), *(("--governor", one) for one in governor or ())):
        if not is_public_key(given):
            raise InvalidValueError(
                f"{option} {given[:60]!r} is not a public key: 43 characters of base64url"
            )
    try:
        text = read_text(file, MOST_PROOF_BYTES)
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FindingError(f"{file} cannot be read: {error}") from error
    found = proofs.check(read(text), key)
    for offset, signer in _decisions(found):
        if governor and signer not in governor:
            raise FindingError(
                f"the decision at offset {offset} is signed by {signer}, which --governor does not "
                "name: it is refused"
            )
    show(Detail(_fields(found)), shown.output)
    note(f"the record is on the log, as the controller signed it; {_sentence(found)}")
    if found.outcome.may_be_copy:
        note(
            f"the record at offset {found.outcome.offset} was appended at "
            f"{stamp(found.outcome.appended)}: it may be a copy of the decision, which is then at "
            "an earlier offset and took effect there; run `sdm audit verify`"
        )


def _signed(mesh: Mesh) -> Chain:
    """The checkpoints of this home, or else the topic's."""
    found = checkpoints(read_file(notes_path(mesh.home, mesh.profile.mesh)))
    if not found:
        found = checkpoints(read_topic(mesh.governance(mesh.reader)))
    try:
        return chained(origin_of(mesh.profile.mesh), found)
    except ChainBreakError as error:
        raise FindingError(f"{error}: see `sdm audit verify`") from error


def _sentence(found: Proven) -> str:
    """What the outcome means, in words that cannot be taken for another one."""
    outcome, size = found.outcome, found.proof.checkpoint.body.size
    match outcome.state:
        case State.ACCEPTED:
            return (
                f"offset {outcome.offset} ACCEPTED it, under the key {outcome.signer}: the proof "
                "does not show whether this key was revoked or its epoch ended before; compare the "
                "key with `sdm key list`, or run `sdm audit verify`"
            )
        case State.REJECTED | State.QUARANTINED:
            return f"it has no effect: offset {outcome.offset} {outcome.state} it ({outcome.code})"
        case State.UNDECIDED:
            return (
                f"the proof holds no decision on it, of the {size} records up to offset "
                f"{found.proof.checkpoint.body.offset}, and does not show whether there is one; "
                "ask for a newer proof"
            )
        case State.NONE_NEEDED if isinstance(found.event, Decision):
            return (
                f"it is a governor's decision on offset {found.event.offset}: the proof does not "
                "show whether it has an effect; prove that record"
            )
        case State.NONE_NEEDED:
            return (
                f"it needs no decision, under the key {found.signer}: the proof does not show "
                "whether this key was revoked before, or whether the record had an effect; compare "
                "it with `sdm key list` and `sdm audit log`"
            )


def _decisions(found: Proven) -> Iterator[tuple[int | None, str]]:
    """(offset, signer) of what counts by a governor's key alone."""
    if found.outcome.signer is not None:
        yield found.outcome.offset, found.outcome.signer
    if found.event is not None and found.event.kind is Kind.DECISION and found.signer is not None:
        yield found.proof.subject.placed.record.offset, found.signer


def _fields(found: Proven) -> dict[str, Any]:
    record, body = found.proof.subject.placed.record, found.proof.checkpoint.body
    event, outcome = found.event, found.outcome
    return {
        "outcome": str(outcome),
        "decided_at": outcome.offset,
        "decided_time": stamp(outcome.time),
        "decided_appended": stamp(outcome.appended),
        "decided_by": outcome.signer,
        "epoch": outcome.epoch,
        "reason": outcome.reason or None,
        "log": body.origin,
        "offset": record.offset,
        "time": stamp(record.time),
        "index": found.proof.subject.placed.index,
        "checkpoint_size": body.size,
        "checkpoint_offset": body.offset,
        "root": base64.b64encode(body.root).decode(),
        "type": event.type_name() if event else None,
        "fault": found.fault or None,
        "signer": found.signer,
        "signature_valid": found.signer is not None,
        "schema_introduced_by": found.introducer,
        "root_key": found.root,
        "key": (record.key or b"").decode(errors="replace"),
        "event": event.model_dump(mode="json") if event else None,
    }
