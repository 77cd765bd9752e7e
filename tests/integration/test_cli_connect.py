"""Connectors through the command line: tables of a real Postgres become topics of a domain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints, PlatformSettings
from mesh_events.references import resolve
from processors.clusters import KafkaAdmin
from processors.rights import Binding, Operation, Resource
from self_service.cli.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, owner, register, sdm
from tests.kafka_client import eventually, fresh, read, reading

__all__ = ["owner", "sdm"]


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A table with one user, and a connection to it."""
    name = f"users_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        names = {"name": sql.Identifier(name)}
        connection.execute(
            sql.SQL("CREATE TABLE {name} (userid int PRIMARY KEY, phone text)").format(**names)
        )
        connection.execute(sql.SQL("INSERT INTO {name} VALUES (1, 'a')").format(**names))
        yield name, connection
        _drop_slots(connection, f"sdm_{name}")
        connection.execute(sql.SQL("DROP TABLE {name}").format(**names))


def _drop_slots(connection: Any, slot: str) -> None:
    """Remove what dropped connectors left in the database, once they have let go."""
    slots = "FROM pg_replication_slots WHERE starts_with(slot_name, %s)"

    def gone() -> bool:
        connection.execute(
            f"SELECT pg_drop_replication_slot(slot_name) {slots} AND NOT active", (slot,)
        )
        return connection.execute(f"SELECT 1 {slots}", (slot,)).fetchone() is None

    # a task that Kafka refused lets go of the database only when its producer's 30 s are over
    eventually(gone, f"no slot {slot} is in use", 60)


def admin(mesh: Endpoints, cluster: str) -> KafkaAdmin:
    return KafkaAdmin(cluster, mesh.administration(cluster))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("cluster", ["east", "west"])
def test_every_change_of_a_table_arrives_at_the_domains_cluster_and_no_secret_is_shown(
    sdm: Sdm,
    cluster: str,
    table: tuple[str, Any],
    mesh: Endpoints,
    settings: PlatformSettings,
) -> None:
    name, database = table
    party = register(sdm, cluster)
    connector, topic = name.replace("_", "-"), f"{party.name}.{name}"
    added = sdm(
        *("connect", "connector", "add", connector, "--type", "debezium-postgres"),
        *("--table", name, "-d", party.name),
    )
    assert added.document["state"] == "RUNNING"
    linked = mesh.connect_secrets / "logins" / cluster / party.name
    assert linked.is_symlink()
    try:
        others_keep_off(sdm, connector, register(sdm, cluster))
        reading = ("topic", "consume", topic, "-d", party.name, "--follow", "--timeout", "60")
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
        assert shown.document["topics"] == [topic]
        passwords = [
            resolve(mesh.postgres_password),
            (settings.home / "secrets" / cluster / party.name).read_text(),
        ]
        told = [added, shown, sdm("connect", "connector", "deployed")]
        kept = "".join(one.out + one.err for one in told) + configs(mesh)
        assert not [password for password in passwords if password in kept]
        versions = sdm("topic", "describe", topic, "-d", party.name).document
        assert versions["key_schema"]
        assert versions["value_schema"]
    finally:
        dropped = sdm("connect", "connector", "drop", connector, "-d", party.name)
    assert dropped.document["dropped"] is True
    assert not linked.is_symlink()
    sdm("connect", "connector", "describe", connector, code=ExitCode.NOT_FOUND)
    rights = admin(mesh, cluster).rights(party.name)
    assert not [right for right in rights if right.name.startswith("connect-")]


def others_keep_off(sdm: Sdm, connector: str, other: Party) -> None:
    """Another domain can neither drop the connector nor put its own in its place."""
    for changing in (("drop",), ("add", "--type", "debezium-postgres", "--table", "t")):
        told = sdm(
            *("connect", "connector", changing[0], connector, *changing[1:], "-d", other.name),
            code=ExitCode.REFUSED,
        )
        assert "refused (not_your_domain)" in told.err
    assert sdm("connect", "connector", "describe", connector).document["state"] == "RUNNING"


def configs(mesh: Endpoints) -> str:
    """What Connect keeps of the connectors' configs."""
    values = read(reading(mesh.administration("east"), fresh("configs")), "connect-configs")
    assert not isinstance(values, str), values
    return b"".join(filter(None, values)).decode()


