"""Fields of Avro schemas that Spark has no type for, and schemas that read the others. Pure.

A decimal of more than 38 digits, such as PostgreSQL's `money` and `numeric(50, 2)`, would make
every field of its topic unreadable; one whose scale is not within its precision would be bytes, and
a day or a time of another one in a union would be one number for both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh_events.schema.size import inner_types
from spark_streams.sql.errors import SqlError
from spark_streams.sql.text.parse import Statement
from spark_streams.sql.text.tree import Column, Node
from spark_streams.sql.types.resolve import Query

MOST_DIGITS = 38
_DECIMAL = "a decimal of"
Path = tuple[str, ...]
"""Names of fields, from a record inwards."""


@dataclass
class Readable:
    """Reads a schema without the fields that Spark has no type for.

    unreadable: where each of them is, also by each name of its record -> why.
    elsewhere: full name -> definition that stands in what is not read, and the namespace around it.
    """

    unreadable: dict[Path, str] = field(default_factory=dict)
    elsewhere: dict[str, tuple[Any, str]] = field(default_factory=dict)
    _named: dict[str, dict[Path, str]] = field(default_factory=dict)
    _defined: set[str] = field(default_factory=set)

    def of(self, schema: Any, namespace: str = "", path: Path = ()) -> Any:
        """The schema without them; a type is defined where it is first used then."""
        if isinstance(schema, list):
            return [self.of(branch, namespace, path) for branch in schema]
        if isinstance(schema, str):
            return self._by_name(schema, namespace, path)
        if not isinstance(schema, dict):
            return schema
        if "name" in schema:
            return self._named_type(schema, namespace, path)
        match schema.get("type"):
            case "array":
                return {**schema, "items": self.of(schema["items"], namespace, path)}
            case "map":
                return {**schema, "values": self.of(schema["values"], namespace, path)}
        return schema

    def _by_name(self, schema: str, namespace: str, path: Path) -> Any:
        name = _full(schema, namespace)
        if name in self.elsewhere and name not in self._defined:
            return self.of(*self.elsewhere[name], path)
        for inner, why in self._named.get(name, {}).items():
            self.unreadable[path + inner] = why
        return schema

    def _named_type(self, schema: Mapping[str, Any], namespace: str, path: Path) -> Any:
        own = str(schema.get("namespace", namespace))
        name = _full(str(schema["name"]), own)
        if name in self._defined:
            return self._by_name(name, "", path)
        self._defined.add(name)
        # its name keeps its meaning wherever it is defined
        schema = {**schema, "namespace": own} if own else schema
        return self._record(schema, name, own, path) if schema.get("type") == "record" else schema

    def _record(
        self, schema: Mapping[str, Any], name: str, namespace: str, path: Path
    ) -> dict[str, Any]:
        before = set(self.unreadable)
        fields = []
        for one in schema["fields"]:
            place = (*path, one["name"])
            if (why := self._why(one["type"], namespace)) is not None:
                self.unreadable[place] = why
                self._leave_out(one["type"], namespace)
            else:
                fields.append({**one, "type": self.of(one["type"], namespace, place)})
        inside = {
            place[len(path) :]: why for place, why in self.unreadable.items() if place not in before
        }
        self._named[name] = inside
        return {**schema, "fields": fields}

    def _leave_out(self, schema: Any, namespace: str) -> None:
        """Keep what is defined in a field that is left out: another one may have it by its name."""
        if isinstance(schema, dict) and "name" in schema:
            namespace = str(schema.get("namespace", namespace))
            self.elsewhere.setdefault(_full(str(schema["name"]), namespace), (schema, namespace))
        for inner in inner_types(schema):
            self._leave_out(inner, namespace)

    def _why(self, schema: Any, namespace: str) -> str | None:
        """Why Spark cannot read a field of this type, None if it can; records inside are apart."""
        if isinstance(schema, str):
            left_out = self.elsewhere.get(_full(schema, namespace))
            return None if left_out is None else self._why(*left_out)
        if isinstance(schema, list):
            inside = (why for one in schema if (why := self._why(one, namespace)))
            return _why_one_number(schema) or next(inside, None)
        if not isinstance(schema, dict):
            return None
        if isinstance(kind := schema.get("type"), dict | list):
            return self._why(kind, namespace)
        if kind in ("array", "map"):
            return self._why(schema["items" if kind == "array" else "values"], namespace)
        return _why_no_decimal(schema) if schema.get("logicalType") == "decimal" else None


def require_readable(
    statement: Statement, query: Query, unreadable: Mapping[str, Mapping[Path, str]]
) -> None:
    """Refuse a statement that reads what Spark cannot, or all of a record that has such a field.

    Args:
        statement: as it was read.
        query: its resolved columns.
        unreadable: alias of a source -> its unreadable fields.

    Raises SqlError `unreadable_column` with the place.
    """
    nodes = [one.expression for one in query.out]
    nodes += [] if query.where is None else [query.where]
    for lookup in query.lookups:
        nodes += [one.node for one in lookup.key.values()]
        nodes += [] if lookup.condition is None else [lookup.condition]
    for node in nodes:
        _require(statement, node, unreadable)


def _require(
    statement: Statement, node: Node, unreadable: Mapping[str, Mapping[Path, str]]
) -> None:
    for one in node.walk():
        if not isinstance(one, Column):
            continue
        for path, why in unreadable.get(one.alias, {}).items():
            shorter = min(len(path), len(one.path))
            if path[:shorter] == tuple(one.path)[:shorter]:
                text = ", or capture it as text with decimal.handling.mode=string"
                raise SqlError(
                    "unreadable_column",
                    f"{one.alias}.{'.'.join(path)} is {why}: name the columns that are to be read "
                    f"and leave it out{text if why.startswith(_DECIMAL) else ''}",
                    statement.place(one),
                )


def _why_one_number(union: Sequence[Any]) -> str | None:
    """Spark makes one number of an int and a long, whatever both of them count."""
    branches = [one if isinstance(one, dict) else {"type": one} for one in union]
    branches = [one for one in branches if one["type"] != "null"]
    kinds = [one.get("logicalType") or one.get("connect.name") for one in branches]
    if sorted(str(one["type"]) for one in branches) != ["int", "long"] or not any(kinds):
        return None
    named = " and ".join(
        str(kind or one["type"]) for kind, one in zip(kinds, branches, strict=True)
    )
    return f"a union of {named}, of which Spark makes one number that does not tell which it is"


def _why_no_decimal(schema: Mapping[str, Any]) -> str | None:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not (
        isinstance(precision, int)
        and isinstance(scale, int)
        and precision >= 1
        and 0 <= scale <= precision
    ):
        return f"{_DECIMAL} {precision} digits with the scale {scale}, which Avro does not have"
    if precision > MOST_DIGITS:
        return f"{_DECIMAL} {precision} digits, and Spark has {MOST_DIGITS}"
    return None


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
