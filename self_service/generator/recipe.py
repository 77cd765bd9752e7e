"""What made-up records are made of, as plain data: kept, it makes the same ones again."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from mesh_events.errors import InvalidValueError
from mesh_events.schema.definition import Definition, Kind, Reference
from self_service.generator.from_schema import maker
from self_service.generator.kinds import KINDS, Options


@dataclass(frozen=True, slots=True)
class Made:
    """Schemas of keys (None: there are none) and values, and what makes both of record n.

    registered: the values' schema as it is registered, where that refers to others.
    """

    key: Any
    value: Any
    make: Callable[[int], tuple[Any, Any]]
    registered: Definition | None = None


class Recipe(BaseModel):
    """Record n of one recipe is always the same.

    kind: the name of a kind; else schema_text: an Avro schema, and key_field: its field of the key
    registered_text, references: the schema as it is registered, where others are called by name
    seed, users, skew, start, rate: see `kinds.Options`
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str | None = None
    schema_text: str | None = None
    registered_text: str | None = None
    references: tuple[Reference, ...] = ()
    key_field: str | None = None
    seed: int = 1
    users: int = 100
    skew: float = 0.0
    start: int
    rate: float

    def name(self) -> str:
        """The kind, or the name of the schema's type, as lists show it."""
        if self.kind is not None:
            return self.kind
        schema = json.loads(self.schema_text or "{}")
        return str(schema.get("name", "schema")) if isinstance(schema, dict) else "schema"

    def made(self) -> Made:
        """What makes its records; raises InvalidValueError for what there is not."""
        options = Options(self.seed, self.users, self.skew, self.start, self.rate)
        if self.kind is None:
            return self._of_schema(options)
        kind = KINDS.get(self.kind)
        if kind is None:
            raise InvalidValueError(f"{self.kind!r} is no kind: use {', '.join(KINDS)}")
        return Made(kind.key, kind.value, kind.maker(options))

    def _of_schema(self, options: Options) -> Made:
        value = json.loads(self.schema_text or "null")
        make = maker(value, options)
        name = self.key_field
        if name is None:
            return Made(None, value, lambda number: (None, make(number)), self._registered())
        fields: Mapping[str, Any] = (
            {one["name"]: one["type"] for one in value.get("fields", ())}
            if isinstance(value, dict)
            else {}
        )
        if name not in fields:
            raise InvalidValueError(f"the schema has no field {name}: --key-field names one")

        def both(number: int) -> tuple[Any, Any]:
            made = make(number)
            return made[name], made

        return Made(fields[name], value, both, self._registered())

    def _registered(self) -> Definition | None:
        text = self.registered_text
        return None if text is None else Definition(Kind.AVRO, text, self.references)
