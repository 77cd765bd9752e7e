"""Values of an image as bytes, and back."""

import pytest
from immutables import Map

from snapshots.values import LARGE, decoder, encode, joined, split


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Map[str, int], Map({"b": 2, "a": 1})),
        (Map[tuple[str, str], str], Map({("a table", "by one"): "x", ("a table", "by b"): "y"})),
        (Map[int, str], Map({2: "b", 1: "a"})),
        (Map[tuple[str, str], str], Map()),
        (Map[str, Map[tuple[str, str], str]], Map({"a": Map({("b", "c"): "d"})})),
    ],
)
def test_a_map_with_any_keys_is_read_back(kind: object, value: Map[object, object]) -> None:
    assert decoder(kind)(encode(value)) == value


def test_equal_maps_have_equal_bytes() -> None:
    keys = [("table", str(number)) for number in range(40)]
    one = Map(dict.fromkeys(keys, "x"))
    other: Map[tuple[str, str], str] = Map(dict.fromkeys(reversed(keys), "x"))
    assert encode(one) == encode(other)


@pytest.mark.parametrize("extra", range(-3, 4))
def test_large_fields_are_taken_out_of_a_row_and_put_back(extra: int) -> None:
    row = {"a": "x" * LARGE, "b": 1, "c": ["y" * (LARGE + extra)], "d": None, "e": ""}
    small, large = split(encode(row))
    assert "a" in large
    assert len(small) < LARGE + 20
    assert decoder(dict)(joined(small, large)) == row


@pytest.mark.parametrize("value", ["x" * 2000, ["x"] * 2000, Map({1: "x" * 2000}), {"a": 1}, 7])
def test_a_row_without_large_fields_is_left_as_it_is(value: object) -> None:
    data = encode(value)
    assert split(data) == (data, {})
