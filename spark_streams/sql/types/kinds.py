"""Whether a column had another SQL type in records of an earlier schema. Pure.

Every record is read by the latest schema, also those that a statement has dealt with by an earlier
one. What is computed with a number, a text or a time depends on its SQL type: where that is another
one, the same record would give another value when the statement is planned anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mesh_events.schema.full_names import named_types, with_full_names
from mesh_events.schema.resolution import field_pairs, is_of_kind, kind_of, picked
from spark_streams.sql.text.tree import Between, Binary, Cast, Column, In, Is, Node
from spark_streams.sql.types.resolve import Query
from spark_streams.sql.types.shape import Meaning, meaning

_OF_MEANING = {
    Meaning.DAYS: "DATE",
    Meaning.MILLIS: "TIMESTAMP_NTZ",
    Meaning.MICROS: "TIMESTAMP_NTZ",
    Meaning.NANOS: "TIMESTAMP_NTZ",
    Meaning.ZONED: "TIMESTAMP",
}
_OF_LOGICAL = {
    ("int", "date"): "DATE",
    ("long", "time-micros"): "TIME",
    **{("long", f"timestamp-{unit}"): "TIMESTAMP" for unit in ("millis", "micros")},
    **{("long", f"local-timestamp-{unit}"): "TIMESTAMP_NTZ" for unit in ("millis", "micros")},
}
"""What Spark makes of a type with a logical type; any other says nothing to it."""
_DECIMALS = {("bytes", "decimal"), ("fixed", "decimal"), ("long", "custom-decimal")}
_CATALYST = "spark.sql.catalyst.type"
"""Spark's own name of the type that it wrote as an int or a long."""
_PLAIN = {"long": "BIGINT", "bytes": "BINARY", "fixed": "BINARY", "enum": "STRING"}
_WIDER = {("INT", "BIGINT")}
"""(Then, now) that compare, and are cast, alike; a hash, a shift or a sum that wraps is not."""
_COMPARING = {"=", "<>", "<", "<=", ">", ">=", "<=>"}
_PROMOTED = {
    *_WIDER,
    ("INT", "DOUBLE"),
    ("FLOAT", "DOUBLE"),
    ("STRING", "BINARY"),
    ("BINARY", "STRING"),
}
"""(Then, now) of which a column that comes out as it is tells by the schema of the result."""
Path = tuple[str, ...]


class Use(IntEnum):
    """What is done with a column, the most at last."""

    SHOWN = 0
    """It comes out as it is."""
    COMPARED = 1
    COMPUTED = 2


@dataclass(frozen=True, slots=True)
class Read:
    """A column, or a field inside it, that a statement reads; names are in any case."""

    column: Column
    use: Use


@dataclass(frozen=True, slots=True)
class Other:
    """A place with two SQL types: what it was, and what it is."""

    path: str
    then: str
    now: str


def reads(query: Query) -> dict[str, dict[Path, Read]]:
    """Alias of a source -> path -> what is read of it, once for each."""
    nodes = [(one.node, Use.COMPARED) for lookup in query.lookups for one in lookup.key.values()]
    conditions = [query.where, *(lookup.condition for lookup in query.lookups)]
    nodes += [(one, Use.COMPUTED) for one in conditions if one is not None]
    nodes += [(one.expression, Use.SHOWN) for one in query.out]
    found: dict[str, dict[Path, Read]] = {}
    for node, use in nodes:
        if isinstance(node, Column):
            known = found.setdefault(node.alias, {})
            path = tuple(name.lower() for name in node.path)
            if path not in known or use > known[path].use:
                known[path] = Read(node, use)
            continue
        inner = Use.COMPARED if _compares(node) else Use.COMPUTED
        # behind all others that are to be looked at
        nodes.extend((one, inner) for one in node.children)
    return found


def _compares(node: Node) -> bool:
    """Whether a whole number gives the same here, whatever its type is; its bytes are others."""
    if isinstance(node, Cast):
        return node.to.name.lower() != "binary"
    is_operator = isinstance(node, Binary) and node.op in _COMPARING
    return is_operator or isinstance(node, Between | In | Is)


def sql_type(schema: Any) -> str:
    """What Spark calls the values of an Avro type that is no union, and no name of another."""
    kind, more = kind_of(schema), schema if isinstance(schema, dict) else {}
    logical = str(more.get("logicalType"))
    if (kind, logical) in _DECIMALS:
        return f"DECIMAL({more.get('precision')},{more.get('scale', 0)})"
    if (kind, logical) not in _OF_LOGICAL and kind in ("int", "long") and _CATALYST in more:
        return str(more[_CATALYST]).upper()
    return _OF_LOGICAL.get((kind, logical)) or _PLAIN.get(kind, kind.upper())


