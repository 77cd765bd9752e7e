"""Events and rows to bytes and back: Avro in the Confluent wire format, with signed headers.

Wire format of a value: one zero byte, the schema's id as 4 bytes big-endian, the Avro body.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import fastavro
from pydantic import ValidationError

from mesh_events import avro, signing
from mesh_events.decisions import SchemaIntroduced
from mesh_events.errors import InvalidValueError, UnusableRecordError
from mesh_events.meta import Event, Frozen, Kind, spelt
from mesh_events.record import (
    CE_ID,
    CE_SOURCE,
    CE_SPECVERSION,
    CE_TYPE,
    SIGNATURE,
    SIGNER,
    Entry,
    Fault,
    FaultCode,
    Record,
)
from mesh_events.topics import MAX_INTENT_BYTES, MAX_RECORD_BYTES
from mesh_events.vocabulary import EVENTS

Headers = list[tuple[str, bytes]]
AnyFrozen = TypeVar("AnyFrozen", bound=Frozen)


class Wire(NamedTuple):
    """A record ready to be produced."""

    key: bytes
    value: bytes
    headers: Headers


def frame(schema_id: int, text: str, datum: Mapping[str, Any]) -> bytes:
    """Encode `datum` with the schema `text` behind the five bytes of the wire format."""
    out = io.BytesIO()
    out.write(b"\x00" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, avro.parsed(text), datum)
    return out.getvalue()


def schema_id_of(value: bytes) -> int:
    """The schema id in front of a framed value; raises UnusableRecordError for other bytes."""
    if len(value) < 5 or value[0] != 0:
        raise UnusableRecordError(
            FaultCode.GARBAGE, "the value does not begin with the five bytes of the wire format"
        )
    return int.from_bytes(value[1:5], "big")


def unframe(value: bytes, writer: str, reader: str | None = None) -> dict[str, Any]:
    """Decode a framed value; `reader` resolves an older or newer form to ours.

    Raises UnusableRecordError when the body is not one record of the writer's schema.
    """
    body = io.BytesIO(value)
    body.seek(5)
    resolve = avro.parsed(reader) if reader is not None and reader != writer else None
    try:
        datum = fastavro.schemaless_reader(body, avro.parsed(writer), resolve)
    except Exception as error:  # fastavro raises many kinds on bytes that are not Avro
        raise UnusableRecordError(
            FaultCode.GARBAGE, f"the Avro body cannot be read: {type(error).__name__}"
        ) from error
    if body.tell() != len(value):
        raise UnusableRecordError(
            FaultCode.GARBAGE, f"{len(value) - body.tell()} bytes follow the Avro body"
        )
    if not isinstance(datum, dict):
        raise UnusableRecordError(FaultCode.INVALID_EVENT, "the schema is not a record")
    return datum


def build(model: type[AnyFrozen], datum: Mapping[str, Any]) -> AnyFrozen:
    """The typed value of a decoded record; raises UnusableRecordError naming the wrong fields."""
    try:
        return model.model_validate(datum)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, e["loc"])) for e in error.errors()[:3])
        raise UnusableRecordError(
            FaultCode.INVALID_EVENT, f"{model.__name__} has invalid fields: {fields}"
        ) from error


def encode(event: Event, schema_id: int, key: signing.SigningKey, root: str) -> Wire:
    """The signed record of an event.

    Args:
        event: what it says.
        schema_id: the registry's id of the event's current schema.
        key: who signs.
        root: public key of the root of the mesh in which the record is to count.

    Raises InvalidValueError for a text that UTF-8 cannot hold.
    """
    datum = event.model_dump()
    try:
        record_key = event.key.encode()
        value = frame(schema_id, avro.text_of(event.type_name()), datum)
    except UnicodeEncodeError:
        place = ".".join(next(_halves(datum), ()))
        raise InvalidValueError(
            f"{event.type_name()}: {spelt(place)} has half of a surrogate pair: write whole "
            "characters, in UTF-8"
        ) from None
    headers: Headers = [
        (CE_SPECVERSION, b"1.0"),
        (CE_ID, event.meta.id.encode()),
        (CE_TYPE, event.cloud_event_type().encode()),
        (CE_SOURCE, f"mesh/{event.meta.domain}".encode()),
        ("content-type", b"application/avro"),
        (SIGNER, key.public.encode()),
        (SIGNATURE, key.sign(root, record_key, value)),
    ]
    return Wire(record_key, value, headers)


def _halves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the texts that are not whole characters."""
    match value:
        case str() if spelt(value) != value:
            yield path
        case Mapping():
            for name, one in value.items():
                yield from _halves(name, (*path, name))
                yield from _halves(one, (*path, name))
        case list() | tuple():
            for one in value:
                yield from _halves(one, path)


def anybody(signer: str) -> bool:
    """Every signer is known: for who looks at a record apart from the log's state."""
    del signer
    return True


