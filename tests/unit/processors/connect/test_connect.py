"""What is said to Kafka Connect, and what is made of its answers."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import repeat
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Self

import psycopg
import pytest

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from mesh_events.errors import InfrastructureError, InvalidValueError, RefusedError
from processors.connect import captured_tables, databases, rest, sink_tables
from processors.connect.cluster import ConnectCluster, is_plainly_at
from processors.connect.reachable import Reachable
from processors.connect.rest import Connect, Part, cause
from processors.connect.secrets import UNUSED_S, ConnectSecrets
from projections.connectors.config import JDBC_SINK, POSTGRES
from self_service.cli.connect import debezium
from self_service.cli.connect.databases import Database

PLACE, NAME = "127.0.0.1:5432", "east.shop"
SOURCE = {
    "connector.class": POSTGRES,
    "database.hostname": "127.0.0.1",
    "database.port": "5432",
    "database.user": "postgres",
    "database.dbname": "east",
    "database.password": SHARED_SECRET,
    "publication.autocreate.mode": "disabled",
}
SINK = {
    "connector.class": JDBC_SINK,
    "connection.url": f"jdbc:postgresql://{PLACE}/east",
    "primary.key.mode": "record_key",
    "insert.mode": "upsert",
    "connection.username": "postgres",
    "connection.password": SHARED_SECRET,
}


CONNECT = "org.apache.kafka.connect.errors.ConnectException"
PSQL = "org.postgresql.util.PSQLException"
MASKED = "org.apache.kafka.connect.errors.DataException: Cannot mask value of type"
RULE_VIOLATION = "io.apicurio.registry.rest.client.exception.RuleViolationException"


def test_the_cause_of_a_failure_is_its_last_one() -> None:
    trace = "org.A: task died\n\tat x\nCaused by: org.DataException: bad Anna.\n\tat y"
    assert cause(Part(0, "FAILED", trace)) == "DataException"
    assert cause(Part(0, "FAILED")) == "FAILED"
    told = cause(Part(0, "FAILED", f"{RULE_VIOLATION}: Incompatible artifact: east.t-value."))
    assert told.startswith("RuleViolationException; the primary key or a type in the table changed")


def test_an_answer_that_is_too_large_is_told_with_the_way_out() -> None:
    large = "mesh.AnswerTooLargeException: the database sent more than 16777216 bytes at once"
    told = cause(Part(0, "FAILED", f"{PSQL}: An I/O error\n\tat x\nCaused by: {large}\n\tat y"))
    assert "--set snapshot.fetch.size=50" in told


def test_a_slot_that_is_gone_is_told_with_the_way_out() -> None:
    gone = "The connector is trying to read change stream starting at X, but this is no longer"
    told = cause(Part(0, "FAILED", f"io.debezium.DebeziumException: {gone} available\n\tat x"))
    assert told.startswith("DebeziumException; the connector's replication slot is gone")


def test_a_value_that_cannot_be_converted_is_reported_with_its_column() -> None:
    """And not with what follows in the trace, which can quote the value."""
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: stopped\n\tat x\n"
        "Caused by: io.debezium.DebeziumException: Failed to properly convert data value for "
        "'shop.rows.n' of type numeric\n\tat y\n"
        "Caused by: java.lang.NumberFormatException: secret\n\tat z"
    )
    told = cause(Part(0, "FAILED", trace))
    assert told.startswith("NumberFormatException; column shop.rows.n; the value has none")
    assert "secret" not in told


@pytest.mark.parametrize(
    ("kind", "is_array"),
    [
        ("_numeric", True),
        ('"shop"."_mood"', True),
        ("numeric", False),
        ('"_shop"."amount"', False),
        ("x of type _numeric", False),
    ],
)
def test_a_value_in_an_array_that_cannot_be_converted_has_advice_of_its_own(
    kind: str, is_array: bool
) -> None:
    failed = "io.debezium.DebeziumException: Failed to properly convert data value for"
    told = cause(Part(0, "FAILED", f"{failed} 'shop.rows.m' of type {kind}\n\tat y"))
    assert ("a NULL in one of an enum" in told) is is_array
    assert ("decimal.handling.mode" in told) is not is_array


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            "23514 schema=public table=users constraint=short",
            "SQLSTATE 23514 (check_violation), schema public, table users, constraint short",
        ),
        (
            "23502 table=users column=phone",
            "SQLSTATE 23502 (not_null_violation), table users, column phone",
        ),
        ("22001", "SQLSTATE 22001 (string_data_right_truncation)"),
        ("XX9X9 table=a;b", "SQLSTATE XX9X9"),
        (
            "23505 schema=public table=Order Items constraint=one",
            "SQLSTATE 23505 (unique_violation), schema public, constraint one",
        ),
    ],
)
def test_an_error_of_a_database_is_reported_by_its_code_and_names(told: str, shown: str) -> None:
    """And without its message, which quotes the row."""
    trace = (
        f"org.A: x\n\tat x\nCaused by: {PSQL}: ERROR: (3, Anna)\nSQLSTATE: 99999\n\tat x\n"
        f"Caused by: {PSQL}: ERROR: (3, Anna)\nSQLSTATE: {told}\n\tat y"
    )
    assert cause(Part(0, "FAILED", trace)) == f"PSQLException; {shown}"


@pytest.mark.parametrize("code", ["name_not_plain", "default_not_plain", "parameter_not_plain"])
def test_what_is_not_plain_is_reported_with_its_place_and_field(code: str) -> None:
    refusal = f"{code}: east.a_b.c-11 at offset 7: b\\u0022\\u0020int"
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded\n\tat x\n"
        f"Caused by: mesh.RefusedException: {refusal}: a sink\n\tat y"
    )
    assert cause(Part(0, "FAILED", trace)).startswith(f"{refusal}; a JDBC sink would put it into")


def test_what_a_sinks_table_cannot_have_is_reported_with_its_place_or_column() -> None:
    value = "value_not_exact: east.t-0 at offset 7: at"
    told = cause(
        Part(0, "FAILED", f"org.A: x\nCaused by: mesh.RefusedException: {value}: no 24:00")
    )
    assert told.startswith(f"{value}; the table cannot have the value")
    column = "column_not_exact: public.east_t.k"
    told = cause(Part(0, "FAILED", f"org.A: x\nCaused by: mesh.RefusedException: {column}: rounds"))
    assert told.startswith(f"{column}; run ALTER TABLE")


def test_a_dead_letter_that_is_not_written_is_reported_with_its_topic() -> None:
    refusal = "dead_letter_not_written: east.orders.dead: RecordTooLargeException"
    told = cause(Part(0, "FAILED", f"mesh.RefusedException: {refusal}: \n\tat x"))
    assert told.startswith(f"{refusal}; the record stays unread until it is there: ")
    assert "max.message.bytes=17825792" in told


@pytest.mark.parametrize(
    "changed",
    [
        {"database.hostname": "elsewhere"},
        {"database.port": "5433"},
        {"database.dbname": "east?PGHOST=elsewhere"},
        {"database.dbname": "east\n"},
        {"database.socketFactory": "org.example.Elsewhere"},
        {"driver.socketFactory": "org.example.Elsewhere"},
        {"database.initial.statements": "SELECT 1"},
        {"heartbeat.action.query": "SELECT 1"},
        {"snapshot.select.statement.overrides": "public.users"},
        {"signal.data.collection": "x"},
        {"something.new": "x"},
    ],
)
def test_the_shared_password_reads_tables_of_its_own_database_only(changed: dict[str, str]) -> None:
    assert is_plainly_at(SOURCE, PLACE)
    assert not is_plainly_at({**SOURCE, **changed}, PLACE)
    assert not is_plainly_at(SOURCE, None)


@pytest.mark.parametrize(
    "changed",
    [
        {"connection.url": f"jdbc:postgresql://{PLACE}/east?socketFactory=x"},
        {"connection.url": f"jdbc:postgresql://{PLACE},elsewhere/east"},
        {"connection.url": f"jdbc:postgresql://{PLACE}/x/east"},
        {"connection.url": "jdbc:postgresql://elsewhere:5432/east"},
        {"connection.url": f"jdbc:mysql://{PLACE}/east"},
        {"connection.provider": "org.example.Elsewhere"},
        {"hibernate.connection.url": "jdbc:x"},
        {"connector.class": "org.example.Other"},
    ],
)
def test_the_shared_password_writes_tables_of_its_own_database_only(
    changed: dict[str, str],
) -> None:
    assert is_plainly_at(SINK, PLACE)
    assert not is_plainly_at({**SINK, **changed}, PLACE)


def test_a_stored_secret_is_the_connectors_own_until_it_is_forgotten(tmp_path: Path) -> None:
    secrets = ConnectSecrets(tmp_path / "connectors")
    named = secrets.store(NAME, "s3cret")
    version = named.removeprefix("${secret:own/").removesuffix("}")
    kept = tmp_path / "connectors" / "own" / NAME / version
    assert kept.read_text() == "s3cret"
    assert kept.stat().st_mode & 0o777 == 0o600
    config = secrets.resolved(NAME, {"a": named, "b": f"{named} ", "c": "plain"})
    assert config == {
        "a": f"${{dir:{kept.parent}:{kept.name}}}",
        "b": f"{named} ",
        "c": "plain",
    }
    assert secrets.text("east.store", named) is None
    assert secrets.text(NAME, OWN_SECRET) is None
    secrets.forget(NAME, "east", "p")
    secrets.forget(NAME, "east", "p")
    assert not kept.exists()


def test_the_only_secret_of_a_connector_from_before_versions_is_found(tmp_path: Path) -> None:
    secrets = ConnectSecrets(tmp_path)
    (tmp_path / f"connector-{NAME}").write_text("old")
    assert secrets.text(NAME, OWN_SECRET) == "old"
    # also where its last config named another one
    secrets.store(NAME, "new")
    secrets.forget(NAME, "east", "p")
    assert secrets.text(NAME, OWN_SECRET) is None
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


def test_a_secret_that_no_config_has_is_removed_an_hour_later(tmp_path: Path) -> None:
    """Whoever updates the connector at the same time may still name it."""
    secrets = ConnectSecrets(tmp_path)
    first, second = (secrets.store(NAME, text) for text in ("first", "second"))
    before, after = (secrets.resolved(NAME, {"a": one}) for one in (first, second))
    hour = time.time() - 2 * UNUSED_S
    for one in (tmp_path / "own" / NAME).iterdir():
        os.utime(one, (hour, hour))
    secrets.replaced(NAME, before, after)
    secrets.sweep(NAME, after.values())
    assert (secrets.text(NAME, first), secrets.text(NAME, second)) == ("first", "second")
    for one in (tmp_path / "own" / NAME).iterdir():
        os.utime(one, (hour, hour))
    (tmp_path / f"proposed-{NAME}").write_text("from an earlier version")
    os.utime(tmp_path / f"proposed-{NAME}", (hour, hour))
    secrets.sweep(NAME, after.values())
    assert (secrets.text(NAME, first), secrets.text(NAME, second)) == (None, "second")
    assert not (tmp_path / f"proposed-{NAME}").exists()


def test_a_database_that_never_answers_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_PATIENCE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        config = {**SOURCE, "database.port": port, "table.include.list": "public.users"}
        assert not captured_tables.require_tables(config, "s3cret")


class MemoryDatabase:
    """A connection to a database that answers each query with no rows, or with so many columns."""

    columns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cursor(self) -> Self:
        return self

    def stream(self, query: str, *_: object) -> Iterator[tuple[str, ...]]:
        """Rows of a query; see `psycopg.Cursor`."""
        return repeat(("x",), self.columns if "a.attname" in query else 0)


def test_what_a_look_at_a_database_refuses_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    database = MemoryDatabase()
    database.columns = 20_001
    monkeypatch.setattr(psycopg, "connect", lambda **_: database)
    config = {**SOURCE, "table.include.list": "public.users"}
    with pytest.raises(RefusedError) as refused:
        captured_tables.require_tables(config, "s3cret")
    assert refused.value.code == "too_many_columns"


def test_a_look_that_ends_with_any_other_error_found_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psycopg, "connect", lambda **_: MemoryDatabase())
    ended: list[object] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)

    def look(_: object) -> None:
        raise LookupError

    assert databases.ask(look, databases.Login("h", "1", "u", "d", "p")) is None
    assert not ended


@pytest.mark.parametrize(
    ("config", "sslmode"),
    [
        ({**SOURCE, "database.sslmode": "verify-full"}, "verify-full"),
        (SOURCE, None),
        *(
            ({**SINK, "connection.url": f"jdbc:postgresql://{PLACE}/east{said}"}, sslmode)
            for said, sslmode in (
                ("?sslmode=verify-full", "verify-full"),
                ("?ssl=true&currentSchema=shop", "verify-full"),
                ("?ssl=", "verify-full"),
                ("?sslmode=require&ssl=true", "require"),
                ("?sslmode=disable&sslmode=verify-ca", "verify-ca"),
                ("?ssl=false", None),
                ("", None),
            )
        ),
    ],
)
def test_a_database_is_asked_with_the_tls_that_the_config_demands(
    config: dict[str, str], sslmode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def connect(**login: Any) -> None:
        asked.append(login["sslmode"])
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", connect)
    if config["connector.class"] == POSTGRES:
        assert captured_tables.require_tables(config, "s3cret") is None
    else:
        assert not sink_tables.require_sink(config, "s3cret")
    assert asked == [sslmode]


@pytest.mark.parametrize(
    "told",
    [
        "the database system is starting up",
        "the database system is not yet accepting connections",
        "sorry, too many clients already",
        'too many connections for role "shop"',
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_a_database_that_lets_nobody_in_for_a_while_refuses_no_login(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(**_: Any) -> None:
        raise psycopg.OperationalError(f"connection failed: FATAL:  {told}")

    monkeypatch.setattr(psycopg, "connect", connect)
    assert captured_tables.require_tables(SOURCE, "s3cret") is None


def test_a_stored_secret_is_no_reference_itself(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="reference again") as caught:
        ConnectSecrets(tmp_path).store(NAME, "${dir:/home/connectors/logins/west:west}")
    assert "west" not in str(caught.value)


class Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks to another path, and notes what was asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(307)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Strange(Elsewhere):
    """Answers with something that is no answer of Connect's."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"<html>")


