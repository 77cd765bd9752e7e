"""A broker whose clients compress what fits no heap, and name more groups than it can keep."""

import gzip
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice, product
from struct import pack
from uuid import uuid4

import pytest
import zstandard
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import LocalPlatform
from local_platform.jvm import AUTHORIZER, JVM_BOUNDS
from local_platform.security.principals import Principal, Right, ensure_principals
from local_platform.settings import PlatformSettings
from mesh_events.kafka.client_quotas import PRODUCED, set_quotas
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings, start
from tests.integration.local_platform.bounded import log_of
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection, new_member
from tests.odd_batches import batch, header, number, packed, produce, record

pytestmark = pytest.mark.platform

BROKER = "kafka-west"
GZIP, SNAPPY, ZSTD = 1, 2, 4
TRANSACTIONAL = 0x10
MIB = 1 << 20
XERIAL = b"\x82SNAPPY\0" + pack(">ii", 1, 1)
"""How the frames of snappy-java begin."""
RECORD, BATCH, RECORDS = (
    JVM_BOUNDS[f"mesh.batches.{one}"] for one in ("record.bytes", "bytes", "records")
)
HEADERS = JVM_BOUNDS["mesh.batches.record.headers"] - 100
"""Of a record that a domain appends."""
NAMES, CHARACTERS = (int(AUTHORIZER[f"mesh.authorizer.{one}"]) for one in ("names", "characters"))
GROUP_DENIED, ID_DENIED, INVALID_RECORD, NOT_KEPT, THROTTLED = 30, 53, 87, 44, 89
UNKNOWN_TOPIC = 3
MEMBER_ID_REQUIRED, INVALID_PATTERN = 79, 128
NO_GROUP, UNSERVED = 69, 35
DENIED, UNKNOWN, INVALID_REQUEST, CLUSTER_DENIED = 29, 3, 42, 31
FIELDS = JVM_BOUNDS["mesh.request.fields"]
OF_RECORD = JVM_BOUNDS["mesh.appends.record.bytes"]
SAME_HASH, DESCRIBED = (JVM_BOUNDS[f"mesh.request.{one}"] for one in ("names", "described"))


def owner(name: str) -> Principal:
    """A login that owns what begins with its name, and reads by such groups."""
    kinds = ("TOPIC", "TRANSACTIONAL_ID")
    rights = [Right("ALL", kind, f"{name}.", prefixed=True) for kind in kinds]
    rights += [Right(one, "GROUP", f"{name}.", prefixed=True) for one in ("READ", "DELETE")]
    return Principal(name, "secret", tuple(rights))


FOE, CROWD, CONTROLLER = owner("foe"), owner("crowd"), owner("controller")
FOE = replace(FOE, rights=(*FOE.rights, Right("ALL", "TOPIC", "mesh.foe.", prefixed=True)))
HORDE = owner("horde")
# what these use up, no other test lacks
SWIFT, SCRIBE, TELLER = owner("swift"), owner("scribe"), owner("teller")
ASKER, BUSY, CLOSER = owner("asker"), owner("busy"), owner("closer")
HEAVY, LADEN, WORDY = owner("heavy"), owner("laden"), owner("wordy")
ELDER = owner("elder")
SINK = Principal("mesh.connect.some", "secret", (Right("READ", "GROUP", "mesh.", prefixed=True),))
SENDER = Principal("sent.intents", "secret", (Right("WRITE", "TOPIC", "mesh.sent"),))
COUNTED = Principal("counted.intents", "secret", (Right("WRITE", "TOPIC", "mesh.counted"),))
APPENDERS = {
    name: Principal(f"{name}.intents", "secret", (Right("WRITE", "TOPIC", f"mesh.{name}.intents"),))
    for name in ("large", "compressed", "small")
}


@pytest.fixture(scope="module")
def settings() -> Iterator[PlatformSettings]:
    """Those of the module's platform."""
    found = new_settings()
    yield found
    shutil.rmtree(found.home)


@pytest.fixture(scope="module")
def platform(settings: PlatformSettings) -> Iterator[LocalPlatform]:
    """One broker of this module's own, with the heap of the settings."""
    found = LocalPlatform(settings, [BROKER])
    yield found
    found.down()


@pytest.fixture(scope="module")
def admin(platform: LocalPlatform) -> Connection:
    """The super user's login."""
    login = start(platform).administration("west")
    ensure_principals(
        login,
        [
            FOE,
            CROWD,
            CONTROLLER,
            HORDE,
            SWIFT,
            SCRIBE,
            TELLER,
            ASKER,
            BUSY,
            SENDER,
            CLOSER,
            HEAVY,
            LADEN,
            WORDY,
            ELDER,
            SINK,
            COUNTED,
            *APPENDERS.values(),
        ],
    )
    return login


@pytest.fixture(scope="module")
def foe(admin: Connection) -> Connection:
    """A login that owns what begins with `foe.`."""
    return replace(admin, user=FOE.name, password=FOE.password)


@pytest.fixture(scope="module", params=["producer", "uncompressed"])
def topic(admin: Connection, request: pytest.FixtureRequest) -> str:
    """A topic that keeps its producers' compression, or has the broker make room."""
    # brokers unpack for topics of the mesh only
    prefix = "foe" if request.param == "producer" else "mesh.foe"
    return create_topic(admin, f"{prefix}.{request.param}", request.param)


def as_one(admin: Connection, whose: Principal) -> Connection:
    """The login of one of them."""
    return replace(admin, user=whose.name, password=whose.password)


def create_topic(admin: Connection, name: str, compression: str, partitions: int = 1) -> str:
    client = AdminClient(admin.config())
    settings = {"compression.type": compression, "max.message.bytes": str(16 * MIB)}
    [made] = client.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
    made.result(20)
    # the controller's answer comes before the broker knows it
    wait_until(lambda: is_led(client, name), f"{name} is there", 30)
    return name


