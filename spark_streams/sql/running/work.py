"""A planned statement as the work that a query does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mesh_events.kafka.connection import Connection
from spark_streams.jvm import LOOKUP, register
from spark_streams.provenance import Origin
from spark_streams.sql.running import tables
from spark_streams.sql.running.frame import Result, Topic, selected, written
from spark_streams.sql.types.resolve import Query

SETTINGS = {
    # times without a zone are in UTC, and so is what becomes of them
    "spark.sql.session.timeZone": "UTC",
    # an expression without an answer is null; otherwise one odd record would end the statement
    "spark.sql.ansi.enabled": "false",
    # of a null there is no size
    "spark.sql.legacy.sizeOfNull": "false",
    # a text must not read the server's settings and environment
    "spark.sql.variable.substitute": "false",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a statement looks rows up in."""

    name: str
    shape: Topic


@dataclass(frozen=True, slots=True)
class Statement:
    """One incarnation of a statement.

    writer: its principal; names its tables, so that each incarnation reads them anew.
    tables: alias -> table; `login` is who reads them.
    topic_ids: topic of a table -> its id in Kafka.
    """

    writer: str
    query: Query
    stream: Topic
    tables: Mapping[str, Table] = field(hash=False)
    result: Result
    login: Connection
    topic_ids: Mapping[str, str] = field(hash=False)

    def apply(self, session: Any, records: Any, origin: Origin) -> Any:
        """Records for the sink; see `spark_streams.engine.Work`."""
        from pyspark.sql.connect import functions as f

        told = dict(SETTINGS)
        for alias, table in self.tables.items():
            known = self._table(alias), table.name, self.topic_ids[table.name]
            told |= tables.settings(*known, table.shape, self.login)
        for name, value in told.items():
            session.conf.set(name, value)
        register(session)

        def find(alias: str, key: Any) -> Any:
            return f.call_function(LOOKUP, f.lit(self._table(alias)), key, f.col("partition"))

        shapes = {alias: table.shape for alias, table in self.tables.items()}
        chosen = selected(records, self.query, self.stream, shapes, find)
        return written(chosen, self.result, origin)

    def _table(self, alias: str) -> str:
        return f"{self.writer}/{alias}"
