"""A broker whose clients come by many connections, wait for much, and have it open files."""

import gzip
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from local_platform.jvm import JVM_BOUNDS
from local_platform.security.principals import Principal, Right
from local_platform.settings import PlatformSettings
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings
from tests.integration.local_platform.bounded import DENIED, broker, code, connected, owner
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection
from tests.odd_batches import batch, packed, produce, record

pytestmark = pytest.mark.platform

CROWD, OTHER = owner("crowd"), owner("other")
APP = Principal("crowd.app", "secret", ())
MIB = 1 << 20
DAY_MS = 24 * 3600 * 1000
THROTTLED, INVALID_PARTITIONS = 89, 37


def new_topic(login: Connection, name: str, partitions: int = 1) -> str:
    """A topic whose partitions are led: the controller answers before the broker knows."""
    client = AdminClient(login.config())
    client.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
    reader = RawConnection(login.bootstrap_servers, login)
    try:
        for one in range(partitions):
            wait_until(lambda one=one: reader.fetch(name, 0, partition=one) == 0, "it is led", 20)  # type: ignore[misc]
    finally:
        reader.close()
    return name


def as_login(admin: Connection, who: Principal) -> Connection:
    return replace(admin, user=who.name, password=who.password)


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    """What is closed when the test ends."""
    with ExitStack() as found:
        yield found


def test_a_domain_has_so_many_connections_by_all_its_logins_and_others_have_theirs(
    clients: ExitStack,
) -> None:
    """Kafka bounds those of an address: a domain had them all, and did everything 3 000 times."""
    with broker({"mesh.connections": 3}, [CROWD, APP, OTHER]) as admin:
        mine = [connected(admin, who) for who in (CROWD, APP, CROWD)]
        for one in mine:
            clients.callback(one.close)
            assert one.describe_topics(["crowd.x"]) != 0
        assert code(admin, APP, "crowd.x") is None
        assert code(admin, OTHER, "crowd.x") == DENIED
        mine[0].close()
        wait_until(lambda: code(admin, APP, "crowd.x") == DENIED, "one was closed", 30)


