"""Records of the log: how they are written, understood and set aside."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh_events import avro, codec, intents
from mesh_events.connectors import ConnectorAdded
from mesh_events.errors import InvalidValueError, UnusableRecordError
from mesh_events.facts import CredentialsIssued
from mesh_events.meta import Event
from mesh_events.record import Entry, FaultCode, Record
from mesh_events.topics import MAX_INTENT_BYTES, MAX_RECORD_BYTES
from tests.memory_log import SCHEMA_IDS, MemoryLog, key, record_of, resigned, sign

LOG = MemoryLog()
SCHEMAS = dict(LOG.image.schemas)
EVENT = LOG.make(
    intents.AccessRequested,
    "west",
    product="east.users",
    application="west.app",
    reason="to greet",
)
FACT = CredentialsIssued(
    meta=EVENT.meta, principal="east.app", cluster="east", generation=1, reference="file:x"
)
ID = SCHEMA_IDS["AccessRequested"]
RECORD = record_of(sign(EVENT, key("west")), 40, 4000)
VALUE = RECORD.value or b""


def decoded(record: Record, schemas: Mapping[int, str] = SCHEMAS) -> Entry:
    return codec.decode(record, schemas, key("root").public if schemas else None)


def faulty(record: Record, schemas: Mapping[int, str] = SCHEMAS) -> FaultCode:
    entry = decoded(record, schemas)
    assert entry.event is None
    assert entry.signer is None
    assert entry.fault is not None
    assert entry.fault.reason
    assert (entry.offset, entry.time) == (record.offset, record.time)
    return entry.fault.code


def headed(**changes: bytes | None) -> Record:
    """The record with other headers; None takes one away."""
    headers = {**RECORD.headers, **changes}
    kept = {name: value for name, value in headers.items() if value is not None}
    return replace(RECORD, headers=kept)


def written(datum: Any, schema: Any, number: int = 77) -> tuple[bytes, dict[int, str]]:
    """A value written with any schema, and the schemas of a log that introduced it."""
    out = io.BytesIO(b"\x00" + number.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas={}), datum)
    return out.getvalue(), {**SCHEMAS, number: json.dumps(schema)}


def test_a_signed_event_is_understood_with_its_signer() -> None:
    assert decoded(RECORD) == Entry(40, 4000, key("west").public, EVENT, None)


def test_the_wire_format_is_a_zero_the_schema_id_and_avro() -> None:
    assert VALUE[:5] == b"\x00" + ID.to_bytes(4, "big")
    body = fastavro.schemaless_reader(
        io.BytesIO(VALUE[5:]), json.loads(avro.committed()["AccessRequested"])
    )
    assert body == EVENT.model_dump()


@pytest.mark.parametrize(
    ("kind", "sender", "fields", "place"),
    [
        (
            intents.AccessRequested,
            "west",
            {"product": "east.users", "application": "west.app", "reason": "to \udcff"},
            "reason",
        ),
        (
            intents.ApplicationRegistered,
            "west",
            {"application": "west.\ud800"},
            "application",
        ),
        (
            ConnectorAdded,
            "west",
            {"connector": "west.c", "config": {"topics": "\ud800"}},
            "config.topics",
        ),
    ],
)
def test_a_text_that_utf_8_cannot_hold_is_refused(
    kind: type[Event], sender: str, fields: dict[str, Any], place: str
) -> None:
    """Such as an argument of a command line in another encoding."""
    event = LOG.make(kind, sender, **fields)
    with pytest.raises(InvalidValueError, match=rf"^{kind.__name__}: {place} has half of") as told:
        sign(event, key("west"))
    assert str(told.value).encode()


def test_headers_name_the_event_for_those_who_skip() -> None:
    assert RECORD.key == b"access/east/users"
    headers = dict(RECORD.headers)
    assert len(headers.pop("mesh_signature") or b"") == 64
    assert headers == {
        "ce_specversion": b"1.0",
        "ce_id": EVENT.meta.id.encode(),
        "ce_type": b"mesh.AccessRequested.intent",
        "ce_source": b"mesh/west",
        "content-type": b"application/avro",
        "mesh_key": key("west").public.encode(),
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x00\x00\x00",
        b"\x01" + VALUE[1:],
        b"just text that somebody wrote",
        VALUE[:-1],
        VALUE[:5],
        VALUE + b"\x00",
        VALUE[:5] + b"\xff" * 40,
    ],
)
def test_bytes_that_are_not_the_wire_format_are_garbage(value: bytes | None) -> None:
    assert faulty(resigned(RECORD, key("west"), value=value)) is FaultCode.GARBAGE


@pytest.mark.parametrize(
    ("event", "text", "most"),
    [(EVENT, "reason", MAX_INTENT_BYTES), (FACT, "reference", MAX_RECORD_BYTES)],
    ids=["intent", "fact"],
)
def test_the_largest_value_is_read_and_a_larger_one_is_not(
    event: Event, text: str, most: int
) -> None:
    small = event.model_copy(update={text: ""})
    # the length of a long string takes three bytes more than that of an empty one
    room = most - len(sign(small, key("west")).value) - 2
    largest = event.model_copy(update={text: "x" * room})
    record = record_of(sign(largest, key("west")), 40, 4000)
    assert len(record.value or b"") == most
    assert decoded(record).event == largest
    longer = resigned(record, key("west"), value=(record.value or b"") + b"x")
    assert faulty(longer) is FaultCode.TOO_LARGE


def test_a_schema_that_the_log_never_introduced_is_unknown() -> None:
    unknown = resigned(RECORD, key("west"), value=b"\x00\x00\x00\x03\xe7" + VALUE[5:])
    assert faulty(unknown) is FaultCode.UNKNOWN_SCHEMA


def test_a_log_begins_by_introducing_the_schema_of_introductions() -> None:
    first, second = LOG.records[:2]
    assert decoded(first, {}).event == LOG.event_at(0)
    assert faulty(second, {}) is FaultCode.UNKNOWN_SCHEMA
    assert faulty(RECORD, {}) is FaultCode.GARBAGE


@pytest.mark.parametrize(
    "text", ["", "no json", "{}", '"string"', '{"type": "array", "items": "long"}', "[]", '"x"']
)
def test_an_introduced_text_that_is_no_schema_stops_nobody(text: str) -> None:
    assert faulty(RECORD, {**SCHEMAS, ID: text}) is FaultCode.UNKNOWN_SCHEMA


@pytest.mark.parametrize("name", ["mesh.AccessBegged", "AccessBegged", "mesh.ProductRow"])
def test_a_record_type_without_an_event_is_unknown(name: str) -> None:
    schema = {"type": "record", "name": name, "fields": [{"name": "why", "type": "string"}]}
    value, schemas = written({"why": "please"}, schema)
    assert faulty(resigned(RECORD, key("west"), value=value), schemas) is FaultCode.UNKNOWN_TYPE


def test_a_schema_that_cannot_become_ours_is_garbage() -> None:
    schema = {
        "type": "record",
        "name": "mesh.AccessRequested",
        "fields": [{"name": "product", "type": "string"}],
    }
    value, schemas = written({"product": "east.users"}, schema)
    assert faulty(resigned(RECORD, key("west"), value=value), schemas) is FaultCode.GARBAGE


def test_what_is_no_record_of_ours_is_an_invalid_event() -> None:
    value, _ = written([1], {"type": "array", "items": "long"})
    with pytest.raises(UnusableRecordError) as fault:
        codec.unframe(value, '{"type":"array","items":"long"}')
    assert fault.value.code == FaultCode.INVALID_EVENT


def test_an_invalid_event_is_told_by_its_fields() -> None:
    datum = {**EVENT.model_dump(), "reason": None, "mood": "good"}
    with pytest.raises(UnusableRecordError, match="invalid fields: reason, mood") as fault:
        codec.build(intents.AccessRequested, datum)
    assert fault.value.code == FaultCode.INVALID_EVENT


@pytest.mark.parametrize("name", ["ce_id", "ce_type"])
def test_headers_to_skip_by_are_needed(name: str) -> None:
    assert faulty(headed(**{name: None})) is FaultCode.HEADER_MISSING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_id", b"another"),
        ("ce_id", b""),
        ("ce_type", b"mesh.AccessRequested.decision"),
        ("ce_type", b"mesh.AccessGranted.intent"),
        ("ce_type", b"\xff"),
    ],
)
def test_the_body_wins_over_a_header_that_says_otherwise(name: str, value: bytes) -> None:
    assert faulty(headed(**{name: value})) is FaultCode.HEADER_MISMATCH


@pytest.mark.parametrize("record_key", [None, b"", b"access/east/orders", b"\xff"])
def test_the_key_is_the_events_own(record_key: bytes | None) -> None:
    assert faulty(resigned(RECORD, key("west"), key=record_key)) is FaultCode.KEY_MISMATCH


@pytest.mark.parametrize("name", ["mesh_key", "mesh_signature"])
@pytest.mark.parametrize("value", [None, b""])
def test_a_record_without_a_signature_is_unsigned(name: str, value: bytes | None) -> None:
    assert faulty(headed(**{name: value})) is FaultCode.UNSIGNED


@pytest.mark.parametrize(
    "signer",
    [
        key("east").public.encode(),
        key("west").public.encode() + b"=",
        key("west").public.encode()[:-1],
        key("west").public.encode() + b"\n",
        b"\xff\xfe",
        b"west",
    ],
)
def test_a_signature_under_another_name_is_bad(signer: bytes) -> None:
    assert faulty(headed(mesh_key=signer)) is FaultCode.BAD_SIGNATURE


@pytest.mark.parametrize("signature", [b"x", b"\x00" * 64, b"\x00" * 65])
def test_bytes_that_are_no_signature_are_bad(signature: bytes) -> None:
    assert faulty(headed(mesh_signature=signature)) is FaultCode.BAD_SIGNATURE


def test_a_changed_body_breaks_the_signature() -> None:
    at = VALUE.index(b"greet")
    changed = replace(RECORD, value=VALUE[:at] + b"GREET" + VALUE[at + 5 :])
    assert faulty(changed) is FaultCode.BAD_SIGNATURE


def test_without_verification_the_named_signer_is_believed() -> None:
    unverified = headed(mesh_signature=b"anything")
    assert codec.decode(unverified, SCHEMAS, None, verify=False) == decoded(RECORD)
    assert faulty(unverified) is FaultCode.BAD_SIGNATURE


def test_headers_of_others_are_nobodys_business() -> None:
    assert decoded(headed(traceparent=b"00-1", ce_source=b"elsewhere")).event == EVENT


@given(
    value=st.none() | st.binary(max_size=200) | st.binary(max_size=80).map(lambda b: VALUE[:5] + b),
    record_key=st.none() | st.binary(max_size=20),
    headers=st.dictionaries(
        st.sampled_from(list(RECORD.headers)), st.none() | st.binary(max_size=70), max_size=7
    ),
)
@example(value=VALUE, record_key=b"access/east/users", headers={})
def test_no_bytes_make_decode_raise(
    value: bytes | None, record_key: bytes | None, headers: dict[str, bytes | None]
) -> None:
    record = Record(1, 1, record_key, value, {**RECORD.headers, **headers})
    for schemas in (SCHEMAS, {}):
        entry = codec.decode(record, schemas, key("root").public)
        assert (entry.event is None) != (entry.fault is None)


@given(data=st.data())
def test_no_flipped_byte_is_taken_for_the_signed_event(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(VALUE) - 1))
    mask = data.draw(st.integers(1, 255))
    changed = bytearray(VALUE)
    changed[index] ^= mask
    assert decoded(replace(RECORD, value=bytes(changed))).event is None


def test_what_nobody_of_the_mesh_has_signed_is_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a megabyte of Avro takes a tenth of a second: anybody could stop the fold."""
    monkeypatch.setattr(codec, "unframe", pytest.fail)
    assert faulty(headed(mesh_signature=None)) is FaultCode.UNSIGNED
    assert faulty(headed(mesh_signature=b"A" * 86)) is FaultCode.BAD_SIGNATURE
    root, known = key("root").public, {key("east").public}.__contains__
    entry = codec.decode(RECORD, SCHEMAS, root, knows=known)
    assert entry.fault is not None
    assert entry.fault.code is FaultCode.UNKNOWN_KEY
