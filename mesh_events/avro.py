"""Avro schemas of the vocabulary: derived from the types, committed as files, kept compatible.

`python -m mesh_events.avro write` writes `schemas/avro/*.avsc`; `check` says what differs.
"""

import hashlib
import json
import sys
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import fastavro
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mesh_events.vocabulary import ALL

NAMESPACE = "mesh"
Schema = dict[str, Any]

_SCALARS: dict[type, Any] = {
    str: "string",
    int: "long",
    bool: "boolean",
    datetime: {"type": "long", "logicalType": "timestamp-millis"},
}


def derive(model: type[BaseModel]) -> Schema:
    """The Avro record schema of a type; every field carries its description as `doc`."""
    return _record(model, set())


@cache
def text_of(name: str) -> str:
    """The schema of the event or row `name`, as the text that is registered."""
    return json.dumps(derive(ALL[name]), separators=(",", ":"), ensure_ascii=False)


@cache
def parsed(text: str) -> Schema:
    """A schema text ready for use by fastavro; parsing once makes decoding three times quicker."""
    # named types must not leak between schemas, hence a fresh registry for each text
    return typing.cast(Schema, fastavro.parse_schema(json.loads(text), named_schemas={}))


def fingerprint(text: str) -> str:
    """SHA-256 of the schema's text, hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def subject(name: str) -> str:
    """The registry subject of an event or row: the record's full name."""
    return f"{NAMESPACE}.{name}"


def _record(model: type[BaseModel], seen: set[str]) -> Schema:
    seen.add(model.__name__)
    return {
        "type": "record",
        "name": model.__name__,
        "namespace": NAMESPACE,
        "doc": " ".join((model.__doc__ or "").split()),
        "fields": [_field(name, info, seen) for name, info in model.model_fields.items()],
    }


def _field(name: str, info: FieldInfo, seen: set[str]) -> Schema:
    doc = info.description or "Identity, origin and cause of this event"
    field: Schema = {"name": name, "type": _type(info.annotation, seen), "doc": doc}
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is not PydanticUndefined:
        field["default"] = default.value if isinstance(default, StrEnum) else default
    return field


def _type(annotation: Any, seen: set[str]) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        # null first: its default, null, must match the first branch
        return ["null", *(_type(a, seen) for a in arguments if a is not type(None))]
    if origin is list:
        return {"type": "array", "items": _type(arguments[0], seen)}
    if origin is dict:
        return {"type": "map", "values": _type(arguments[1], seen)}
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _named(annotation.__name__, seen) or _enum(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _named(annotation.__name__, seen) or _record(annotation, seen)
    raise TypeError(f"no Avro type is known for {annotation!r}: add it to mesh_events/avro.py")


def _named(name: str, seen: set[str]) -> str | None:
    if name in seen:
        return f"{NAMESPACE}.{name}"
    seen.add(name)
    return None


def _enum(enum: type[StrEnum]) -> Schema:
    symbols = [member.value for member in enum]
    return {
        "type": "enum",
        "name": enum.__name__,
        "namespace": NAMESPACE,
        "doc": " ".join((enum.__doc__ or "").split()),
        "symbols": symbols,
        # an older reader sees the first symbol where it does not know the written one
        "default": symbols[0],
    }


def committed(folder: Path | None = None) -> Mapping[str, str]:
    """Name -> text of the schema files; `folder` defaults to the packaged `schemas/avro`."""
    root = folder or Path(str(resources.files("schemas") / "avro"))
    return {path.stem: path.read_text("utf-8") for path in sorted(root.glob("*.avsc"))}


def differences(folder: Path | None = None) -> list[str]:
    """What differs between types and files, a sentence each; empty when they agree."""
    files = committed(folder)
    found = [f"{name}.avsc has no type in mesh_events" for name in files if name not in ALL]
    for name in ALL:
        if name not in files:
            found.append(f"{name} has no schema file")
        elif json.loads(files[name]) != derive(ALL[name]):
            found.append(f"{name}.avsc differs from the type")
    return found


def write(folder: Path) -> list[str]:
    """Write the schema files and drop those without a type; returns the names that changed."""
    before = committed(folder)
    for name in ALL:
        text = json.dumps(derive(ALL[name]), indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.avsc").write_text(text, "utf-8")
    for name in before.keys() - ALL.keys():
        (folder / f"{name}.avsc").unlink()
    after = committed(folder)
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def main(arguments: list[str]) -> int:
    """Entry point of `python -m mesh_events.avro write|check`."""
    if arguments == ["write"]:
        for name in write(Path(str(resources.files("schemas") / "avro"))):
            sys.stdout.write(f"wrote {name}.avsc\n")
        return 0
    if arguments == ["check"]:
        found = differences()
        sys.stdout.writelines(f"{line}: run `python -m mesh_events.avro write`\n" for line in found)
        return 1 if found else 0
    sys.stderr.write("usage: python -m mesh_events.avro write|check\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