def test_an_answer_that_is_not_connects_is_told_as_such() -> None:
    with HTTPServer(("127.0.0.1", 0), Strange) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(InfrastructureError, match="is not Kafka Connect"):
            Connect(f"http://127.0.0.1:{server.server_port}", ("admin", "x")).deployed()
        thread.join()


def test_an_answer_that_sends_elsewhere_is_an_error_and_not_followed() -> None:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            with pytest.raises(InfrastructureError, match="answered 307"):
                Connect(f"http://127.0.0.1:{server.server_port}", ("admin", "x")).deployed()
        finally:
            server.shutdown()
            thread.join()
    assert [path.partition("?")[0] for path in Elsewhere.asked] == ["/connectors"]


class Dripping(Elsewhere):
    """Answers a byte at a time, and does not come to an end."""

    begins: bytes
    ends: threading.Event

    def do_GET(self) -> None:
        with suppress(OSError):
            self.wfile.write(self.begins)
            while not self.ends.wait(0.02):
                self.wfile.write(b" ")


@pytest.mark.parametrize(
    "begins",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nA: ",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n{}",
    ],
    ids=["status line", "header", "body", "body with a length"],
)
def test_an_answer_of_connects_that_comes_by_drops_ends_when_its_time_is_over(
    begins: bytes,
) -> None:
    ends = threading.Event()
    handler = type("Handler", (Dripping,), {"begins": begins, "ends": ends})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        late = threading.Timer(20, ends.set)
        late.start()
        connect = Connect(f"http://127.0.0.1:{server.server_port}", ("admin", "x"))
        try:
            with pytest.raises(InfrastructureError, match="does not answer"):
                connect.deployed(patience_s=0.3)
            assert not ends.is_set()
        finally:
            late.cancel()
            ends.set()
            thread.join()


