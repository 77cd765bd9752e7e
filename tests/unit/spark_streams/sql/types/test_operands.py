"""What a statement compares and calculates with, as its types are asked for."""

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.text.parse import parse
from spark_streams.sql.text.tree import Binary, Column, Node
from spark_streams.sql.types.operands import Purpose
from spark_streams.sql.types.resolve import resolve

COLUMNS = {"c": ["ip", "userid", "status", "tags"], "u": ["userid", "name"]}


def used(text: str) -> list[tuple[str, list[str]]]:
    query = resolve(parse(text), COLUMNS, {"u": ["userid"]})
    return [(use.purpose.name, [one.text for one in use.operands]) for use in query.uses]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("status = 1", [("COMPARED", ["status", "1"])]),
        ("status <=> 'a'", [("COMPARED", ["status", "'a'"])]),
        ("status BETWEEN 1 AND ip",
         [("COMPARED", ["status", "1"]), ("COMPARED", ["status", "ip"])]),
        ("status NOT IN (1, 'b')",
         [("LISTED", ["status", "1"]), ("LISTED", ["status", "'b'"])]),
        ("status IS DISTINCT FROM ip", [("COMPARED", ["status", "ip"])]),
        ("status + ip * 2 - (3 + status) > 0",
         [("CALCULATED", ["3", "status"]), ("CALCULATED", ["ip", "2"]),
          ("CALCULATED", ["status"]), ("COMPARED", ["status + ip * 2 - (3 + status)", "0"])]),
        ("round(ip, 2) IS NULL AND pmod(ip, status) IS NULL",
         [("CALCULATED", ["ip", "2"]), ("CALCULATED", ["ip", "status"])]),
        ("decode(ip, 1, 'a', 2, 'b', 'c') IS NULL",
         [("COMPARED", ["ip", "1"]), ("COMPARED", ["ip", "2"])]),
        ("CASE status WHEN 1 THEN true ELSE false END", [("COMPARED", ["status", "1"])]),
        ("nullif(status, ip) IS NULL", [("COMPARED", ["status", "ip"])]),
        ("upper(ip) = -status",
         [("COMPARED", ["upper(ip)", "-status"]), ("CALCULATED", ["status"])]),
        ("status IS NOT TRUE AND ip IS NULL", [("TESTED", ["status"])]),
        ("status << ip IS NULL", [("CALCULATED", ["status", "ip"])]),
        ("substr(ip, status + 1, userid) IS NULL",
         [("CALCULATED", ["status", "1"]), ("CALCULATED", ["userid"])]),
        ("make_timestamp(1, 2, 3, 4, 5, status, ip) IS NULL",
         [("CALCULATED", ["1", "2", "3", "4", "5"]), ("CALCULATED", ["status"])]),
        ("sha2(ip, 256) = int(ip)",
         [("CALCULATED", ["256"]), ("COMPARED", ["sha2(ip, 256)", "int(ip)"])]),
        ("ip LIKE 'a%'", []),
        ("exists(tags, t -> t > 'a')", []),
    ],
)  # fmt: skip
def test_every_use_is_found(condition: str, expected: list[tuple[str, list[str]]]) -> None:
    assert sorted(used(f"SELECT ip FROM x c WHERE {condition}")) == sorted(expected)


def test_what_a_table_is_looked_up_by_is_no_comparison_and_the_rest_is() -> None:
    text = (
        "SELECT status + 1 AS n FROM x c JOIN y u ON c.userid = u.userid AND u.name = c.ip "
        "WHERE c.status = 3"
    )
    assert used(text) == [
        ("COMPARED", ["u.name", "c.ip"]),
        ("CALCULATED", ["status", "1"]),
        ("COMPARED", ["c.status", "3"]),
    ]


def test_an_operand_tells_where_it_stands_and_what_stands_in_its_quotes() -> None:
    [use] = resolve(parse("SELECT ip FROM x c\nWHERE ip = 'a'"), COLUMNS, {}).uses
    left, right = use.operands
    assert use.purpose is Purpose.COMPARED
    assert (left.node, str(left.place)) == (Column("c", ("ip",)), "line 2, column 7")
    assert left.literal is None
    assert right.literal == "a"


@pytest.mark.parametrize(
    "condition",
    [
        " + ".join(["status"] * 30) + " > 1",
        "concat(" + ", ".join(["ip"] * 500) + ") IN (" + ", ".join(map(str, range(2000))) + ")",
        " AND ".join(f"ip > '{number}'" for number in range(1000)),
    ],
)
def test_a_long_text_is_resolved_in_passing(condition: str) -> None:
    parsed = parse(f"SELECT ip FROM x c WHERE {condition}")
    assert resolve(parsed, COLUMNS, {}).uses


@pytest.mark.parametrize("sign", ["=", "+", "||"])
def test_operators_in_a_row_end_at_a_bound(sign: str) -> None:
    with pytest.raises(SqlError, match="nested too deeply"):
        used("SELECT ip FROM x c WHERE " + f" {sign} ".join(["status"] * 1500))


def test_a_condition_of_a_join_is_no_deeper_than_one_of_where() -> None:
    """What Spark is sent has a depth; one within the other 60 of these are above it."""
    more = " AND ".join(f"c.ip > '{number}'" for number in range(800))
    parsed = parse(f"SELECT c.ip FROM x c JOIN y u ON c.ip = u.userid AND {more}")
    [lookup] = resolve(parsed, COLUMNS, {"u": ["userid"]}).lookups
    assert isinstance(lookup.condition, Binary)

    def depth(node: Node) -> int:
        return 1 + max(map(depth, node.children), default=0)

    assert depth(lookup.condition) < 16
