"""Whose column a name is, what comes out, and by which key a table is looked up."""

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.text.parse import parse
from spark_streams.sql.text.tree import Binary, Call, Column, Form, Lambda, Node, Number, Parameter
from spark_streams.sql.types.resolve import Query, resolve

COLUMNS = {
    "c": ["ip", "userid", "status", "tags", "_time"],
    "u": ["userid", "first_name", "phone", "address"],
    "o": ["region", "number", "total"],
}
KEYS = {"u": ["userid"], "o": ["region", "number"]}


def query(text: str) -> Query:
    return resolve(parse(text), COLUMNS, KEYS)


def out(text: str) -> dict[str, Node]:
    return {one.name: one.expression for one in query(text).out}


def test_a_column_is_found_by_its_name_alone_and_spelled_as_its_source_does() -> None:
    assert out(
        "SELECT STATUS, u.First_Name, C.ip AS addr FROM x c JOIN y u ON c.userid=u.userid"
    ) == {
        "STATUS": Column("c", ("status",)),
        "First_Name": Column("u", ("first_name",)),
        "addr": Column("c", ("ip",)),
    }


def test_a_star_is_every_column_that_its_source_has() -> None:
    assert list(out("SELECT * FROM x c")) == COLUMNS["c"]
    assert list(out("SELECT * EXCEPT (tags, Ip) FROM x c")) == ["userid", "status", "_time"]
    joined = "FROM x c JOIN y u ON c.userid = u.userid"
    assert list(out(f"SELECT c.ip, u.* EXCEPT (userid) {joined}")) == [
        "ip",
        "first_name",
        "phone",
        "address",
    ]


def test_a_path_goes_into_nested_records_and_lambdas_keep_their_own_names() -> None:
    found = out(
        "SELECT u.address.city AS city, address.zip AS zip, transform(tags, t -> t || ip) AS t "
        "FROM x c JOIN y u ON c.userid = u.userid"
    )
    assert found["city"] == Column("u", ("address", "city"))
    assert found["zip"] == Column("u", ("address", "zip"))
    body = Binary("||", Parameter("t"), Column("c", ("ip",)))
    assert found["t"] == Call("transform", (Column("c", ("tags",)), Lambda(("t",), body)))


def test_what_every_record_has_is_the_streams() -> None:
    joined = "FROM x c JOIN y u ON c.userid = u.userid"
    assert out(f"SELECT _offset AS o, c._timestamp AS at {joined}") == {
        "o": Column("c", ("_offset",)),
        "at": Column("c", ("_timestamp",)),
    }
    with pytest.raises(SqlError, match="u has no column _key"):
        out(f"SELECT u._key AS k {joined}")


def test_a_table_is_looked_up_by_its_whole_key_whatever_the_order() -> None:
    [lookup] = query(
        "SELECT total FROM x c LEFT JOIN z o ON o.number = c.status + 1 AND upper(c.ip) = o.region"
    ).lookups
    assert lookup.outer
    assert [(name, one.text) for name, one in lookup.key.items()] == [
        ("region", "upper(c.ip)"),
        ("number", "c.status + 1"),
    ]
    assert lookup.key["region"].node == Call("upper", (Column("c", ("ip",)),))
    assert lookup.condition is None


def test_a_second_table_is_looked_up_by_what_the_first_one_gave() -> None:
    first, second = query(
        "SELECT ip FROM x c JOIN y u ON c.userid = u.userid "
        "JOIN z o ON u.phone = o.region AND o.number = c.status AND o.total > 3"
    ).lookups
    assert {name: one.node for name, one in first.key.items()} == {
        "userid": Column("c", ("userid",))
    }
    assert {name: one.node for name, one in second.key.items()} == {
        "region": Column("u", ("phone",)),
        "number": Column("c", ("status",)),
    }
    three = Number("3", Form.INTEGER)
    assert second.condition == Binary(">", Column("o", ("total",)), three)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("SELECT ip, statsu FROM x c", "unknown_column",
         "line 1, column 12: no source has a column statsu; is status meant?"),
        ("SELECT * EXCEPT (statsu) FROM x c", "unknown_column", "statsu, which no source has; is"),
        ("SELECT c.nothing FROM x c", "unknown_column", "column 8: c has no column nothing"),
        ("SELECT q.ip FROM x c", "unknown_column", "no source has a column q; there are ip, use"),
        ("SELECT q.* FROM x c", "unknown_column", "there is no source called q"),
        ("SELECT ip FROM x c WHERE stat = 1", "unknown_column", "line 1, column 26: "),
        ("SELECT userid FROM x c JOIN y u ON c.userid = u.userid", "ambiguous_column",
         "line 1, column 8: write c.userid or u.userid"),
        ("SELECT c.*, u.* FROM x c JOIN y u ON c.userid = u.userid", "duplicate_column",
         "two columns userid"),
        ("SELECT ip, status AS IP FROM x c", "duplicate_column", "two columns IP"),
        ("SELECT upper(ip) FROM x c", "unnamed_column", "column 8: this column has no name"),
        ("SELECT 1 FROM x c", "unnamed_column", "no name"),
        ("SELECT ip AS `a-b` FROM x c", "unnamed_column", "'a-b' is no name for a field"),
        ("SELECT ip FROM x c JOIN y u ON c.ip = u.phone", "join_not_on_key",
         "line 1, column 32: y is a table with the key (userid): join it ON ... = u.userid"),
        ("SELECT ip FROM x c JOIN y u ON c.userid > u.userid", "join_not_on_key", "(userid)"),
        ("SELECT ip FROM x c JOIN y u ON u.userid = u.userid", "join_not_on_key", "(userid)"),
        ("SELECT c.ip FROM x c JOIN y u", "join_not_on_key", "y is a table with the key"),
        ("SELECT ip FROM x c JOIN z o ON c.ip = o.region", "join_not_on_key",
         "join it ON ... = o.region AND ... = o.number"),
    ],
)  # fmt: skip
def test_a_name_that_is_wrong_is_told_with_its_place_and_what_may_be_meant(
    text: str, code: str, told: str
) -> None:
    with pytest.raises(SqlError) as refused:
        query(text)
    assert refused.value.code == code
    assert told in str(refused.value)


def test_a_table_without_a_key_is_refused() -> None:
    with pytest.raises(SqlError, match="y have no key with a schema") as refused:
        resolve(parse("SELECT ip FROM x c JOIN y u ON c.userid = u.userid"), COLUMNS, {"u": []})
    assert refused.value.code == "table_without_key"
