"""Records as people see them: decoded by their schemas, and one below the other."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message

from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.kafka.connection import header_list
from self_service.cli.framework.output import Format, json_line, note, one_line, rendered, text_of
from self_service.cli.framework.times import stamp
from self_service.formats.json_numbers import strictly_parsed
from self_service.formats.schema import HEAD, Schema, SchemaError, schema_from

if TYPE_CHECKING:
    from self_service.cli.mesh.context import Mesh

_DEEPEST = 64
"""Levels of a value that is shown as one; a deeper one is shown as the text that it came as."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A key or value as it is shown.

    schema_id: of the schema that it fits, None where there is none.
    misfit: in what it does not fit the schema that it names, "" where it does or names none.
    """

    value: Any
    schema_id: int | None = None
    misfit: str = ""


class Decoder:
    """Bytes of a topic as values, by the registry's schemas, else JSON, else text, else hex digits.

    A writer may put anything on a topic: what is no record of its schema is told, not an error.
    """

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        # schema id -> the schema, or why it cannot be used: asked once, however many records
        self._schemas: dict[int, Schema | str] = {}

    def value(self, data: bytes | None) -> Shown:
        """A key or value; raises InfrastructureError where the registry does not answer."""
        if data is None:
            return Shown(None)
        if len(data) < HEAD or data[0] != 0:
            return Shown(_plain(data))
        schema_id = int.from_bytes(data[1:HEAD], "big")
        schema = self._schema(schema_id)
        if isinstance(schema, str):
            return Shown(text_of(data), misfit=schema)
        try:
            found = schema.decoded(data)
        except ValueError as error:
            return Shown(text_of(data), misfit=_misfit(schema_id, str(error)))
        if not _is_shallow(found.value):
            return Shown(text_of(data), misfit=_misfit(schema_id, "it has too many levels"))
        if found.misfit:
            return Shown(found.value, misfit=_misfit(schema_id, found.misfit))
        return Shown(found.value, schema_id)

    def _schema(self, schema_id: int) -> "Schema | str":
        found = self._schemas.get(schema_id) or self._looked_up(schema_id)
        # a registry that starts may not know yet what it knows a moment later
        if found:
            self._schemas[schema_id] = found
        return found

    def _looked_up(self, schema_id: int) -> "Schema | str":
        """The schema; "" where the registry has none, so that nothing was meant by the number."""
        registry = self._mesh.registry
        try:
            known = registry.definition(schema_id)
        except InfrastructureError as error:
            if error.retriable:
                raise
            return ""
        try:
            return schema_from(known.kind, known.text, registry.imports(known))
        except (SchemaError, RefusedError) as error:
            return f"its schema {schema_id} cannot be used: {error}"
        except InfrastructureError as error:
            if error.retriable:
                raise
            return f"its schema {schema_id} cannot be used: {error}"

    def document(self, message: Message, *, headers: bool) -> dict[str, Any]:
        """A record as shown; `tombstone` tells a null value from an empty one.

        `misfits` is there where key or value does not fit the schema that it names: the reasons.
        """
        key, value = self.value(message.key()), self.value(message.value())
        shown: dict[str, Any] = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "time": stamp(message.timestamp()[1]),
            "key": key.value,
            "value": value.value,
            "tombstone": message.value() is None,
            "key_schema": key.schema_id,
            "value_schema": value.schema_id,
        }
        sides = {"key": key, "value": value}
        if misfits := {side: one.misfit for side, one in sides.items() if one.misfit}:
            shown["misfits"] = misfits
        if headers:
            # pairs, since a name may stand there several times
            shown["headers"] = [
                [name, None if data is None else text_of(data)]
                for name, data in header_list(message)
            ]
        return shown


def note_misfits(document: dict[str, Any]) -> None:
    """Tell on stderr in what a record does not fit its schemas."""
    for side, why in document.get("misfits", {}).items():
        note(f"{document['partition']}@{document['offset']}, {side}: {one_line(why)}")


def _misfit(schema_id: int, why: str) -> str:
    return f"it does not fit schema {schema_id}: {why}"


def _plain(data: bytes) -> Any:
    text = text_of(data)
    if text[:1] in ("{", "["):
        try:
            found = strictly_parsed(text)
        except (ValueError, RecursionError):
            return text
        return found if _is_shallow(found) else text
    return text


def _is_shallow(value: Any) -> bool:
    """Whether a value can be written out: a writer may nest thousands of brackets."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False


def write(document: dict[str, Any], form: Format) -> None:
    """One record on stdout, at once: a line, a JSON line, or a YAML document."""
    if form is Format.TABLE:
        text = _line(document)
    elif form is Format.JSON:
        # one line per record, so that a pipe can follow
        text = json_line(document) + "\n"
    else:
        text = "---\n" + rendered(document, Format.YAML)
    sys.stdout.write(text)
    sys.stdout.flush()


def _line(document: dict[str, Any]) -> str:
    position = f"{document['partition']}@{document['offset']}"
    value = "(tombstone)" if document["tombstone"] else _compact(document["value"])
    headers = (
        f"\t{one_line(name)}: {one_line(str(value))}" for name, value in document.get("headers", [])
    )
    line = f"{position}\t{document['time']}\t{_compact(document['key'])}\t{value}"
    return "".join(f"{row}\n" for row in (line, *headers))


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value)
    if value is None:
        return "-"
    return json_line(value)
