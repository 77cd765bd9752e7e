"""Records by an Avro schema."""

import io
import json
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any

import fastavro
from fastavro import _read_py
from fastavro.schema import UnknownType

from mesh_events import avro
from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema import compatibility
from mesh_events.schema.compatibility import Field
from mesh_events.schema.full_names import named_types, with_full_names
from mesh_events.schema.inlining import UndefinedTypeError, inlined
from mesh_events.schema.patterns import misfits, places
from mesh_events.schema.size import SchemaTooLargeError, require_bounded
from self_service.formats.logical import typed
from self_service.formats.schema import HEAD, Decoded, SchemaError, UndefinedError, head

_LONGEST = 1024
"""Bytes of a decimal."""
_MOST_DIGITS = 2500
"""More than so many bytes hold."""
_SHOWN = 40
"""So many characters of a string that does not match are told."""


class Avro:
    """An Avro schema with what it takes from others; raises SchemaError for any other text."""

    def __init__(self, text: str, imports: Mapping[str, str] = MappingProxyType({})) -> None:
        try:
            text = inlined(text, imports)
            self._schema = json.loads(text)
            self._parsed = avro.parsed(text)
            # a union alone would be parsed again for each value
            fields = [{"name": "it", "type": self._schema}]
            within = {"type": "record", "name": "mesh_within", "fields": fields}
            self._indexed = _indexed(avro.parsed(json.dumps(within)))
        except UndefinedTypeError as error:
            raise UndefinedError(str(error)) from error
        except UnknownType as error:
            raise UndefinedError(f"the type {error.name} is not defined in it") from error
        except Exception as error:  # fastavro raises many kinds on what is no schema
            raise SchemaError(_one_line(error)) from error
        try:
            require_bounded(self._schema, "the schema")
            self._places = tuple(places(self._schema))
        except SchemaTooLargeError as error:
            raise SchemaError(str(error)) from error
        self._text, self._whole = text, with_full_names(self._schema)
        self._named = named_types(self._whole)

    @property
    def takes_text(self) -> bool:
        """As of `Schema`."""
        return self._schema in ("string", {"type": "string"})

    def decoded(self, value: bytes) -> Decoded:
        """As of `Schema`."""
        body = io.BytesIO(value)
        body.seek(HEAD)
        try:
            # the compiled reader ends the process on a value that nests thousands of times, and
            # takes the last of a list at -1
            found: Any = _read_py.schemaless_reader(body, self._indexed, None)["it"]
        except RecursionError as error:
            raise ValueError("it nests types within themselves too often to be shown") from error
        except Exception as error:  # fastavro raises many kinds on bytes that are not Avro
            raise ValueError(_one_line(error)) from error
        if body.tell() != len(value):
            raise ValueError("bytes follow the Avro body")
        self._require_types(found)
        return Decoded(found)

    def _require_types(self, found: Any) -> None:
        """Raise ValueError for a number that its type has not, as an `int` of 33 bits.

        The reader takes it as it is written, and those of other languages the last 32 bits.
        """
        try:
            fastavro.validate(found, self._parsed)
        except fastavro.validation.ValidationError as error:
            raise ValueError(f"it does not fit the schema: {_told(error.errors)}") from error

    def encoded(self, schema_id: int, datum: Any) -> bytes:
        """As of `Schema`."""
        out = io.BytesIO()
        out.write(head(schema_id))
        datum = typed(self._whole, datum, self._named)
        try:
            # the writer alone would cut a number that is too great for its type
            fastavro.validate(datum, self._parsed)
            self._require_match(datum)
            fastavro.schemaless_writer(out, self._parsed, datum, strict_allow_default=True)
        except fastavro.validation.ValidationError as error:
            raise InvalidValueError(
                f"the value does not fit the schema: {_told(error.errors)}"
            ) from error
        except RefusedError:
            raise
        except Exception as error:  # fastavro raises many kinds on what does not fit
            reason = _one_line(error)
            raise InvalidValueError(f"the value does not fit the schema: {reason}") from error
        return out.getvalue()

    def _require_match(self, datum: Any) -> None:
        """Raise InvalidValueError for a string that does not match its pattern."""
        for place, found in misfits(datum, self._places):
            cut = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
            raise InvalidValueError(
                f"the value does not fit the schema: {place.path} is {cut!r}, which does not match "
                f"its pattern {place.pattern}"
            )

    def fields(self) -> list[Field]:
        """As of `Schema`."""
        return compatibility.fields(self._text)


class _Indexed(list[Any]):
    """A union's branches or an enum's symbols, which no negative index finds."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and index < 0:
            raise IndexError(f"there is no branch or symbol {index}")
        return super().__getitem__(index)


def _indexed(schema: Any) -> Any:
    """A parsed schema with such lists."""
    if isinstance(schema, Mapping):
        return {name: _indexed(value) for name, value in schema.items()}
    return _Indexed(map(_indexed, schema)) if isinstance(schema, list) else schema


def _decimal(data: Any, writer: Any, reader: Any = None) -> Decimal:
    """A decimal as it was written; raises ValueError for one with more digits than declared."""
    del reader
    digits, scale = writer["precision"], writer.get("scale", 0)
    if not data:
        raise ValueError("a decimal has no bytes")
    number = int.from_bytes(data, "big", signed=True) if len(data) <= _LONGEST else None
    # a schema may allow as many as it likes, so many bytes hold no more
    if number is None or abs(number) >= 10 ** min(digits, _MOST_DIGITS):
        raise ValueError(f"a decimal has more digits than its schema allows ({digits})")
    return Decimal(number).scaleb(-scale, Context(prec=_MOST_DIGITS))


def _as_written(data: Any, writer: Any = None, reader: Any = None) -> Any:
    """A text as the record has it."""
    del writer, reader
    return data


def _time(units: int, read: Any) -> Any:
    """How a time of day is read that counts so many units a day; raises ValueError for no time."""

    def reader(data: Any, writer: Any = None, reader: Any = None) -> Any:
        if not 0 <= data < units:
            raise ValueError("a time of day is below 0:00 or from 24:00 on")
        return read(data, writer, reader)

    return reader


_MS_PER_DAY = 86_400_000
for _readers in (fastavro.read.LOGICAL_READERS, _read_py.LOGICAL_READERS):
    # fastavro's own round what is too long, take the remainder of a day, and write a UUID anew
    _readers |= {
        "string-uuid": _as_written,
        "bytes-decimal": _decimal,
        "fixed-decimal": _decimal,
        "int-time-millis": _time(_MS_PER_DAY, _readers["int-time-millis"]),
        "long-time-micros": _time(1000 * _MS_PER_DAY, _readers["long-time-micros"]),
    }


def _told(errors: Iterable[Any]) -> str:
    """Which fields do not fit, and what each is to be."""
    wanted: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for one in errors:
        wanted.setdefault(one.field, []).append(_kind(one.schema))
        shown = repr(one.datum)
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        found[one.field] = "has no value" if one.datum is None else f"is {cut}"
    return "; ".join(
        f"{field or 'it'} {found[field]}, and is to be {' or '.join(dict.fromkeys(kinds))}"
        for field, kinds in wanted.items()
    )


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return " or ".join(map(_kind, schema))
    if not isinstance(schema, dict):
        return str(schema)
    kind = str(schema.get("logicalType") or schema["type"])
    return f"{kind} {schema['name']}" if "name" in schema else kind


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
