"""Connectors through the command line: tables of a real Postgres become topics of a domain."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from mesh_events.intents import domain_of
from mesh_events.references import resolve
from processors.clusters.kafka import KafkaAdmin
from processors.clusters.rights import Resource
from processors.connect.principals import principal_of
from self_service.cli.framework.exits import ExitCode
from tests.integration.connect_owner import owner, shared, worker_of
from tests.integration.test_cli import Party, Sdm, filled, register, sdm
from tests.kafka_client import eventually, fresh, read, reading, seen_within
from tests.mesh_fixtures import connect_worker

pytestmark = pytest.mark.slow

__all__ = ["owner", "sdm"]
OUTBOX = """
CREATE TABLE {} (id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL,
                 type text NOT NULL, payload jsonb NOT NULL)
"""


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A table with one user, and a connection to it."""
    name = f"users_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        names = {"name": sql.Identifier(name)}
        connection.execute(
            sql.SQL("CREATE TABLE {name} (userid int PRIMARY KEY, phone text)").format(**names)
        )
        connection.execute(sql.SQL("ALTER TABLE {name} REPLICA IDENTITY FULL").format(**names))
        connection.execute(sql.SQL("INSERT INTO {name} VALUES (1, 'a')").format(**names))
        yield name, connection
        drop_slots(connection, name)
        connection.execute(sql.SQL("DROP TABLE {name}").format(**names))


def drop_slots(connection: Any, slot: str) -> None:
    """Remove what deleted connectors left in the database, once they have let go."""
    slots = "FROM pg_replication_slots WHERE slot_name LIKE %s"

    def gone() -> bool:
        connection.execute(
            f"SELECT pg_drop_replication_slot(slot_name) {slots} AND NOT active", (f"%{slot}",)
        )
        return connection.execute(f"SELECT 1 {slots}", (f"%{slot}",)).fetchone() is None

    # a task that Kafka refused lets go of the database only when its producer's 30 s are over
    eventually(gone, f"no slot {slot} is in use")


def admin(mesh: Endpoints, cluster: str) -> KafkaAdmin:
    return KafkaAdmin(cluster, mesh.administration(cluster))


def beats_of(connector: str) -> str:
    """The topic of a connector's heartbeats."""
    return f"{connector.partition('.')[0]}.__heartbeat.{connector}"


@pytest.mark.parametrize("cluster", ["east", "west"])
def test_every_change_of_a_table_arrives_at_the_domains_cluster_and_no_secret_is_shown(
    sdm: Sdm,
    cluster: str,
    table: tuple[str, Any],
    mesh: Endpoints,
    settings: PlatformSettings,
) -> None:
    name, database = table
    party = shared(sdm, settings, cluster)
    connector, topic = f"{party.name}.{name}", f"{party.name}.{name}"
    principal = principal_of(connector)
    added = sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres"),
        *("--table", name, "-d", party.name),
    )
    assert (added.document["state"], added.document["connector"]) == ("ACTIVE", connector)
    login = mesh.connect_secrets / "logins" / cluster / principal
    try:
        others_keep_off(sdm, connector, register(sdm, cluster))
        reading = ("topic", "consume", topic, "-d", party.name, "--follow", "--timeout", "240")
        first = sdm(*reading, "--max", "1").lines[0]
        assert (first["key"], first["value"]["after"]) == (
            {"userid": 1},
            {"userid": 1, "phone": "a"},
        )
        database.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
        later = sdm(*reading, "--max", "3").lines
        assert [one["tombstone"] for one in later] == [False, False, True]
        assert later[1]["value"]["op"] == "d"
        shown = sdm("connect", "connector", "describe", connector)
        assert set(shown.document["topics"]) == {topic, beats_of(connector)}
        passwords = [resolve(mesh.postgres_password), login.read_text()]
        told = [added, shown, sdm("connect", "connector", "deployed")]
        kept = "".join(one.out + one.err for one in told) + configs(mesh, connector)
        assert not [password for password in passwords if password in kept]
        versions = sdm("topic", "describe", topic, "-d", party.name).document
        assert versions["key_schema"]
        assert versions["value_schema"]
        tree = sdm("lineage", "show", f"{cluster}/{topic}").document
        [step] = tree["upstream"]
        assert (step["job"], step["name"]) == ("connector", connector)
        assert step["from"][0]["name"] == f"east.public.{name}"
    finally:
        deleted = sdm("connect", "connector", "delete", connector, "-d", party.name)
    assert deleted.document["state"] == "DELETED"
    assert not login.exists()
    assert sdm("connect", "connector", "describe", connector).document["state"] == "DELETED"
    assert not admin(mesh, cluster).rights(principal)