def is_led(client: AdminClient, name: str) -> bool:
    found = client.list_topics(name, 10).topics[name]
    return found.error is None and all(one.leader >= 0 for one in found.partitions.values())


def zeros(size: int) -> bytes:
    """One record with a value of so many zero bytes, by parts, compressed with gzip."""
    parts = [b"\0", number(0), number(0), number(1), b"k", number(size)]
    length = sum(map(len, parts)) + size + 1
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = [packer.compress(number(length) + b"".join(parts))]
    out.extend(packer.compress(bytes(min(MIB, size - at))) for at in range(0, size, MIB))
    return b"".join([*out, packer.compress(number(0)), packer.flush()])


def halves(size: int) -> bytes:
    """Two records, with so many zero bytes together, compressed with zstd."""
    return zstandard.compress(b"".join(record(value=bytes(size // 2), delta=at) for at in (0, 1)))


def empty(count: int) -> bytes:
    return gzip.compress(b"".join(record(b"", b"", delta=at) for at in range(count)))


def headers(count: int, delta: int = 0) -> bytes:
    return record(headers=[header(b"", b"")] * count, delta=delta)


def megabytes(count: int) -> bytes:
    return gzip.compress(b"".join(record(b"k", bytes(MIB), delta=at) for at in range(count)))


def texts(count: int, size: int) -> bytes:
    return gzip.compress(b"".join(record(value=bytes(size), delta=at) for at in range(count)))


ANNOUNCED = number(500_000_000) + b"\0" * 8
BLOCK = b"\x80\xca\xb5\xee\x01\0\0"
"""Of Snappy, announces 500 MB."""
BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip, a record announces 500 MB": lambda: packed(gzip.compress(ANNOUNCED), 1, GZIP),
    "zstd, a record announces 500 MB": lambda: packed(zstandard.compress(ANNOUNCED), 1, ZSTD),
    "gzip, a record of 900 MB of zeros": lambda: packed(zeros(900_000_000), 1, GZIP),
    "gzip, a record above the bound": lambda: packed(zeros(RECORD), 1, GZIP),
    "gzip, a record that leaves a copy no room": lambda: packed(zeros(RECORD - MIB), 1, GZIP),
    "gzip, small records above the bound together": lambda: packed(megabytes(33), 33, GZIP),
    "gzip, too many records": lambda: packed(empty(RECORDS + 1), RECORDS + 1, GZIP),
    "gzip, a record with too many headers": lambda: packed(
        gzip.compress(headers(HEADERS + 1)), 1, GZIP
    ),
    "gzip, too many headers together": lambda: packed(
        gzip.compress(b"".join(headers(HEADERS, at) for at in range(51))), 51, GZIP
    ),
    "a record with too many headers": lambda: batch(headers(HEADERS + 1)),
    "snappy, a block announces 500 MB": lambda: packed(BLOCK, 1, SNAPPY),
    "snappy, a frame announces 500 MB": lambda: packed(
        XERIAL + pack(">i", len(BLOCK)) + BLOCK, 1, SNAPPY
    ),
}


@cache
def bomb(name: str) -> bytes:
    """The batch; it takes seconds to make the largest."""
    return BOMBS[name]()


@pytest.mark.parametrize("name", BOMBS)
def test_a_batch_that_unpacks_to_more_than_the_bound_is_refused(
    foe: Connection, topic: str, name: str
) -> None:
    with pytest.raises(MessageSizeTooLargeError):
        produce(foe, topic, bomb(name))


@pytest.mark.parametrize(
    "frame",
    [b"\xff\xff\xff\xff", pack(">i", 2**31 - 1), b"\x82SNAPPY\0" + pack(">ii", 1, 1)],
    ids=["negative", "longer than the batch", "a second header"],
)
def test_a_frame_of_snappy_with_a_length_that_is_none_is_refused(
    foe: Connection, topic: str, frame: bytes
) -> None:
    with pytest.raises(KafkaError, match=f"error {INVALID_RECORD}$"):
        produce(foe, topic, packed(XERIAL + frame, 1, SNAPPY))


ODD_PLACES = {
    "one place twice": (record(value=b"1"), record(value=b"2")),
    "before the batch": (record(delta=-1), record(value=b"2")),
    "behind the batch": (record(delta=7),),
    "in the wrong order": (record(delta=1), record(value=b"2")),
    "with attributes": (record(attributes=0x80),),
}


@pytest.mark.parametrize("name", ODD_PLACES)
def test_a_record_that_is_not_where_its_batch_has_it_is_refused(
    admin: Connection, foe: Connection, topic: str, name: str
) -> None:
    """Kafka takes it where the batch is not compressed, and each client reads another record."""
    with pytest.raises(KafkaError, match=f"error {INVALID_RECORD}$"):
        produce(foe, topic, batch(*ODD_PLACES[name]))
    # who administers the cluster may write it
    assert produce(admin, topic, batch(*ODD_PLACES[name])) >= 0


@pytest.mark.parametrize("time_ms", [-2, -5, -(2**40)])
def test_a_record_from_before_kafkas_time_is_refused(
    foe: Connection, topic: str, time_ms: int
) -> None:
    """A sink of Connect fails at it, and its dead letters have no place for it."""
    with pytest.raises(KafkaError, match=f"error {INVALID_RECORD}$"):
        produce(foe, topic, batch(record(), time_ms=time_ms))
    assert produce(foe, topic, batch(record(), time_ms=-1)) >= 0


def read_all(login: Connection, topic: str, count: int) -> Sequence[bytes]:
    settings = login.config(**{"group.id": f"foe.{uuid4().hex}", "auto.offset.reset": "earliest"})
    consumer, found, until = Consumer(settings), list[bytes](), time.monotonic() + 60
    consumer.subscribe([topic])
    try:
        while len(found) < count and time.monotonic() < until:
            for one in consumer.consume(500, 1):
                assert one.error() is None, one.error()
                found.append(one.value() or b"")
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "none"])
def test_batches_below_the_bounds_come_out_as_they_were_sent(
    admin: Connection, foe: Connection, codec: str
) -> None:
    name = create_topic(admin, f"foe.whole-{codec}", "producer")
    sent = [bytes(15 * MIB), *(b"%d" % at for at in range(20_000)), b"x" * MIB]
    producer = Producer(
        foe.config(**{"compression.type": codec, "message.max.bytes": 16 * MIB, "linger.ms": 50})
    )
    for value in sent:
        producer.produce(name, value, b"k")
    assert producer.flush(60) == 0
    assert read_all(foe, name, len(sent)) == sent


def test_headers_of_a_batch_that_is_cut_off_count_for_no_other(foe: Connection, topic: str) -> None:
    """Whichever of the broker's threads reads the next one."""
    most = b"".join(headers(HEADERS, at) for at in range(50))
    broken = packed(gzip.compress(most + number(1_000)), 51, GZIP)
    for _ in range(16):
        with pytest.raises(KafkaError, match=f"error {INVALID_RECORD}$"):
            produce(foe, topic, broken)
    for _ in range(32):
        produce(foe, topic, batch(headers(1)))


def test_the_largest_batch_of_each_kind_is_taken(
    admin: Connection, foe: Connection, topic: str
) -> None:
    produce(foe, topic, packed(empty(RECORDS), RECORDS, GZIP))
    produce(foe, topic, batch(headers(HEADERS), headers(HEADERS, 1)))
    some = b"".join(headers(HEADERS, at) for at in range(50))
    produce(foe, topic, packed(gzip.compress(some), 50, GZIP))
    # what the mesh writes has some more, of where the record comes from
    produce(admin, topic, batch(headers(HEADERS + 100)))
    # the topic without compression has room for 16 MiB
    if not topic.endswith(".uncompressed"):
        produce(foe, topic, packed(megabytes(31), 31, GZIP))
        produce(foe, topic, packed(zeros(RECORD - MIB - 64), 1, GZIP))
        # a copy, a result or a dead letter has some headers more
        produce(admin, topic, packed(zeros(RECORD - 64), 1, GZIP))


def test_a_broker_that_refuses_bombs_from_many_connections_serves_on(
    settings: PlatformSettings, platform: LocalPlatform, foe: Connection, topic: str
) -> None:
    before = platform.wait_ready(BROKER).pid
    with ThreadPoolExecutor(16) as crowd:
        tries = [crowd.submit(produce, foe, topic, bomb(name)) for name in [*BOMBS] * 8]
    assert {type(one.exception()) for one in tries} == {MessageSizeTooLargeError}
    assert "OutOfMemoryError" not in log_of(settings)
    assert platform.wait_ready(BROKER).pid == before


def test_what_a_client_tells_of_itself_makes_no_broker_allocate_what_it_announces(
    settings: PlatformSettings, foe: Connection
) -> None:
    """Any login may push telemetry; a broker unpacks it before it looks who wants it."""
    client = RawConnection(foe.bootstrap_servers, foe)
    try:
        codes = {client.push_telemetry(SNAPPY, BLOCK) for _ in range(20)}
    finally:
        client.close()
    assert codes
    assert 0 not in codes
    assert "OutOfMemoryError" not in log_of(settings)


def large() -> bytes:
    return batch(record(value=bytes(MIB // 2)))


def compressed() -> bytes:
    return packed(gzip.compress(record(value=bytes(MIB // 2))), 1, GZIP)


def small() -> bytes:
    return batch(*(record(None, None, delta=at) for at in range(MIB // 2 // OF_RECORD)))


@pytest.mark.parametrize("made", [large, compressed, small])
def test_who_connects_anew_for_each_request_appends_no_more_than_some_times_its_quota(
    admin: Connection, made: Callable[[], bytes]
) -> None:
    """Kafka delays the connection, and not the login, and counts what is sent, not what is kept."""
    principal, data, quota, size = APPENDERS[made.__name__], made(), 64 * 1024, MIB // 2
    topic = create_topic(admin, f"mesh.{principal.name}", "uncompressed")
    set_quotas(admin, {principal.name: {PRODUCED: float(quota)}})
    login = replace(admin, user=principal.name, password="secret")

    def is_taken() -> bool:
        try:
            produce(login, topic, data)
        except KafkaError as error:
            assert str(error).endswith(f"error {THROTTLED}")  # noqa: PT017 - some are taken
            return False
        return True

    # a quota is told to brokers behind its answer, and the first that it is for are taken
    wait_until(lambda: not is_taken(), "the login is held to its quota", 30)
    began = time.monotonic()
    # without a bound each of them is taken
    taken = size * sum(is_taken() for _ in range(40))
    most = JVM_BOUNDS["mesh.appends.times"] * quota
    late_s = JVM_BOUNDS["mesh.appends.late.ms"] / 1000
    assert taken <= most * (time.monotonic() - began + late_s) + size
    wait_until(is_taken, "it is taken again", 30)
    # nobody else waits
    produce(admin, topic, data)


def connected(admin: Connection, login: Principal) -> Iterator[RawConnection]:
    """A connection of a login, until the test has ended."""
    its = replace(admin, user=login.name, password=login.password)
    found = RawConnection(admin.bootstrap_servers, its)
    yield found
    found.close()


@pytest.fixture
def connection(admin: Connection) -> Iterator[RawConnection]:
    """Of the login that owns what begins with `crowd.`."""
    yield from connected(admin, CROWD)


def test_a_login_uses_so_many_groups_and_no_more(
    settings: PlatformSettings, admin: Connection, connection: RawConnection
) -> None:
    topic = create_topic(admin, "crowd.read", "producer")
    wait_until(
        lambda: connection.find_coordinator("crowd.first") == 0, "the coordinator answers", 30
    )
    wait_until(lambda: connection.commit("crowd.first", topic) == 0, "offsets are kept", 30)
    assert connection.commit("crowd." + "g" * (CHARACTERS - 6), topic) == 0
    assert connection.commit("crowd." + "g" * (CHARACTERS - 5), topic) == GROUP_DENIED
    denied = next(
        at for at in range(NAMES + 1) if connection.commit(f"crowd.{at}", topic) == GROUP_DENIED
    )
    assert denied == NAMES - 2
    assert connection.commit("crowd.first", topic) == 0, "one in use"
    other = RawConnection(admin.bootstrap_servers, admin)
    assert all(other.commit(f"crowd.x{at}", topic) == 0 for at in range(NAMES + 1))
    other.close()
    [told] = [
        line for line in log_of(settings).splitlines() if "is denied a name of a GROUP" in line
    ]
    assert (
        f"User:{CROWD.name} is denied a name of a GROUP: a name has {CHARACTERS} characters" in told
    )


def test_a_login_uses_so_many_transactional_ids_and_no_more(connection: RawConnection) -> None:
    wait_until(
        lambda: connection.find_transaction_coordinator("crowd.first") == 0, "it answers", 30
    )
    wait_until(lambda: connection.init_producer_id("crowd.first") == 0, "ids are kept", 30)
    assert connection.init_producer_id("crowd." + "i" * (CHARACTERS - 6)) == 0
    assert connection.init_producer_id("crowd." + "i" * (CHARACTERS - 5)) == ID_DENIED
    made = [connection.init_producer_id(f"crowd.{at}") for at in range(NAMES - 1)]
    assert made == [0] * (NAMES - 2) + [ID_DENIED]
    assert connection.init_producer_id("crowd.first") == 0, "one in use"


def commit_in_transaction(login: Connection, group: str, topic: str) -> int | None:
    """Commit offset 1 of partition 5; returns the error code."""
    producer = Producer(login.config(**{"transactional.id": f"{login.user}.writer"}))
    producer.init_transactions(30)
    producer.begin_transaction()
    consumer = Consumer(login.config(**{"group.id": group}))
    try:
        place = TopicPartition(topic, 5, 1)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
    except KafkaException as refused:
        producer.abort_transaction(30)
        return int(refused.args[0].code())
    finally:
        consumer.close()
    return None


def test_a_login_has_so_many_offsets_and_no_more(
    settings: PlatformSettings, admin: Connection
) -> None:
    most, partitions = JVM_BOUNDS["mesh.offsets"], 250
    topic = create_topic(admin, "controller.read", "producer", partitions)
    login = replace(admin, user=CONTROLLER.name, password=CONTROLLER.password)
    controller = RawConnection(admin.bootstrap_servers, login)
    wait_until(
        lambda: controller.find_coordinator("controller.0") == 0, "the coordinator answers", 30
    )
    wait_until(lambda: controller.commit("controller.0", topic) == 0, "offsets are kept", 30)
    twice = [0] * (2 * SAME_HASH + 1)
    assert controller.commit("controller.0", topic, "", twice) == 0, "beside each is the same text"
    assert commit_in_transaction(login, "controller.0", topic) is None
    # an offset of a transaction is another one
    groups, every = [f"controller.{at}" for at in range(most // partitions)], range(partitions)
    assert {controller.commit(one, topic, "", every) for one in groups[:-1]} == {0}
    assert controller.commit(groups[-1], topic, "", every[:-2]) == 0
    assert controller.commit("controller.other", topic, "", [0, 1]) == NOT_KEPT
    assert controller.commit(groups[-1], topic, "", every[-2:]) == NOT_KEPT, "it was the last one"
    assert controller.commit("controller.0", topic, "", every) == 0, "those that are kept"
    controller.close()
    assert commit_in_transaction(login, "controller.0", topic) is None
    assert commit_in_transaction(login, "controller.other", topic) == NOT_KEPT
    other = RawConnection(admin.bootstrap_servers, admin)
    assert other.commit("controller.other", topic, "", [2]) == 0
    other.close()
    [told] = [line for line in log_of(settings).splitlines() if "is denied an offset" in line]
    assert f"User:{CONTROLLER.name} is denied an offset: it has {most} of seven days" in told


@pytest.fixture
def horde(admin: Connection) -> Iterator[RawConnection]:
    """Of the login that owns what begins with `horde.`."""
    yield from connected(admin, HORDE)


@pytest.fixture
def closer(admin: Connection) -> Iterator[RawConnection]:
    """A connection of a login that uses up what it may add to transactions."""
    yield from connected(admin, CLOSER)


@pytest.fixture
def scribe(admin: Connection) -> Iterator[RawConnection]:
    """A connection of another login."""
    yield from connected(admin, SCRIBE)


def test_a_login_has_so_many_ids_of_producers_and_no_more(
    settings: PlatformSettings, admin: Connection, scribe: RawConnection
) -> None:
    most, partitions = JVM_BOUNDS["mesh.producers"], 250
    topic = create_topic(admin, "scribe.write", "producer", partitions)

    def write(
        by: RawConnection, producer: int, places: Sequence[int] = range(partitions)
    ) -> set[int]:
        data = packed(record(), 1, 0, producer=producer)
        return by.produce(topic, dict.fromkeys(places, data))

    plain = dict.fromkeys(range(partitions), batch(record()))
    # the broker tells who leads a partition before it does so itself
    wait_until(lambda: scribe.produce(topic, plain) == {0}, "each partition is led", 30)
    producers = range(most // partitions)
    assert set().union(*(write(scribe, one) for one in producers[:-1])) == {0}
    assert write(scribe, producers[-1], range(partitions - 1)) == {0}
    assert write(scribe, most, [0, 1]) == {NOT_KEPT}
    assert write(scribe, most, [1]) == {NOT_KEPT}, "it was the last one"
    assert write(scribe, producers[0]) == {0}, "those that are kept"
    assert scribe.produce(topic, plain) == {0}, "of a producer without an id"
    other = RawConnection(admin.bootstrap_servers, admin)
    assert write(other, most, [0]) == {0}
    other.close()
    denied = f"the logins of {SCRIBE.name} have {most} ids of producers and partitions of an hour"
    assert sum(denied in line for line in log_of(settings).splitlines()) == 1


def test_a_domain_has_so_many_partitions_in_transactions_and_no_more(
    settings: PlatformSettings, closer: RawConnection
) -> None:
    """Each has a producer in the broker's heap once the transaction has ended."""
    most, step = JVM_BOUNDS["mesh.producers"], 5000
    for at in range(most // step):
        assert closer.add_to_transaction(f"closer.{at}", "closer.t", range(step)) != NOT_KEPT
    assert closer.add_to_transaction("closer.more", "closer.t", range(1)) == NOT_KEPT
    assert closer.add_to_transaction("closer.0", "closer.t", range(9)) != NOT_KEPT, "again"
    denied = f"the logins of {CLOSER.name} have {most} ids of producers and partitions of an hour"
    assert sum(denied in line for line in log_of(settings).splitlines()) == 1


def test_brokers_end_transactions_of_however_many_partitions(admin: Connection) -> None:
    """A broker refused its own markers, and sent them again and again."""
    broker = RawConnection(admin.bootstrap_servers, admin)
    most = JVM_BOUNDS["mesh.request.fields.admin"]
    assert broker.write_markers(f"gone.{uuid4().hex}", most + 1) == UNKNOWN_TOPIC
    broker.close()


def test_groups_that_share_are_not_served_to_domains(
    admin: Connection, horde: RawConnection
) -> None:
    """They cost a broker's heap with each partition, and never expire."""
    topic = create_topic(admin, "horde.shared", "producer")
    assert horde.join_share_group("horde.0", topic) == UNSERVED
    assert horde.describe_share_offsets(["horde.0"]) == UNSERVED
    assert horde.share_fetch(("horde.0", new_member()), 0, bytes(16), range(1)) == UNSERVED


def test_a_member_subscribes_to_so_many_topics_and_no_more(horde: RawConnection) -> None:
    """Kafka has the names of all in several tables: 57 KB of them were a megabyte of heap."""
    wait_until(lambda: horde.find_coordinator("horde.many") == 0, "the coordinator answers", 30)
    names = [f"horde.topic{number}" for number in range(JVM_BOUNDS["mesh.members.topics"] + 1)]
    assert horde.join_by_names("horde.named", names[1:]) == 0
    assert horde.join_by_names("horde.named", names) == INVALID_REQUEST


def test_members_of_a_logins_groups_send_so_many_bytes_of_themselves_and_no_more(
    settings: PlatformSettings, admin: Connection, horde: RawConnection
) -> None:
    """A broker keeps them for as long as the members send heartbeats."""
    most, metadata = JVM_BOUNDS["mesh.members.bytes"], bytes(15 * MIB)
    wait_until(lambda: horde.find_coordinator("horde.many") == 0, "the coordinator answers", 30)
    codes = [horde.join_group("horde.many", metadata) for _ in range(most // len(metadata) + 1)]
    assert codes == [MEMBER_ID_REQUIRED] * (most // len(metadata)) + [NOT_KEPT]
    assert horde.join_group("horde.many", b"") == MEMBER_ID_REQUIRED, (
        "there is room for a small one"
    )
    other = RawConnection(admin.bootstrap_servers, admin)
    assert other.join_group("horde.many", metadata) == MEMBER_ID_REQUIRED
    other.close()
    own = RawConnection(admin.bootstrap_servers, as_one(admin, SINK))
    more = [own.join_group("mesh.many", metadata) for _ in range(most // len(metadata) + 2)]
    assert set(more) == {MEMBER_ID_REQUIRED}, "of all domains together"
    own.close()
    [told] = [line for line in log_of(settings).splitlines() if "of themselves in an hour" in line]
    assert f"members of groups of {HORDE.name} have sent {most} bytes" in told


def test_a_fetch_waits_for_records_no_longer_than_the_broker_has_it_wait(
    admin: Connection, horde: RawConnection
) -> None:
    """One that waits is answered even if its login's right to read ends meanwhile."""
    topic = create_topic(admin, "horde.nothing", "producer")
    wait_until(lambda: horde.fetch(topic, 0) == 0, "its partition is led", 30)
    hours_ms = 2 * 3600 * 1000
    # longer than the test waits for an answer
    assert horde.fetch(topic, hours_ms) == 0


def test_no_session_keeps_the_partitions_that_a_fetch_names(horde: RawConnection) -> None:
    """A session keeps them until others take its place, also those of a topic that is not there."""
    assert {horde.fetch_session("not-there", 1000) for _ in range(10)} == {0}


def test_a_consumer_of_the_mesh_names_more_partitions_than_one_of_a_domain(
    admin: Connection, horde: RawConnection
) -> None:
    """A sink of a hundred topics with some partitions names each in every fetch, of no session."""
    own = RawConnection(admin.bootstrap_servers, as_one(admin, SINK))
    assert own.fetch_session("not-there", FIELDS // 2) == 0
    own.close()
    with pytest.raises(AssertionError, match="closed the connection"):
        horde.fetch_session("not-there", FIELDS // 2)


def test_a_request_that_names_more_than_it_may_closes_its_connection(
    settings: PlatformSettings, admin: Connection
) -> None:
    """Kafka makes objects of all that a request names, before it looks whose it is."""
    login = replace(admin, user=HORDE.name, password=HORDE.password)
    for size in (FIELDS, 15 * MIB):
        client = RawConnection(admin.bootstrap_servers, login)
        client.name_coordinators(size)
        assert client.is_closed(30), size
        client.close()
    client = RawConnection(admin.bootstrap_servers, login)
    client.name_coordinators(2 * SAME_HASH)
    assert not client.is_closed(0.5), "it is answered"
    client.close()
    client = RawConnection(admin.bootstrap_servers, admin)
    client.name_coordinators(FIELDS)
    assert not client.is_closed(0.5), "the administrator's is answered"
    client.close()
    announced = f"Tried to allocate a collection of size {15 * MIB}"
    assert announced in log_of(settings), "no room is made for what it announces"
    assert "OutOfMemoryError" not in log_of(settings)


def of_one_hash(count: int) -> list[str]:
    return ["".join(one) for one in islice(product(("Aa", "BB"), repeat=12), count)]


@pytest.mark.parametrize("names", [of_one_hash, lambda count: [""] * count])
def test_a_request_that_names_much_of_one_hash_closes_its_connection(
    admin: Connection, names: Callable[[int], list[str]]
) -> None:
    """Kafka looks through them all for each one more, before it asks for rights."""
    login = replace(admin, user=HORDE.name, password=HORDE.password)
    for count, is_closed in ((300, False), (3_300, True)):
        client = RawConnection(admin.bootstrap_servers, login)
        client.name_epochs(names(count))
        assert client.is_closed(30 if is_closed else 0.5) is is_closed, count
        client.close()


def test_names_of_one_hash_hold_an_answer_up_no_longer_than_they_must(admin: Connection) -> None:
    """A table that grew cost the cube of them: this answer did not come for minutes."""
    client = RawConnection(admin.bootstrap_servers, admin, 60)
    assert client.describe_topics(of_one_hash(4_000)) == UNKNOWN
    client.close()


def test_a_domain_names_so_much_of_one_hash_and_no_more(
    admin: Connection, horde: RawConnection
) -> None:
    """The answer holds it in a table, which costs the square of it."""
    assert horde.describe_topics(of_one_hash(2 * SAME_HASH)) == DENIED
    with pytest.raises(AssertionError, match="closed the connection"):
        horde.describe_topics(of_one_hash(2 * SAME_HASH + 1))
    client = RawConnection(
        admin.bootstrap_servers, replace(admin, user=HORDE.name, password=HORDE.password)
    )
    assert client.describe_topics([f"horde.{number}" for number in range(4_000)]) == UNKNOWN
    client.close()


def test_a_request_describes_the_settings_of_so_many_topics_and_no_more(
    admin: Connection, horde: RawConnection
) -> None:
    """Nineteen kilobytes named one topic 1 900 times, and the answer had 26 megabytes."""
    topic = create_topic(admin, "horde.described", "producer")
    assert horde.describe_settings([topic] * DESCRIBED) == 0
    assert horde.describe_settings([topic] * (DESCRIBED + 1)) == INVALID_REQUEST
    client = RawConnection(admin.bootstrap_servers, admin, 60)
    assert client.describe_settings([topic] * (DESCRIBED + 1)) == 0
    client.close()


def test_a_request_of_many_other_names_is_answered(admin: Connection) -> None:
    login = replace(admin, user=HORDE.name, password=HORDE.password)
    client = RawConnection(admin.bootstrap_servers, login)
    # a name, its length and a number of partitions each
    client.name_epochs([f"horde.{number}" for number in range(FIELDS // 3 - 10)])
    assert not client.is_closed(0.5)
    client.close()


def test_the_batches_of_a_request_unpack_to_so_much_and_no_more(
    admin: Connection, horde: RawConnection
) -> None:
    """Each batch is below the bound of one, and a request may hold thousands."""
    size, partitions = 24 * MIB, 24
    topic = create_topic(admin, "horde.zeros", "producer", partitions)
    one = packed(halves(size), 2, ZSTD)
    plain = dict.fromkeys(range(partitions), batch(record()))
    wait_until(lambda: horde.produce(topic, plain) == {0}, "each partition is led", 30)
    many = horde.produce(topic, dict.fromkeys(range(partitions), one))
    assert many == {0, MessageSizeTooLargeError.errno}
    wait_until(lambda: horde.produce(topic, {0: one}) == {0}, "a second has gone", 30)


@pytest.fixture
def swift(admin: Connection) -> Iterator[RawConnection]:
    """A connection of another login."""
    yield from connected(admin, SWIFT)


def test_a_login_has_batches_unpacked_so_fast_and_no_faster(
    admin: Connection, swift: RawConnection
) -> None:
    """By whichever requests: those that look for a time unpack a batch of each partition."""
    size, partitions = 30 * MIB, 40
    topic = create_topic(admin, "swift.times", "producer", partitions)
    # those before them are earlier
    time_ms = int(time.time() * 1000) + 60_000
    one = packed(halves(size), 2, ZSTD, time_ms=time_ms)
    plain = dict.fromkeys(range(partitions), batch(record()))
    wait_until(lambda: swift.produce(topic, plain) == {0}, "each partition is led", 30)
    for at in range(partitions):
        wait_until(lambda to=at: swift.produce(topic, {to: one}) == {0}, f"{at} is written", 30)  # type: ignore[misc]
    found: list[int] = []

    def some_are_found() -> bool:
        found[:] = swift.list_offsets(topic, range(partitions), time_ms)
        return 0 in found

    # what was unpacked to write them counts as well
    wait_until(some_are_found, "a second has gone", 30)
    assert set(found) <= {0, MessageSizeTooLargeError.errno, THROTTLED}
    assert found.count(0) <= JVM_BOUNDS["mesh.batches.request.bytes"] / (size // 2) + 1
    wait_until(lambda: swift.list_offsets(topic, [0], time_ms) == [0], "a second has gone", 30)


def test_who_appends_intents_sends_one_batch_and_nothing_is_unpacked_of_more(
    admin: Connection,
) -> None:
    """3 000 batches of a thousand bytes each, in one request, unpacked to 90 GB."""
    login = replace(admin, user=SENDER.name, password=SENDER.password)
    create_topic(admin, "mesh.sent", "uncompressed")
    set_quotas(admin, {SENDER.name: {PRODUCED: float(64 * 1024)}})
    one = packed(zstandard.compress(record(value=bytes(15 * MIB))), 1, ZSTD)
    with pytest.raises(KafkaError, match="error 42"):
        produce(login, "mesh.sent", one * 3000)
    # had they been unpacked, the login would have to wait for minutes
    produce(login, "mesh.sent", batch(record()))


def test_a_batch_of_intents_has_so_many_records_and_no_more(admin: Connection) -> None:
    """Who folds the log has work with each: a megabyte held 150 000."""
    login = replace(admin, user=COUNTED.name, password=COUNTED.password)
    create_topic(admin, "mesh.counted", "uncompressed")
    most = JVM_BOUNDS["mesh.appends.records"]
    one = [record(None, None, delta=at) for at in range(most + 1)]
    with pytest.raises(MessageSizeTooLargeError):
        produce(login, "mesh.counted", batch(*one))
    with pytest.raises(MessageSizeTooLargeError):
        produce(login, "mesh.counted", packed(gzip.compress(b"".join(one)), most + 1, GZIP))
    produce(login, "mesh.counted", batch(*one[:most]))


@pytest.mark.parametrize("pattern", ["(((a{1000}){1000}){1000})", "a{ 2 }", "a" * 250])
def test_a_pattern_that_would_fill_a_brokers_heap_is_refused(
    horde: RawConnection, pattern: str
) -> None:
    """Kafka compiles patterns of any login, that of a list of transactions without any right."""
    wait_until(lambda: horde.find_coordinator("horde.0") == 0, "the coordinator answers", 30)
    assert horde.list_transactions(pattern) == NOT_KEPT
    assert horde.join_by_pattern("horde.patterns", pattern) == INVALID_PATTERN


def test_an_ordinary_pattern_is_taken(horde: RawConnection) -> None:
    wait_until(lambda: horde.find_coordinator("horde.0") == 0, "the coordinator answers", 30)
    assert horde.list_transactions("horde[.].*") == 0
    assert horde.join_by_pattern("horde.patterns", r"horde[.](a|\pL)+") == 0


@pytest.fixture
def teller(admin: Connection) -> Iterator[RawConnection]:
    """Of a login whose groups no other test counts."""
    yield from connected(admin, TELLER)


def test_a_group_is_described_once_in_a_request(teller: RawConnection) -> None:
    """The answer has all that its members say of themselves, as often as it is named."""
    teller.find_coordinator("teller.told")
    names = [f"teller.told{number}" for number in range(20)]
    wait_until(lambda: teller.describe_groups(names) == 0, "the coordinator answers", 30)
    assert teller.describe_groups(names[:1] * 2) == INVALID_REQUEST


def test_offsets_of_a_group_are_asked_for_once_in_a_request(teller: RawConnection) -> None:
    """Each name is work for the few threads that keep groups, and for the broker's heap."""
    teller.find_coordinator("teller.told")
    names = [f"teller.told{number}" for number in range(20)]
    wait_until(lambda: teller.fetch_offsets(names) in (0, NO_GROUP), "the coordinator answers", 30)
    assert teller.fetch_offsets(names[:1] * 2) == INVALID_REQUEST


def test_a_domain_does_not_occupy_all_handlers(admin: Connection, teller: RawConnection) -> None:
    """To refuse a transaction that names partitions again and again takes seconds of a handler."""
    its = replace(admin, user=BUSY.name, password=BUSY.password)
    wait_until(lambda: teller.describe_topics(["teller.none"]) > 0, "the broker answers", 30)

    def is_passed() -> bool:
        """Whether another domain is answered before any of these, although it asks after them."""
        crowd = [RawConnection(admin.bootstrap_servers, its, timeout_s=120) for _ in range(16)]
        for one in crowd:
            one.ask_for_transaction("other.none", "busy.none", FIELDS - 500)
        teller.describe_topics(["teller.none"])
        settled = sum(one.is_settled() for one in crowd)
        # the bound of a domain's time ends the rest
        answered = [one.is_answered() for one in crowd]
        assert any(answered)
        for one in crowd:
            one.close()
        return settled == 0

    # a machine that stands still for seconds may have it otherwise once
    assert any(is_passed() for _ in range(3))


def test_who_appends_to_one_partition_does_not_occupy_all_handlers(
    admin: Connection, teller: RawConnection
) -> None:
    """One appends, seconds for all of them together, and the others wait for the partition."""
    its = replace(admin, user=HEAVY.name, password=HEAVY.password)
    topic = create_topic(admin, "heavy.one", "producer")
    batch = packed(texts(1_900, 16_000), 1_900, GZIP)
    wait_until(lambda: teller.describe_topics(["teller.none"]) > 0, "the broker answers", 30)

    def passed_by() -> int:
        """How many of a hundred were answered before another domain, which asks after them."""
        crowd = [RawConnection(admin.bootstrap_servers, its, timeout_s=120) for _ in range(100)]
        for one in crowd:
            one.ask_to_append(topic, {0: batch})
        teller.describe_topics(["teller.none"])
        settled = sum(one.is_settled() for one in crowd)
        # the bound of a domain's time ends the rest
        assert any(one.is_answered() for one in crowd)
        for one in crowd:
            one.close()
        return settled

    # a machine that stands still for seconds may have it otherwise once
    assert min(passed_by() for _ in range(2)) < 5


def test_who_appends_in_transactions_does_not_occupy_all_handlers(
    admin: Connection, teller: RawConnection
) -> None:
    """Records are appended once the coordinator has answered, ahead of requests that wait."""
    its = replace(admin, user=LADEN.name, password=LADEN.password)
    topic = create_topic(admin, "laden.one", "producer")
    records = texts(1_900, 16_000)
    first = RawConnection(admin.bootstrap_servers, its, timeout_s=120)
    wait_until(lambda: first.find_transaction_coordinator("laden.first") == 0, "it is found", 30)
    assert first.init_producer_id("laden.first") == 0
    first.close()
    wait_until(lambda: teller.describe_topics(["teller.none"]) > 0, "the broker answers", 30)

    def passed_by(time: int) -> int:
        """How many of sixty at most were answered while another domain waited for an answer."""
        crowd = {
            f"laden.{time}.{number}": RawConnection(admin.bootstrap_servers, its, timeout_s=120)
            for number in range(60)
        }
        batches = {}
        for name, one in crowd.items():
            producer = one.producer_of(name)
            assert one.add_to_transaction(name, topic, range(1), producer) == 0
            batches[name] = packed(records, 1_900, GZIP | TRANSACTIONAL, producer=producer[0])
        for name, one in crowd.items():
            one.append_in_transaction(name, topic, {0: batches[name]})
        most = before = 0
        while before < len(crowd):
            teller.describe_topics(["teller.none"])
            settled = sum(one.is_settled() for one in crowd.values())
            most, before = max(most, settled - before), settled
        # the bound of a domain's time ends the rest
        assert any(one.is_answered() for one in crowd.values())
        for one in crowd.values():
            one.close()
        return most

    # a machine that stands still for seconds may have it otherwise once
    assert min(passed_by(time) for time in range(2)) < 5


def test_patterns_are_counted_by_the_names_that_they_are_looked_for_in(admin: Connection) -> None:
    """Two threads look for those of all groups: minutes of them were taken at once."""
    its = replace(admin, user=WORDY.name, password=WORDY.password)
    client = AdminClient(its.config())
    topics = [f"wordy.{number}".ljust(240, "x") for number in range(40)]
    made = client.create_topics([NewTopic(one, 1, 1) for one in topics])
    for one in made.values():
        one.result(30)
    member = RawConnection(admin.bootstrap_servers, its)
    member.find_coordinator("wordy.told")
    accepted = 0
    with suppress(AssertionError, OSError):
        for number in range(400):
            pattern = ".*" * 110 + f"{number:04}z"
            if member.join_by_pattern("wordy.told", pattern) == 0:
                accepted += 1
    member.close()
    # 230 characters in 10 000 are some sixty milliseconds, of which there may be five seconds
    assert accepted < 200


def test_who_asks_for_offsets_by_many_connections_is_refused_before_it_is_done(
    admin: Connection,
) -> None:
    """What threads of coordinators do is counted before: nobody measures their time."""
    its = replace(admin, user=ASKER.name, password=ASKER.password)
    names = [f"asker.group{number:0>200}" for number in range(2_000)]
    crowd = [RawConnection(admin.bootstrap_servers, its) for _ in range(100)]
    for one in crowd:
        with suppress(OSError):  # closed before all is sent
            one.ask_for_offsets(names)
    answered = sum(one.is_answered() for one in crowd)
    for one in crowd:
        one.close()
    # a microsecond for each byte: 43 s of them, where 5 may come at once
    assert 5 < answered < 70


def test_all_offsets_of_a_group_are_counted_before_whichever_version_asks(
    admin: Connection,
) -> None:
    """Before version 8 the group stands elsewhere, and a request of sixty bytes was charged."""
    crowd = [RawConnection(admin.bootstrap_servers, as_one(admin, ELDER)) for _ in range(200)]
    for one in crowd:
        with suppress(OSError):  # closed before all is sent
            one.ask_for_offsets_of("elder.read")
    answered = sum(one.is_answered() for one in crowd)
    for one in crowd:
        one.close()
    # 50 ms each: 10 s of them, where 3 may come at once
    assert 5 < answered < 150


def test_a_member_says_of_so_many_topics_and_no_more(teller: RawConnection) -> None:
    """A few threads of a broker read it, for all groups."""
    wait_until(lambda: teller.find_coordinator("teller.own") == 0, "the coordinator answers", 30)
    topics = [f"teller.{number}" for number in range(2_000)]
    assert teller.join_owning("teller.own", topics) == MEMBER_ID_REQUIRED
    assert teller.join_owning("teller.own", ["teller.same"] * 2_000) == INVALID_REQUEST
    assert teller.join_owning("teller.own", [""] * 60_000) == INVALID_REQUEST
    many = b"\0\1" + pack(">i", 60_000)
    assert teller.join_group("teller.own", many + bytes(120_000)) == INVALID_REQUEST
    # Faust's members say less than their version has, which Kafka takes
    less = b"\0\4" + pack(">i", 0) + pack(">i", 0)
    assert teller.join_group("teller.own", less) == MEMBER_ID_REQUIRED
    assert teller.join_group("teller.own", many) == MEMBER_ID_REQUIRED


def test_what_needs_a_right_on_the_cluster_is_refused_before_the_controller_logs_it(
    settings: PlatformSettings, admin: Connection, teller: RawConnection
) -> None:
    assert teller.alter_quotas("teller") == CLUSTER_DENIED
    assert "ControllerApis" not in log_of(settings)
    with pytest.raises(AssertionError, match="closed the connection"):
        teller.describe_logins()
    other = RawConnection(admin.bootstrap_servers, admin)
    assert other.alter_quotas("teller") == 0
    other.close()
