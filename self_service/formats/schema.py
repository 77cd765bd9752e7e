"""What every schema can do, whatever language it is written in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mesh_events.schema.compatibility import Field
from mesh_events.schema.definition import Kind

HEAD = 5
"""Bytes before a record's own: a zero and the schema's id."""


class SchemaError(ValueError):
    """A text is no schema of its language, or of a language that is not read."""


class UndefinedError(SchemaError):
    """A schema names a type that is defined nowhere."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record's value; `misfit` says in what it does not keep to its schema, "" if it does."""

    value: Any
    misfit: str = ""


class Schema(Protocol):
    """A schema that records are read and written by."""

    @property
    def takes_text(self) -> bool:
        """Whether a value is a text, which need not be written as JSON."""

    def decoded(self, value: bytes) -> Decoded:
        """The value behind the head of the wire format; raises ValueError for other bytes."""

    def encoded(self, schema_id: int, datum: Any) -> bytes:
        """JSON in the wire format; raises InvalidValueError naming the field that is wrong."""

    def fields(self) -> list[Field]:
        """The fields with their paths, nested ones behind their own."""


def schema_from(kind: str, text: str, imports: Mapping[str, str]) -> Schema:
    """A registered schema, ready for use.

    Args:
        kind: its language, one of `Kind`.
        text: the schema.
        imports: name -> text of the schemas that it refers to, directly or not.

    Raises:
        SchemaError: it is none.
    """
    # each needs a library of its own, which is loaded where its records are
    match kind:
        case Kind.AVRO:
            from self_service.formats.avro import Avro

            return Avro(text, imports)
        case Kind.JSON:
            from self_service.formats.json_schema import JsonSchema

            return JsonSchema(text, imports)
        case Kind.PROTOBUF:
            from self_service.formats.protobuf import Protobuf

            return Protobuf(text, imports)
    raise SchemaError(f"schemas of type {kind} are not read: known are {', '.join(Kind)}")


def head(schema_id: int) -> bytes:
    """The bytes before a record that is written by a schema."""
    return b"\x00" + schema_id.to_bytes(4, "big")
