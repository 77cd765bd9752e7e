"""Values of an image as bytes, and back."""

import pytest
from immutables import Map

from snapshots.values import decoder, encode


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