class Flooding(Elsewhere):
    """Answers for as long as somebody reads."""

    sent = 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while type(self).sent < 100 * 2**20:
                type(self).sent += self.wfile.write(b" " * 65_536)


def test_an_answer_of_connects_without_an_end_is_read_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rest, "LONGEST_ANSWER", 1_000_000)
    with HTTPServer(("127.0.0.1", 0), Flooding) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(InfrastructureError, match=r"does not answer .AnswerTooLargeError"):
            Connect(f"http://127.0.0.1:{server.server_port}", ("admin", "x")).deployed()
        thread.join()
    assert Flooding.sent < 50 * 2**20


def test_the_columns_that_an_outbox_needs_follow_from_its_config() -> None:
    source = Database(host="h", port=1, user="u", name="n", is_shared=True)
    made = debezium.outbox("east.events", "outbox", source)
    assert captured_tables.outbox_columns(made) == [
        *("id", "aggregatetype", "aggregateid", "payload", "type")
    ]
    other = {**made, "transforms.outbox.route.by.field": "kind"}
    assert captured_tables.outbox_columns(other)[1] == "kind"
    some = {**made, "transforms.outbox.predicate": "isOutbox"}
    assert captured_tables.outbox_columns(some) == []
    assert captured_tables.outbox_columns(debezium.config("east.users", ["users"], source)) == []