@pytest.mark.timeout(180)
def test_kafka_holds_a_connector_to_what_its_domain_may_write(
    sdm: Sdm, owner: Party, table: tuple[str, Any], mesh: Endpoints
) -> None:
    name, _ = table
    connector, other = name.replace("_", "-"), register(sdm, "east")
    foreign = f"{other.name}.{name}"
    adding = (
        *("connect", "connector", "add", connector, "--type", "debezium-postgres"),
        *("--table", name, "--set", f"transforms.route.replacement={other.name}.$1"),
        *("-d", owner.name),
    )
    right = Binding(owner.name, Operation.ALL, Resource.TOPIC, foreign)
    kafka = admin(mesh, "east")

    def failure() -> str:
        found = sdm("connect", "connector", "deployed").document
        return "".join(str(one["failure"] or "") for one in found if one["connector"] == connector)

    try:
        sdm(*adding, "--no-wait")
        eventually(failure, "the connector has failed", 90)
        assert "authoriz" in failure()
        assert kafka.topic(foreign) is None
        kafka.grant([right])
        assert sdm(*adding).document["state"] == "RUNNING"
        eventually(lambda: kafka.topic(foreign), f"{foreign} is there")
    finally:
        sdm("connect", "connector", "drop", connector, "-d", owner.name)
        kafka.withdraw([right])


def test_the_worker_itself_may_only_write_its_own_topics(mesh: Endpoints) -> None:
    topics = {
        right.name
        for cluster in mesh.clusters
        for right in admin(mesh, cluster).rights("connect")
        if right.resource is Resource.TOPIC
    }
    assert topics == {"connect-configs", "connect-offsets", "connect-status"}


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
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres"),
        *("--table", table[0]),
        *("--set", "plugin.name=none", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "invalid_connector" in told.err
    assert "plugin.name" in told.err


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
    assert not (mesh.connect_secrets / f"connector-{name}").exists()
    assert not (mesh.connect_secrets / "logins" / "east" / owner.name).is_symlink()


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
    assert name not in str(sdm("connect", "connector", "deployed").document)


@pytest.mark.timeout(180)
def test_a_connector_stands_still_goes_on_and_is_changed(
    sdm: Sdm, owner: Party, table: tuple[str, Any]
) -> None:
    name, database = table
    connector, topic = name.replace("_", "-"), f"{owner.name}.{name}"
    own, noun = ("-d", owner.name), ("connect", "connector")
    adding = ("add", connector, "--type", "debezium-postgres", "--table", name)
    checked = sdm(*noun, *adding, "--dry-run", *own).document
    assert (checked["valid"], checked["faults"]) == (True, [])
    sdm(*noun, "describe", connector, code=ExitCode.NOT_FOUND)
    sdm(*noun, *adding, *own)
    try:
        stopped = sdm(*noun, "stop", connector, *own).document
        assert (stopped["state"], stopped["tasks"]) == ("STOPPED", [])
        database.execute(sql.SQL("INSERT INTO {} VALUES (2, 'b')").format(sql.Identifier(name)))
        other = register(sdm, "east")
        for change in (("stop",), ("start",), ("restart",), ("update", "--set", "a=b")):
            told = sdm(
                *(*noun, change[0], connector, *change[1:], "-d", other.name),
                code=ExitCode.REFUSED,
            )
            assert "not_your_domain" in told.err

        assert sdm(*noun, "start", connector, *own).document["state"] == "RUNNING"
        reading = ("topic", "consume", topic, *own, "--follow", "--timeout", "60", "--max", "2")
        assert [one["key"]["userid"] for one in sdm(*reading).lines] == [1, 2]

        changed = sdm(*noun, "update", connector, "--set", "poll.interval.ms=77", *own).document
        assert changed["config"]["poll.interval.ms"] == "77"
        for bad, code in (
            (("--set", "plugin.name=none"), ExitCode.REFUSED),
            (("--set", "plugin.name=none", "--dry-run"), ExitCode.REFUSED),
            (("--unset", "no.such.setting"), ExitCode.USAGE),
            (("--set", "producer.override.sasl.jaas.config=x"), ExitCode.REFUSED),
            ((), ExitCode.USAGE),
        ):
            sdm(*noun, "update", connector, *bad, *own, code=code)
        settings = sdm(*noun, "describe", connector).document["config"]
        deployed = {one["setting"]: one["value"] for one in settings}
        assert deployed["poll.interval.ms"] == "77"
        assert deployed["plugin.name"] != "none"
        sdm(*noun, "update", connector, "--unset", "poll.interval.ms", *own)
        settings = sdm(*noun, "describe", connector).document["config"]
        assert "poll.interval.ms" not in [one["setting"] for one in settings]
        assert sdm(*noun, "restart", connector, *own).document["state"] == "RUNNING"
    finally:
        sdm(*noun, "drop", connector, *own)


def test_what_there_is_to_connect_with_is_listed(sdm: Sdm, mesh: Endpoints) -> None:
    [worker] = sdm("connect", "list").document
    assert worker["url"] == mesh.connect_url
    assert worker["version"]
    told = sdm("connect", "describe").document
    classes = {one["class"].rpartition(".")[2] for one in told["plugins"]}
    assert {"PostgresConnector", "MirrorSourceConnector"} <= classes
    every = sdm("connect", "plugins", "--all").document
    assert len(every) > len(sdm("connect", "plugins").document) == len(told["plugins"])
    kinds = sdm("connect", "connector", "list").document
    assert kinds[0]["type"] == "debezium-postgres"
    assert "MirrorSourceConnector" in str(kinds)


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
