"""Where source would give Spark a text that it reads as SQL, or that names what it calls.

`FORBIDDEN` is not mentioned at all. What else takes a text is called where it stands, with a
constant or with what is known to be a column or a type: a name of it would be called out of sight.
Scala source needs none of this: there, nothing of `IN_SCALA` stands anywhere.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FORBIDDEN = frozenset(
    {"expr", "selectExpr", "sql", "call_udf", "udf", "udtf", "pandas_udf", "arrow_udf"}
    | {"from_json", "from_csv", "from_xml", "schema_of_json", "schema_of_csv", "schema_of_xml"}
    | {"reflect", "java_method", "try_reflect", "fromDDL", "_parse_datatype_string"}
    | {"SQLExpression", "SQL", "UnresolvedFunction", "UnresolvedAttribute", "CastExpression"}
    # a name that is put together names any of these
    | {"__dict__", "__getattribute__", "__getattr__", "__import__", "__builtins__", "vars"}
    | {"globals", "locals", "eval", "exec", "import_module", "attrgetter", "methodcaller"}
)
"""Names of functions, methods and attributes."""
NAMES = frozenset({"call_function", "_invoke_function", "_called", "call", "col", "column"})
"""Their first argument names a function, or a column and the fields below it."""
TYPES = frozenset({"cast", "try_cast", "astype"})
"""Their argument is a type, as an object or as a text."""
CONDITIONS = frozenset({"where", "filter"})
SCHEMAS = frozenset({"createDataFrame", "registerJavaFunction", "schema", "table"})
"""None of their arguments but the first is a text that is not constant."""
LISTS = frozenset({"select", "drop", "groupBy", "orderBy", "sort", "agg", "dropDuplicates"})
_CALLED = NAMES | TYPES | CONDITIONS | SCHEMAS | LISTS
_ATTRIBUTES = frozenset({"where", "filter", "column", "schema", "table", "sort", "select", "call"})
"""Also names of our own attributes, which hold no method of Spark's."""
FUNCTIONS = frozenset(
    {"concat", "div", "extract", "lower", "negative", "nullif", "positive", "repeat", "split"}
    | {"shiftleft", "shiftright", "unix_date", "date_from_unix_date", "~", "mesh_regexp_like"}
    | {"make_ym_interval"}
)
"""Those that our own code calls by a constant."""
CONSTANTS = frozenset({"ATTEMPT", "CANONICAL_KEY", "LOOKUP", "MATCHES", "VALID_TEXTS"})
"""The same, of `spark_streams.jvm`."""
_OF_COLUMNS = frozenset(
    {"alias", "otherwise", "when", "isNull", "isNotNull", "eqNullSafe", "between", "isin"}
)
IN_SCALA = (
    r"\b(?:expr|selectExpr|call_function|call_udf|callUDF|sqlContext|fromDDL)\b",
    # `from.sql` is a type's own text, `spark.sql.shuffle` a setting or a package
    r"\bsql\s*[({]",
    r'\bsql\s+["\w]',
    r"\b(?:session|spark)\s*\.\s*sql\b(?!\.)",
    # its functions, and what they are called on
    r"\bsql\s*\.\s*(?:functions\b|\{[^}]*\bfunctions\b|_|\*)",
    r"\b(?:Dataset|DataFrame|Column)\b",
    r"\b(?:sqlParser|CatalystSqlParser|SparkSqlParser|ParserInterface|injectParser)\b",
    r"\bparse(?:Expression|Plan|Query|DataType|TableSchema|\w*Identifier)\b",
    # a rule may look for them, and make none
    r"\bUnresolved(?:Function|Attribute|Relation|Star)\s*[.(]",
)
"""What takes a text in Spark's own Scala, constant or put together, as patterns."""
_IN_SCALA = re.compile("|".join(IN_SCALA))
_SPARK = "pyspark"


@dataclass(frozen=True)
class Text:
    """A place in a source: its line, and what is written there."""

    line: int
    written: str


