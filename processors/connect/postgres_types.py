"""What arrives of each type of PostgreSQL, by Debezium and Avro, and what does not.

A column whose type is not here is refused: Debezium would leave it out of the topic. The page
docs/reference/postgres-types.md is made of it: `python -m processors.connect.postgres_types`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table.

    table: schema.table
    kind: its type without length and precision; enum, composite and domain instead of their names
    base: the type that a domain is made of, else ""
    declared: its type as it was declared, such as numeric(5,-2)
    dimensions: of an array as it was declared
    namesake: a table or type of the table's schema with the name of this column's type, else ""
    made_of: what the type of a domain was declared as, else ""
    is_key: whether it is part of the primary key, by which rows arrive
    """

    table: str
    name: str
    kind: str
    base: str
    is_generated: bool
    declared: str
    dimensions: int
    namesake: str = ""
    made_of: str = ""
    is_key: bool = False

    @property
    def path(self) -> str:
        """schema.table.column."""
        return f"{self.table}.{self.name}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """What arrives of a type.

    kind: as `Column.kind` has it.
    avro: in the topic.
    sql: in streaming SQL.
    lost: what of its values does not arrive as it was, "" for nothing.
    in_key: what that does to rows whose key has such a value, "" for nothing.
    """

    kind: str
    avro: str
    sql: str
    lost: str = ""
    in_key: str = ""


_ARRAY = "arrays in it arrive as nulls; another first index than 1"
_EARLY = "1582-10-05 to 1582-10-14 ten days later, what is before 0001 as a day after it"
"""Java's calendar of java.sql.Date has no such days and counts no years before 1."""
_ZEROS = "without a precision zeros at its end, 1.50 arrives as 1.5"
_ONE_ROW = "two rows can arrive as one"
ARRIVALS = (
    Arrival("boolean", "boolean", "BOOLEAN"),
    Arrival("smallint", "int", "INT"),
    Arrival("integer", "int", "INT"),
    Arrival("bigint", "long", "BIGINT"),
    Arrival("oid", "long", "BIGINT"),
    Arrival("real", "float", "FLOAT"),
    Arrival("double precision", "double", "DOUBLE"),
    Arrival(
        "numeric",
        "bytes, decimal; without a precision a record of scale and digits",
        "DECIMAL of up to 38 digits, more are refused; without a precision STRUCT",
        f"NaN and infinity fail the connector; {_ZEROS}",
    ),
    Arrival("text", "string", "STRING"),
    Arrival("character varying", "string", "STRING"),
    Arrival("character", "string, with the spaces that fill it", "STRING"),
    Arrival('"char"', "string", "STRING"),
    Arrival("bytea", "bytes", "BINARY"),
    Arrival("uuid", "string", "STRING"),
    Arrival("json", "string, as it was written", "STRING"),
    Arrival("jsonb", "string", "STRING"),
    Arrival("enum", "string", "STRING"),
    Arrival("domain", "as text, integer or numeric; over another type it is refused", "the same"),
    Arrival(
        "timestamp with time zone",
        "string in UTC, also infinity",
        "TIMESTAMP",
        "in SQL infinity is null, and what is before 0001 or after 9999",
    ),
    Arrival(
        "timestamp without time zone",
        "long, microseconds, up to a precision of 3 milliseconds",
        "TIMESTAMP_NTZ",
        "infinity and the year 294276 arrive as other numbers",
    ),
    Arrival(
        "date",
        "int, days",
        "DATE",
        f"infinity arrives as another number; in a snapshot {_EARLY}",
        f"{_ONE_ROW} in a snapshot, and a row under another key than its changes",
    ),
    Arrival(
        "time without time zone",
        "long, microseconds, up to a precision of 3 int, milliseconds",
        "BIGINT, INT",
    ),
    Arrival(
        "time with time zone",
        "string in UTC",
        "STRING",
        "its zone; 24:00 arrives as 00:00 in UTC",
        _ONE_ROW,
    ),
    Arrival("interval", "string of ISO 8601", "STRING", "infinity arrives as zero", _ONE_ROW),
    Arrival("inet", "string", "STRING"),
    Arrival("cidr", "string", "STRING"),
    Arrival("macaddr", "string", "STRING"),
    Arrival("macaddr8", "string", "STRING"),
    Arrival(
        "bit",
        "boolean; of more bits bytes, the last ones first, without bytes of zeros at its beginning",
        "BOOLEAN, BINARY",
    ),
    Arrival(
        "bit varying",
        "bytes, the last bits first",
        "BINARY",
        "zeros that it begins with",
        _ONE_ROW,
    ),
    Arrival("point", "record of x, y, wkb and srid", "STRUCT"),
    Arrival("tsvector", "string", "STRING"),
    Arrival("int4range", "string", "STRING"),
    Arrival("int8range", "string", "STRING"),
    Arrival("numrange", "string", "STRING"),
    Arrival("tsrange", "string", "STRING"),
    Arrival("tstzrange", "string in UTC", "STRING"),
    Arrival("daterange", "string", "STRING"),
    Arrival("smallint[]", "array of int", "ARRAY", _ARRAY),
    Arrival("integer[]", "array of int", "ARRAY", _ARRAY),
    Arrival("bigint[]", "array of long", "ARRAY", _ARRAY),
    Arrival("boolean[]", "array of boolean", "ARRAY", _ARRAY),
    Arrival("real[]", "array of float", "ARRAY", _ARRAY),
    Arrival("double precision[]", "array of double", "ARRAY", _ARRAY),
    Arrival(
        "numeric[]",
        "array of bytes, decimal; without a precision of records of scale and digits",
        "ARRAY",
        f"NaN fails the connector, also where decimals are text; {_ZEROS}; {_ARRAY}",
    ),
    Arrival("text[]", "array of string", "ARRAY", _ARRAY),
    Arrival("uuid[]", "array of string", "ARRAY", _ARRAY),
    Arrival(
        "date[]",
        "array of int, days",
        "ARRAY of INT",
        f"infinity arrives as another number; {_EARLY}; {_ARRAY}",
    ),
    Arrival("json[]", "array of string", "ARRAY", _ARRAY),
    Arrival("inet[]", "array of string", "ARRAY", _ARRAY),
    Arrival("enum[]", "array of string", "ARRAY", f"a NULL in it fails the connector; {_ARRAY}"),
)
_KNOWN = {one.kind: one for one in ARRIVALS}
_BASES = frozenset({"text", "int4", "numeric"})
"""What a domain may be made of, by PostgreSQL's own names."""
_SHOWN = 5
_SCALE = re.compile(r"numeric\((\d+),(-?\d+)\)")
_PLACES = re.compile(r"(?:timestamp|time)(?:\((\d)\))? without time zone")
_MILLISECONDS = 3
_HEAD = """# What arrives of each type of PostgreSQL

Made by `python -m processors.connect.postgres_types` of what connectors check, and tested on a real
PostgreSQL (`tests/integration/connect/test_postgres_arrivals.py`).

| type | in the topic | in streaming SQL | what does not arrive as it was |
|---|---|---|---|
"""


