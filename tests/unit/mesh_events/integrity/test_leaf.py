"""The bytes of a leaf: everything of a record counts, and nothing of who read it."""

from dataclasses import replace
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from mesh_events.integrity.leaf import canonical, leaf_hash
from mesh_events.record import Record

parts = st.none() | st.binary(max_size=6)
records = st.builds(
    Record,
    offset=st.integers(0, 2**40),
    time=st.integers(-1, 2**42),
    key=parts,
    value=parts,
    headers=st.dictionaries(st.text(max_size=3), parts, max_size=3),
)
RECORD = Record(7, 1_790_000_000_000, b"k", b"value", {"b": None, "a": b"1", "é": b""})


def test_the_bytes_are_those_that_the_wire_format_lists() -> None:
    def part(raw: bytes | None) -> bytes:
        return b"\xff\xff\xff\xff" if raw is None else len(raw).to_bytes(4, "big") + raw

    wanted = b"streaming-data-mesh leaf v1\0"
    wanted += (7).to_bytes(8, "big") + (1_790_000_000_000).to_bytes(8, "big")
    wanted += part(b"k") + part(b"value") + (3).to_bytes(4, "big")
    wanted += part(b"a") + part(b"1") + part(b"b") + part(None) + part("é".encode()) + part(b"")
    assert canonical(RECORD) == wanted
    assert leaf_hash(RECORD) == sha256(b"\0" + wanted).digest()


@given(records, records)
def test_two_records_have_the_same_bytes_only_if_they_are_equal(a: Record, b: Record) -> None:
    assert (canonical(a) == canonical(b)) is (a == b)


@given(records)
def test_the_order_of_headers_does_not_matter(record: Record) -> None:
    turned = replace(record, headers=dict(reversed(record.headers.items())))
    assert canonical(turned) == canonical(record)


@given(st.data())
def test_any_bit_of_a_record_matters(data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(("offset", "time", "key", "value", "headers")))
    bit = data.draw(st.integers(0, 7))
    old = getattr(RECORD, field)
    match old:
        case int():
            new: object = old ^ (1 << bit)
        case bytes():
            new = bytes([old[0] ^ (1 << bit)]) + old[1:]
        case _:
            new = {**old, "a": bytes([old["a"][0] ^ (1 << bit)])}
    assert leaf_hash(replace(RECORD, **{field: new})) != leaf_hash(RECORD)


def test_null_and_empty_are_not_the_same() -> None:
    assert canonical(replace(RECORD, key=None)) != canonical(replace(RECORD, key=b""))
    assert canonical(replace(RECORD, headers={})) != canonical(replace(RECORD, headers={"": None}))
