"""A proof that one record stands on the log, which needs no log to be checked. Pure.

It holds the record, the record that introduced its schema, the path of each to the root of the
tree, and the signed checkpoint with that root. Who checks it brings the keeper's public key.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mesh_events import avro
from mesh_events.checkpoint import SignedCheckpoint, read_checkpoint
from mesh_events.codec import decode, has_valid_signature, schema_id_of
from mesh_events.decisions import SchemaIntroduced
from mesh_events.errors import UnusableRecordError
from mesh_events.leaf import leaf_hash
from mesh_events.meta import Event
from mesh_events.record import SIGNER, Record
from projections.tree import inclusion_proof, is_included
from self_service.cli.exits import FindingError

FORMAT = "streaming-data-mesh proof v1"


@dataclass(frozen=True, slots=True)
class Placed:
    """A record, the number of its leaf, and the hashes on its way to the root."""

    record: Record
    index: int
    path: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the file holds; `schema` is None for a record that names no introduced schema."""

    placed: Placed
    schema: Placed | None
    checkpoint: SignedCheckpoint


@dataclass(frozen=True, slots=True)
class Proven:
    """What a valid proof shows.

    `event` is None for a record that says nothing, and `fault` tells why. `signer` is the key that
    signed the record, None if its signature does not verify; `introducer` that of the schema.
    """

    proof: Proof
    event: Event | None
    fault: str
    signer: str | None
    introducer: str | None


def place(records: Mapping[int, Record], leaves: Sequence[bytes], index: int) -> Placed:
    """A record with its path in the tree over `leaves`; `records` is by leaf number."""
    return Placed(records[index], index, inclusion_proof(leaves, index))


def written(proof: Proof) -> str:
    """The proof as the text of its file."""
    document = {
        "format": FORMAT,
        **_written(proof.placed),
        "introduction": _written(proof.schema) if proof.schema else None,
        "checkpoint": str(proof.checkpoint.note),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read(text: str) -> Proof:
    """The proof in a file's text; raises FindingError for anything that is none."""
    try:
        found = _Document.model_validate_json(text)
        return Proof(
            _placed(found),
            _placed(found.introduction) if found.introduction else None,
            read_checkpoint(found.checkpoint),
        )
    except ValidationError as error:
        places = ", ".join(".".join(map(str, one["loc"])) or "file" for one in error.errors()[:3])
        raise FindingError(f"this is no proof of {FORMAT!r}: see {places}") from error
    except ValueError as error:
        raise FindingError(f"this is no proof: {error}") from error


def check(proof: Proof, key: str) -> Proven:
    """Check everything with the keeper's public key; raises FindingError for what is wrong."""
    body = proof.checkpoint.body
    if proof.checkpoint.signer([key]) is None:
        raise FindingError(
            f"the checkpoint of {body.origin} over {body.size} records is not signed by {key}: "
            "it was edited, or the key is not that of its keeper"
        )
    for name, one in (("record", proof.placed), ("record of the schema", proof.schema)):
        if one is None:
            continue
        leaf = leaf_hash(one.record)
        if not is_included(leaf, one.index, body.size, one.path, body.root):
            raise FindingError(
                f"the {name} at offset {one.record.offset} does not stand under the checkpoint "
                f"over {body.size} records: the record, its place or its path was edited"
            )
        if one.record.offset > body.offset:
            raise FindingError(
                f"the {name} is said to stand at offset {one.record.offset}, and the checkpoint "
                f"ends at {body.offset}"
            )
    return _read(proof)


def _read(proof: Proof) -> Proven:
    """What the record says, by the schema that the log itself introduced."""
    schemas, introducer = {-1: ""}, None
    if proof.schema is not None:
        event = _introduction(proof.schema.record)
        schemas[event.schema_id] = event.schema_text
        introducer = _signer(proof.schema.record)
    entry = decode(proof.placed.record, schemas, verify=False)
    fault = entry.fault.reason if entry.fault else ""
    return Proven(proof, entry.event, fault, _signer(proof.placed.record), introducer)


def _introduction(record: Record) -> SchemaIntroduced:
    """The event of the record that is said to introduce the schema; its own schema is known."""
    fault = f"the record at offset {record.offset} introduces no schema"
    try:
        own = {schema_id_of(record.value or b""): avro.text_of(SchemaIntroduced.type_name())}
    except UnusableRecordError as error:
        raise FindingError(f"{fault}: {error.reason}") from error
    event = decode(record, own, verify=False).event
    if not isinstance(event, SchemaIntroduced):
        raise FindingError(fault)
    return event


def _signer(record: Record) -> str | None:
    named = record.headers.get(SIGNER)
    return named.decode("ascii") if named and has_valid_signature(record) else None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Record(_Strict):
    offset: int
    time: int
    key: str | None
    value: str | None
    headers: dict[str, str | None]


class _Place(_Strict):
    record: _Record
    index: int
    path: list[str]


class _Document(_Place):
    format: Literal["streaming-data-mesh proof v1"]
    introduction: _Place | None
    checkpoint: str


def _written(one: Placed) -> dict[str, Any]:
    record = one.record
    return {
        "record": {
            "offset": record.offset,
            "time": record.time,
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": {name: _base64(record.headers[name]) for name in sorted(record.headers)},
        },
        "index": one.index,
        "path": [_base64(step) for step in one.path],
    }


def _placed(found: _Place) -> Placed:
    one = found.record
    headers = {name: _bytes(value) for name, value in one.headers.items()}
    record = Record(one.offset, one.time, _bytes(one.key), _bytes(one.value), headers)
    return Placed(record, found.index, [_bytes(step) or b"" for step in found.path])


def _base64(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _bytes(text: str | None) -> bytes | None:
    """Raises ValueError for what is not base64, or spelt in a second way."""
    if text is None:
        return None
    raw = base64.b64decode(text, validate=True)
    if _base64(raw) != text:
        raise ValueError("base64 is spelt in another way than it must be")
    return raw