def fault(column: Column, *, precise: bool) -> str | None:
    """Why a column would not arrive, None if it does.

    precise: whether decimals are captured as such, and not as text or floating point.
    """
    if column.is_generated:
        return "is generated, and PostgreSQL does not log what it generates"
    if column.kind == "money":
        return (
            "is of the type money, whose places and signs are those of the server's lc_monetary: "
            f"run ALTER TABLE ... ALTER COLUMN {column.name} TYPE numeric(19, 2)"
        )
    if column.kind not in _KNOWN or (column.kind == "domain" and column.base not in _BASES):
        return f"is of the type {column.declared}, which does not arrive in the topic"
    if column.dimensions > 1:
        return f"is an array of {column.dimensions} dimensions, of which nulls would arrive"
    if column.namesake:
        return (
            f"is of the type {column.declared}, for which Debezium takes {column.namesake}, since "
            "it looks for a type's name in the table's schema first: rename or move "
            f"{column.namesake}"
        )
    declared = (column.made_of or column.declared).removesuffix("[]")
    found = _SCALE.fullmatch(declared)
    if not precise and found is not None and int(found[2]) < 0:
        return (
            f"is a {declared}, and the driver takes a scale below 0 for one of some "
            "2000 digits: as text each value would have as many zeros"
        )
    if precise and found is not None and not 0 <= int(found[2]) <= int(found[1]):
        return f"is a {declared}, and no reader of Avro takes a scale outside of the precision"
    return None


def losses(columns: Iterable[Column], *, in_milliseconds: bool = False) -> list[str]:
    """What of the values of columns does not arrive as it was: a text for each of their types.

    And one for each type in a key, where rows are lost by it.

    in_milliseconds: whether times are captured so (`time.precision.mode=connect`).
    """
    columns = list(columns)
    cut = [one.path for one in columns if in_milliseconds and _is_finer(one)]
    lossy: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    for one in columns:
        known = _KNOWN.get(one.kind)
        if known is not None and known.lost:
            lossy.setdefault(one.kind, []).append(one.path)
        if known is not None and known.in_key and one.is_key:
            keys.setdefault(one.kind, []).append(one.path)
    told = [f"times of {_some(cut)} are cut to milliseconds"] if cut else []
    told += [
        f"values of {_some(names)} ({kind}) that do not arrive as they are: {_KNOWN[kind].lost}"
        for kind, names in lossy.items()
    ]
    return told + [
        f"{_some(names)} ({kind}) is in a key: by such values {_KNOWN[kind].in_key}"
        for kind, names in keys.items()
    ]


def _is_finer(column: Column) -> bool:
    """Whether it has times of more places behind the second than three."""
    found = _PLACES.fullmatch(column.declared)
    return found is not None and int(found[1] or 6) > _MILLISECONDS


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def page() -> Iterator[str]:
    """The reference page, line by line."""
    yield _HEAD.rstrip("\n")
    for one in ARRIVALS:
        lost = f"{one.lost}; in a key {one.in_key}" if one.in_key else one.lost
        yield f"| `{one.kind}` | {one.avro} | {one.sql} | {lost} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()) + "\n")
