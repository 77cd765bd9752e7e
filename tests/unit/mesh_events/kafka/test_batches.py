"""Record batches byte by byte: each record once, at its place, as librdkafka reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.errors import StateFaultError
from mesh_events.kafka.batches import Stored, stored
from tests.odd_batches import MANY_HEADERS, batch, header, number, record, text
from tests.odd_batches import ODD as TAKEN

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
BYTES = st.none() | st.binary(max_size=5)
RECORDS = st.lists(
    st.tuples(BYTES, BYTES, st.lists(st.tuples(NAMES, BYTES), max_size=3)), min_size=1
)

ODD = TAKEN | {"very many headers": MANY_HEADERS}


def only(data: bytes) -> Stored:
    [(_, [one])] = stored(data)
    return one


@given(RECORDS, st.integers(0, 2**40))
def test_what_was_written_is_read(records: list, base: int) -> None:
    parts = [
        record(key, value, [header(name.encode(), data) for name, data in headers], delta=place)
        for place, (key, value, headers) in enumerate(records)
    ]
    [(behind, found)] = stored(batch(*parts, base=base, time_ms=7))
    assert [(one.key(), one.value(), one.headers()) for one in found] == records
    assert [one.offset() for one in found] == [*range(base, behind)]
    assert {one.timestamp() for one in found} == {(1, 7)}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_record_stands_at_its_place_whatever_it_says(odd: bytes) -> None:
    [(behind, found)] = stored(odd)
    assert [one.offset() for one in found] == [*range(behind)]


def test_a_negative_length_is_null_as_brokers_take_it() -> None:
    assert only(ODD["a value of length -2"]).value() is None
    assert only(ODD["a key of length -2"]).key() is None


def test_a_headers_name_ends_at_its_first_zero_byte() -> None:
    found = only(ODD["a header's name with a zero byte"])
    assert found.headers() == [("ce_id", b"1"), ("ce_id", b"2")]


@pytest.mark.parametrize(
    "odd", ["a header's value of length -2", "a header's name that is no text", "very many headers"]
)
def test_headers_that_librdkafka_does_not_read_are_none(odd: str) -> None:
    assert only(ODD[odd]).headers() == []


def test_markers_of_transactions_are_no_records() -> None:
    assert [*stored(batch(record(), attributes=0x30, base=4))] == [(5, [])]


def test_the_time_of_appending_is_that_of_the_batch() -> None:
    assert only(batch(record(), attributes=0x08, time_ms=11)).timestamp() == (2, 11)


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    whole, cut = batch(record()), batch(record(), base=1)
    for size in range(len(cut)):
        assert [behind for behind, _ in stored(whole + cut[:size])] == [1]


@pytest.mark.parametrize(
    "data",
    [
        batch(record(), attributes=1),
        batch(b"\x01" * 3),
        batch(number(9) + b"\0\0\0" + text(b"longer than the record")),
        batch(b"\xff" * 20),
        batch(record()).replace(b"\x02", b"\x01", 1),
    ],
    ids=["compressed", "cut record", "long key", "endless number", "format 1"],
)
def test_what_is_no_batch_is_a_fault_with_its_offset(data: bytes) -> None:
    with pytest.raises(StateFaultError, match="the batch at offset 0 is no batch"):
        list(stored(data))
