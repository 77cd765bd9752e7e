"""No module gives Spark a text that a statement, a record or a schema could have written."""

from pathlib import Path

import pytest

from tests.unit.spark_streams.sql.spark_texts import texts, texts_in_scala, unknown

FOLDER = Path(__file__).parents[4] / "spark_streams"
OURS = "a name of this frame's own column"
LISTED = "the name is a key of functions.FUNCTIONS, or one of two operators of LIKE"
TYPE = "an object that casts.spark_type has made"
CLASS = "the name of a class stands in a table of our own"
RULES = "computes what a node needs, and calls nothing of Spark's"
ALLOWED = {
    ("jvm/__init__.py", "session.udf"): "registers the mesh's own functions",
    ("jvm/__init__.py", "registerJavaFunction(kind)"): "a class in FUNCTIONS of this module",
    ("sql/running/headers.py", "filter(headers_before())"): "an array of headers, and no rows",
    ("sql/running/headers.py", "filter(stays)"): "a condition of columns, for each header",
    (
        "jvm/__init__.py",
        "registerJavaFunction(parts if name == SPLIT else returned)",
    ): "a type in FUNCTIONS of this module",
    ("sql/running/analysis.py", "createDataFrame(_RECORDS)"): "a constant of this module",
    ("sql/running/attempts.py", "col(name)"): OURS,
    ("sql/running/frame.py", "col(_ENCODED)"): OURS,
    ("sql/running/frame.py", "col(_HEADERS)"): OURS,
    ("sql/functions/casts.py", "getattr(_CLASSES[name])"): CLASS,
    (
        "sql/running/compiled.py",
        "from pyspark.sql.connect.functions.builtin import _invoke_function",
    ): "for _called alone",
    ("sql/running/compiled.py", "_invoke_function(name)"): "whoever calls _called is looked at",
    ("sql/running/compiled.py", "_called(node.name)"): LISTED,
    ("sql/running/compiled.py", "getattr(node.name)"): LISTED,
    ("sql/running/compiled.py", "getattr(_CLOCKS[node.kind])"): CLASS,
    ("sql/running/compiled.py", "cast(getattr(types, _CLOCKS[node.kind])())"): CLASS,
    ("sql/running/compiled.py", "cast(kind)"): TYPE,
    ("sql/running/compiled.py", "try_cast(kind)"): TYPE,
    ("sql/running/compiled.py", "col(self._sources[node.alias])"): OURS,
    ("sql/running/compiled.py", "column(node)"): "a method of the compiler",
    ("sql/running/compiled.py", "column(node.body)"): "a method of the compiler",
    ("sql/running/decimals.py", "col(name)"): OURS,
    (
        "sql/running/decimals.py",
        "from pyspark.sql.connect.expressions import CastExpression",
    ): "a cast that fails, which Column has no method for",
    ("sql/running/decimals.py", "CastExpression"): "to a type that Spark has made of a schema",
    ("sql/running/frame.py", "col(cheap)"): OURS,
    ("sql/running/frame.py", "col(column)"): OURS,
    ("sql/running/frame.py", "col(limits.BYTES)"): OURS,
    ("sql/running/frame.py", "col(name)"): OURS,
    ("sql/running/frame.py", "col(name[1:])"): "one of names.OF_RECORD, a column of Kafka's source",
    ("sql/running/frame.py", "try_cast(spark_type(Type(kinds[name])))"): TYPE,
    (
        "sql/running/frame.py",
        "where(is_next)",
    ): "a column of whether a record is still to be written",
    ("sql/running/frame.py", "where(there)"): "a column of whether there is a value",
    ("sql/growing/limits.py", "col(BYTES)"): OURS,
    ("sql/growing/limits.py", "col(self._columns[symbol.alias])"): OURS,
    ("sql/growing/values.py", "_called(Call('regexp_like', node.args[:2]))"): RULES,
    ("sql/growing/values.py", "_called(node)"): RULES,
    ("sql/text/node.py", "getattr(one.name)"): "a field of a node",
    (
        "sql/functions/patterns.py",
        "call(f'mesh_{_GROUPED[node.name]}')",
    ): "a name in a table of our own",
    ("sql/functions/patterns.py", "call(f'mesh_{node.name}')"): "a key of patterns._USES",
    ("sql/functions/patterns.py", "call(node.kind)"): LISTED,
}
"""(path, what is written there) -> why it is no text of a statement."""
FOUND = {
    "f.expr(text)": "by its name",
    "f.expr('a')": "also a constant",
    "e = f.expr": "under another name",
    "list(map(f.expr, names))": "without a call",
    "rows.selectExpr('a AS b')": "a method",
    "session.sql(text)": "a query",
    "from pyspark.sql.functions import expr as e": "by an alias",
    "from pyspark.sql.connect.functions import col as c": "by an alias",
    "from pyspark.sql.functions import *": "all names",
    "from pyspark.sql.connect.functions.builtin import _invoke_function as i": "by an alias",
    "f.__dict__['expr'](text)": "by its name in a module",
    "vars(f)['expr'](text)": "by its name in a module",
    "getattr(f, 'expr')(text)": "by a constant name",
    "getattr(f, 'col')(text)": "by a constant name",
    "getattr(f, 'ex' + 'pr')(text)": "by a name that is put together",
    "getattr(f, name)(text)": "by a name in a variable",
    "operator.methodcaller('selectExpr', text)(rows)": "by its name",
    "operator.attrgetter('expr')(f)(text)": "by its name",
    "eval('f.expr(text)')": "as Python",
    "__import__('pyspark.sql.functions')": "by its name",
    "f.call_function(name, x)": "a function's name in a variable",
    "f.call_function('java_method', x)": "a function that is not allowed",
    "f.call_function('div' + more, x)": "a function's name that is put together",
    "f.call_function(*args)": "whatever is in the arguments",
    "f.call_function(funcName=name)": "by its keyword",
    "c = f.call_function": "under another name",
    "_called(name, x)": "our own helper",
    "call(f'{name}', x)": "our own helper",
    "f.col(name)": "a name in a variable",
    "f.col('a.b')": "a path",
    "f.col('*')": "all columns",
    "f.col(f'a.{name}')": "a path that is put together",
    "f.column(name)": "a name in a variable",
    "list(map(f.col, names))": "without a call",
    "rows.where(text)": "a condition in a variable",
    "rows.where('a = 1')": "a condition in words",
    "rows.where('a = ' + value)": "a condition that is put together",
    "rows.where(' AND '.join(parts))": "a condition that is put together",
    "rows.where('a = {}'.format(value))": "a condition that is put together",
    "rows.filter(f'a = {value}')": "a condition that is put together",
    "rows.filter(condition=text)": "by its keyword",
    "column.cast('int')": "a type in words",
    "column.cast(kind)": "a type in a variable",
    "column.try_cast(f'decimal({digits})')": "a type that is put together",
    "column.astype(dataType=kind)": "by its keyword",
    "f.lit(1).cast(str(kind))": "a type that is put together",
    "cast = column.cast": "under another name",
    "rows.select(name)": "a name in a variable",
    "rows.select('a.*')": "several columns",
    "rows.select(*names)": "whatever is in the arguments",
    "rows.drop(name)": "a name in a variable",
    "session.createDataFrame([], text)": "a schema in words",
    "session.read.schema(text)": "a schema in words",
    "session.table(name)": "a table's name in a variable",
    "f.from_json(column, text)": "a schema in words",
    "f.udf(function, text)": "a type in words",
    "session.udf.register('a', function)": "a function of Python",
}  # fmt: skip
FOUND_IN_SCALA = {
    "functions.expr(text)": "by its name",
    'expr(s"a = $value")': "put together",
    "names.map(expr)": "without a call",
    'rows.selectExpr("a AS b")': "also a constant",
    "spark.sql(text)": "a query",
    'SparkSession.active.sql("SELECT " + column)': "a query that is put together",
    'session.sql(s"SELECT $column")': "a query that is put together",
    "session.sql {\n  text\n}": "a query in braces",
    "session sql text": "a query without a dot",
    "texts.map(session.sql)": "without a call",
    "import org.apache.spark.sql.functions._": "all names",
    "import org.apache.spark.sql.functions.{expr => e}": "by an alias",
    "import org.apache.spark.sql.{SparkSession, functions => f}": "by an alias",
    "import org.apache.spark.sql._": "all names",
    "def add(rows: DataFrame) = rows.where(text)": "a condition in words",
    "new Column(text)": "a name in a variable",
    "session.sessionState.sqlParser.parseExpression(text)": "an expression",
    "CatalystSqlParser.parseDataType(text)": "a type in words",
    "StructType.fromDDL(text)": "a schema in words",
    "UnresolvedFunction(Seq(name), children, isDistinct = false)": "a name in a variable",
    "UnresolvedAttribute.quoted(name)": "a name in a variable",
}  # fmt: skip
PASSED_IN_SCALA = [
    "import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}",
    "import org.apache.spark.sql.{AnalysisException, SparkSessionExtensions}",
    '.config("spark.sql.artifact.isolation.enabled", "false")',
    's"${from.sql} would be rounded to ${to.sql}"',
    "case call: UnresolvedFunction if isAvro(call) =>",
    "new Schema.Parser().parse(text)",
    "/** The SQL function (expression) -> struct. */",
]
PASSED = [
    "f.col('key')",
    "f.call_function('div', x, y)",
    "f.call_function(ATTEMPT, column)",
    "column.cast(StringType())",
    "column.cast(types.DecimalType(*precision))",
    "rows.where(dead | f.col('a').isNotNull())",
    "rows.where(~f.isnull('a'))",
    "rows.select('a', f.col('b'), column.alias('c'))",
    "parts = list(filter(None, parts))",
    "found = query.where",
    "getattr(error, 'code', None)",
    "from spark_streams.sql.text import literals",
    "self.column(node)",
    "session.call('opening', act)",
]