def cluster(tmp_path: Path, **more: Any) -> ConnectCluster:
    api = Connect("http://127.0.0.1:1", ("admin", "x"))
    return ConnectCluster(api, ConnectSecrets(tmp_path), "workers", PLACE, **more)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        *(("127.0.0.1", "5433"), ("127.0.0.2", "5432"), ("2130706433", "5432")),
        *(("db.example", "5432"), ("evildb.example", "5432"), ("/run/postgresql", "5432")),
        *(("a.db.example,evil", "5432"), ("169.254.169.254", "80"), ("", "5432")),
    ],
)
def test_a_database_that_the_operator_has_not_named_is_refused(
    tmp_path: Path, host: str, port: str
) -> None:
    found = cluster(tmp_path, databases=(Reachable.of("*.db.example:5432"),))
    config = {**SOURCE, "database.hostname": host, "database.port": port}
    with pytest.raises(RefusedError, match="SDM_CONNECT_DATABASES") as refused:
        found.require_place(NAME, config)
    assert refused.value.code == "database_not_allowed"
    assert not host or host not in str(refused.value)


def test_the_shared_database_and_those_that_the_operator_names_are_reached(tmp_path: Path) -> None:
    found = cluster(tmp_path, databases=(Reachable.of("*.db.example:5432"),))
    for config in (
        SOURCE,
        {**SOURCE, "database.hostname": "a.DB.example"},
        SINK,
        {**SINK, "connection.url": "jdbc:postgresql://a.db.example/x"},
    ):
        found.require_place(NAME, config)


