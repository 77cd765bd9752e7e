"""What Spark says of a statement before it runs: its columns' types, or which one is wrong."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from spark_streams.jvm import ATTEMPT, register
from spark_streams.session import first_line
from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.running.frame import Find, Topic, selected
from spark_streams.sql.running.work import SETTINGS
from spark_streams.sql.text.tree import Constant, Node
from spark_streams.sql.types import strict
from spark_streams.sql.types.resolve import Out, Query
from spark_streams.sql.types.result import result_schema
from spark_streams.sql.types.trials import trial, typed

_RECORDS = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
_CODE = "["
_TOO_DEEP = "Exception deserializing response"
"""What Spark's client says of a type with more levels than its messages may have."""
Types = Callable[[Query], Any]
"""The columns of a query, as a StructType; raises what Spark raises."""


def analysed(
    session: Any,
    query: Query,
    stream: Topic,
    tables: Mapping[str, Topic],
    name: str,
    namespace: str,
) -> str:
    """The Avro schema of the result, a record of this name. Nothing is read.

    Raises:
        SqlError: `wrong_type` with the place of the column that is wrong, of what would be cast
            in silence, or of constants with which there is no value for any record.
    """
    _prepare(session)
    types = _types_over(session, stream, tables)
    columns = _columns(types, query, tables)
    strict.require(query, tables, partial(_types_of, types, query))
    _require_values(session, query, partial(_types_of, types, query))
    return _fitting(columns, query, name, namespace)


def plan_text(
    session: Any, query: Query, stream: Topic, tables: Mapping[str, Topic], find: Find
) -> str:
    """Spark's physical plan of the query, over records that are not there; nothing runs."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType, IntegerType, StringType

    _prepare(session)
    # of records that are known not to be there nothing would be left of the plan
    number = f.col("id")
    some = number.cast(StringType()).cast(BinaryType())
    header = f.struct(number.cast(StringType()).alias("key"), some.alias("value"))
    records = session.range(1).select(
        some.alias("key"),
        some.alias("value"),
        number.cast(IntegerType()).alias("partition"),
        number.alias("offset"),
        f.current_timestamp().alias("timestamp"),
        f.array(header).alias("headers"),
    )
    chosen = selected(records, query, stream, tables, find)
    return str(chosen._explain_string(mode="formatted")).strip()  # noqa: SLF001 - what explain prints


def _prepare(session: Any) -> None:
    for setting, value in SETTINGS.items():
        session.conf.set(setting, value)
    register(session)


def _types_over(session: Any, stream: Topic, tables: Mapping[str, Topic]) -> Types:
    """Asks for the columns of a query over these sources."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    records = session.createDataFrame([], _RECORDS)

    def types(part: Query) -> Any:
        try:
            return selected(records, part, stream, tables, None).schema["out"].dataType
        except SparkConnectGrpcException as error:
            if _TOO_DEEP not in str(error):
                raise
            raise SqlError(
                "schema_too_large",
                "records lie too deep within each other for a statement, which takes about 30 "
                "levels: name what is to be read of them, or put their fields into one",
            ) from error

    return types


def _types_of(types: Types, query: Query, expressions: Sequence[Node]) -> Sequence[Any]:
    """The types of expressions over what a query reads."""
    out = tuple(Out(f"c{number}", node, None) for number, node in enumerate(expressions))
    return [field.dataType for field in types(Query(query.lookups, None, out)).fields]


def _require_values(session: Any, query: Query, types_of: strict.TypesOf) -> None:
    """Raise for the first part that has no value because of its constants."""
    firsts = {one.node: first for one in query.trials if (first := typed(one.node)) is not None}
    kinds = dict(zip(firsts, types_of(list(firsts.values())) if firsts else (), strict=True))
    tried = []
    for one in query.trials:
        kind = kinds[one.node].simpleString() if one.node in kinds else ""
        node = trial(one.node, kind)
        if node is not None:
            tried.append((one, node))
    if not tried or not _computed(session, [node for _, node in tried]):
        return
    for one, node in tried:
        if why := _computed(session, [node]):
            raise _wrong(f"{one.text} has no value for any record, Spark says {why}", one.place)