def test_room_is_made_for_so_much_of_a_domain_that_is_announced(clients: ExitStack) -> None:
    """43 connections that announced 17 MiB each, and sent nothing, held the whole heap."""
    bound = JVM_BOUNDS["mesh.connections.bytes"]
    size = 17 * MIB
    with broker({}, [CROWD, OTHER]) as admin:
        mine = list[RawConnection]()
        for _ in range(bound // size + 3):
            one = connected(admin, CROWD)
            clients.callback(one.close)
            one.announce(size)
            mine.append(one)
        wait_until(lambda: sum(one.is_closed(0.1) for one in mine) == 3, "three are closed", 30)
        assert code(admin, CROWD, "crowd.x") is not None, "there is room for little"
        assert code(admin, OTHER, "crowd.x") == DENIED
        clients.close()
        # what was announced by connections that have ended counts no more
        for _ in range(2 * bound // size):
            one = connected(admin, CROWD)
            one.announce(size)
            assert not one.is_closed(0.01)
            one.close()


def test_who_sends_large_requests_one_after_the_other_is_never_above_the_bound() -> None:
    """Of a request that was answered there is nothing left."""
    with broker({"mesh.connections.bytes": 4 * MIB}, [CROWD]) as admin:
        login = as_login(admin, CROWD)
        topic = new_topic(login, "crowd.large")
        producer = Producer(login.config(**{"message.max.bytes": 4 * MIB, "linger.ms": 0}))
        told = list[object]()
        for _ in range(20):
            producer.produce(topic, bytes(900_000), on_delivery=lambda error, _: told.append(error))
            assert producer.flush(20) == 0
        assert told == [None] * 20


def test_fetches_of_a_domain_wait_at_so_many_partitions(clients: ExitStack) -> None:
    """Each that waits is kept at all of them, and looked through by whoever appends to one."""
    waits = {"mesh.fetch.wait.ms": 600_000, "mesh.fetch.waiting": 20}
    with broker(waits, [CROWD, OTHER]) as admin:
        topics = {who: new_topic(as_login(admin, who), f"{who.name}.x") for who in (CROWD, OTHER)}

        def fetching(who: Principal) -> RawConnection:
            one = connected(admin, who)
            clients.callback(one.close)
            one.ask_to_fetch([topics[who]], 500_000)
            return one

        # which of them comes first is the broker's choice
        waiting = [fetching(CROWD) for _ in range(21)]
        wait_until(lambda: any(one.is_settled() for one in waiting), "one does not wait", 20)
        assert sum(one.is_settled() for one in waiting) == 1
        other = fetching(OTHER)
        produce(as_login(admin, CROWD), topics[CROWD], batch(record()))
        wait_until(lambda: all(one.is_settled() for one in waiting), "all are answered", 20)
        assert not other.is_settled()
        # what waits no more makes room
        empty = new_topic(as_login(admin, CROWD), "crowd.empty")
        again = connected(admin, CROWD)
        clients.callback(again.close)
        again.ask_to_fetch([empty], 500_000)
        produce(as_login(admin, CROWD), topics[CROWD], batch(record()))
        assert not again.is_settled()


def test_who_waits_for_records_pays_for_being_looked_at_and_not_who_appends(
    clients: ExitStack,
) -> None:
    """Thirty fetches that wait at 250 partitions each are looked through at each append."""
    bounds = {"mesh.work.ms": 200, "mesh.fetch.wait.ms": 600_000}
    reads = Right("READ", "TOPIC", "other.read")
    reader = replace(CROWD, rights=(*CROWD.rights, reads))
    with broker(bounds, [reader, OTHER]) as admin:
        names = [new_topic(admin, f"crowd.{number}") for number in range(249)]
        new_topic(admin, "other.read")
        for _ in range(30):
            one = connected(admin, CROWD)
            clients.callback(one.close)
            one.ask_to_fetch([*names, "other.read"], 500_000, 1 << 30)
        appends, deadline = connected(admin, OTHER), time.monotonic() + 120
        clients.callback(appends.close)
        while code(admin, APP, "crowd.x") is not None:
            assert time.monotonic() < deadline, "nobody pays"
            for _ in range(50):
                assert appends.produce("other.read", {0: batch(record())}) == {0}


def test_nobody_reads_for_fetches_of_a_domain_that_is_above_its_bound(clients: ExitStack) -> None:
    """One thread reads for all whose time is over: 100 fetches kept it busy for a minute."""
    # a broker that has just begun takes half a second of a processor for what comes before
    bounds = {"mesh.work.ms": 50, "mesh.work.late.ms": 12_000, "mesh.fetch.wait.ms": 3000}
    reads = (Right("READ", "TOPIC", "other.read"), Right("READ", "GROUP", "crowd.", prefixed=True))
    reader = replace(CROWD, rights=(*CROWD.rights, *reads))
    with broker(bounds, [reader, OTHER]) as admin:
        topic = new_topic(admin, "other.read")
        found = list[int]()
        # what a domain is charged for these is more than a second, 25 seconds of its time
        groups = [f"crowd.{number}" for number in range(250)]
        for uses_up in (False, True):
            waits, busy = connected(admin, CROWD), connected(admin, CROWD)
            clients.callback(waits.close)
            clients.callback(busy.close)
            waits.ask_to_fetch([topic], 3000, 1 << 20)
            if uses_up:
                busy.describe_groups(groups)
            produce(as_login(admin, OTHER), topic, batch(record()))
            found.append(waits.topics_of_fetch())
        assert found == [1, 0]


def test_the_thread_that_reads_for_all_gives_each_domain_a_share(clients: ExitStack) -> None:
    """It is one, and takes no more of a processor than a domain may: it was busy for minutes."""
    bounds = {"mesh.work.expired.ms": 1, "mesh.fetch.wait.ms": 20}
    with broker(bounds, [CROWD, OTHER]) as admin:
        topics = {who: new_topic(admin, f"{who.name}.read") for who in (CROWD, OTHER)}
        busy, quiet = (connected(admin, who) for who in (CROWD, OTHER))
        clients.callback(busy.close)
        clients.callback(quiet.close)
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, "nobody has had its share"
            busy.ask_to_fetch([topics[CROWD]], 20, 1 << 20)
            if busy.topics_of_fetch() == 0:
                break
        quiet.ask_to_fetch([topics[OTHER]], 20, 1 << 20)
        assert quiet.topics_of_fetch() == 1


def transactions(login: Connection, topic: str, commits: Sequence[bool]) -> None:
    """A record in each, numbered, which is committed or aborted."""
    settings = {"transactional.id": f"{topic}.{time.time_ns()}", "linger.ms": 0}
    producer = Producer(login.config(**settings))
    producer.init_transactions(30)
    for number, commit in enumerate(commits):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        # what was not sent is never written
        assert producer.flush(30) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(30)


def test_aborted_transactions_are_looked_for_from_the_offset_on_that_is_fetched() -> None:
    """Kafka reads the index of a segment from its start: 21 000 entries, one after the other."""
    with broker({"mesh.work.ms": 400}, [CROWD]) as admin:
        topic, count = new_topic(admin, "crowd.aborted"), 1_500
        transactions(admin, topic, [False] * count)
        reader = connected(admin, CROWD)
        for _ in range(1_000):
            # each has a record and a marker
            assert reader.fetch(topic, 0, 2 * count - 1, committed=True) == 0
        reader.close()


def test_records_of_aborted_transactions_are_left_out_wherever_a_reader_begins() -> None:
    with broker({}, [CROWD]) as admin:
        topic = new_topic(admin, "crowd.some")
        commits = [number % 3 == 1 or number > 50 for number in range(60)]
        transactions(admin, topic, commits)
        committed = [(2 * at, b"%d" % at) for at, commit in enumerate(commits) if commit]
        settings = {"group.id": "crowd.x", "isolation.level": "read_committed"}
        consumer = Consumer(admin.config(**settings))
        try:
            for begin in (0, 1, 2, 3, 59, 60, 61, 99, 100, 101, 102, 103, 118):
                consumer.assign([TopicPartition(topic, 0, begin)])
                wanted, found = [one for one in committed if one[0] >= begin], list[object]()
                deadline = time.monotonic() + 30
                while len(found) < len(wanted) and time.monotonic() < deadline:
                    for one in consumer.consume(100, 0.5):
                        found.append((one.offset(), one.value()))
                assert found == wanted, begin
        finally:
            consumer.close()


def test_a_topic_is_widened_to_so_many_partitions_and_a_domain_has_so_many() -> None:
    """No policy of Kafka's is asked: a request could add 10 000, each with its files."""
    bounds = {"mesh.partitions": 300, "mesh.partitions.hour": 280}
    with broker(bounds, [CROWD, OTHER]) as admin:
        mine, own = as_login(admin, CROWD), AdminClient(admin.config())
        crowd, topic = AdminClient(mine.config()), new_topic(mine, "crowd.wide")
        with pytest.raises(KafkaException, match=r"crowd\.wide is to have 257 partitions: it may"):
            widen(crowd, topic, 257)
        widen(crowd, topic, 200)
        told = r"topics crowd\.\* have 200 partitions, and may have 300: there is no room for 101"
        with pytest.raises(KafkaException, match=told):
            crowd.create_topics([NewTopic("crowd.more", 101, 1)])["crowd.more"].result(20)
        new_topic(as_login(admin, OTHER), "other.more", 101)
        new_again(crowd, topic)
        with pytest.raises(KafkaException, match="get 280 more partitions in an hour at most"):
            widen(crowd, topic, 100)
        # the administrator widens what it wants
        widen(own, topic, 257)


def test_others_topics_make_no_room_for_partitions_and_nothing_is_told_of_them(
    clients: ExitStack,
) -> None:
    """Three unknown ones of 2^31 - 1 partitions made the sum a negative number."""
    with broker({"mesh.partitions.hour": 280}, [CROWD, OTHER]) as admin:
        crowd = AdminClient(as_login(admin, CROWD).config())
        topic = new_topic(as_login(admin, CROWD), "crowd.wide")
        foreign = new_topic(as_login(admin, OTHER), "other.0", 7)
        client = connected(admin, CROWD)
        clients.callback(client.close)
        names = [foreign, "other.1", "other.2"]
        for count in (2**31 - 1, 300):
            told = client.create_partitions({**dict.fromkeys(names, count), topic: 200})
            assert [told[one] for one in names] == [DENIED] * 3
            assert told[topic] == (0 if count != 300 else INVALID_PARTITIONS)
            wait_until(lambda: partitions(crowd, topic) == 200, "the broker knows", 20)
        new_again(crowd, topic)
        with pytest.raises(KafkaException, match="get 280 more partitions in an hour at most"):
            widen(crowd, topic, 200)


def widen(client: AdminClient, topic: str, to: int) -> None:
    client.create_partitions([NewPartitions(topic, to)])[topic].result(20)
    # brokers are told behind the answer
    wait_until(lambda: partitions(client, topic) == to, "the broker knows", 20)


def new_again(client: AdminClient, topic: str) -> None:
    """The topic with one partition, made anew."""
    client.delete_topics([topic])[topic].result(20)
    wait_until(lambda: topic not in client.list_topics(timeout=20).topics, "it is gone", 20)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    wait_until(lambda: partitions(client, topic) == 1, "the broker knows", 20)


def partitions(client: AdminClient, topic: str) -> int:
    return len(client.list_topics(topic, 20).topics[topic].partitions)


@pytest.mark.parametrize(
    "bounds",
    # three stand there before
    [{"mesh.segments": 5}, {"mesh.segments.young": 5}, {"mesh.segments.kept": 3 + 5}],
    ids=["of all", "of young ones", "of those that are kept"],
)
def test_times_of_records_begin_so_many_segments_and_no_more(bounds: dict[str, int]) -> None:
    """Each is a file that the broker has open: 2 900 records of a partition, a week apart."""
    settings = new_settings()
    with broker(bounds, [CROWD], settings) as admin:
        topic, own = new_topic(admin, "crowd.old", 3), new_topic(admin, "mesh.old", 1)
        client = connected(admin, CROWD)
        for week in range(10):
            old = batch(record(), time_ms=week * 8 * DAY_MS)
            assert client.produce(topic, dict.fromkeys(range(3), old)) == {0}
            produce(admin, own, old)
        client.close()
        assert segments(settings, topic) == 3 + 5
        assert segments(settings, own) == 10


def segments(settings: PlatformSettings, topic: str) -> int:
    return len([*settings.home.rglob(f"{topic}-*/*.log")])


def test_what_a_transaction_has_unpacked_counts_for_its_login_in_whichever_thread() -> None:
    """Kafka asks others before it appends, and goes on in another of its threads."""
    bound = {"mesh.batches.login.bytes": MIB}
    with broker(bound, [CROWD, OTHER]) as admin, ThreadPoolExecutor(16) as pool:
        mine, theirs = as_login(admin, CROWD), as_login(admin, OTHER)
        topic, other = new_topic(mine, "crowd.sent"), new_topic(theirs, "other.sent")
        settings = {"compression.type": "gzip", "message.max.bytes": 16 * MIB}
        producer = Producer(mine.config(**{"transactional.id": "crowd.one", **settings}))
        producer.init_transactions(30)
        # each handler has had a request of another login before
        list(pool.map(lambda _: produce(theirs, other, batch(record())), range(64)))
        producer.begin_transaction()
        producer.produce(topic, bytes(15 * MIB))
        assert producer.flush(30) == 0
        zipped = packed(gzip.compress(record()), 1, 1)
        with pytest.raises(KafkaError, match=f"error {THROTTLED}$"):
            produce(mine, topic, zipped)
        produce(theirs, other, zipped)


def test_a_request_of_a_transaction_is_charged_by_the_partitions_that_it_has() -> None:
    """Kafka writes all of them anew for each that is added: 5 000 were 500 MB of its log."""
    with broker({"mesh.work.late.ms": 700}, [CROWD, APP]) as admin:

        def goes_on(transaction: str) -> bool:
            one = connected(admin, CROWD)
            try:
                for _ in range(150):
                    one.add_to_transaction(transaction, "crowd.none", range(1))
            except (AssertionError, OSError):
                return False
            finally:
                one.close()
            return True

        assert goes_on("crowd.small")
        for at in range(0, 40_000, 2_000):
            wait_until(lambda at=at: adds(admin, range(at, at + 2_000)), "there is time", 60)
        wait_until(lambda: code(admin, APP, "crowd.x") is not None, "there is time", 60)
        assert goes_on("crowd.small")
        assert not goes_on("crowd.large")


def adds(admin: Connection, more: range) -> bool:
    one = connected(admin, CROWD)
    try:
        one.add_to_transaction("crowd.large", "crowd.none", more)
    except (AssertionError, OSError):
        return False
    finally:
        one.close()
    return True