@pytest.mark.parametrize(
    ("entry", "database", "is_admitted"),
    [
        ("db.example:5432=east", "shop", True),
        ("db.example:5432=north,east", "shop", True),
        ("db.example:5432=north", "shop", False),
        ("db.example:5432=eas", "shop", False),
        ("db.example:5432/shop", "shop", True),
        ("db.example:5432/shop", "shop2", False),
        ("db.example:5432/shop", "SHOP", False),
        ("db.example:5432/shop=east", "shop", True),
        ("db.example:5432/shop=north", "shop", False),
        ("db.example:5432/other=east", "shop", False),
    ],
)
def test_a_database_is_reached_by_the_domains_that_the_operator_names_for_it(
    tmp_path: Path, entry: str, database: str, is_admitted: bool
) -> None:
    found = cluster(tmp_path, databases=(Reachable.of(entry),))
    source = {**SOURCE, "database.hostname": "db.example", "database.dbname": database}
    sink = {**SINK, "connection.url": f"jdbc:postgresql://db.example/{database}"}
    assert NAME.startswith("east.")
    assert found.may_reach(NAME, source) is is_admitted
    assert found.may_reach(NAME, sink) is is_admitted


@pytest.mark.parametrize(
    "text",
    ["db.example", "db.example:0", "db.example:70000", "db.example:5432/", "db.example:5432=",
     "db.example:5432=West", "db.example:5432/a=b=c", "a,b:5432", "*:5432", "db.example:5432 "],
)  # fmt: skip
def test_an_entry_of_another_form_is_refused_with_the_forms_that_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="host:port/database=domain,domain"):
        Reachable.of(text)