class Types:
    """The types of a schema, each with what its names stand for.

    Args:
        schema: parsed, and without recursion.
    """

    def __init__(self, schema: Any) -> None:
        self.whole = with_full_names(schema)
        self._names = named_types(self.whole)

    def branches(self, kind: Any) -> list[Any]:
        """Those of a union but null, the type itself where it is none; two numbers are one."""
        kind = self._definition(kind)
        every = kind if isinstance(kind, list) else [kind]
        found = [one for one in map(self._definition, every) if kind_of(one) != "null"]
        for number in (["int", "long"], ["float", "double"]):
            if {*map(kind_of, found)} == {*number}:
                return number[1:]
        return found

    def _definition(self, kind: Any) -> Any:
        while isinstance(kind, dict) and isinstance(kind.get("type"), dict | list):
            kind = kind["type"]
        name = kind.get("type") if isinstance(kind, dict) and "fields" not in kind else kind
        return self._names.get(name, kind) if isinstance(name, str) else kind


class Kinds:
    """The SQL types of the fields of a topic's values, by its latest schema and an earlier one.

    Args:
        now, then: the latest schema and the earlier one.
        within: where the columns lie: `("after",)` for rows of changes.
    """

    def __init__(self, now: Types, then: Types, within: Path = ()) -> None:
        self._now, self._then, self._within = now, then, within
        self._pairs: dict[tuple[int, int], Mapping[str, tuple[Any, Any]]] = {}
        self._known: dict[tuple[int, int, Use], Other | None] = {}

    def other(self, path: Path, *, use: Use) -> Other | None:
        """The first place at or below a column's path with another type; None if there is none.

        A field that was not written has its default, and no type of its own.
        """
        now, then, place = self._now.whole, self._then.whole, list[str]()
        for name in (*self._within, *path):
            read, written = self._now.branches(now), self._then.branches(then)
            if not _are_records(read, written):
                break  # a branch by its position, a key of a map: all of it counts
            pair = self._fields(read[0], written[0]).get(name.lower())
            if pair is None:
                return None
            now, then = pair
            place.append(name)
        called = ".".join(place)
        if len(place) == len(self._within) + 1:
            meant = meaning(now), meaning(then)
            if meant != (Meaning.ITSELF, Meaning.ITSELF):
                return self._time(called, now, then, use=use)
        found = self._first(now, then, use=use)
        return found and Other(f"{called}{found.path}" or "the value", found.then, found.now)

    def _time(self, path: str, now: Any, then: Any, *, use: Use) -> Other | None:
        """As `other`, of a column that is a time by Debezium's name, or was."""
        read, written = self._now.branches(now), self._then.branches(then)
        if any(not is_of_kind(one, branch) for one in read for branch in written):
            return None
        types = _column_type(now, read), _column_type(then, written)
        return _compared(path, *types, use=use)

    def _first(self, now: Any, then: Any, *, use: Use) -> Other | None:
        """The first difference of two types; its path begins behind them."""
        read, written = self._now.branches(now), self._then.branches(then)
        for branch in written:
            for one in read if len(read) == 1 else picked(read, branch):
                if found := self._difference(one, branch, use=use):
                    return found
        return None

    def _difference(self, now: Any, then: Any, *, use: Use) -> Other | None:
        """As `_first`, of types that are no unions."""
        if not is_of_kind(now, then):
            return None  # an earlier record is not read, and goes to the dead letters
        if (kind := kind_of(now)) != kind_of(then) or kind not in ("record", "array", "map"):
            return _compared("", sql_type(now), sql_type(then), use=use)
        if kind == "record":
            return self._of_records(now, then, use=use)
        mark, inner = ("[]", "items") if kind == "array" else ("{}", "values")
        found = self._first(now[inner], then[inner], use=use)
        return found and Other(f"{mark}{found.path}", found.then, found.now)

    def _of_records(self, now: Any, then: Any, *, use: Use) -> Other | None:
        """Of each pair of records it is found once, from wherever they are used."""
        key = id(now), id(then), use
        if key not in self._known:
            self._known[key] = None
            for name, pair in self._fields(now, then).items():
                if found := self._first(*pair, use=use):
                    self._known[key] = Other(f".{name}{found.path}", found.then, found.now)
                    break
        return self._known[key]

    def _fields(self, now: Any, then: Any) -> Mapping[str, tuple[Any, Any]]:
        """Name in small letters -> type and written type, of the fields that were written."""
        key = id(now), id(then)
        if key not in self._pairs:
            pairs = field_pairs(now, then)
            self._pairs[key] = {name.lower(): pair for name, pair in pairs if pair is not None}
        return self._pairs[key]


def _are_records(read: Sequence[Any], written: Sequence[Any]) -> bool:
    return all([kind_of(one) for one in side] == ["record"] for side in (read, written))


def _column_type(kind: Any, branches: Sequence[Any]) -> str:
    """The SQL type of a column, which may be a time by Debezium's name of it."""
    if (meant := meaning(kind)) is not Meaning.ITSELF:
        return _OF_MEANING[meant]
    return " or ".join(map(sql_type, branches)) or "NULL"


def _compared(path: str, now: str, then: str, *, use: Use) -> Other | None:
    """The two types, unless one may be in the place of the other."""
    pair = then, now
    if now == then or (pair in _WIDER and use <= Use.COMPARED):
        return None
    is_decimal = all(one.startswith("DECIMAL") for one in pair)
    # of one scale: another one is refused as another meaning
    if use is Use.SHOWN and (pair in _PROMOTED or is_decimal):
        return None
    return Other(path, then, now)
