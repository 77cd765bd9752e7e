"""The event catalogue for people: `python -m mesh_events.reference > docs/reference/events.md`."""

import sys
from collections.abc import Iterator
from typing import Any

from mesh_events.avro import derive
from mesh_events.decisions import DECISIONS, FOUNDATION
from mesh_events.meta import Event
from mesh_events.rows import ROWS, Row
from mesh_events.vocabulary import FACTS, INTENTS

_PARTS: tuple[tuple[str, str, tuple[type[Event] | type[Row], ...]], ...] = (
    ("Foundation", "Signed by the root; schemas also by the governor.", FOUNDATION),
    ("Intents", "Signed by a domain, the operator or the governor. Each is decided once.", INTENTS),
    ("Decisions", "Signed by the governor. Only they change rights and existence.", DECISIONS),
    ("Facts", "Signed by a controller. They change status.", FACTS),
    ("Rows", "On the projections' compacted topics, one per thing.", ROWS),
)


def catalogue() -> str:
    """The whole vocabulary as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Events and rows"
    yield ""
    yield "Made from the types by `python -m mesh_events.reference`; the schemas are in"
    yield "`schemas/avro`. Every event begins with `meta`:"
    yield ""
    yield from _fields(derive(INTENTS[0])["fields"][0]["type"]["fields"])
    for title, about, types in _PARTS:
        yield ""
        yield f"## {title}"
        yield ""
        yield about
        for model in types:
            yield from _one(model)


def _one(model: type[Event] | type[Row]) -> Iterator[str]:
    schema = derive(model)
    yield ""
    yield f"### {model.type_name()}"
    yield ""
    yield f"{schema['doc']} Key: {' '.join((model.key.__doc__ or '').split())}"
    fields = [field for field in schema["fields"] if field["name"] != "meta"]
    if fields:
        yield ""
        yield from _fields(fields)


def _fields(fields: list[dict[str, Any]]) -> Iterator[str]:
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for field in fields:
        optional = " (optional)" if "default" in field else ""
        yield f"| `{field['name']}` | {_type(field['type'])}{optional} | {field['doc']} |"


def _type(avro: Any) -> str:
    match avro:
        case [_, inner]:
            return f"{_type(inner)} or null"
        case {"logicalType": logical}:
            return str(logical)
        case {"type": "array", "items": items}:
            return f"array of {_type(items)}"
        case {"type": "map", "values": values}:
            return f"map of {_type(values)}"
        case {"type": "enum", "symbols": symbols}:
            return " / ".join(symbols)
        case {"name": name}:
            return str(name)
    return str(avro)


if __name__ == "__main__":
    sys.stdout.write(catalogue())
