"""Records by a Protobuf schema: the head, the way to a message in the schema, then the message."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from mesh_events.errors import InvalidValueError
from mesh_events.schema.compatibility import Field
from self_service.formats.json_numbers import too_great
from self_service.formats.proto_fields import fields
from self_service.formats.proto_values import shown, unknown_numbers, with_bytes
from self_service.formats.protoc import compiled
from self_service.formats.schema import HEAD, Decoded, SchemaError, head

_NAME = "this-schema.proto"
"""What a schema is called while it is compiled: the registry keeps no name of it."""
_FIRST_MESSAGE = b"\x00"
"""The way to the first message of a schema, in one byte."""
_DEEPEST = 10
"""Bytes of the longest varint, and levels at which messages may be declared."""


class Protobuf:
    """A .proto file; raises SchemaError with the compiler's words for any other text."""

    def __init__(self, text: str, imports: Mapping[str, str]) -> None:
        self._files = compiled(_NAME, text, imports)
        self._pool = DescriptorPool()
        try:
            for one in self._files.file:
                self._pool.Add(one)
        except TypeError as error:  # what the pool raises on files that do not go together
            raise SchemaError(" ".join(str(error).split())) from error
        self._file = self._files.file[-1]

    @property
    def takes_text(self) -> bool:
        """As of `Schema`."""
        return False

    def decoded(self, value: bytes) -> Decoded:
        """As of `Schema`; a message with fields that the schema lacks is told as a misfit."""
        way, start = _way(value)
        message = self._message(way)
        try:
            message.ParseFromString(value[start:])
            unknown = unknown_numbers(message)
            if unknown and not message.ListFields():
                raise ValueError("none of its fields is in the schema")
            found = shown(message)
        except DecodeError as error:
            raise ValueError(f"it is no {message.DESCRIPTOR.full_name}") from error
        except RecursionError as error:
            raise ValueError("it has too many levels") from error
        missing = message.FindInitializationErrors()
        if missing:
            return Decoded(found, f"it lacks {', '.join(missing)}")
        numbers = ", ".join(map(str, unknown))
        return Decoded(found, f"the schema has no fields number {numbers}" if unknown else "")

    def encoded(self, schema_id: int, datum: Any) -> bytes:
        """As of `Schema`: JSON becomes the first message that the schema declares."""
        message = self._message([0])
        if (number := too_great(datum)) is not None:
            raise InvalidValueError(
                f"the value does not fit the schema: no type of Protobuf has room for {number}"
            )
        try:
            plain = with_bytes(message.DESCRIPTOR, datum, "")
            json_format.ParseDict(plain, message, descriptor_pool=self._pool)
        except (
            json_format.ParseError,
            OverflowError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            reason = " ".join(str(error).split())
            raise InvalidValueError(f"the value does not fit the schema: {reason}") from error
        missing = message.FindInitializationErrors()
        if missing:
            raise InvalidValueError(
                f"the value does not fit the schema: it lacks {', '.join(missing)}"
            )
        body: bytes = message.SerializeToString(deterministic=True)
        return head(schema_id) + _FIRST_MESSAGE + body

    def fields(self) -> list[Field]:
        """As of `Schema`; behind the message's name where the schema declares several."""
        return fields(self._files)

    def _message(self, way: list[int]) -> Message:
        """A new message of the declared one that a way leads to; raises ValueError."""
        names, declared = [self._file.package] if self._file.package else [], None
        level = self._file.message_type
        for index in way:
            if index >= len(level):
                raise ValueError(f"the schema has no message at {way}")
            declared = level[index]
            names.append(declared.name)
            level = declared.nested_type
        if declared is None or declared.options.map_entry:
            raise ValueError(f"the schema has no message at {way}")
        found: Descriptor = self._pool.FindMessageTypeByName(".".join(names))
        return GetMessageClass(found)()


def _way(value: bytes) -> tuple[list[int], int]:
    """(way to the message, where it begins) after the head; raises ValueError."""
    count, start = _varint(value, HEAD)
    if count == 0:
        return [0], start
    if not 0 < count <= _DEEPEST:
        raise ValueError(f"it names a message at {count} levels")
    way = []
    for _ in range(count):
        index, start = _varint(value, start)
        if index < 0:
            raise ValueError(f"it names a message number {index}")
        way.append(index)
    return way, start


def _varint(value: bytes, start: int) -> tuple[int, int]:
    """(zigzag number, where the next begins)."""
    found = 0
    for shift, byte in enumerate(value[start : start + _DEEPEST]):
        found |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), start + shift + 1
    raise ValueError("it does not say which message it is")
