"""`sdm audit prove` and `check-proof`: one record's place on the log, checked without the log."""

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.checkpoint import SignedCheckpoint, origin_of
from mesh_events.checkpoint_places import checkpoints, read_file, read_topic
from mesh_events.codec import schema_id_of
from mesh_events.decisions import SchemaIntroduced
from mesh_events.errors import ConfigurationError, InvalidValueError, UnusableRecordError
from mesh_events.files import write_atomically
from mesh_events.leaf import leaf_hash
from mesh_events.record import Entry, Record
from mesh_events.settings import notes_path
from mesh_events.signing import is_public_key
from projections.chain import Chain, ChainBreakError, chained
from projections.identity import Key, Role
from projections.image import EMPTY, Image
from projections.replay import walk
from projections.tree import root_of
from projections.trust import Trusted
from self_service.cli import proof as proofs
from self_service.cli.audit_noun import app
from self_service.cli.context import Mesh
from self_service.cli.exits import FindingError, NotFoundError, UsageError
from self_service.cli.lookup import offset_of
from self_service.cli.options import Shown, command
from self_service.cli.output import Detail, note, show
from self_service.cli.proof import Proof, Proven
from self_service.cli.times import stamp


@command(
    app,
    "prove",
    "sdm audit prove '#41'",
    "sdm audit prove 01a1fb69-0000-7000-8000-000000000001 --out proof.json",
)
def prove(
    shown: Shown,
    reference: Annotated[
        str,
        typer.Argument(metavar="OFFSET|EVENT_ID", help="The record: #OFFSET, or its event's id."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write; default: proof-OFFSET.json."),
    ] = None,
) -> None:
    """Write a proof that one record stands on the log, to be checked without the log."""
    mesh, search = Mesh(), Search(reference)
    signed = _signed(mesh)
    with mesh.log() as reader:
        found, keeper = mesh.fold(reader, lambda log, trusted: search.run(log, trusted, signed))
    placed, body = found.placed, found.checkpoint.body
    file = out or Path(f"proof-{placed.record.offset}.json")
    try:
        write_atomically(file, proofs.written(found))
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error}; give --out") from error
    fields = {
        "file": str(file),
        "offset": placed.record.offset,
        "index": placed.index,
        "checkpoint_size": body.size,
        "root": base64.b64encode(body.root).decode(),
        "keeper_key": keeper.public,
        "keeper_key_revoked_at": keeper.revoked,
    }
    show(Detail(fields), shown.output)
    if keeper.revoked is not None:
        note(
            f"the key that signed it was revoked at #{keeper.revoked}: prove it again once another "
            "keeper's checkpoint covers it"
        )
    note(f"check it with: sdm audit check-proof {file} --key {keeper.public}")


@command(app, "check-proof", "sdm audit check-proof proof.json --key KEEPER_PUBLIC_KEY")
def check_proof(
    shown: Shown,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `prove` has written.")],
    key: Annotated[
        str, typer.Option("--key", metavar="KEEPER_PUBLIC_KEY", help="The keeper's public key.")
    ],
) -> None:
    """Check a proof without Kafka, and show what the record says; 8 if anything is wrong.

    Take the key from a place that you trust, not from who gave you the proof.
    """
    if not is_public_key(key):
        raise InvalidValueError(f"--key {key[:60]!r} is no public key: 43 characters of base64url")
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FindingError(f"{file} cannot be read: {error}") from error
    show(Detail(_fields(proofs.check(proofs.read(text), key))), shown.output)
    note("the record stands on the log, as the keeper signed it")


def _signed(mesh: Mesh) -> Chain:
    """The checkpoints of this home, or else the topic's."""
    found = checkpoints(read_file(notes_path(mesh.home, mesh.profile.mesh)))
    if not found:
        found = checkpoints(read_topic(mesh.governance(mesh.reader)))
    try:
        return chained(origin_of(mesh.profile.mesh), found)
    except ChainBreakError as error:
        raise FindingError(f"{error}: see `sdm audit verify`") from error