def texts(source: str) -> Iterator[Text]:
    """Every place that would give Spark a text, or of which that is not known."""
    tree = ast.parse(source)
    called = {id(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom():
                names = {one.name for one in node.names}
                of_spark = (node.module or "").startswith(_SPARK)
                taken = FORBIDDEN | (_CALLED | {"*"} if of_spark else frozenset())
                if names & taken:
                    yield _text(node, node)
            case ast.Attribute() | ast.Name():
                name = _name(node)
                is_own = isinstance(node, ast.Name) or name in _ATTRIBUTES
                if name in FORBIDDEN or (name in _CALLED and id(node) not in called and not is_own):
                    yield _text(node, node)
            case ast.Call():
                name = _name(node.func)
                yield from (
                    Text(node.lineno, f"{name}({ast.unparse(one)})") for one in _wrong(node)
                )


def texts_in_scala(source: str) -> Iterator[Text]:
    """The same of Scala, by its letters."""
    for found in _IN_SCALA.finditer(source):
        yield Text(source.count("\n", 0, found.start()) + 1, found[0])


def unknown(sources: Mapping[str, str], allowed: Mapping[tuple[str, str], str]) -> list[str]:
    """The places that are not allowed, and those that are and are nowhere.

    Args:
        sources: path -> Python.
        allowed: (path, what is written there) -> why it is no text of a statement.
    """
    found = {(path, one.written): one.line for path, text in sources.items() for one in texts(text)}
    wrong = [f"{path}:{line}: {text}" for (path, text), line in found.items()
             if (path, text) not in allowed]  # fmt: skip
    return wrong + [f"{path}: no {text}" for path, text in allowed if (path, text) not in found]


def _text(node: ast.AST, written: ast.AST) -> Text:
    return Text(getattr(node, "lineno", 0), ast.unparse(written))


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _wrong(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that may be such a text."""
    name, args = _name(call.func), [*call.args, *(one.value for one in call.keywords)]
    if _is_own(call.func):
        return
    if name in ("getattr", "setattr", "hasattr"):
        given = args[1:2]
        yield from (one for one in given if not _is_constant(one) or _value(one) in _CALLED)
        yield from (one for one in given if _value(one) in FORBIDDEN)
    elif name in NAMES:
        known = _is_named if name in ("col", "column") else _is_function
        yield from (one for one in args[:1] if not known(one))
    elif name in TYPES and isinstance(call.func, ast.Attribute):
        yield from (one for one in args if not _is_type(one))
    elif name in CONDITIONS and isinstance(call.func, ast.Attribute):
        yield from (one for one in args if not _is_column(one))
    elif name in LISTS and isinstance(call.func, ast.Attribute):
        yield from (one for one in args if not (_is_named(one) or _is_column(one)))
    elif name in SCHEMAS:
        first = 0 if name in ("schema", "table") else 1
        yield from (one for one in args[first:] if not _is_constant(one))


def _value(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_own(function: ast.expr) -> bool:
    """`self.column(...)` and `session.call(...)` are methods of our own classes."""
    if not isinstance(function, ast.Attribute):
        return False
    is_self = isinstance(function.value, ast.Name) and function.value.id == "self"
    return function.attr == "call" or (is_self and function.attr == "column")


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_named(node: ast.expr) -> bool:
    """A constant name without anything that Spark would read as more than one name."""
    value = _value(node)
    return isinstance(value, str) and value.isidentifier()


def _is_function(node: ast.expr) -> bool:
    return _value(node) in FUNCTIONS or (isinstance(node, ast.Name) and node.id in CONSTANTS)


def _is_type(node: ast.expr) -> bool:
    """A type that is made where it stands: StringType(), types.DecimalType(5, 2)."""
    return isinstance(node, ast.Call) and _name(node.func).endswith("Type")


def _is_column(node: ast.expr) -> bool:
    """What is a column whatever its parts are."""
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return _is_column(node.left) or _is_column(node.right)
        case ast.UnaryOp(op=ast.Invert()):
            return _is_column(node.operand)
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            is_ours = isinstance(value, ast.Name) and value.id == "f"
            return is_ours or name in _OF_COLUMNS | TYPES
    return False
