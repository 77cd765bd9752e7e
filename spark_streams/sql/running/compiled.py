"""Resolved expressions as Spark's columns: by an allow-list of nodes, operators, types, functions.

Nothing here writes SQL. A function is called by its name in `functions.allowed`, a type is an
object, and a column is reached by the frame's own name for its source and the names of fields.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_streams.jvm import VALID_TEXTS
from spark_streams.sql.functions import patterns
from spark_streams.sql.functions.allowed import FUNCTIONS, UNITS
from spark_streams.sql.functions.casts import spark_type
from spark_streams.sql.functions.texts import is_checked, may_be_no_utf8
from spark_streams.sql.text import tree
from spark_streams.sql.text.literals import precision_of

Sources = Mapping[str, str]
"""Alias of a source -> the frame's column with its struct."""
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "or": lambda left, right: left | right,
    "and": lambda left, right: left & right,
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<=>": lambda left, right: left.eqNullSafe(right),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": lambda left, right: left % right,
    "div": lambda left, right: _called("div", left, right),
    "||": lambda left, right: _called("concat", left, right),
    "&": lambda left, right: left.bitwiseAND(right),
    "|": lambda left, right: left.bitwiseOR(right),
    "^": lambda left, right: left.bitwiseXOR(right),
    "<<": lambda left, right: _called("shiftleft", left, right),
    ">>": lambda left, right: _called("shiftright", left, right),
}
"""Operator between two operands -> what it makes of their columns."""
_BEFORE: Mapping[str, Callable[[Any], Any]] = {
    "not": lambda this: ~this,
    "-": lambda this: _called("negative", this),
    "+": lambda this: _called("positive", this),
    "~": lambda this: _called("~", this),
}
_CASTS: Mapping[str, tree.Type] = {
    "decimal": tree.Type("decimal", (10, 0)),
    "double": tree.Type("double"),
    "float": tree.Type("float"),
}
"""Calls that are casts. Spark's own calls are casts that nobody wrote: see `Decimals.scala`."""
_SECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {"timestampFormat": f"{_SECONDS}XXX", "timestampNTZFormat": _SECONDS}
"""How `to_json` writes times: Spark's own way cuts them to milliseconds."""
_CLOCKS = {"date": "DateType", "timestamp": "TimestampType", "timestamp_ntz": "TimestampNTZType"}


def compiled(node: tree.Node, sources: Sources) -> Any:
    """The column that an expression is.

    Args:
        node: resolved.
        sources: those that it may read.
    """
    return _Compiler(sources).column(node)


def _called(name: str, *args: Any) -> Any:
    """A call of one of Spark's functions, by a name that stands in our own code."""
    from pyspark.sql.connect.functions.builtin import _invoke_function

    return _invoke_function(name, *args)


def _literal(value: Any) -> Any:
    from pyspark.sql.connect import functions as f

    return f.lit(value)


