"""Tables of PostgreSQL's own, which no connector may capture or fill. Pure.

A row that a sink deletes from `pg_class` is a table that is gone, whoever it belonged to.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from immutables import Map

from projections.connectors.settings import POSTGRES
from projections.connectors.tables import TABLES, named
from projections.connectors.values import items

_CAPTURED = (TABLES, "replica.identity.autoset.values")
_SCHEMA = re.compile("pg_.*|information_schema", re.IGNORECASE)
_FOUND = ("pg_catalog", "pg_toast", "information_schema")
_MAY_FIND = re.compile(
    "|".join(("pg_.*", *("".join(f"[{one}_]" for one in name) for name in _FOUND))), re.IGNORECASE
)
"""A sink's driver finds a schema by a pattern, in which _ is any one character."""
_WHY = "schemas that begin with pg_, and information_schema, are PostgreSQL's own"
_SHOWN = 5


def fault(config: Mapping[str, str]) -> str | None:
    """Which tables of PostgreSQL's own a config captures or fills, None if it does not."""
    return _fault(config if isinstance(config, Map) else Map(config))


@lru_cache(maxsize=1024)
def _fault(config: Map[str, str]) -> str | None:
    if config.get("connector.class") == POSTGRES:
        for setting in _CAPTURED:
            tables = items(config.get(setting, ""))
            if found := [one for one in tables if _SCHEMA.fullmatch(one.partition(".")[0])]:
                return f"{setting}: leave out {', '.join(found[:_SHOWN])}: {_WHY}"
        return None
    for topic, (schema, table) in named(config):
        if _MAY_FIND.fullmatch(schema):
            return (
                f"collection.name.format, or currentSchema of connection.url: {topic} would fill "
                f"{schema}.{table}: {_WHY} (_ stands for any character): name another schema"
            )
    return None