def _computed(session: Any, nodes: Sequence[Node]) -> str:
    """The error that Spark raises for the first node that has no value, "" if all have one."""
    from pyspark.errors.exceptions import connect as errors
    from pyspark.sql.connect import functions as f

    raised = (
        errors.AnalysisException,
        errors.ArithmeticException,
        errors.ArrayIndexOutOfBoundsException,
        errors.DateTimeException,
        errors.IllegalArgumentException,
        errors.NumberFormatException,
        errors.SparkRuntimeException,
        errors.SparkUpgradeException,
        errors.UnsupportedOperationException,
    )
    faults = [f.call_function(ATTEMPT, compiled(node, {})).getField("fault") for node in nodes]
    try:
        rows = session.range(1).select(f.coalesce(*faults).alias("fault")).collect()
    except raised as error:
        return error.getCondition() or type(error).__name__
    return rows[0]["fault"] or ""


def _columns(types: Types, query: Query, tables: Mapping[str, Topic]) -> Any:
    from pyspark.errors import AnalysisException, ParseException

    try:
        return types(query)
    except (AnalysisException, ParseException) as error:
        for reason, place in _faults(types, query, tables):
            if reason:
                raise _wrong(reason, place) from error
        raise _wrong(_said(error), None) from error
    except SqlError as error:
        # what fails for a constant is not of a column
        types(Query(query.lookups, None, (Out("one", Constant(None), None),)))
        _place(error, query, lambda out: types(Query(query.lookups, None, (out,))))
        raise


def _faults(
    types: Types, query: Query, tables: Mapping[str, Topic]
) -> Iterator[tuple[str, Place | None]]:
    """What Spark says of each part of a query alone, in their order; "" where it takes it."""
    constant = Out("one", Constant(None), None)
    for index, lookup in enumerate(query.lookups):
        fault = _fault(types, Query(query.lookups[: index + 1], None, (constant,)))
        if fault:
            # Spark speaks of the cast to the key's type, which the text does not have
            before = Query(query.lookups[:index], None, ())
            strict.require(Query((lookup,), None, ()), tables, partial(_types_of, types, before))
        yield fault, lookup.place
    if query.where is not None:
        alone = Query(query.lookups, None, (Out("found", query.where, None),))
        found = _fault(types, alone)
        if not found and (kind := types(alone)["found"].dataType.simpleString()) != "boolean":
            found = f"it is {kind}, and a condition is expected"
        yield found and f"in WHERE: {found}", query.where_place
    for out in query.out:
        found = _fault(types, Query(query.lookups, None, (out,)))
        yield found and f"in {out.name}: {found}", out.place


def _fitting(columns: Any, query: Query, name: str, namespace: str) -> str:
    """The Avro schema of the columns; an error has the place of the first that has none."""
    from pyspark.sql.types import StructType

    try:
        return result_schema(columns, name, namespace)
    except SqlError as error:
        _place(
            error,
            query,
            lambda out: result_schema(StructType([columns[out.name]]), name, namespace),
        )
        raise


def _place(error: SqlError, query: Query, judge: Callable[[Out], object]) -> None:
    """Raise the error with the place of the first column that has it by itself, if one has."""
    for out in query.out:
        try:
            judge(out)
        except SqlError as one:
            raise SqlError(one.code, one.reason, out.place) from error


def _fault(types: Types, part: Query) -> str:
    from pyspark.errors import AnalysisException, ParseException

    try:
        types(part)
    except (AnalysisException, ParseException) as error:
        return _said(error)
    return ""


def _wrong(reason: str, place: Place | None) -> SqlError:
    return SqlError("wrong_type", reason, place)


def _said(error: Exception) -> str:
    """The first sentence of what Spark says, without its codes and places in our own text."""
    text = first_line(str(error)).partition(" SQLSTATE:")[0].partition(" Please, refer to ")[0]
    text = text.rstrip().removesuffix(";")
    return (text.partition("] ")[2] or text) if text.startswith(_CODE) else text
