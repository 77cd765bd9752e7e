"""What a connector's config says by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from projections.connector_config import (
    JDBC_SINK,
    POSTGRES,
    Table,
    captured,
    clash,
    filled,
    foreign_references,
    plain_secrets,
    redacted,
    tasks,
    unfit,
    writes,
)

OF_POSTGRES = {
    "connector.class": POSTGRES,
    "database.hostname": "db.test",
    "database.dbname": "shop",
    "database.password": OWN_SECRET,
    "table.include.list": "public.users, sales.orders",
    "transforms.route.replacement": "east.$1",
}
SINK = {
    "connector.class": JDBC_SINK,
    "topics": "east.users,east.orders",
    "connection.url": "jdbc:postgresql://db.test:5432/reports",
    "connection.password": SHARED_SECRET,
}
FOREIGN = [
    "${dir:/home/connectors/logins/west:west}",
    "${dir:/home/connectors:connector-east.shop}",
    "${file:/home/connectors/logins/west/west:password}",
    "${env:HOME}",
    "${SECRET:own}",
    "${secret:own",
    "${secret:west}",
    "${s\u0435cret:own}",
    f"{OWN_SECRET}{OWN_SECRET}",
    f"{OWN_SECRET} ",
    f"{OWN_SECRET}\n",
    f"x{OWN_SECRET}",
    "${${secret:own}}",
    "${",
    "a ${ b",
    "$${topic}{dir:/home/connectors:x}",
    "${topic${topic}:x}",
]


@pytest.mark.parametrize("value", FOREIGN)
@pytest.mark.parametrize("setting", ["database.password", "transforms.t.value.literal"])
def test_every_reference_but_the_two_is_refused(setting: str, value: str) -> None:
    assert foreign_references({**OF_POSTGRES, setting: value}) == [setting]


@pytest.mark.parametrize("value", [OWN_SECRET, SHARED_SECRET])
@pytest.mark.parametrize(
    "setting", ["transforms.t.value.literal", "database.user", "DATABASE.PASSWORD", "topic.prefix"]
)
def test_a_secret_is_named_by_the_password_setting_only(setting: str, value: str) -> None:
    assert foreign_references(OF_POSTGRES) == foreign_references(SINK) == []
    assert foreign_references({**OF_POSTGRES, setting: value}) == [setting]


@pytest.mark.parametrize("name", [OWN_SECRET, "a${b", "${dir:/home/connectors/logins/west:west}"])
def test_a_reference_in_a_settings_name_is_refused(name: str) -> None:
    assert foreign_references({**OF_POSTGRES, name: "x"}) == [name]


@pytest.mark.parametrize("kind", ["", "PostgresConnector", "org.example.Other"])
def test_a_class_of_which_no_password_setting_is_known_may_name_no_secret(kind: str) -> None:
    config = {"connector.class": kind, "database.password": OWN_SECRET}
    assert foreign_references(config) == ["database.password"]


def test_what_a_sinks_tables_are_called_by_is_no_reference() -> None:
    named = {**SINK, "collection.name.format": "x_${topic}_${source.table}"}
    assert foreign_references(named) == []


@given(st.text(st.sampled_from("${}:topic dir/x"), max_size=30))
def test_what_connect_would_resolve_is_never_let_through(text: str) -> None:
    """Connect's own way: `${`, anything but `}`, a colon, anything but `}`, `}`."""
    at, resolved = text.find("${"), False
    while at >= 0:
        end = text.find("}", at)
        resolved = resolved or (end > 0 and ":" in text[at:end])
        at = text.find("${", at + 1)
    if resolved:
        assert foreign_references({"connector.class": JDBC_SINK, "a": text}) == ["a"]


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("database.password", "s3cret", True),
        ("database.password", OWN_SECRET, False),
        ("database.password", f"x{OWN_SECRET}", True),
        ("key.converter.basic.auth.user.info.token", "abc", True),
        ("database.user", "postgres", False),
        ("value.converter.basic.auth.user.info", "bob:pw", True),
        ("api.key", "abc", True),
        ("api-key", "abc", True),
        ("passwd", "abc", True),
        ("ssl.keystore.key", "abc", True),
        ("some.url", "https://bob:pw@registry.test/x", True),
        ("some.url", "https://registry.test/a:b@c", False),
        ("certificate", "-----BEGIN PRIVATE KEY-----", True),
    ],
)
def test_a_secret_is_never_shown_and_a_reference_is(name: str, value: str, *, hidden: bool) -> None:
    assert redacted({name: value})[name] == ("(hidden)" if hidden else value)
    assert plain_secrets({name: value}) == ([name] if hidden else [])


@pytest.mark.parametrize("value", ["://" + ":" * 5_000_000, "://a" * 1_000_000, ":" * 5_000_000])
def test_a_long_value_is_searched_for_secrets_in_one_pass(value: str) -> None:
    """In quadratic time this would take hours, and the run ends with a timeout."""
    assert plain_secrets({"a": value}) == []