class _Compiler:
    def __init__(self, sources: Sources, parameters: Mapping[str, Any] | None = None) -> None:
        self._sources = sources
        self._parameters = parameters or {}

    def column(self, node: tree.Node) -> Any:  # noqa: C901, PLR0911, PLR0912 - every node there is
        """The column of a node; what is not named here is no part of a statement."""
        from pyspark.sql.connect import functions as f

        match node:
            case tree.Column():
                return _below(f.col(self._sources[node.alias]), node.path)
            case tree.Parameter():
                return _below(self._parameters[node.name], node.path)
            case tree.Text() | tree.Constant() | tree.Bytes():
                return f.lit(node.value)
            case tree.Number():
                return _number(node)
            case tree.Moment():
                from pyspark.sql import types

                return f.lit(node.value).cast(getattr(types, _CLOCKS[node.kind])())
            case tree.Interval():
                return _interval(node)
            case tree.Unary():
                return _BEFORE[node.op](self.column(node.this))
            case tree.Binary():
                return OPERATORS[node.op](self.column(node.left), self.column(node.right))
            case tree.Cast():
                this, kind = self.column(node.this), spark_type(node.to)
                return this.try_cast(kind) if node.is_try else this.cast(kind)
            case tree.Is():
                this = self.column(node.this)
                found = this.isNull() if node.what is None else this.eqNullSafe(f.lit(node.what))
                return ~found if node.negated else found
            case tree.Between():
                this, low, high = map(self.column, node.children)
                return _not(this.between(low, high), negated=node.negated)
            case tree.In():
                this, *items = map(self.column, node.children)
                return _not(this.isin(*items), negated=node.negated)
            case tree.Like():
                this, pattern = self._arguments(node, node.children)
                found = patterns.like(node, this, pattern, _called)
                return _not(found, negated=node.negated)
            case tree.Case():
                return self._case(node)
            case tree.Field():
                return self.column(node.this).getField(node.name)
            case tree.Item():
                return self.column(node.this)[self.column(node.index)]
            case tree.Extract() if node.unit in UNITS:
                return _called("extract", f.lit(node.unit), self.column(node.this))
            case tree.Call() if node.name in FUNCTIONS:
                return self._call(node)
        raise TypeError(f"{type(node).__name__} is no part of an expression")

    def _case(self, node: tree.Case) -> Any:
        from pyspark.sql.connect import functions as f

        this = None if node.this is None else self.column(node.this)
        found: Any = f
        for when, then in node.branches:
            condition = self.column(when)
            found = found.when(condition if this is None else this == condition, self.column(then))
        return found if node.otherwise is None else found.otherwise(self.column(node.otherwise))

    def _call(self, node: tree.Call) -> Any:
        from pyspark.sql.connect.functions import builtin

        args = [one for one in node.args if not isinstance(one, tree.Lambda)]
        columns = self._arguments(node, args)
        for given in node.args:
            if isinstance(given, tree.Lambda):
                return getattr(builtin, node.name)(*columns, self._function(given))
        if node.name == "to_json":
            return builtin.to_json(columns[0], _JSON)
        if node.name in _CASTS:
            kind = spark_type(_CASTS[node.name])
            return columns[0].cast(kind)
        if node.name in patterns.MATCHED:
            return patterns.called(node, columns, _called)
        return _called(node.name, *columns)

    def _arguments(self, node: tree.Node, args: Iterable[tree.Node]) -> list[Any]:
        """The columns of arguments; those that Java would read as other texts are checked."""
        columns = [(one, self.column(one)) for one in args]
        if not is_checked(node):
            return [column for _, column in columns]
        return [
            _called(VALID_TEXTS, column) if may_be_no_utf8(one) else column
            for one, column in columns
        ]

    def _function(self, node: tree.Lambda) -> Any:
        """A lambda as Spark's client takes one: a function with as many parameters."""

        def made(*columns: Any) -> Any:
            inside = {name.lower(): one for name, one in zip(node.params, columns, strict=True)}
            return _Compiler(self._sources, {**self._parameters, **inside}).column(node.body)

        def of_one(x: Any) -> Any:
            return made(x)

        def of_two(x: Any, y: Any) -> Any:
            return made(x, y)

        return of_one if len(node.params) == 1 else of_two


def _not(found: Any, *, negated: bool) -> Any:
    return ~found if negated else found


def _below(column: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        column = column.getField(name)
    return column


def _number(node: tree.Number) -> Any:
    from pyspark.sql import types

    if node.form is tree.Form.INTEGER:
        return _literal(int(node.digits))
    if node.form is tree.Form.DOUBLE:
        return _literal(float(node.digits))
    return _literal(node.digits).cast(types.DecimalType(*precision_of(node.digits)))


def _interval(node: tree.Interval) -> Any:
    from datetime import timedelta

    from pyspark.sql import types

    if node.first in ("YEAR", "MONTH"):
        first, last = (("YEAR", "MONTH").index(one) for one in (node.first, node.last))
        made = _called("make_ym_interval", _literal(0), _literal(node.amount))
        return made.cast(types.YearMonthIntervalType(first, last))
    first, last = (
        ("DAY", "HOUR", "MINUTE", "SECOND").index(one) for one in (node.first, node.last)
    )
    made = _literal(timedelta(microseconds=node.amount))
    return made.cast(types.DayTimeIntervalType(first, last))
