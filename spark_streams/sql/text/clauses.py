"""The clauses of SQL that a statement does not have, each with what is told about it. Pure."""

from collections.abc import Mapping
from typing import Any

from spark_streams.sql.functions.allowed import AGGREGATES, WINDOWS
from spark_streams.sql.text.syntax import Words

Clauses = Mapping[str, str]
"""Keywords with spaces between them -> why they are refused."""
_ORDER = "a stream has the order of its partitions"
_STAYS = "records stay in the partition they come from"
_BIGGER = "at most one record comes out for each that goes in"
_STEP = "write one statement for each step"
BEHIND_SELECT: Clauses = {
    "DISTINCT": "DISTINCT: it would have to remember every record",
    "ALL": "ALL is not supported: leave it out",
    "AS STRUCT": "AS STRUCT is not supported: name the columns",
    "AS VALUE": "AS VALUE is not supported: name the columns",
}
BEHIND_LIST: Clauses = {"INTO": "INTO is not supported: INSERT INTO stands before the SELECT"}
AT_END: Clauses = {
    "GROUP": f"GROUP BY: {WINDOWS}",
    "HAVING": f"HAVING: {WINDOWS}",
    "WINDOW": f"WINDOW: {WINDOWS}",
    "QUALIFY": f"QUALIFY: {WINDOWS}",
    "ORDER": f"ORDER BY: {_ORDER}",
    "SORT": f"SORT BY: {_ORDER}",
    "CLUSTER": f"CLUSTER BY: {_STAYS}",
    "DISTRIBUTE": f"DISTRIBUTE BY: {_STAYS}",
    "LIMIT": "LIMIT: a stream has no end",
    "OFFSET": "OFFSET: a stream has no end",
    "FETCH": "FETCH: a stream has no end",
    "UNION": f"UNION is not supported: {_STEP}",
    "INTERSECT": f"INTERSECT is not supported: {_STEP}",
    "EXCEPT": f"EXCEPT is not supported: {_STEP}",
    "MINUS": f"MINUS is not supported: {_STEP}",
    "LATERAL": f"LATERAL VIEW: {_BIGGER}",
    "PIVOT": f"PIVOT: {_BIGGER}",
    "UNPIVOT": f"UNPIVOT: {_BIGGER}",
}
_NAME = "a source is a name, and AS another one"
BEHIND_SOURCE: Clauses = {
    "TABLESAMPLE": f"TABLESAMPLE: {_NAME}",
    "FOR SYSTEM_TIME": f"FOR: {_NAME}",
    "FOR VERSION": f"FOR: {_NAME}",
    "VERSION AS": f"VERSION: {_NAME}",
    "TIMESTAMP AS": f"TIMESTAMP: {_NAME}",
    "WITH": f"WITH: {_NAME}",
}
JOIN_KINDS = frozenset(
    {"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "SEMI", "ANTI", "NATURAL", "ASOF"}
)
STOPS = frozenset(
    {"FROM", "WHERE", "ON", "USING", "JOIN", "SELECT", "INSERT", "AS", "INTO", "AND", "OR", "NOT"}
    | {"IN", "IS", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "THEN", "WHEN", "ELSE", "END", "ESCAPE"}
    | JOIN_KINDS
    | {word for word in AT_END if word != "OFFSET"}
    | {"TABLESAMPLE", "LIMIT"}
)
"""Keywords that are no alias."""
_STATEMENTS = {
    "WITH": "WITH: write one statement for each step",
    "VALUES": "VALUES is not supported: {}",
    "DELETE": "DELETE is not supported: {}",
    "UPDATE": "UPDATE is not supported: {}",
    "CREATE": "CREATE is not supported: {}",
    "DROP": "DROP is not supported: {}",
    "ALTER": "ALTER is not supported: {}",
    "MERGE": "MERGE is not supported: {}",
    "SET": "SET is not supported: {}",
    "TABLE": "TABLE is not supported: {}",
    "FROM": "FROM is not supported here: {}",
    "REPLACE": "REPLACE is not supported: {}",
    "BY": "BY is not supported: {}",
    "(": "a list of columns, or a query in parentheses, is not supported here: {}",
    "TRUNCATE": "TRUNCATE is not supported: {}",
}


def refusal(words: Words, known: Any) -> str:
    """What is told of the clause that is next, "" if it is none of these."""
    for clause, why in known.items():
        if words.sees(*clause.split()):
            return str(why)
    return ""


def instead_of_select(word: str, form: str) -> str:
    """What is told of a statement that begins with this word, "" for an unknown one."""
    return _STATEMENTS.get(word, "").format(form)


def of_source(name: str) -> str:
    """Why something is not read from."""
    if name.lower() in AGGREGATES:
        return f"{name}: {WINDOWS}"
    if name in ("UNNEST", "EXPLODE"):
        return f"{name}: {_BIGGER}"
    return f"{name} cannot be read from: name a topic or a product"


def join(kind: str) -> str:
    """Why a kind of join is refused."""
    return f"{kind} JOIN: a stream is joined with tables by JOIN or LEFT JOIN"