def test_captured_tables_are_known_by_their_names_and_topics() -> None:
    assert captured(OF_POSTGRES) == [
        Table("postgres://db.test:5432", "shop.public.users", "east.users"),
        Table("postgres://db.test:5432", "shop.sales.orders", "east.orders"),
    ]
    assert writes(OF_POSTGRES) == ("east.users", "east.orders")
    assert captured({**OF_POSTGRES, "transforms.route.replacement": "x"}) == []


def test_filled_tables_are_known_where_their_names_follow_from_the_topics() -> None:
    place = "postgres://db.test:5432"
    assert filled(SINK) == [
        Table(place, "reports.public.east_users", "east.users"),
        Table(place, "reports.public.east_orders", "east.orders"),
    ]
    named = {**SINK, "topics": "east.users", "collection.name.format": "crm.people"}
    assert filled(named) == [Table(place, "reports.crm.people", "east.users")]
    assert filled({**SINK, "collection.name.format": "${source.table}"}) == []
    assert filled({**SINK, "connection.url": "jdbc:oracle:thin:@x"}) == []


URL = SINK["connection.url"]


@pytest.mark.parametrize(
    "changed",
    [
        {"connection.url": f"{URL}?sslmode=require&currentSchema=a"},
        {"connection.url": "jdbc:mysql://db.test/reports"},
        {"collection.name.format": "crm.${topic}_x"},
    ],
)
def test_a_sink_may_say_where_it_writes(changed: dict[str, str]) -> None:
    assert unfit({**SINK, **changed}) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"connection.url": f"{URL}?socketFactory=org.example.X"},
        {"connection.url": f"{URL}?sslmode=require&socketFactory=org.example.X"},
        {"connection.url": "jdbc:postgresql://bob:s3cret@db.test/reports"},
        {"connection.url": "jdbc:mysql://(host=evil,allowLoadLocalInfile=true)/db"},
        {"connection.url": "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'x'"},
        {"connection.url": "jdbc:oracle:thin:@config-https://evil.test"},
        {"connection.url": "jdbc:db2://h/db:traceFile=/x;"},
        {"hibernate.connection.url": "jdbc:x"},
        {"connection.provider": "org.example.X"},
        {"collection.name.format": "x; DROP TABLE y"},
        {"connector.class": "JdbcSink"},
        {"connector.class": "JdbcSinkConnector"},
        {"connector.class": ""},
        {"name": "east.shop"},
    ],
)
def test_a_sink_says_nothing_that_loads_classes_and_is_called_in_full(
    changed: dict[str, str],
) -> None:
    assert unfit({**SINK, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"signal.enabled.channels": "file"},
        {"signal.file": "/etc/passwd"},
        {"signal.kafka.bootstrap.servers": "evil:9092"},
        {"driver.socketFactory": "org.example.X"},
        {"database.sslkey": "/x"},
        {"schema.history.internal.file.filename": "/x"},
        {"publication.name": "p FOR ALL TABLES; DROP TABLE x"},
        {"slot.name": "A"},
        {"table.include.list": "public[.]orders"},
        {"table.include.list": "orders"},
        {"table.include.list": ""},
        {"connector.class": "PostgresConnector"},
    ],
)
def test_a_source_reaches_nothing_but_the_tables_of_its_database(changed: dict[str, str]) -> None:
    assert unfit(OF_POSTGRES) is None
    assert unfit({**OF_POSTGRES, "signal.data.collection": "s", "database.sslmode": "x"}) is None
    assert unfit({**OF_POSTGRES, **changed})


def test_names_that_kafka_takes_for_the_same_clash() -> None:
    assert clash({"east.a_b", "east.c"}, {"east.a.b"}) == {"east.a_b"}


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("64", 64), ("0", None), ("65", None), ("x", None), ("²", None)]
)
def test_a_number_of_tasks_is_small(text: str, number: int | None) -> None:
    assert tasks({"tasks.max": text}) == number


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db.test/reports", ("postgres://db.test:5432", "reports.public.east_users")),
        ("postgresql://db.test:1/r", ("postgres://db.test:1", "r.public.east_users")),
        ("postgresql://[::1]:1/r", ("postgres://[::1]:1", "r.public.east_users")),
        ("postgresql://a:1/r?ssl=true&currentSchema=s", ("postgres://a:1", "r.s.east_users")),
        ("mariadb://db.test/shop", ("mysql://db.test:3306", "shop.east_users")),
    ],
)
def test_a_filled_table_is_named_as_openlineage_does(url: str, expected: tuple[str, str]) -> None:
    config = {**SINK, "topics": "east.users", "connection.url": f"jdbc:{url}"}
    (found,) = filled(config)
    assert (found.namespace, found.name) == expected
