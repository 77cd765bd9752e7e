"""A statement's text, and every kind of text that is none."""

import pytest

from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.text.parse import LONGEST, Statement, parse
from spark_streams.sql.types.nulls import require_no_null

JOIN = """INSERT INTO click_users
SELECT c.*, u.first_name, upper(u.last_name) AS last
FROM clickstream c
LEFT JOIN `east.users` AS u ON c.userid = u.userid
WHERE c.status >= 400"""


def names(statement: Statement) -> list[tuple[str, str]]:
    return [(source.name, source.alias) for source in statement.sources]


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("ip = NULL", "column 39"),
        ("NULL <> ip", "column 34"),
        ("status = 1 AND (flag OR ip >= null)", "column 64"),
        ("ip IN ('a', NULL)", "column 46"),
        ("ip NOT IN (NULL)", "column 45"),
        ("NULL IN ('a', 'b')", "column 34"),
        ("status BETWEEN NULL AND 3", "column 49"),
        ("status NOT BETWEEN 3 AND NULL", "column 59"),
        ("NULL BETWEEN 1 AND 3", "column 34"),
        ("NULL LIKE 'a%'", "column 34"),
        ("CASE NULL WHEN 'a' THEN b END", "column 39"),
        ("(ip || 'a') = NULL", "column 48"),
        ("CASE ip WHEN 'a' THEN b WHEN NULL THEN c END", "column 63"),
        ("transform(tags, t -> t = NULL) IS NULL", "column 59"),
    ],
)
def test_a_comparison_with_null_is_refused_with_its_place(condition: str, place: str) -> None:
    """It would be accepted, and no record would ever meet it."""
    texts = [
        f"SELECT ip FROM east.clicks WHERE {condition}",
        f"SELECT ip FROM east.clicks c JOIN east.users u ON c.ip = u.ip AND {condition}",
        f"SELECT {condition} AS a FROM east.clicks",
    ]
    # a text that was accepted earlier can be read
    for number, found in enumerate(map(parse, texts)):
        with pytest.raises(SqlError, match="write IS NULL") as caught:
            require_no_null(found)
        assert caught.value.code == "sql_syntax"
        assert number or place in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    ["CASE WHEN ip IS NULL THEN b END", "ip <=> NULL", "ip IS NULL", "coalesce(ip, NULL) = 'a'"],
)
def test_null_may_stand_where_it_is_a_value_like_others(condition: str) -> None:
    require_no_null(parse(f"SELECT ip FROM east.clicks WHERE {condition}"))


def test_a_table_is_named_as_such() -> None:
    found = parse("INSERT INTO x SELECT id FROM table(shop.users) AS u WHERE u.id > 1")
    assert found.of_rows
    assert (found.stream.name, found.stream.alias) == ("shop.users", "u")
    assert parse("SELECT id FROM TABLE(`shop.users-2`)").stream.name == "shop.users-2"
    assert not parse("SELECT id FROM users").of_rows