def others_keep_off(sdm: Sdm, connector: str, other: Party) -> None:
    """Another domain can neither delete the connector nor put its own in its place."""
    for changing in (("delete",), ("stop",), ("update", "--set", "a=b")):
        told = sdm(
            *("connect", "connector", changing[0], connector, *changing[1:], "-d", other.name),
            code=ExitCode.REFUSED,
        )
        assert "refused (not_your_domain)" in told.err
    told = sdm(
        *("connect", "connector", "add", connector, "--type", "debezium-postgres"),
        *("--table", "t", "-d", other.name),
        code=ExitCode.REFUSED,
    )
    assert "refused (not_your_domain)" in told.err
    assert sdm("connect", "connector", "describe", connector).document["state"] == "ACTIVE"


def configs(mesh: Endpoints, connector: str) -> str:
    """What Connect keeps of a connector's configs, and of its tasks'."""
    topic = f"connect-configs.{domain_of(connector)}"
    values = read(reading(mesh.administration("east"), fresh("configs")), topic)
    assert not isinstance(values, str), values
    found = [one.decode() for one in values if one and connector.encode() in one]
    assert found
    return "".join(found)


def test_kafka_holds_a_connector_to_what_it_may_write_and_a_failed_task_is_helped(
    sdm: Sdm, table: tuple[str, Any], mesh: Endpoints
) -> None:
    # its transaction ends with its time, and others of its domain wait for that
    owner, (name, database) = register(sdm, "east"), table
    connector, other = f"{owner.name}.{name}", register(sdm, "east")
    foreign = f"{other.name}.{name}"
    adding = (
        *("connect", "connector", "add", name, "--type", "debezium-postgres"),
        *("--table", name, "--set", f"transforms.route.replacement={other.name}.$1"),
        *("-d", owner.name),
    )
    told = sdm(*adding, code=ExitCode.REFUSED)
    assert "foreign_topic" in told.err
    adding = (
        *("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", name),
        *("--set", "transforms=route,away"),
        *("--set", "transforms.away.type=org.apache.kafka.connect.transforms.RegexRouter"),
        *("--set", f"transforms.away.replacement={foreign}", "-d", owner.name),
    )
    regex = f"transforms.away.regex={owner.name}[.]{name}"
    told = sdm(*adding, "--set", regex, code=ExitCode.REFUSED)
    assert "foreign_topic" in told.err
    regex = f"transforms.away.regex={owner.name}[.]__heartbeat[.].*"
    beats = ("--set", "heartbeat.interval.ms=1000")
    told = sdm(*adding, "--set", regex, *beats, code=ExitCode.REFUSED)
    assert "foreign_topic" in told.err

    # where the rows of an outbox lead, nobody sees before they are there
    database.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    database.execute(sql.SQL(OUTBOX).format(sql.Identifier(name)))
    database.execute(
        sql.SQL("INSERT INTO {} VALUES (gen_random_uuid(), %s, '7', 'Paid', '{{}}')").format(
            sql.Identifier(name)
        ),
        (foreign,),
    )
    route = "transforms.outbox.route.topic.replacement"

    def failed() -> bool:
        found = sdm("connect", "connector", "describe", connector).document
        return found["state"] == "FAILED" and "topic_not_own" in found["failure"]

    try:
        sdm(
            *("connect", "connector", "add", name, "--type", "debezium-outbox", "--table", name),
            *("--set", f"{route}=${{routedByValue}}", "-d", owner.name, "--until", "decided"),
        )
        eventually(failed, "the connector has failed")
        assert admin(mesh, "east").topic(foreign) is None
        change = ("update", name, "--set", f"{route}={owner.name}.${{routedByValue}}")
        mended = sdm("connect", "connector", *change, "-d", owner.name)
        assert mended.document["state"] == "ACTIVE"
        led = f"{owner.name}.{foreign}"
        eventually(lambda: admin(mesh, "east").topic(led), f"{led} is there")
    finally:
        sdm("connect", "connector", "delete", connector, "-d", owner.name)


