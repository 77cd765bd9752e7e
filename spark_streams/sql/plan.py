"""A statement's text together with the topics that it names, as they are now."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mesh_events.errors import RefusedError
from mesh_events.schema.compatibility import misread, taking_aliases
from mesh_events.schema.defaults import MOST_ADDED, added_to_items
from mesh_events.schema.size import (
    MOST_TOGETHER,
    TOO_MANY_VERSIONS,
    expanded_size,
    parsed,
    require_no_recursion,
)
from spark_streams.jvm import LOOKUP
from spark_streams.sql.errors import SqlError
from spark_streams.sql.running.analysis import analysed, plan_text
from spark_streams.sql.running.frame import Topic, key_types
from spark_streams.sql.running.keys import encoding
from spark_streams.sql.running.work import Table
from spark_streams.sql.text.statement import Source, Statement
from spark_streams.sql.text.tree import Column
from spark_streams.sql.types.evolution import other_values
from spark_streams.sql.types.kinds import Kinds, Read, Types, reads
from spark_streams.sql.types.readable import require_readable
from spark_streams.sql.types.resolve import Query, resolve
from spark_streams.sql.types.shape import KEY, key_columns, shape_of

MOST_TYPES = 12_000
"""Of what is read, each name replaced by its type, and of the result: Spark analyses them all.

A nullable column that comes out again counts as four.
"""
Versions = Sequence[tuple[int, Any]]
"""The schemas of a subject with their ids, parsed, the latest one last."""


class Schemas(Protocol):
    """Where the schemas of topics are registered; methods raise MeshError."""

    def versions(self, subject: str) -> Mapping[int, str]:
        """Schema id -> Avro text of every version of a subject, the latest last; {} if none.

        Raises RefusedError `unsupported_schema` where one of them is not Avro.
        """


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
    def stream_schema_id(self) -> int:
        """The schema by which the stream's values are read, whatever their own is."""
        return list(self.stream.writers)[-1]

    @property
    def is_total(self) -> bool:
        """Whether every record of the stream gives one of the result."""
        if self.parsed.of_rows:
            return True
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
        RefusedError: `no_schema` or `schema_not_usable`; `unsupported_schema` is a SqlError.
        MeshError: the registry does not answer.
    """
    found: dict[str, Topic] = {}
    once, topics = _Together(schemas), dict[str, Topic]()
    for one in parsed.sources:
        topic = topic_of(one, names)
        if topic not in topics:
            topics[topic] = _topic(one, topic, once)
        found[one.alias] = replace(topics[topic], alias=one.alias)
    stream = replace(found[parsed.stream.alias], of_rows=parsed.of_rows)
    joined = {one.source.alias: one.source for one in parsed.joined}
    tables = {
        alias: Table(topic_of(source, names), found[alias]) for alias, source in joined.items()
    }
    for alias, source in joined.items():
        _require_same_keys(source, tables[alias])
    columns = {alias: _columns(found[alias]) for alias in joined}
    columns[stream.alias] = [one.name for one in stream.columns]
    keys = {alias: _keys(table) for alias, table in tables.items()}
    query = resolve(parsed, columns, keys)
    _require_few_types(parsed, found, query)
    unreadable = {alias: topic.shape.row_unreadable for alias, topic in found.items()}
    if not parsed.of_rows:
        unreadable[stream.alias] = stream.shape.unreadable
    require_readable(parsed, query, unreadable)
    read = reads(query)
    for source in parsed.sources:
        shape, is_row = found[source.alias], parsed.of_rows or source.alias in tables
        of_it = read.get(source.alias, {}).values()
        _require_same_kinds(parsed, topic_of(source, names), shape, of_it, is_row=is_row)
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


def require_no_table(before: Statement, after: Statement) -> None:
    """Raise SqlError where a text cannot go on where another one stands: a table is made whole."""
    if before.of_rows or after.of_rows:
        raise SqlError(
            "sql_not_supported",
            "TABLE(...): the rows that are there would stay as the text before has made them: "
            "delete the statement, delete its topics, and add it with the new text",
            after.stream.place,
        )


def require_same_rows(plan: Plan, made_by: int | None) -> None:
    """Raise SqlError `rows_differ` where rows of a table stand that would now be others.

    Args:
        plan: the statement as it is to go on.
        made_by: the schema by which the stream's values were read; None if none were, or unknown.
    """
    if not plan.parsed.of_rows or made_by is None or made_by == plan.stream_schema_id:
        return
    writers = plan.stream.writers
    if made_by not in writers:
        why = [(f"the schema {made_by}", "by which rows were made, is not registered any more")]
    else:
        until = list(writers).index(made_by) + 1
        earlier = [json.loads(one) for one in list(writers.values())[:until]]
        latest = json.loads(writers[plan.stream_schema_id])
        why = other_values(earlier, latest, _columns_of(plan.query))
    for path, reason in why:
        raise SqlError(
            "rows_differ",
            f"TABLE(...): {path} {reason}: rows that were made by the schema {made_by} would stay "
            "as they are. Delete the statement, delete its topics, and add it again",
            plan.parsed.stream.place,
        )


def require_keys_in_place(plan: Plan, mixed: Mapping[str, str]) -> None:
    """Raise SqlError `keys_moved` where a row may be looked for by the bytes of another key.

    The id of a key's schema is a part of the key's bytes, by which Kafka chooses the partition, and
    compacts: under another id a key that is encoded alike is another key, with another order.

    Args:
        plan: the statement.
        mixed: topic -> why the latest record of a key is not known where keys have several
            schemas; "" where it is.
    """
    for one in plan.parsed.joined:
        table = plan.tables[one.source.alias]
        if len(table.shape.key_writers) > 1 and (why := mixed[table.name]):
            raise _moved(one.source, table.name, table.shape, why)
    if plan.parsed.of_rows and len(plan.stream.key_writers) > 1:
        source = plan.parsed.stream
        why = (
            "a row that is written anew, or deleted, under the later one would stay as it was, too"
        )
        raise _moved(source, source.name, plan.stream, why)


def _moved(source: Source, topic: str, found: Topic, why: str) -> SqlError:
    ids = ", ".join(map(str, found.key_writers))
    return SqlError(
        "keys_moved",
        f"the keys of {topic} have the schemas {ids}, whose ids are a part of their bytes: {why}. "
        "Put the rows with the new key into a topic of their own (`sdm schema register --major`)",
        source.place,
    )


def _columns_of(query: Query) -> dict[str, bool]:
    """Column that makes rows -> whether something is computed with it."""
    uses = [(out.expression, one.column) for out in query.out for one in out.inputs]
    computed = {name for expression, name in uses if not isinstance(expression, Column)}
    computed |= {one.column for one in query.filters}
    return {name: name in computed for name in computed.union(name for _, name in uses)}


def record_name(topic: str) -> tuple[str, str]:
    """(name, namespace) of a topic's values: of `east.clicks-named` it is ClicksNamed of east."""
    domain, _, rest = topic.partition(".")
    words = [word for word in re.split(r"[^A-Za-z0-9]+", rest) if word]
    name = "".join(word[0].upper() + word[1:] for word in words)
    if not name or not name[0].isalpha():
        name = f"Value{name}"
    return name, re.sub(r"[^A-Za-z0-9_]", "_", domain)


