"""Schemas as registries keep them: in which language, and what they refer to. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The languages that schemas are written in, by the registry's names for them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


def encodable(text: str) -> str:
    r"""A schema's text as UTF-8 can hold it: half of a surrogate pair is written as `\ud83d`.

    Whoever writes a schema may have one in a description; to JSON both are the same.
    """
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Reference:
    """What a schema calls another one, and where that is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A schema's text; `kind` is one of `Kind`, or what a registry knows beside them."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    @classmethod
    def answered(cls, found: Mapping[str, Any]) -> "Definition":
        """The schema in an answer of the Confluent API; one without a type is Avro.

        Raises KeyError, TypeError, AttributeError or ValueError where it is no such answer.
        """
        references = tuple(
            Reference(one["name"], one["subject"], int(one["version"]))
            for one in found.get("references") or ()
        )
        text = encodable(str(found["schema"]))
        return cls(str(found.get("schemaType") or Kind.AVRO), text, references)

    def is_like(self, other: "Definition") -> bool:
        """Whether both say the same, however they are laid out."""
        if self.kind != other.kind or set(self.references) != set(other.references):
            return False
        if self.kind == Kind.PROTOBUF:
            return self.text.split() == other.text.split()
        try:
            return bool(_plain(json.loads(self.text)) == _plain(json.loads(other.text)))
        except (ValueError, RecursionError):
            return self.text == other.text


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject, under the id that records name."""

    subject: str
    number: int
    schema_id: int
    schema: Definition

    @property
    def kind(self) -> str:
        """The language of the schema: AVRO, JSON or PROTOBUF."""
        return self.schema.kind

    @property
    def text(self) -> str:
        """The schema's text."""
        return self.schema.text


def _plain(schema: Any) -> Any:
    """The same without braces that say nothing: registries keep {"type": "string"} as "string"."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return (
        _plain(schema["type"])
        if set(schema) == {"type"}
        else {name: _plain(one) for name, one in schema.items()}
    )
