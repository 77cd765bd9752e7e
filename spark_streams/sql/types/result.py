"""The Avro schema of a statement's result, from the types that Spark gives its columns.

Every field may be null: which of Spark's columns can be is not reliable, and a field that may be
null can be added and left out again without breaking a reader.
"""

import json
from typing import TYPE_CHECKING, Any

from spark_streams.sql.errors import SqlError
from spark_streams.sql.types.resolve import AVRO_NAME

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_PLAIN = {
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def result_schema(columns: "StructType", name: str, namespace: str) -> str:
    """The schema of a record with these columns, as JSON.

    Raises:
        SqlError: `wrong_type`, for a type that Avro does not have.
    """
    return json.dumps({**_record(columns, name, set()), "namespace": namespace})


def _record(columns: "StructType", path: str, names: set[str]) -> dict[str, Any]:
    name = path
    while name in names:
        # a record's name must not come twice in one schema
        name += "_"
    names.add(name)
    known: dict[str, str] = {}
    for field in columns.fields:
        if not AVRO_NAME.fullmatch(field.name):
            raise SqlError(
                "wrong_type", f"{field.name!r} in {path} is no name for a field: name it with AS"
            )
        if (other := known.get(field.name.lower())) is not None:
            raise SqlError(
                "duplicate_column",
                f"a struct in {path} has the fields {other} and {field.name}, which are one name "
                "in SQL: name one of them anew, as in named_struct('a', x, 'b', y)",
            )
        known[field.name.lower()] = field.name
    fields = [
        {
            "name": field.name,
            "type": ["null", _type(field.dataType, f"{path}_{field.name}", field.name, names)],
            "default": None,
        }
        for field in columns.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: "DataType", path: str, column: str, names: set[str]) -> Any:
    from pyspark.sql import types

    match kind:
        case types.DecimalType():
            precision, scale = kind.precision, kind.scale
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case types.ArrayType():
            return {
                "type": "array",
                "items": ["null", _type(kind.elementType, path, column, names)],
            }
        case types.MapType() if isinstance(kind.keyType, types.StringType):
            return {"type": "map", "values": ["null", _type(kind.valueType, path, column, names)]}
        case types.StructType():
            return _record(kind, path, names)
    name = kind.typeName()
    if name in _PLAIN:
        return _PLAIN[name]
    if isinstance(kind, types.StringType | types.CharType | types.VarcharType):
        return "string"
    instead = "cast it"
    if isinstance(kind, types.TimeType):
        instead = (
            "CAST it AS STRING, or AS DECIMAL(14, 6) for its seconds; AS BIGINT it has the whole "
            "seconds alone"
        )
    raise SqlError(
        "wrong_type",
        f"the column {column} has the type {kind.simpleString()}, which Avro does not have: "
        f"{instead}",
    )