def slot_of(database: Any, name: str, what: str) -> Any:
    """Something of a connector's replication slot."""
    asked = f"SELECT {what} FROM pg_replication_slots WHERE slot_name LIKE %s"
    return database.execute(asked, (f"%{name}",)).fetchone()[0]


def lets_go(database: Any, name: str, until: str) -> None:
    """Write what is not captured, until the slot lets go of the log up to now."""
    [now] = database.execute("SELECT pg_current_wal_lsn()").fetchone()

    def has_let_go() -> bool:
        database.execute("SELECT pg_logical_emit_message(false, 'other', 'x')")
        database.execute("CHECKPOINT")
        return bool(slot_of(database, name, f"{until} > '{now}'::pg_lsn"))

    eventually(has_let_go, f"{until} is behind {now}")


def test_heartbeats_of_a_quiet_table_fill_a_topic_of_the_domain(
    sdm: Sdm, owner: Party, table: tuple[str, Any], mesh: Endpoints
) -> None:
    name, database = table
    connector, own = f"{owner.name}.{name}", ("-d", owner.name)
    topic = beats_of(connector)
    added = sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", name),
        *("--set", "heartbeat.interval.ms=500", *own),
    )
    assert added.document["state"] == "ACTIVE"
    try:
        reading = ("topic", "consume", topic, *own, "--follow", "--timeout", "240", "--max", "3")
        beats = sdm(*reading).lines
        assert all(one["value"]["ts_ms"] for one in beats)
        shown = sdm("connect", "connector", "describe", connector).document
        assert set(shown["topics"]) == {connector, topic}
        lets_go(database, name, "restart_lsn")
        row = sql.SQL("INSERT INTO {} VALUES (%s, 'x')").format(sql.Identifier(name))
        with psycopg.connect(**mesh.postgres_login()) as other:
            # it has begun before what is confirmed, and ends behind it
            other.execute(row, (2,))
            lets_go(database, name, "confirmed_flush_lsn")
            restarted = sdm("connect", "connector", "restart", name, *own).document
            assert restarted["state"] == "ACTIVE"
            other.execute(row, (3,))
            # no change has come since the restart
            lets_go(database, name, "confirmed_flush_lsn")
            confirmed = "confirmed_flush_lsn = pg_current_wal_lsn()"
            # the next change stands at just what is confirmed, unless others write just then
            seen_within(20, lambda: slot_of(database, name, confirmed))
            other.execute(row, (4,))
            sdm("connect", "connector", "restart", name, *own)
        database.execute(row, (5,))
        reading = ("topic", "consume", connector, *own, "--follow", "--timeout", "240")
        rows = sdm(*reading, "--max", "5").lines
        assert [one["key"]["userid"] for one in rows] == [1, 2, 3, 4, 5]
        made = admin(mesh, "east").topic(topic)
        assert made is not None
        assert made.config["retention.ms"] == "3600000"
        assert admin(mesh, "east").topic(f"__debezium-heartbeat.{connector}") is None
        assert sdm("connect", "connector", "describe", connector).document["state"] == "ACTIVE"
    finally:
        sdm("connect", "connector", "delete", connector, *own)


def test_a_task_that_fails_is_started_again_by_itself(
    sdm: Sdm, owner: Party, table: tuple[str, Any]
) -> None:
    name, database = table
    connector, own = f"{owner.name}.{name}", ("-d", owner.name)
    sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", name),
        *("--set", "errors.max.retries=0", *own),
    )

    def described() -> Any:
        return sdm("connect", "connector", "describe", connector).document

    try:
        slot = f"slot_name LIKE '%{name}' AND active"
        ended = f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE {slot}"
        eventually(lambda: database.execute(ended).fetchone(), "the connection is cut")
        eventually(lambda: described()["restarts"], "the task was started again")
        assert described()["state"] == "ACTIVE"
        database.execute(sql.SQL("INSERT INTO {} VALUES (2, 'b')").format(sql.Identifier(name)))
        reading = (
            "topic",
            "consume",
            connector,
            *own,
            "--follow",
            "--timeout",
            "240",
            "--max",
            "2",
        )
        assert [one["key"]["userid"] for one in sdm(*reading).lines] == [1, 2]
        assert (
            "ConnectorFailed"
            in sdm("audit", "log", "--type", "ConnectorFailed", "--domain", owner.name).out
        )
    finally:
        sdm("connect", "connector", "delete", connector, "-d", owner.name)


