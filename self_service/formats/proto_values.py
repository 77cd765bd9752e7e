"""Between Protobuf messages and the values that people see.

As Protobuf's own JSON, but that names are those of the schema, 64-bit integers are numbers, and
bytes are bytes: as records of the other formats are shown.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from mesh_events.errors import InvalidValueError

_BYTES = "base64:"
_NANOS = 9


def shown(message: Message) -> Any:
    """A message as a dict; a well-known one as the value that it stands for.

    A field that knows whether it was written is there only if it was; others always are.
    """
    known = _WELL_KNOWN.get(message.DESCRIPTOR.full_name)
    return known(message) if known else _fields(message)


def unknown_numbers(message: Message) -> list[int]:
    """Numbers of the fields that are in a message, or one inside it, and not in its schema."""
    return sorted(set(_unknown(message)))


def with_bytes(descriptor: Descriptor, datum: Any, path: str) -> Any:
    """JSON for Protobuf's own reader, which takes bytes as bare base64.

    Raises InvalidValueError for bytes that are written otherwise, and for a value that is no
    object where a message stands.
    """
    if descriptor.full_name == "google.protobuf.BytesValue":
        return _bare(datum, path)
    if descriptor.full_name == "google.protobuf.Duration":
        _require_nanos(datum, path)
    if descriptor.full_name.startswith("google.protobuf."):
        return datum
    if not isinstance(datum, dict):
        raise InvalidValueError(
            f"{path or 'the value'} is no object, and {descriptor.full_name} is one"
        )
    found = {}
    for name, value in datum.items():
        field = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
        below = f"{path}.{name}" if path else str(name)
        found[name] = value if field is None or value is None else _plain(field, value, below)
    return found


def _require_nanos(duration: Any, path: str) -> None:
    """Protobuf's own reader rounds further digits; it refuses those of a Timestamp."""
    text = duration if isinstance(duration, str) else ""
    if text.partition(".")[2].rstrip("s")[_NANOS:].strip("0"):
        raise InvalidValueError(
            f"field {path}: {text[:40]!r} has more than {_NANOS} digits behind the second"
        )


def _plain(field: FieldDescriptor, value: Any, path: str) -> Any:
    if _is_map(field) and isinstance(value, dict):
        inner = field.message_type.fields_by_name["value"]
        return {key: _plain(inner, one, f"{path}.{key}") for key, one in value.items()}
    if field.is_repeated and isinstance(value, list):
        return [_one(field, one, f"{path}[{number}]") for number, one in enumerate(value)]
    return value if field.is_repeated else _one(field, value, path)


def _one(field: FieldDescriptor, value: Any, path: str) -> Any:
    if field.message_type is not None:
        return with_bytes(field.message_type, value, path)
    return _bare(value, path) if field.type == FieldDescriptor.TYPE_BYTES else value


def _bare(value: Any, path: str) -> Any:
    if not isinstance(value, str) or not value.startswith(_BYTES):
        raise InvalidValueError(f'field {path}: bytes are written as "base64:..."')
    bare = value.removeprefix(_BYTES)
    try:
        base64.b64decode(bare, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidValueError(f"field {path}: what follows base64: is not base64") from error
    return bare


def _fields(message: Message) -> dict[str, Any]:
    written = {field.number: value for field, value in message.ListFields()}
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.number in written:
            found[field.name] = _value(field, written[field.number])
        elif field.is_repeated:
            found[field.name] = {} if _is_map(field) else []
        elif not field.has_presence:
            found[field.name] = _scalar(field, field.default_value)
    for field, value in message.ListFields():
        if field.is_extension:
            found[f"[{field.full_name}]"] = _value(field, value)
    return found


def _value(field: FieldDescriptor, value: Any) -> Any:
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {_key(key): _scalar(inner, value[key]) for key in value}
    if field.is_repeated:
        return [_scalar(field, one) for one in value]
    return _scalar(field, value)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return shown(value)
    if field.enum_type is not None:
        # a newer writer may know more members
        member = field.enum_type.values_by_number.get(value)
        return member.name if member is not None else value
    return value


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _unknown(message: Message) -> Iterator[int]:
    for one in UnknownFieldSet(message):
        yield one.field_number
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from _unknown(value[key])
        else:
            for one in value if field.is_repeated else [value]:
                yield from _unknown(one)


def _in_words(message: Any) -> Any:
    """The text of Protobuf's JSON; what is out of its range is shown with its fields."""
    try:
        return message.ToJsonString()
    except ValueError:
        return _fields(message)


def _wrapped(message: Any) -> Any:
    return message.value


def _struct(message: Any) -> Any:
    return {key: _any_json(message.fields[key]) for key in message.fields}


def _list(message: Any) -> Any:
    return [_any_json(one) for one in message.values]


def _any_json(message: Any) -> Any:
    match message.WhichOneof("kind"):
        case None | "null_value":
            return None
        case "struct_value":
            return _struct(message.struct_value)
        case "list_value":
            return _list(message.list_value)
        case kind:
            return getattr(message, kind)


def _packed(message: Any) -> Any:
    """A message of any type: with its fields where the schema knows the type, else its bytes."""
    name = message.type_url.rpartition("/")[2]
    try:
        inner = GetMessageClass(message.DESCRIPTOR.file.pool.FindMessageTypeByName(name))()
        inner.ParseFromString(message.value)
    except (KeyError, DecodeError):
        return {"@type": message.type_url, "value": message.value}
    found = shown(inner)
    fields = found if isinstance(found, dict) else {"value": found}
    return {"@type": message.type_url, **fields}


_Showing = Callable[[Any], Any]
_WELL_KNOWN: Mapping[str, _Showing] = {
    f"google.protobuf.{name}": how
    for names, how in (
        (("Timestamp", "Duration", "FieldMask"), _in_words),
        (("DoubleValue", "FloatValue", "BoolValue", "StringValue", "BytesValue"), _wrapped),
        (("Int32Value", "Int64Value", "UInt32Value", "UInt64Value"), _wrapped),
        (("Struct",), _struct),
        (("ListValue",), _list),
        (("Value",), _any_json),
        (("Any",), _packed),
    )
    for name in names
}