class Search:
    """One walk over the log: the wanted record, what introduced its schema, all leaves."""

    def __init__(self, reference: str) -> None:
        if not reference.strip("# "):
            raise UsageError("which record? Give its event's id, or #OFFSET")
        self._reference, self._offset = reference.lower(), offset_of(reference)
        self._leaves: list[bytes] = []
        self._records: dict[int, Record] = {}
        self._introduced: dict[int, int] = {}

    def run(
        self, log: Iterable[Record], trusted: Trusted | None, signed: Chain
    ) -> tuple[Proof, Key]:
        """The proof, and the keeper's key that signed its checkpoint.

        Raises NotFoundError for a record that is not there or not covered yet, FindingError for a
        log that is not what was signed.
        """
        self._leaves, self._records, self._introduced = [], {}, {}
        found, before = list[tuple[int, str]](), EMPTY
        for entry, image in walk(self._hashed(log), trusted=trusted):
            index, event = len(self._leaves) - 1, entry.event
            if isinstance(event, SchemaIntroduced) and image.schemas is not before.schemas:
                self._introduced[event.schema_id] = index
            elif not self._fits(entry):
                del self._records[index]
            if self._fits(entry):
                found.append((index, event.meta.id if event else ""))
            before = image
        index = self._single(found)
        return self._proof(index, signed, before)

    def _hashed(self, log: Iterable[Record]) -> Iterator[Record]:
        for record in log:
            self._records[len(self._leaves)] = record
            self._leaves.append(leaf_hash(record))
            yield record

    def _fits(self, entry: Entry) -> bool:
        if self._offset is not None:
            return entry.offset == self._offset
        return entry.event is not None and entry.event.meta.id.startswith(self._reference)

    def _single(self, found: list[tuple[int, str]]) -> int:
        if not found:
            raise NotFoundError(f"the log has no record {self._reference}: see `sdm audit log`")
        if len({name for _, name in found}) > 1:
            raise UsageError(f"{len(found)} ids begin with {self._reference}: give more of it")
        # the same id twice on the log: the first counts
        return found[0][0]

    def _proof(self, index: int, signed: Chain, image: Image) -> tuple[Proof, Key]:
        record = self._records[index]
        one, keeper = _covering(record.offset, signed, image)
        leaves = self._leaves[: one.body.size]
        if root_of(leaves) != one.body.root:
            raise FindingError(
                f"the log is not what the checkpoint over {one.body.size} records was signed "
                "over: see `sdm audit verify`"
            )
        introduction = self._introduced.get(_schema_id(record), index)
        placed = [proofs.place(self._records, leaves, at) for at in (index, introduction)]
        named = placed[1] if _schema_id(record) in self._introduced else None
        return Proof(placed[0], named, one), keeper


def _covering(offset: int, signed: Chain, image: Image) -> tuple[SignedCheckpoint, Key]:
    """The first checkpoint over a record, if there is one of a keeper's key that is in force.

    Whoever checks the proof may not believe a revoked key any more, whatever it signed before.
    """
    keepers = [one for one in image.identity.keys.values() if one.role is Role.KEEPER]
    keepers.sort(key=lambda one: one.revoked is not None)
    for keeper in keepers:
        for one in signed.by_size():
            if one.body.offset >= offset and one.signer([keeper.public]):
                return one, keeper
    raise NotFoundError(
        f"no checkpoint covers offset {offset} yet: the worker signs one within seconds; "
        "see `sdm status`, then try again"
    )


def _schema_id(record: Record) -> int:
    """The schema that a record names, -1 for none."""
    try:
        return schema_id_of(record.value or b"")
    except UnusableRecordError:
        return -1


def _fields(found: Proven) -> dict[str, Any]:
    record, body = found.proof.placed.record, found.proof.checkpoint.body
    event = found.event
    return {
        "log": body.origin,
        "offset": record.offset,
        "time": stamp(record.time),
        "index": found.proof.placed.index,
        "checkpoint_size": body.size,
        "checkpoint_offset": body.offset,
        "root": base64.b64encode(body.root).decode(),
        "type": event.type_name() if event else None,
        "fault": found.fault or None,
        "signer": found.signer,
        "signature_valid": found.signer is not None,
        "schema_introduced_by": found.introducer,
        "key": (record.key or b"").decode(errors="replace"),
        "event": event.model_dump(mode="json") if event else None,
    }
