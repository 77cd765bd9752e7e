"""A broker whose clients ask for more memory, connections or partitions than it has."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from local_platform import LocalPlatform
from local_platform.jvm import EARLIEST_MS, POLICY
from local_platform.security.principals import Principal, Right, ensure_principals
from local_platform.services.kafka import SMALL_NODE
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings, start
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection

pytestmark = pytest.mark.platform

BROKER = "kafka-west"
TOO_LARGE_METADATA, POLICY_VIOLATION, INVALID_RECORD = 12, 44, 87


def owner(name: str) -> Principal:
    """A login that owns topics and groups below its name."""
    rights = (Right("ALL", kind, f"{name}.", prefixed=True) for kind in ("TOPIC", "GROUP"))
    return Principal(name, "secret", tuple(rights))


FOE = owner("foe")
CROWD = owner("crowd")
"""Slowed down by Kafka after it made its partitions."""


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    """One broker of this module's own."""
    settings = new_settings()
    found = LocalPlatform(settings, [BROKER])
    yield found
    found.down()
    shutil.rmtree(settings.home)


@pytest.fixture(scope="module")
def admin(platform: LocalPlatform) -> Connection:
    """The super user's login."""
    login = start(platform).administration("west")
    ensure_principals(login, [FOE, CROWD])
    return login


@pytest.fixture
def foe(admin: Connection) -> Connection:
    """A login that owns what begins with `foe.`."""
    return replace(admin, user=FOE.name, password=FOE.password)


@pytest.fixture(autouse=True)
def goes_on(platform: LocalPlatform, admin: Connection) -> Iterator[None]:
    """After each test the same process serves everybody."""
    before = platform.wait_ready(BROKER)
    yield
    wait_until(lambda: serves(admin), "the broker serves", 30)
    assert platform.wait_ready(BROKER).pid == before.pid


def serves(login: Connection) -> bool:
    """Whether a client that connects now gets an answer within 5 s."""
    try:
        return bool(AdminClient(login.config()).list_topics(timeout=5).brokers)
    except Exception:  # noqa: BLE001 - whatever it is, it is no answer
        return False


@contextlib.contextmanager
def connections(
    count: int, address: str, login: Connection | None
) -> Iterator[list[RawConnection]]:
    found: list[RawConnection] = []
    try:
        found.extend(RawConnection(address, login) for _ in range(count))
        yield found
    finally:
        for one in found:
            one.close()


def test_a_request_that_is_announced_above_the_bound_ends_its_connection(
    admin: Connection, foe: Connection
) -> None:
    with connections(3, admin.bootstrap_servers, foe) as held:
        for one in held:
            one.announce(100 * 1024 * 1024)
        assert all(one.is_closed(10) for one in held)
        assert serves(admin)


def test_requests_of_the_largest_size_that_never_come_leave_room_for_others(
    admin: Connection, foe: Connection
) -> None:
    with connections(11, admin.bootstrap_servers, foe) as held:
        for one in held:
            one.announce(int(SMALL_NODE["socket.request.max.bytes"]))
        assert not held[-1].is_closed(1)
        assert serves(admin)


@pytest.mark.parametrize("listener", [0, 1], ids=["clients", "controller"])
def test_connections_without_login_get_no_memory_for_what_they_announce(
    admin: Connection, listener: int
) -> None:
    host, port = admin.bootstrap_servers.split(":")
    with connections(480, f"{host}:{int(port) + listener}", None) as held:
        for one in held:
            one.announce(512 * 1024)
        assert serves(admin)
        assert all(one.is_closed(10) for one in held)


def test_an_offset_is_not_committed_with_kilobytes_of_metadata(
    admin: Connection, foe: Connection
) -> None:
    client = AdminClient(admin.config())
    client.create_topics([NewTopic("foe.read", 1, 1)])["foe.read"].result(20)
    with connections(1, admin.bootstrap_servers, foe) as [raw]:
        group = f"foe.{time.time_ns()}"
        wait_until(lambda: raw.find_coordinator(group) == 0, "the coordinator", 60)
        wait_until(lambda: raw.commit(group, "foe.read", "x") == 0, "a commit", 60)
        assert raw.commit(group, "foe.read", "x" * 4000) == TOO_LARGE_METADATA


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("segment.ms", "1"),
        ("segment.bytes", "1048576"),
        ("max.compaction.lag.ms", "1000"),
        ("min.cleanable.dirty.ratio", "0.0"),
        ("segment.index.bytes", "1000"),
        ("internal.segment.bytes", "150"),
        ("flush.messages", "1000"),
        ("flush.ms", "60000"),
        ("max.message.bytes", "17825793"),
        ("index.interval.bytes", "8193"),
        ("index.interval.bytes", "0"),
        ("delete.retention.ms", "0"),
        ("file.delete.delay.ms", "60001"),
        ("preallocate", "true"),
        ("segment.jitter.ms", "1"),
        ("unclean.leader.election.enable", "true"),
        ("local.retention.ms", "1000"),
    ],
)
def test_a_setting_that_costs_files_or_work_is_refused_for_new_and_old_topics(
    foe: Connection, setting: str, value: str
) -> None:
    client, topic = AdminClient(foe.config()), f"foe.{time.time_ns()}"
    refusal = f"{setting} of {topic} is {value}: it "
    new = NewTopic(topic, 1, 1, config={setting: value})
    with pytest.raises(KafkaException, match=refusal):
        client.create_topics([new])[topic].result(20)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    with pytest.raises(KafkaException, match=refusal):
        client.incremental_alter_configs([resource])[resource].result(20)


