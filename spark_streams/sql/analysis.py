"""What Spark says of a statement before it runs: its columns' types, or which one is wrong."""

from collections.abc import Mapping
from typing import Any

from spark_streams.session import first_line
from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.frame import Find, Topic, selected
from spark_streams.sql.resolve import Out, Query
from spark_streams.sql.result import result_schema
from spark_streams.sql.work import SETTINGS

_RECORDS = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
_CODE = "["


def analysed(
    session: Any,
    query: Query,
    stream: Topic,
    tables: Mapping[str, Topic],
    name: str,
    namespace: str,
) -> str:
    """The Avro schema of the result, a record of this name. Nothing is read and nothing runs.

    Raises:
        SqlError: `wrong_type`, with the place of the column that is wrong.
    """
    for setting, value in SETTINGS.items():
        session.conf.set(setting, value)
    columns = _columns(session, query, stream, tables)
    return result_schema(columns, name, namespace)


def plan_text(
    session: Any, query: Query, stream: Topic, tables: Mapping[str, Topic], find: Find
) -> str:
    """Spark's physical plan of the query, over records that are not there; nothing runs."""
    for setting, value in SETTINGS.items():
        session.conf.set(setting, value)
    # of records that are known not to be there nothing would be left of the plan
    bytes_of = "cast(cast(id AS string) AS binary)"
    records = session.range(1).selectExpr(
        f"{bytes_of} AS key",
        f"{bytes_of} AS value",
        "cast(id AS int) AS partition",
        "id AS offset",
        "current_timestamp() AS timestamp",
        f"array(named_struct('key', cast(id AS string), 'value', {bytes_of})) AS headers",
    )
    chosen = selected(records, query, stream, tables, find)
    return str(chosen._explain_string(mode="formatted")).strip()  # noqa: SLF001 - what explain prints


def _columns(session: Any, query: Query, stream: Topic, tables: Mapping[str, Topic]) -> Any:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql.connect import functions as f

    records = session.createDataFrame([], _RECORDS)
    nothing = lambda *_: f.lit(None).cast("binary")  # noqa: E731 - a lookup that finds nothing

    def types(part: Query) -> Any:
        return selected(records, part, stream, tables, nothing).schema["out"].dataType

    def fault(part: Query) -> str:
        try:
            types(part)
        except (AnalysisException, ParseException) as error:
            return _said(error)
        return ""

    try:
        return types(query)
    except (AnalysisException, ParseException) as error:
        constant = (Out("one", "1", None),)
        for index, lookup in enumerate(query.lookups):
            found = fault(Query(query.lookups[: index + 1], None, constant))
            if found:
                raise _wrong(found, lookup.place) from error
        found = fault(Query(query.lookups, query.where, constant))
        if found:
            raise _wrong(f"in WHERE: {found}", query.where_place) from error
        for out in query.out:
            found = fault(Query(query.lookups, None, (out,)))
            if found:
                raise _wrong(f"in {out.name}: {found}", out.place) from error
        raise _wrong(_said(error), None) from error


def _wrong(reason: str, place: Place | None) -> SqlError:
    return SqlError("wrong_type", reason, place)


def _said(error: Exception) -> str:
    """The first sentence of what Spark says, without its codes and places in our own text."""
    text = first_line(str(error)).partition(" SQLSTATE:")[0]
    return (text.partition("] ")[2] or text) if text.startswith(_CODE) else text