def test_no_server_is_called_for_a_database_that_is_not_allowed(tmp_path: Path) -> None:
    config = {**SOURCE, "database.hostname": "elsewhere"}
    found = cluster(tmp_path)
    found.api.plugin = lambda *_: {"class": POSTGRES, "type": "source", "version": "1"}  # type: ignore[method-assign]
    with pytest.raises(RefusedError) as refused:
        found.require_sound(NAME, config)
    assert refused.value.code == "database_not_allowed"


def test_a_class_of_the_operators_has_the_settings_that_the_operator_names(tmp_path: Path) -> None:
    kind = "org.example.Sink"
    found = cluster(tmp_path, classes={kind: ["bucket"]})
    found.api.plugin = lambda *_: {"class": kind, "type": "sink", "version": "1"}  # type: ignore[method-assign]
    found.api.faults = lambda *_: {}  # type: ignore[method-assign]
    config = {"connector.class": kind, "topics": "east.a", "bucket": "b"}
    assert found.require_sound(NAME, config)["class"] == kind
    for other, code in (
        ({**config, "url": "http://x"}, "setting_not_allowed"),
        ({**config, "connector.class": "org.example.Other"}, "class_not_allowed"),
    ):
        with pytest.raises(RefusedError) as refused:
            found.require_sound(NAME, other)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("trace", "way"),
    [
        (
            "org.hibernate.HibernateException: Unable to determine Dialect without JDBC metadata (",
            "refuses the login",
        ),
        (
            f"{CONNECT}: Configured primary key mode 'record_key' cannot have null schema",
            "--key position",
        ),
        (
            f"{CONNECT}: Configured primary key mode 'record_key' cannot have null schema",
            'or one that is a single value, as of the schema "string"',
        ),
        (
            f"{PSQL}: ERROR: there is no unique or exclusion constraint matching the ON CONFLICT s",
            "no primary key",
        ),
        (f'{PSQL}: FATAL: password authentication failed for user "x"', "refuses the user"),
        (f'{PSQL}: ERROR: replication slot "a_b" is active for PID 7', "reads the replication"),
        ("mesh.RefusedException: table_truncated: public.users was tr", "skipped.operations=t"),
        ("mesh.RefusedException: value_not_captured: a.b.c: left out", "REPLICA IDENTITY FULL"),
        ("mesh.RefusedException: name_not_plain: east.a-0 at offset 7: b: x", "ReplaceField"),
        ("mesh.RefusedException: topic_not_own: east: a record leads", "what the rows of an out"),
        (
            "mesh.RefusedException: text_not_utf8: a text: its",
            "text_not_utf8: a text; a text of the record has bytes that stand for no character",
        ),
        ("mesh.RefusedException: value_not_exact: a number: its", "value_not_exact: a number; the"),
        (
            "mesh.RefusedException: change_ambiguous: east.a-0 at offset 7: op: it",
            "c, r or u with a",
        ),
        ("mesh.RefusedError: payload_not_exact: order-id: no", "payload_not_exact: order-id; the"),
        (
            "mesh.RefusedException: source_gap: east.a-0 at offset 7: records",
            "source_gap: east.a-0 at offset 7; the topic's retention or its owner",
        ),
        ("mesh.RefusedException: schema_ambiguous: a decimal: it", "has the one that is meant"),
        (
            "mesh.RefusedException: schema_ambiguous: a default: n has",
            "schema_ambiguous: a default; what Avro reads",
        ),
        (
            "mesh.RefusedException: slot_lost: sdm_east_shop: its",
            "slot_lost: sdm_east_shop; PostgreSQL has given the replication slot up",
        ),
        ("mesh.RefusedException: pattern_too_slow: column a: the", "pattern_too_slow: column a; "),
        (
            "mesh.RefusedError: publication_lost: sdm_east_shop: it was",
            "publication_lost: sdm_east_shop; PostgreSQL goes on without it",
        ),
        (
            "mesh.RefusedException: position_lost: a transaction: the database's log",
            "position_lost: a transaction; the server or its slot is another one",
        ),
        (
            f"{MASKED}: class java.nio.HeapByteBuffer",
            "DataException; MaskField masks texts, numbers",
        ),
        (f"{MASKED} class [B with custom replacement.", "no bytes (bytea, bit)"),
        (
            "mesh.RefusedException: time_not_milliseconds: MicroTimestamp: TimestampConverter",
            "time_not_milliseconds: MicroTimestamp; TimestampConverter would take",
        ),
        ("mesh.RefusedException: log_behind: shop: its", "log_behind: shop; the server was set"),
        (
            "mesh.RefusedException: database_is_standby: a database: a",
            "database_is_standby: a database; make the publication at the primary",
        ),
        (
            "mesh.RefusedException: key_lost: public.users: it had a primary key when",
            "key_lost: public.users; the table has no primary key any more, or one of other",
        ),
        (
            "mesh.RefusedError: key_changed: east.users: the keys in the topic have other",
            "key_changed: east.users; the table's primary key has other columns than the latest",
        ),
        (
            "mesh.RefusedException: table_renamed: public.users_2: the publication has it by",
            "table_renamed: public.users_2; the connector's publication has the table by another",
        ),
        (
            "mesh.RefusedException: table_recreated: a table: another table has",
            "table_recreated: a table; the publication does not have the table that has the name",
        ),
        (
            "mesh.RefusedException: key_not_captured: public.users: its",
            "key_not_captured: public.users; Debezium knows the type of no column",
        ),
        (
            f'{PSQL}: ERROR: query would be affected by row-level security policy for table "a"',
            "ALTER ROLE ... BYPASSRLS",
        ),
        ("mesh.RefusedException: pattern_too_slow: a text: the", "pattern_too_slow: a text; "),
        (
            "mesh.RefusedException: table_without_identity: shop.a-b$: once",
            "table_without_identity: shop.a-b$; it was not published",
        ),
        (
            "mesh.RefusedException: table_without_identity: a table: once",
            "table_without_identity: a table; ",
        ),
    ],
)
def test_a_failure_that_trying_again_does_not_mend_names_the_way_out(trace: str, way: str) -> None:
    assert way in cause(Part(0, "FAILED", f"org.A: failed\n\tat x\nCaused by: {trace}"))