def test_settings_of_kafka_that_no_bound_names_are_refused(foe: Connection) -> None:
    """Also at their defaults: what a later Kafka makes of them is not known."""
    client, topic = AdminClient(foe.config()), f"foe.{time.time_ns()}"
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    wait_until(lambda: topic in client.list_topics(timeout=5).topics, "the broker knows it", 30)
    asked = ConfigResource(ResourceType.TOPIC, topic)
    found = {
        name: one.value
        for name, one in client.describe_configs([asked])[asked].result(20).items()
        if not one.is_read_only
    }
    refused = {}
    for name, value in found.items():
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        try:
            client.incremental_alter_configs([resource])[resource].result(20)
        except KafkaException as error:
            refused[name] = error.args[0]
    assert set(refused) == {
        *(f"compression.{kind}.level" for kind in ("gzip", "lz4", "zstd")),
        *("local.retention.bytes", "local.retention.ms"),
        *("remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable"),
    }
    for name, told in refused.items():
        assert told.code() == POLICY_VIOLATION
        assert f"{name} of {topic} is {found[name]}: it may not be set, leave it out" in told.str()
        assert "What may be: cleanup.policy, compression.type, delete.retention.ms, " in told.str()


@pytest.mark.parametrize(
    ("setting", "unit", "bound"),
    [
        ("leader.replication.throttled.replicas", "0:1,", "mesh.policy.characters.of.lists"),
        ("retention.ms", "0", "mesh.policy.characters"),
        ("cleanup.policy", " ", "mesh.policy.characters"),
    ],
)
def test_a_setting_of_very_many_characters_is_refused(
    foe: Connection, setting: str, unit: str, bound: str
) -> None:
    """A controller keeps it for ever, and takes no more of them at once than 8 MiB."""
    client, topic = AdminClient(foe.config()), f"foe.{time.time_ns()}"
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    most, end = int(POLICY[bound]), {"cleanup.policy": "delete", "retention.ms": "1000"}

    def alter(length: int) -> None:
        last = end.get(setting, "0:1")
        value = (unit * most)[: (length - len(last)) // len(unit) * len(unit)] + last
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(20)

    alter(most)
    with pytest.raises(KafkaException, match=f"{setting} of {topic} has .*: it may have {most}"):
        alter(most + len(unit))


@pytest.mark.parametrize("kind", ["gzip", "zstd", "lz4", "snappy", "uncompressed"])
def test_no_topic_of_a_domain_has_the_broker_compress_anew(foe: Connection, kind: str) -> None:
    """A batch of it kept a request handler busy for more than a minute."""
    client, topic = AdminClient(foe.config()), f"foe.{time.time_ns()}"
    told = f"compression.type of {topic} is {kind}: it may be producer"
    new = NewTopic(topic, 1, 1, config={"compression.type": kind})
    with pytest.raises(KafkaException, match=told):
        client.create_topics([new])[topic].result(20)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    entry = ConfigEntry("compression.type", kind, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    with pytest.raises(KafkaException, match=told):
        client.incremental_alter_configs([resource])[resource].result(20)


def test_a_time_before_kafkas_is_refused(foe: Connection) -> None:
    """One such record ended each link, statement or sink that read it, at each start anew."""
    client, topic = AdminClient(foe.config()), f"foe.{time.time_ns()}"
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    producer, found = Producer(foe.config()), dict[int, int | None]()
    for at in (-(2**62), -9_223_372_036_854_776, -(10**14), -86_400_000, 1):

        def told(error: KafkaError | None, _: object, at: int = at) -> None:
            found[at] = None if error is None else error.code()

        producer.produce(topic, b"x", timestamp=at, on_delivery=told)
        assert producer.flush(20) == 0
    assert list(found.values()) == [INVALID_RECORD] * 4 + [None]
    setting = {"message.timestamp.before.max.ms": str(EARLIEST_MS + 1)}
    with pytest.raises(KafkaException, match="at least 0 and at most 63000000000000"):
        client.create_topics([NewTopic(f"{topic}.2", 1, 1, config=setting)])[f"{topic}.2"].result(
            20
        )


def test_settings_within_the_ranges_and_of_the_meshs_topics_are_taken(
    admin: Connection, foe: Connection
) -> None:
    inside = {
        "segment.ms": "600000",
        "min.cleanable.dirty.ratio": "0.1",
        "retention.ms": "1",
        "file.delete.delay.ms": "60000",
        # those of Kafka Streams' own topics
        "segment.bytes": "52428800",
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "compact,delete",
        "min.compaction.lag.ms": "1",
    }
    topic = f"foe.{time.time_ns()}"
    client = AdminClient(foe.config())
    client.create_topics([NewTopic(topic, 1, 1, config=inside)])[topic].result(20)
    own = f"mesh.{time.time_ns()}"
    settings = {"segment.ms": "1000", "file.delete.delay.ms": "0", "local.retention.ms": "1000"}
    outside = NewTopic(own, 1, 1, config=settings)
    client = AdminClient(admin.config())
    client.create_topics([outside])[own].result(20)


def test_partitions_of_one_topic_and_of_an_hour_are_bounded(admin: Connection) -> None:
    most, hour = (
        int(POLICY[f"mesh.policy.{name}"]) for name in ("partitions", "partitions.per.hour")
    )
    login = replace(admin, user=CROWD.name, password=CROWD.password)
    codes = []
    for partitions in (8000, *[most] * (hour // most + 2)):
        # a new connection is not slowed down
        with connections(1, admin.bootstrap_servers, login) as [raw]:
            codes.append(raw.create_topic(f"crowd.{time.time_ns()}", partitions))
    assert codes[0] == POLICY_VIOLATION, "of one topic"
    assert codes[1] == 0
    assert codes[-1] == POLICY_VIOLATION, "of an hour"
    client, other = AdminClient(admin.config()), f"other.{time.time_ns()}"
    client.create_topics([NewTopic(other, 1, 1)])[other].result(20)