def test_a_statement_names_destination_stream_and_tables() -> None:
    found = parse(JOIN)
    assert found.destination is not None
    assert found.destination.name == "click_users"
    assert names(found) == [("clickstream", "c"), ("east.users", "u")]
    assert [one.outer for one in found.joined] == [True]
    assert found.where is not None
    assert found.stream.place == Place(3, 6)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("SELECT ip FROM clicks", ("clicks", "clicks")),
        ("SELECT ip FROM east.clicks", ("east.clicks", "clicks")),
        ("select ip from `east.web.clicks`", ("east.web.clicks", "clicks")),
        ("SELECT ip FROM east.clicks AS x;", ("east.clicks", "x")),
        ("-- who\nSELECT ip /* what */ FROM clicks", ("clicks", "clicks")),
        ("-- \\who\\ \nSELECT ip FROM clicks -- \\", ("clicks", "clicks")),
        ("-- \\\r\nSELECT ip FROM clicks", ("clicks", "clicks")),
    ],
)
def test_a_source_is_called_by_its_last_name_unless_it_gets_another(
    text: str, source: tuple[str, str]
) -> None:
    assert names(parse(text)) == [source]
    assert parse(text).destination is None


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("SELECT count(*) AS n FROM c", "line 1, column 8: ", "COUNT"),
        ("SELECT ip FROM c -- all \\\nWHERE ip > ''", "line 1, column 25: ", "backslash"),
        ("SELECT ip\nFROM c\nGROUP BY ip", "line 3, column 1: ", "GROUP BY"),
        ("SELECT DISTINCT ip FROM c", "", "DISTINCT"),
        ("SELECT ip FROM c ORDER BY ip", "line 1, column 18: ", "ORDER BY"),
        ("SELECT ip FROM c SORT BY ip", "line 1, column 18: ", "SORT BY"),
        ("SELECT ip FROM c LIMIT 3", "line 1, column 18: ", "LIMIT"),
        ("SELECT ip FROM c HAVING ip > 1", "line 1, column 18: ", "HAVING"),
        ("SELECT row_number() OVER (ORDER BY ip) AS r FROM c", "line 1, column 8: ", "ROW_NUMBER"),
        ("SELECT explode(tags) AS t FROM c", "line 1, column 8: ", "at most one record"),
        ("SELECT * REPLACE (upper(ip) AS ip) FROM c", "", "REPLACE"),
        ("SELECT to_json(struct(*)) AS j FROM c", "", "inside an expression"),
        ("SELECT ip INTO x FROM c", "", "INTO"),
        ("SELECT AS STRUCT ip FROM c", "", ""),
        ("SELECT '${env:HOME}' AS a FROM c", "line 1, column 9: ", "variables"),
        ("SELECT mesh_lookup('w/u', ip, 0) AS a FROM c", "", "mesh_lookup"),
        ("SELECT xpath_string(ip, 'a') AS a FROM c", "", "xpath_string"),
        ("INSERT INTO t REPLACE WHERE a = 1 SELECT ip FROM c", "", ""),
        ("SELECT " + "(" * 120 + "ip" + ")" * 120 + " AS a FROM c", "", "nested"),
        ("SELECT t FROM c LATERAL VIEW explode(tags) x AS t", "line 1, ", "at most one record"),
        ("SELECT ip FROM (SELECT * FROM c) d", "line 1, ", "one statement for each step"),
        ("SELECT ip FROM c WHERE ip IN (SELECT ip FROM d)", "line 1, ", "for each step"),
        ("WITH x AS (SELECT 1) SELECT ip FROM x", "line 1, column 1: ", "for each step"),
        ("SELECT ip FROM c UNION ALL SELECT ip FROM d", "line 1, ", "UNION"),
        ("SELECT ip FROM c RIGHT JOIN d ON c.k = d.k", "line 1, column 29: ", "RIGHT JOIN"),
        ("SELECT ip FROM c FULL JOIN d ON c.k = d.k", "line 1, column 28: ", "FULL"),
        ("SELECT ip FROM c LEFT SEMI JOIN d ON c.k = d.k", "line 1, ", "SEMI"),
        ("SELECT ip FROM c NATURAL JOIN d", "line 1, ", "NATURAL"),
        ("SELECT ip FROM c, d", "line 1, column 19: ", "CROSS JOIN"),
        ("SELECT ip FROM c JOIN d USING (k)", "line 1, ", "write ON"),
        ("SELECT ip FROM c JOIN c ON c.k = c.k", "line 1, column 23: ", "two sources"),
        ("SELECT ip FROM c TABLESAMPLE (10 PERCENT)", "line 1, ", "a source is a name"),
        ("SELECT ip FROM c AS d(a, b)", "line 1, ", "a source is a name"),
        ("SELECT ip FROM range(3)", "line 1, ", "name a topic"),
        ("SELECT reflect('a', 'b') AS x FROM c", "line 1, column 8: ", "reflect"),
        ("SELECT java_method('a', 'b') AS x FROM c", "line 1, ", "java_method"),
        (
            "SELECT ip, current_timestamp() AS t FROM c",
            "line 1, column 12: ",
            "is not the record's",
        ),
        ("SELECT ip, now() AS t FROM c", "line 1, ", "is not the record's"),
        ("SELECT ip FROM c WHERE rand() < 0.5", "line 1, column 24: ", "is not the record's"),
        ("SELECT ip, unix_timestamp() AS t FROM c", "", "is not the record's"),
        ("SELECT ip, uuid() AS id FROM c", "line 1, ", "is not the record's"),
        ("SELECT ip, current_time() AS t FROM c", "line 1, ", "is not the record's"),
        ("SELECT ip, to_unix_timestamp() AS t FROM c", "", "is not the record's"),
        ("SELECT ip FROM c WHERE t > TIMESTAMP 'now'", "", "'now' as a time: its value is not"),
        ("SELECT to_date('Today ') AS d FROM c", "", "'Today ' as a time: its value"),
        ("SELECT CAST(('tomorrow') AS date) AS d FROM c", "", "'tomorrow' as a time"),
        ("SELECT date_add('now', 1) AS d FROM c", "", "'now' as a time"),
        ("SELECT exists(k, x -> t > 'now') AS b FROM c", "line 1, column 27: ", "'now' as a time"),
        ("SELECT filter(k, x -> x >= 'Today ') AS b FROM c", "", "'Today ' as a time"),
        ("SELECT transform(k, x -> 'now' + INTERVAL 1 DAY) AS b FROM c", "", "'now' as a time"),
        ("SELECT filter(k, x -> exists(x, y -> y IN (t, 'now'))) AS b FROM c", "", "'now' as a"),
        ("SELECT filter(k, x -> x BETWEEN 'epoch' AND t) AS b FROM c", "", "'epoch' as a time"),
        ("SELECT filter(k, x -> CASE x WHEN 'now' THEN true END) AS b FROM c", "", "'now' as a"),
        ("SELECT filter(k, x -> x > concat('no', 'w')) AS b FROM c", "", "is put together"),
        ("SELECT filter(k, x -> x > lower('NOW')) AS b FROM c", "", "is put together"),
        ("SELECT CAST('today+00:00' AS DATE) AS d FROM c", "", "'today+00:00' as a time"),
        ("SELECT to_timestamp('tomorrow-02:00') AS t FROM c", "", "'tomorrow-02:00' as a time"),
        ("SELECT CAST('\0now' AS TIMESTAMP) AS t FROM c", "", "as a time"),
        ("SELECT CAST('today\tUTC' AS DATE) AS d FROM c", "", "as a time"),
        ("SELECT CAST(chr(110)||chr(111)||chr(119) AS TIMESTAMP) AS t FROM c", "", "put together"),
        ("SELECT CAST(CAST(X'6e6f77' AS STRING) AS TIMESTAMP) AS t FROM c", "", "put together"),
        ("SELECT date_add(string(X'746f646179'), 1) AS d FROM c", "", "put together"),
        ("SELECT hour(CAST(X'6e6f77' AS STRING)) AS h FROM c", "", "put together"),
        ("SELECT filter(k, x -> x > string(X'6e6f77')) AS b FROM c", "", "put together"),
        ("SELECT map(t, 1)['now'] AS b FROM c", "line 1, column 18: ", "'now' as a time"),
        ("SELECT map(t, 1)['n' || 'ow'] AS b FROM c", "", "is put together"),
        ("SELECT window(t, '1 day') AS w FROM c", "line 1, ", "windows and aggregates"),
        ("INSERT OVERWRITE x SELECT ip FROM c", "", "appended"),
        ("INSERT INTO x (a) SELECT ip FROM c", "line 1, column 16: ", "list of columns"),
        ("INSERT INTO x VALUES (1)", "line 1, ", "VALUES is not supported"),
        ("DELETE FROM x", "line 1, column 1: ", "DELETE is not supported"),
        ("SELECT a FROM TABLE(x) JOIN y ON a = b", "line 1, column 29: ", "TABLE(...) with JOIN"),
        ("SELECT a FROM x JOIN TABLE(y) ON a = b", "line 1, column 28: ", "JOIN TABLE(...)"),
        ("SELECT a FROM TABLE(x, y)", "line 1, column 21: ", "TABLE(...): name one topic"),
        ("SELECT a FROM TABLE(1)", "line 1, column 21: ", "TABLE(...): name one topic"),
        ("CREATE TABLE x AS SELECT 1", "line 1, ", "CREATE is not supported"),
        ("SELECT a FROM b; SELECT 2", "", "2 statements"),
        (" \n", "", "an empty text"),
        ("x" * (LONGEST + 1), "", "at most"),
    ],
)
def test_what_a_stream_cannot_do_is_refused_with_its_place(
    text: str, place: str, told: str
) -> None:
    with pytest.raises(SqlError) as refused:
        parse(text)
    assert refused.value.code == "sql_not_supported"
    assert str(refused.value).startswith(place)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "expression",
    [
        "filter(k, x -> x > '2026-01-31')",
        "filter(k, x -> x = 'a' OR x LIKE 'now%')",
        "filter(k, x -> x > TIMESTAMP '2026-01-31 10:00:00')",
        "filter(k, x -> x > CAST('2026-01-31' AS DATE))",
        "filter(k, x -> upper(x) = concat(ip, 'w'))",
        "transform(k, x -> concat(x, 'now'))",
        "m['a'] || k[0] || m[lower(ip)] || k[1 + 1]",
    ],
)
def test_texts_that_are_no_time_by_the_clock_may_be_in_lambdas_and_keys(expression: str) -> None:
    assert parse(f"SELECT {expression} AS x FROM c")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT ip FROM b WHRE c = 1", "line 1, column 18: 'WHRE' is not known here: is WHERE"),
        ("SELEC ip FROM b", "line 1, column 1: 'SELEC' is not known here: is SELECT meant?"),
        ("SELECT a\nFRM b", "line 2, column 1: 'FRM' is not known here: is FROM meant?"),
        ("SELECT a FROM c LEFT JON d ON c.x = d.x", "line 1, column 22: 'JON'"),
        ("SELECT a b c FROM d", "line 1, column 12: 'c' is not expected here, behind 'b'"),
        ("SELECT a FROM c WHERE", "line 1, column 17: something is missing behind this"),
        ("SELECT ip,\nFROM\nWHERE", "line 1, column 10: something is missing between"),
        ("SELECT 'O''Brien' AS n FROM c", "line 1, column 8: two strings beside each other"),
        ("SELECT a,, b FROM c", "line 1, column 9: something is missing between ',' and ','"),
        ("SELECT a,\n FROM c", "line 1, column 9: something is missing between ',' and 'FROM'"),
        ("SELECT CAST(x AS INT FROM c", "line 1, column 12: this ( is not closed"),
        ("SELECT x FROM c WHERE x BETWEEN 1 2", "line 1, column 25: BETWEEN has two bounds"),
        ("SELECT x FROM c WHERE (x BETWEEN 1 , 2) AND a", "line 1, column 26: BETWEEN has two"),
        ("SELECT x FROM c WHERE x IN 1", "line 1, column 25: IN is followed by values in paren"),
        ("SELECT x FROM c WHERE x NOT IN ()", "line 1, column 29: IN is followed by values"),
        ("SELECT a FROM c JOIN u ON", "line 1, column 24: something is missing behind this"),
        ("SELECT 1 AS a", ""),
        ("SELECT 'abc FROM c", ""),
        ("SELECT ip FROM c WHERE (ip = 1", "line 1, column 24: this ( is not closed"),
        ("hello", ""),
        ("INSERT INTO t", ""),
        ("SELECT sale_id FORM sales", "line 1, column 16: 'FORM' is not known here: is FROM"),
        (
            "SELECT order FROM c",
            "line 1, column 8: 'order' is not expected here, behind 'SELECT': order is a keyword",
        ),
        ("SELECT a FROM east.clicks-new", "line 1, column 26: '-' is not expected here, behind"),
    ],
)
def test_what_is_no_sql_is_refused_without_a_word_of_the_parsers_own(text: str, place: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(text)
    assert refused.value.code in ("sql_syntax", "sql_not_supported")
    assert str(refused.value).startswith(place)
    assert "<" not in str(refused.value)
    assert "sqlglot" not in str(refused.value)


def test_what_only_looks_unfinished_is_taken() -> None:
    text = (
        "SELECT coalesce(a, (b), array()) AS x, '(,' AS y, -- , (\n"
        "trim(BOTH ' ' FROM ip) AS z FROM c "
        "WHERE a NOT IN ((1), 2) AND (b BETWEEN least(1, 2) AND 3) AND d BETWEEN 1 AND 2"
    )
    assert len(parse(text).select) == 3


@pytest.mark.parametrize(
    "value",
    [
        "(map('a', id))['a']",
        "(map > 1)",
        "(values > 1)",
        "(values IS NULL)",
        "(table NOT IN (1, 2))",
        "(table.a)",
        "(reduce)",
        "1 IN (map, 2)",
    ],
)
def test_a_column_or_a_function_may_have_the_name_of_a_query(value: str) -> None:
    parse(f"SELECT {value} AS v FROM east.clicks")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "VALUES (1)",
        "VALUES 1",
        "TABLE a",
        "FROM a SELECT b",
        "WITH a AS (SELECT 1)",
        "MAP a USING 'b'",
        "REDUCE `a` USING 'b'",
    ],
)
@pytest.mark.parametrize("text", ["SELECT ({}) AS v FROM c", "SELECT 1 IN ({}) AS v FROM c"])
def test_a_query_inside_a_query_is_refused(text: str, query: str) -> None:
    with pytest.raises(SqlError, match="a query inside a query"):
        parse(text.format(query))