def _listed(stream: str, tables: Iterable[str]) -> str:
    return ", ".join([stream, *sorted(tables)])


class _Together:
    """The schemas of all topics of a statement, which are bounded together."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas, self._characters = schemas, 0

    def versions(self, subject: str) -> Mapping[int, str]:
        """As of the registry; raises RefusedError `too_many_versions`."""
        found = self._schemas.versions(subject)
        self._characters += sum(map(len, found.values()))
        if self._characters > MOST_TOGETHER:
            raise RefusedError(
                TOO_MANY_VERSIONS,
                f"with {subject} the schemas of the topics that are read have "
                f"{self._characters} characters in all of their versions, at most "
                f"{MOST_TOGETHER} are compared: read fewer, or topics with fewer versions",
            )
        return found


def _topic(source: Source, topic: str, schemas: Schemas) -> Topic:
    subject = f"{topic}-value"
    writers = _writers(source, subject, schemas)
    if not writers:
        raise RefusedError(
            "no_schema",
            f"{source.place}: the registry has no subject {subject}: register the schema of the "
            "topic's values first",
        )
    latest = list(writers.values())[-1]
    versions = [(number, json.loads(schema)) for number, schema in writers.items()]
    _require_same_meaning(source, subject, versions)
    _require_small_defaults(source, subject, versions)
    keys = _writers(source, f"{topic}-key", schemas)
    key = list(keys.values())[-1] if keys else None
    return Topic(source.alias, shape_of(latest, subject), writers, key, keys)


def _require_few_types(parsed: Statement, found: Mapping[str, Topic], query: Query) -> None:
    read = sum(expanded_size(json.loads(topic.shape.reader)) for topic in found.values())
    if read + len(query.out) > MOST_TYPES:
        raise SqlError(
            "schema_too_large",
            f"the schemas of what is read have {read} types and the result {len(query.out)} "
            f"columns, together at most {MOST_TYPES} are allowed: read a topic with fewer fields",
            parsed.stream.place,
        )


def _require_same_meaning(source: Source, subject: str, versions: Versions) -> None:
    """Every record is read as the latest schema says, which Avro allows in another unit, too.

    Avro's readers rename the fields that were written by the aliases of those that are read, before
    they look for a field's own name: an alias that is the name of another field takes its values.
    """
    *earlier, latest = versions
    for number, schema in earlier:
        for path, why in misread(latest[1], schema):
            raise SqlError(
                "incompatible_schema",
                f"{path} of {subject} changed its meaning from the schema {number} to the latest: "
                f"{why}. Put the records with the new meaning into a topic of their own "
                "(`sdm schema register --major`)",
                source.place,
            )
    for number, schema in [*earlier, latest]:
        for path, alias in taking_aliases(latest[1], schema):
            raise SqlError(
                "incompatible_schema",
                f"{path} of the latest schema of {subject} has the alias {alias}, the name of "
                f"another field: it would be given that one's values, as of the schema {number}. "
                "Register the schema without it",
                source.place,
            )


def _require_same_kinds(
    parsed: Statement, name: str, topic: Topic, read: Collection[Read], *, is_row: bool
) -> None:
    """What a column gives must not depend on when the statement was planned; see `kinds`."""
    *earlier, (latest, schema) = topic.writers.items()
    now, within = Types(json.loads(schema)), ("after",) if is_row and topic.shape.is_change else ()
    for number, schema in earlier:
        kinds = Kinds(now, Types(json.loads(schema)), within)
        for one in read:
            if other := kinds.other(one.column.path, use=one.use):
                raise SqlError(
                    "incompatible_schema",
                    f"{other.path} of {name} is {other.then} by the schema {number} of its values "
                    f"and {other.now} by the latest, {latest}: earlier records would give another "
                    "value than before. Leave the column out, or put the records with the new type "
                    "into a topic of their own (`sdm schema register --major`), and add a "
                    "statement that reads that one",
                    parsed.place(one.column),
                )


def _require_small_defaults(source: Source, subject: str, versions: Versions) -> None:
    """A short record of an earlier schema must not be a large one when it is read."""
    *earlier, latest = versions
    for number, schema in earlier:
        added = added_to_items(latest[1], schema)
        if added > MOST_ADDED:
            raise SqlError(
                "schema_too_large",
                f"the defaults of the latest schema of {subject} add {added} bytes to an item of "
                f"an array or map that the schema {number} wrote, at most {MOST_ADDED} may be: "
                "give its new fields shorter defaults, as null, or put the records with them into "
                "a topic of their own (`sdm schema register --major`)",
                source.place,
            )


def _require_same_keys(source: Source, table: Table) -> None:
    """A row is found by the bytes of its key: every schema must give the same ones for a key."""
    encodings = [(one, encoding(json.loads(key))) for one, key in table.shape.key_writers.items()]
    for number, found in encodings:
        if found != encodings[-1][1]:
            raise SqlError(
                "incompatible_schema",
                f"the schemas {number} and {encodings[-1][0]} of {table.name}-key encode the same "
                "key differently, and rows with the earlier one would not be found: put the rows "
                "with the new key into a topic of their own (`sdm schema register --major`)",
                source.place,
            )


def _writers(source: Source, subject: str, schemas: Schemas) -> Mapping[int, str]:
    try:
        found = schemas.versions(subject)
    except RefusedError as error:
        if error.code != "unsupported_schema":
            raise
        raise SqlError(
            error.code,
            f"{error}: streaming SQL reads Avro; read a topic that has the same records as Avro",
            source.place,
        ) from error
    for number, schema in found.items():
        require_no_recursion(parsed(schema, subject), f"{subject}, schema {number}")
    return found


def _columns(table: Topic) -> list[str]:
    columns = [one.name for one in table.shape.row]
    return [*columns, KEY] if _key_of(table) == (KEY,) else columns


def _keys(table: Table) -> tuple[str, ...]:
    return _key_of(table.shape)


def _key_of(table: Topic) -> tuple[str, ...]:
    return key_columns(table.key, table.alias)
