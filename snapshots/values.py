"""The keys and rows of an image's tables as bytes: MessagePack, read back by their types."""

from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
from immutables import Map

from mesh_events.meta import Event
from mesh_events.vocabulary import EVENTS

T = TypeVar("T")


def _plain(value: Any) -> Any:
    """What MessagePack has no word for."""
    if isinstance(value, Map):
        # only names can be put in order by the encoder
        named = all(isinstance(key, str) for key in value)
        return dict(value) if named else sorted(value.items())
    if isinstance(value, Event):
        return [value.type_name(), value.model_dump_json()]
    raise NotImplementedError(f"{type(value).__name__} has no form in a snapshot")


def _typed(kind: Any, value: Any) -> Any:
    if get_origin(kind) is Map:
        key, row = get_args(kind)
        if isinstance(value, list):
            return Map(msgspec.convert(value, list[tuple[key, row]], dec_hook=_typed))  # type: ignore[valid-type]  # known at run time
        return Map(msgspec.convert(value, dict[key, row], dec_hook=_typed))  # type: ignore[valid-type]  # known at run time
    if isinstance(kind, type) and issubclass(kind, Event):
        name, text = value
        return EVENTS[name].model_validate_json(text)
    raise NotImplementedError(f"{kind} has no form in a snapshot")


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain, order="deterministic")


def encode(value: Any) -> bytes:
    """The bytes of a key, a row or a snapshot's head; equal values have equal bytes."""
    return _ENCODER.encode(value)


LARGE = 512
"""Bytes of a field from which on it is kept by itself: most rows change in their other fields."""
_FIELDS = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


def split(row: bytes) -> tuple[bytes, dict[str, bytes]]:
    """A row without its large fields, and these by name; `joined` makes the row of them again."""
    if len(row) <= LARGE:
        return row, {}
    try:
        fields = _FIELDS.decode(row)
    except msgspec.DecodeError:
        # no record with names
        return row, {}
    large = {name: bytes(one) for name, one in fields.items() if len(bytes(one)) > LARGE}
    small = {name: one for name, one in fields.items() if name not in large}
    return (_ENCODER.encode(small), large) if large else (row, {})


def joined(row: bytes, large: dict[str, bytes]) -> bytes:
    """The row that was `split`."""
    more = {name: msgspec.Raw(one) for name, one in large.items()}
    return _ENCODER.encode({**_FIELDS.decode(row), **more})


class Decoder(Generic[T]):
    """Reads values of one type back.

    Raises msgspec.DecodeError, ValueError or KeyError for bytes that are none.
    """

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_typed)

    def __call__(self, data: bytes) -> T:
        """The value in these bytes."""
        return self._decoder.decode(data)


@cache
def decoder(kind: Any) -> Decoder[Any]:
    """The decoder of a type; making one costs more than using it."""
    return Decoder(kind)