def test_the_worker_itself_may_only_write_its_own_topics(mesh: Endpoints) -> None:
    topics = {
        right.name
        for cluster in mesh.clusters
        for right in admin(mesh, cluster).rights("connect")
        if right.resource is Resource.TOPIC
    }
    own = {"connect-configs", "connect-offsets", "connect-status"}
    of_domains = {"connect-configs.", "connect-worker-offsets.", "connect-status."}
    assert topics == own | of_domains


def test_a_secret_in_a_config_is_refused(sdm: Sdm, owner: Party) -> None:
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", "database.password=hunter2", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "secret_in_config" in told.err
    assert "hunter2" not in told.err


def test_a_config_that_names_another_domains_topics_is_refused(sdm: Sdm, owner: Party) -> None:
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", f"topic.prefix={owner.name}x.shop", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "foreign_topic" in told.err


def test_connects_own_refusal_is_passed_on(sdm: Sdm, owner: Party, table: tuple[str, Any]) -> None:
    adding = ("connect", "connector", "add", "bad", "--type", "debezium-postgres")
    told = sdm(
        *(*adding, "--table", table[0], "-d", owner.name),
        *("--set", "column.exclude.list=a.b.c"),
        *("--set", f"column.include.list=public.{table[0]}.userid"),
        code=ExitCode.REFUSED,
    )
    assert "invalid_connector" in told.err
    assert "column.exclude.list" in told.err
    told = sdm(
        *(*adding, "--table", table[0], "--set", "database.socketFactory=a.B", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "refused (setting_not_allowed)" in told.err
    assert "database.socketFactory" in told.err


def test_a_database_that_the_operator_has_not_named_is_never_called(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    given, name, topic = tmp_path / "password", fresh("away"), filled(sdm, tmp_path, owner)
    given.write_text("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        place = f"127.0.0.1:{server.getsockname()[1]}"
        told = sdm(
            *("connect", "connector", "add", name, "--type", "jdbc-sink", "--topic", topic),
            *("--host", place, "--user", "u", "--database", "d", "--password", f"file:{given}"),
            *("-d", owner.name),
            code=ExitCode.REFUSED,
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "refused (database_not_allowed)" in told.err
    assert place not in told.err


def test_a_table_whose_changes_cannot_be_told_is_refused_with_the_statement_that_mends_it(
    sdm: Sdm, owner: Party, mesh: Endpoints
) -> None:
    name = f"keyless_{uuid4().hex[:8]}"
    table, full = sql.Identifier(name), f"ALTER TABLE public.{name} REPLICA IDENTITY FULL"
    adding = ("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", name)
    own = ("-d", owner.name)
    # its start takes all of a small machine, and the command asks the database for seconds only
    connect_worker(mesh, owner.name)
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        database.execute(sql.SQL("CREATE TABLE {} (id int, note text)").format(table))
        try:
            told = sdm(*adding, *own, code=ExitCode.REFUSED)
            assert "refused (table_without_identity)" in told.err
            assert full in told.err
            database.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(table))
            told = sdm(*adding, *own, code=ExitCode.REFUSED)
            assert "refused (table_without_full_identity)" in told.err
            assert full in told.err
            database.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table))
            sdm(*adding, "--dry-run", *own)
        finally:
            database.execute(sql.SQL("DROP TABLE {}").format(table))


ODD = ["Mixed", "mixed", "x$y", "order lines", "Zoë ☃", "a(b)*+|d", "axy"]


def test_a_table_is_captured_by_its_exact_name_and_no_other_is(sdm: Sdm, mesh: Endpoints) -> None:
    owner = register(sdm, "east")
    schema, own = f"odd_{uuid4().hex[:8]}", ("-d", owner.name)
    wanted = ["mixed", "x$y", "order lines", "Zoë ☃", "a(b)*+|d"]
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        database.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for table in ODD:
            place = sql.Identifier(schema, table)
            database.execute(sql.SQL('CREATE TABLE {} ("a b" int PRIMARY KEY)').format(place))
            database.execute(sql.SQL("INSERT INTO {} VALUES (1)").format(place))
        named = [word for table in wanted for word in ("--table", f"{schema}.{table}")]
        try:
            adding = ("connect", "connector", "add", schema, "--type", "debezium-postgres")
            sdm(*adding, *named, *own)
            slot = f"%{schema}"
            found = "SELECT tablename FROM pg_publication_tables WHERE pubname LIKE %s"
            published = {row[0] for row in database.execute(found, (slot,)).fetchall()}
            assert published == set(wanted)
            topics = {f"{owner.name}.{name}" for name in
                      ("mixed", "x_y", "order_lines", "Zo___", "a_b____d")}  # fmt: skip

            def captured() -> set[str]:
                listed = sdm("topic", "list", *own).document
                return {one["topic"] for one in listed if "__heartbeat" not in one["topic"]}

            eventually(lambda: len(captured()) >= len(wanted), "the tables are captured")
            names = captured()
            described = sdm("connect", "connector", "describe", f"{owner.name}.{schema}").document
            assert len(names) == len(wanted), names
            assert f"{owner.name}.Mixed" not in names
            assert f"{owner.name}.axy" not in names
            found = {*described["topics"]} - {beats_of(described["connector"])}
            assert names == found == topics, (names, described["topics"])
        finally:
            sdm("connect", "connector", "delete", schema, *own)
            drop_slots(database, schema)
            database.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def test_a_connector_brings_no_login_of_its_own(sdm: Sdm, owner: Party) -> None:
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", "producer.override.bootstrap.servers=elsewhere:9092", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "foreign_login" in told.err
    assert "producer.override.bootstrap.servers" in told.err


@pytest.mark.parametrize("slashes", ["/", "//", "/./"])
def test_a_connector_carries_no_other_domains_password_away(
    sdm: Sdm, owner: Party, mesh: Endpoints, slashes: str
) -> None:
    other = register(sdm, "west")
    folder = f"{slashes}{str(mesh.connect_secrets)[1:]}/logins/west"
    insert = "transforms.insert"
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", "transforms=route,insert", "--set", f"{insert}.header=x"),
        *("--set", f"{insert}.type=org.apache.kafka.connect.transforms.InsertHeader"),
        *("--set", f"{insert}.value.literal=${{dir:{folder}:{other.name}}}", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "refused (foreign_secret)" in told.err
    assert "transforms.insert.value.literal" in told.err


def test_a_refused_connector_leaves_no_secret_behind(
    sdm: Sdm, owner: Party, mesh: Endpoints, tmp_path: Path
) -> None:
    given = tmp_path / "password"
    given.write_text("s3cret")
    name = f"bad-{uuid4().hex[:8]}"
    sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", "t"),
        *("--password", f"file:{given}", "--set", "database.port=none", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert not (mesh.connect_secrets / f"connector-{owner.name}.{name}").exists()
    assert not (mesh.connect_secrets / "logins" / "east" / principal_of(name)).exists()


def test_a_wrong_password_of_a_database_is_told_before_anything_is_deployed(
    sdm: Sdm, owner: Party, mesh: Endpoints, tmp_path: Path
) -> None:
    given, name = tmp_path / "password", fresh("wrong")
    given.write_text("s3cret")
    login = mesh.postgres_login()
    told = sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres", "--table", "t"),
        *("--host", f"{login['host']}:{login['port']}", "--user", login["user"]),
        *("--database", login["dbname"], "--password", f"file:{given}", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "refused (database_refused)" in told.err
    assert "password authentication failed" in told.err
    assert "s3cret" not in told.err
    assert name not in str(sdm("connect", "connector", "deployed").document)


def test_a_table_that_is_not_there_is_named_before_anything_is_deployed(
    sdm: Sdm, owner: Party, table: tuple[str, Any]
) -> None:
    name = fresh("missing")
    told = sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres"),
        *("--table", "no_such_table", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "unknown_table" in told.err
    assert f"public.{table[0]}" in told.err
    told = sdm(
        *("connect", "connector", "add", name, "--type", "debezium-outbox"),
        *("--table", table[0], "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "unknown_column" in told.err
    assert (
        f"the table public.{table[0]} is no outbox: it has no column id, aggregatetype, "
        in told.err
    )
    assert name not in str(sdm("connect", "connector", "deployed").document)


def test_a_connector_stands_still_goes_on_and_is_changed(
    sdm: Sdm, owner: Party, table: tuple[str, Any], tmp_path: Path
) -> None:
    name, database = table
    connector, own, noun = f"{owner.name}.{name}", ("-d", owner.name), ("connect", "connector")
    adding = ("add", name, "--type", "debezium-postgres", "--table", name)
    checked = sdm(*noun, *adding, "--dry-run", *own).document
    assert (checked["valid"], checked["faults"]) == (True, [])
    sdm(*noun, "describe", connector, code=ExitCode.NOT_FOUND)
    sdm(*noun, *adding, *own)
    # the same again is no other one
    sdm(*noun, *adding, *own)
    told = sdm(*noun, *adding, "--set", "poll.interval.ms=66", *own, code=ExitCode.REFUSED)
    assert "connector_exists" in told.err
    assert sdm("topic", "describe", connector, *own).document["filled_by"] == [connector]
    tombstone = ("topic", "produce", connector, "--key", '{"userid": 1}', "--tombstone", *own)
    refused = sdm(*tombstone, code=ExitCode.REFUSED).err
    assert f"{connector} is filled by the connector {connector}, and its readers" in refused
    replaced = sdm(*noun, *adding, "--set", "poll.interval.ms=66", "--replace", *own).document
    assert {"setting": "poll.interval.ms", "value": "66"} in replaced["config"]
    try:
        assert sdm(*noun, "stop", name, *own).document["state"] == "STOPPED"
        assert sdm(*noun, "describe", connector).document["in_connect"].startswith("STOPPED")
        database.execute(sql.SQL("INSERT INTO {} VALUES (2, 'b')").format(sql.Identifier(name)))
        assert sdm(*noun, "start", name, *own).document["state"] == "ACTIVE"
        reading = (
            "topic",
            "consume",
            connector,
            *own,
            "--follow",
            "--timeout",
            "240",
            "--max",
            "2",
        )
        assert [one["key"]["userid"] for one in sdm(*reading).lines] == [1, 2]

        changed = sdm(*noun, "update", name, "--set", "poll.interval.ms=77", *own).document
        assert {"setting": "poll.interval.ms", "value": "77"} in changed["config"]
        wrong = tmp_path / "wrong"
        wrong.write_text("wrong")
        for bad, code in (
            (("--set", "plugin.name=none"), ExitCode.REFUSED),
            (("--set", "plugin.name=none", "--dry-run"), ExitCode.REFUSED),
            (("--unset", "no.such.setting"), ExitCode.USAGE),
            (("--set", "producer.override.sasl.jaas.config=x"), ExitCode.REFUSED),
            (("--set", "database.password=${secret:own}"), ExitCode.REFUSED),
            ((), ExitCode.USAGE),
        ):
            sdm(*noun, "update", name, *bad, *own, code=code)
        # the first password is none of its own, and the wrong one must not stay
        told = sdm(
            *(*noun, "update", name, "--password", f"file:{wrong}", *own),
            *("--set", "database.password=${secret:own}"),
            code=ExitCode.REFUSED,
        )
        assert "database_refused" in told.err
        again = (*noun, "update", name, "--set", "database.password=${secret:own}", *own)
        assert "there is no secret" in sdm(*again, code=ExitCode.REFUSED).err
        settings = sdm(*noun, "describe", connector).document["config"]
        deployed = {one["setting"]: one["value"] for one in settings}
        assert deployed["poll.interval.ms"] == "77"
        assert deployed["plugin.name"] != "none"
        sdm(*noun, "update", name, "--unset", "poll.interval.ms", *own)
        settings = sdm(*noun, "describe", connector).document["config"]
        assert "poll.interval.ms" not in [one["setting"] for one in settings]
        assert sdm(*noun, "restart", name, *own).document["state"] == "ACTIVE"
    finally:
        sdm(*noun, "delete", name, *own)


def test_events_of_an_outbox_leave_with_their_transaction_and_in_its_order(
    sdm: Sdm, owner: Party, mesh: Endpoints
) -> None:
    name = f"outbox_{uuid4().hex[:8]}"
    table, own, noun = sql.Identifier(name), ("-d", owner.name), ("connect", "connector")
    insert = sql.SQL("INSERT INTO {} VALUES (gen_random_uuid(), 'order', %s, %s, %s)").format(table)
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        database.execute(sql.SQL(OUTBOX).format(table))

        def say(order: str, what: str, total: int) -> None:
            database.execute(insert, (order, what, f'{{"order": "{order}", "total": {total}}}'))

        sdm(*noun, "add", name, "--type", "debezium-outbox", "--table", name, *own)
        try:
            with database.transaction():
                say("7", "OrderPlaced", 10)
                say("8", "OrderPlaced", 20)
                # what is tidied up at once has left all the same
                database.execute(sql.SQL("DELETE FROM {}").format(table))
            with database.transaction(force_rollback=True):
                say("9", "OrderPlaced", 30)
            say("7", "OrderPaid", 10)
            reading = ("topic", "consume", f"{owner.name}.order", *own, "--follow", "--headers")
            told = sdm(*reading, "--timeout", "240", "--max", "3").lines
            assert [(one["key"], one["value"]["total"]) for one in told] == [
                ("7", 10), ("8", 20), ("7", 10),
            ]  # fmt: skip
            headers = [dict(one["headers"]) for one in told]
            assert [one["eventType"] for one in headers] == [
                "OrderPlaced", "OrderPlaced", "OrderPaid",
            ]  # fmt: skip
            assert len({one["id"] for one in headers}) == 3
        finally:
            sdm(*noun, "delete", name, *own)
            drop_slots(database, name)
            database.execute(sql.SQL("DROP TABLE {}").format(table))


def test_a_sink_fills_a_table_once_and_keeps_what_it_cannot_read(
    sdm: Sdm, owner: Party, table: tuple[str, Any], mesh: Endpoints
) -> None:
    name, database = table
    own, noun = ("-d", owner.name), ("connect", "connector")
    topic, target = f"{owner.name}.{name}", f"copy_{name}"
    # the table gets another column meanwhile
    database.prepare_threshold = None
    sdm(*noun, "add", name, "--type", "debezium-postgres", "--table", name, *own)
    # the topic comes with the first row
    sdm("topic", "consume", topic, *own, "--follow", "--timeout", "240", "--max", "1")
    sink = ("add", f"{name}-out", "--type", "jdbc-sink", "--topic", name, "--key", "record")
    sdm(*noun, *sink, "--set", f"collection.name.format={target}", *own)
    rows = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(target))

    def there(*wanted: tuple[int, str]) -> None:
        def same() -> bool:
            try:
                return database.execute(rows).fetchall() == list(wanted)
            except psycopg.errors.UndefinedTable:
                return False

        eventually(same, f"{target} holds {wanted}")

    try:
        there((1, "a"))
        change = sql.SQL("INSERT INTO {} VALUES (2, 'b'); UPDATE {} SET phone = 'c' WHERE userid=1")
        database.execute(change.format(*[sql.Identifier(name)] * 2))
        there((1, "c"), (2, "b"))
        garbage = Producer(mesh.administration("east").config())
        garbage.produce(topic, b"no avro", b"no key")
        garbage.flush(10)
        database.execute(sql.SQL("DELETE FROM {} WHERE userid=1").format(sql.Identifier(name)))
        there((2, "b"))
        sdm(*noun, "restart", f"{name}-out", *own)
        dead = ("topic", "consume", f"{owner.name}.{name}-out.dead", *own, "--follow")
        [letter] = sdm(*dead, "--timeout", "240", "--max", "1", "--headers").lines
        assert "exception" in str(letter["headers"])
        there((2, "b"))
        wider = sql.SQL("ALTER TABLE {} ADD COLUMN city text; UPDATE {} SET city = 'x'")
        database.execute(wider.format(*[sql.Identifier(name)] * 2))
        there((2, "b", "x"))
    finally:
        sdm(*noun, "delete", f"{name}-out", *own)
        sdm(*noun, "delete", name, *own)
        database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(target)))


@pytest.mark.long
def test_a_sink_by_position_has_each_record_once_and_takes_new_columns(
    sdm: Sdm, owner: Party, mesh: Endpoints, tmp_path: Path
) -> None:
    name = fresh("each")
    own, noun, topic = ("-d", owner.name), ("connect", "connector"), f"{owner.name}.{name}"
    target = topic.replace(".", "_")
    fields = [{"name": "id", "type": "int"}, {"name": "order", "type": ["null", "string"]}]
    schema, more = tmp_path / "first.avsc", tmp_path / "more.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "Each", "fields": fields}))
    fields.append({"name": "zip", "type": ["null", "string"], "default": None})
    more.write_text(json.dumps({"type": "record", "name": "Each", "fields": fields}))
    sdm("topic", "create", topic, "--partitions", "2", "--schema", str(schema), *own)
    sdm("topic", "produce", topic, *own, stdin='{"id": 1, "order": "a"}\n{"id": 1, "order": "b"}')
    sdm(*noun, "add", name, "--type", "jdbc-sink", "--topic", topic, *own)
    rows = sql.SQL("SELECT id, {columns} FROM {table} ORDER BY 1, 2")

    def there(columns: list[str], wanted: list[tuple[Any, ...]]) -> None:
        chosen = sql.SQL(", ").join(map(sql.Identifier, columns))
        query = rows.format(columns=chosen, table=sql.Identifier(target))

        def same() -> bool:
            try:
                return database.execute(query).fetchall() == wanted
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
                return False

        eventually(same, f"{target} holds {wanted}")

    login = mesh.postgres_login()
    with psycopg.connect(**login, autocommit=True, prepare_threshold=None) as database:
        try:
            there(["order"], [(1, "a"), (1, "b")])
            sdm("schema", "register", topic, str(more), *own)
            sdm("topic", "produce", topic, *own, stdin='{"id": 2, "order": null, "zip": "z"}')
            there(["order", "zip"], [(1, "a", None), (1, "b", None), (2, None, "z")])
            sdm(*noun, "restart", name, *own)
            sdm("topic", "produce", topic, *own, stdin='{"id": 3, "order": "c", "zip": null}')
            there(["id"], [(1, 1), (1, 1), (2, 2), (3, 3)])
        finally:
            sdm(*noun, "delete", name, *own)
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(target)))


def test_what_there_is_to_connect_with_is_listed(
    sdm: Sdm, owner: Party, mesh: Endpoints, settings: PlatformSettings
) -> None:
    worker_of(mesh, owner.name)
    workers = {one["domain"]: one for one in sdm("connect", "list").document}
    listed = workers[owner.name]
    assert (listed["state"], listed["connect"]) == ("ready", f"connect.{owner.name}")
    assert listed["version"]
    own = ("-d", owner.name)
    described = sdm("connect", "describe", *own).document
    assert described["url"] == listed["url"]
    sdm("connect", "describe", "-d", fresh("none"), code=ExitCode.NOT_FOUND)
    sdm("connect", "describe", code=ExitCode.USAGE)
    classes = {one["class"].rpartition(".")[2] for one in described["plugins"]}
    assert {"PostgresConnector", "MirrorSourceConnector"} <= classes
    every = sdm("connect", "plugins", "--all", *own).document
    assert len(every) > len(sdm("connect", "plugins", *own).document) == len(described["plugins"])
    kinds = [one["type"] for one in sdm("connect", "connector", "list").document]
    assert kinds == [
        *("debezium-postgres", "debezium-outbox", "jdbc-sink", "mirrormaker", "generator")
    ]


def test_a_config_without_a_class_or_with_an_unknown_one_is_told(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    for text, told in (
        ("tasks.max: 1", "connector.class: it is missing"),
        ("connector.class: no.Such", "no.Such"),
    ):
        given = tmp_path / "connector.yaml"
        given.write_text(text)
        for more in ((), ("--dry-run",)):
            found = sdm(
                *("connect", "connector", "add", "odd", "-f", str(given), *more),
                *("-d", owner.name),
                code=ExitCode.REFUSED,
            )
            assert told in found.err
            assert "Traceback" not in found.err