def test_a_failure_is_told_by_the_refusal_behind_it() -> None:
    """A refusal may have a cause of its own."""
    trace = (
        "org.A: failed\n\tat x\nCaused by: mesh.RefusedError: registry_unavailable: "
        "RestClientException: \n\tat y\nCaused by: io.apicurio.X: refused\n\tat z"
    )
    told = cause(Part(0, "FAILED", trace))
    assert "registry_unavailable: RestClientException; the schema registry did not say" in told


@pytest.mark.parametrize(
    "quoted",
    [
        "table_truncated: public.users: x",
        "mesh.RefusedException: table_truncated: public.users: x",
        "Caused by: mesh.RefusedException: table_truncated: public.users: x",
        "\u2028Caused by: mesh.RefusedException: table_truncated: public.users: x",
        f'{PSQL}: ERROR: replication slot "a" is active for PID 7',
        "ERROR: there is no unique or exclusion constraint matching the ON CONFLICT spec",
        f"{RULE_VIOLATION}: x",
    ],
)
def test_a_known_failure_that_a_message_quotes_is_not_taken_for_the_cause(quoted: str) -> None:
    trace = f"org.A: failed\n\tat x\nCaused by: {PSQL}: ERROR: no row contains ({quoted})\n\tat y"
    assert cause(Part(0, "FAILED", trace)) == "PSQLException"


def test_a_refusal_without_a_way_out_is_its_code_and_place() -> None:
    refusal = "schema_missing: east.a-0 at offset 7: value"
    told = cause(
        Part(0, "FAILED", f"org.A: x\n\tat x\nCaused by: mesh.RefusedException: {refusal}: x")
    )
    assert told == refusal
