"""A statement's text together with the topics that it names, as they are now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mesh_events.errors import RefusedError
from spark_streams.sql.analysis import analysed, plan_text
from spark_streams.sql.errors import SqlError
from spark_streams.sql.frame import Topic, key_types
from spark_streams.sql.parse import Source, Statement, understood
from spark_streams.sql.resolve import Query, resolve
from spark_streams.sql.shape import KEY, key_columns, shape_of
from spark_streams.sql.work import LOOKUP, Table, register


class Schemas(Protocol):
    """Where the schemas of topics are registered; methods raise MeshError."""

    def versions(self, subject: str) -> Mapping[int, str]:
        """Schema id -> text of every version of a subject, the latest last; {} if it has none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a statement does, as far as its text and the schemas tell.

    stream, tables: what is read; tables by their alias.
    key: schema of the keys of the stream, and so of the result; None if they have none.
    """

    parsed: Statement
    query: Query
    stream: Topic
    tables: Mapping[str, Table] = field(hash=False)

    @property
    def key(self) -> str | None:
        """Schema of the result's keys, which are those of the stream."""
        return self.stream.key

    @property
    def is_total(self) -> bool:
        """Whether every record of the stream gives one of the result."""
        inner = any(not lookup.outer for lookup in self.query.lookups)
        return self.query.where is None and not inner

    def query_key(self, alias: str) -> tuple[str, ...]:
        """Columns by which a table is looked up."""
        return _keys(self.tables[alias])

    def result_schema(self, session: Any, name: str, namespace: str) -> str:
        """The Avro schema of the result, a record of this name; see `analysed`."""
        shapes = {alias: table.shape for alias, table in self.tables.items()}
        return analysed(session, self.query, self.stream, shapes, name, namespace)

    def spark_plan(self, session: Any) -> str:
        """What Spark makes of it, as text; nothing runs."""
        from pyspark.sql.connect import functions as f

        register(session)
        shapes = {alias: table.shape for alias, table in self.tables.items()}
        return plan_text(
            session,
            self.query,
            self.stream,
            shapes,
            lambda alias, key: f.call_function(LOOKUP, f.lit(alias), key, f.col("partition")),
        )


def planned(parsed: Statement, names: Mapping[str, str], schemas: Schemas) -> Plan:
    """Understand a statement over topics as they are now.

    Args:
        parsed: the statement.
        names: name in the text -> topic, for names that are no topics.
        schemas: of the topics.

    Raises:
        SqlError: with the place of what is wrong.
        RefusedError: `no_schema` or `schema_not_usable`.
        MeshError: the registry does not answer.
    """
    found = {one.alias: _topic(one, topic_of(one, names), schemas) for one in parsed.sources}
    stream = found[parsed.stream.alias]
    joined = {one.source.alias: one.source for one in parsed.joined}
    tables = {
        alias: Table(topic_of(source, names), found[alias]) for alias, source in joined.items()
    }
    columns = {alias: _columns(found[alias]) for alias in joined}
    columns[stream.alias] = [one.name for one in stream.shape.fields]
    keys = {alias: _keys(table) for alias, table in tables.items()}
    query = understood(lambda: resolve(parsed, columns, keys))
    for table in tables.values():
        # a key of another type is refused now, and not when it is first looked for
        key_types(table.shape.key or '"null"')
    return Plan(parsed, query, stream, tables)


def topic_of(source: Source, names: Mapping[str, str]) -> str:
    """The topic that a name in a text stands for."""
    return names.get(source.name, source.name)


def require_same(
    parsed: Statement,
    names: Mapping[str, str],
    stream: str,
    tables: Iterable[str],
    destination: str,
) -> None:
    """Raise SqlError `sql_differs` where a text reads or fills other topics than it was said."""
    said = (stream, set(tables))
    read = topic_of(parsed.stream, names), {topic_of(one.source, names) for one in parsed.joined}
    if read != said:
        raise SqlError(
            "sql_differs",
            f"the text reads {_listed(*read)}, and {_listed(*said)} was said to be read",
        )
    if parsed.destination is not None and topic_of(parsed.destination, names) != destination:
        raise SqlError(
            "sql_differs",
            f"the text fills {topic_of(parsed.destination, names)}, and {destination} was said to "
            "be filled",
            parsed.destination.place,
        )


def _listed(stream: str, tables: Iterable[str]) -> str:
    return ", ".join([stream, *sorted(tables)])


def _topic(source: Source, topic: str, schemas: Schemas) -> Topic:
    subject = f"{topic}-value"
    writers = schemas.versions(subject)
    if not writers:
        raise RefusedError(
            "no_schema",
            f"{source.place}: the registry has no subject {subject}: register the schema of the "
            "topic's values first",
        )
    latest = list(writers.values())[-1]
    keys = list(schemas.versions(f"{topic}-key").values())
    return Topic(source.alias, shape_of(latest, subject), writers, keys[-1] if keys else None)


def _columns(table: Topic) -> list[str]:
    columns = [one.name for one in table.shape.row]
    return [*columns, KEY] if _key_of(table) == (KEY,) else columns


def _keys(table: Table) -> tuple[str, ...]:
    return _key_of(table.shape)


def _key_of(table: Topic) -> tuple[str, ...]:
    return key_columns(table.key, table.alias)