def decode(
    record: Record,
    schemas: Mapping[int, str],
    root: str | None,
    *,
    verify: bool = True,
    knows: Callable[[str], bool] = anybody,
) -> Entry:
    """Understand a record of the governance log with the schemas introduced before it.

    What nobody of the mesh has signed is not decoded: half a megabyte of Avro takes a tenth of a
    second, and anybody who may append could write it.

    Args:
        record: the bytes at one offset.
        schemas: schema id -> schema text, as introduced on the log so far.
        root: public key of the mesh's root; None before the first record, which its signer roots.
        verify: check the signature (about 0.1 ms); without it the named signer is believed,
            which is sound only for a part of the log that was verified before.
        knows: whether a public key is registered, in force or revoked.

    Never raises for a bad record: the fault says what is wrong.
    """
    try:
        value, model, writer = _kind(record, schemas)
        signer = _signer(record, root, verify=verify)
        _require_known(signer, knows)
        event = build(model, unframe(value, writer, avro.text_of(model.type_name())))
        _same(record, event)
    except UnusableRecordError as error:
        fault = Fault(FaultCode(error.code), error.reason)
        return Entry(record.offset, record.time, None, None, fault)
    return Entry(record.offset, record.time, signer, event, None)


def has_valid_signature(record: Record, root: str | None) -> bool:
    """Whether the key that the record names has signed it in this mesh; `root` as in `decode`."""
    try:
        _signer(record, root, verify=True)
    except UnusableRecordError:
        return False
    return True


def holds_signature(record: Record, entry: Entry, root: str | None) -> bool:
    """Whether a record's signature is valid or was believed, whatever became of it in `entry`.

    It is checked again only where `entry` tells no signer.
    """
    return entry.signer is not None or has_valid_signature(record, root)


def _require_known(signer: str, knows: Callable[[str], bool]) -> None:
    if not knows(signer):
        raise UnusableRecordError(FaultCode.UNKNOWN_KEY, f"no domain has the key {signer}")


def _kind(record: Record, schemas: Mapping[int, str]) -> tuple[bytes, type[Event], str]:
    """(value, type of the event, text of the schema that it was written with)."""
    value = record.value
    if value is None:
        raise UnusableRecordError(FaultCode.GARBAGE, "the record has no value")
    _require_at_most(MAX_RECORD_BYTES, value)
    schema_id = schema_id_of(value)
    if not schemas:
        return value, SchemaIntroduced, _first(value, schema_id)
    writer = schemas.get(schema_id)
    if writer is None:
        raise UnusableRecordError(
            FaultCode.UNKNOWN_SCHEMA, f"schema id {schema_id} was not introduced on this log"
        )
    name = _record_name(writer, schema_id)
    model = EVENTS.get(name)
    if model is None:
        raise UnusableRecordError(FaultCode.UNKNOWN_TYPE, f"{name} is not an event of this mesh")
    _require_at_most(most_bytes(model), value)
    return value, model, writer


def most_bytes(model: type[Event]) -> int:
    """Bytes of the largest value of such a record that is decoded."""
    return MAX_INTENT_BYTES if model.kind is Kind.INTENT else MAX_RECORD_BYTES


def _require_at_most(most: int, value: bytes) -> None:
    if len(value) > most:
        raise UnusableRecordError(
            FaultCode.TOO_LARGE, f"{len(value)} bytes, at most {most} are read"
        )


def _record_name(writer: str, schema_id: int) -> str:
    """The event's name in an introduced schema, without the mesh's namespace."""
    try:
        name = str(avro.parsed(writer)["name"])
    except Exception as error:  # fastavro and json raise many kinds on a text that is no schema
        raise UnusableRecordError(
            FaultCode.UNKNOWN_SCHEMA, f"schema id {schema_id} on this log is not an Avro record"
        ) from error
    return name.removeprefix(f"{avro.NAMESPACE}.")


def _first(value: bytes, schema_id: int) -> str:
    """The text of the schema that the first record of a log introduces: its own."""
    text = avro.text_of(SchemaIntroduced.type_name())
    event = build(SchemaIntroduced, unframe(value, text))
    if event.schema_id != schema_id:
        raise UnusableRecordError(
            FaultCode.UNKNOWN_SCHEMA, "the log does not begin by introducing its own schema"
        )
    return text


def _same(record: Record, event: Event) -> None:
    """Headers and key are there only to skip by: the body wins, a difference is a fault."""
    for name, expected in ((CE_ID, event.meta.id), (CE_TYPE, event.cloud_event_type())):
        found = record.headers.get(name)
        if found is None:
            raise UnusableRecordError(FaultCode.HEADER_MISSING, f"header {name} is missing")
        if found != expected.encode():
            raise UnusableRecordError(
                FaultCode.HEADER_MISMATCH, f"header {name} differs from the event"
            )
    if record.key != event.key.encode():
        raise UnusableRecordError(FaultCode.KEY_MISMATCH, f"the record's key is not {event.key}")


def _signer(record: Record, root: str | None, *, verify: bool) -> str:
    name, signature = record.headers.get(SIGNER), record.headers.get(SIGNATURE)
    if not name or not signature:
        raise UnusableRecordError(
            FaultCode.UNSIGNED, f"headers {SIGNER} and {SIGNATURE} are needed"
        )
    try:
        text = name.decode("ascii")
        public = signing.decode_public(text)
    except signing.WeakKeyError:
        raise UnusableRecordError(
            FaultCode.WEAK_KEY, f"anybody can sign with the key in header {SIGNER}"
        ) from None
    except ValueError:
        raise UnusableRecordError(
            FaultCode.BAD_SIGNATURE, f"header {SIGNER} is not a public key"
        ) from None
    key, value = record.key or b"", record.value or b""
    if verify and not signing.verifies(public, signature, root or text, key, value):
        raise UnusableRecordError(
            FaultCode.BAD_SIGNATURE,
            "the signature does not fit the record's key and value in this mesh",
        )
    return text