def test_no_module_gives_spark_a_text() -> None:
    sources = {str(one.relative_to(FOLDER)): one.read_text() for one in FOLDER.rglob("*.py")}
    assert unknown(sources, ALLOWED) == []


def test_no_scala_source_gives_spark_a_text() -> None:
    sources = list((FOLDER / "jvm").rglob("*.scala"))
    assert sources
    for one in sources:
        assert list(texts_in_scala(one.read_text())) == [], one.name


@pytest.mark.parametrize("planted", FOUND_IN_SCALA)
def test_a_text_for_spark_is_found_in_scala(planted: str) -> None:
    assert next(texts_in_scala(f"object One {{\n{planted}\n}}")).line == 2


@pytest.mark.parametrize("source", PASSED_IN_SCALA)
def test_what_scala_source_has_of_spark_is_no_text(source: str) -> None:
    assert list(texts_in_scala(source)) == []


@pytest.mark.parametrize("planted", FOUND)
def test_a_text_for_spark_is_found_in_each_form(planted: str) -> None:
    assert list(texts(planted))
    assert unknown({"a.py": planted}, {})


@pytest.mark.parametrize("source", PASSED)
def test_constants_columns_and_types_are_no_texts(source: str) -> None:
    assert list(texts(source)) == []


def test_a_place_that_is_allowed_and_gone_is_told() -> None:
    assert unknown({"a.py": ""}, {("a.py", "col(name)"): OURS}) == ["a.py: no col(name)"]
