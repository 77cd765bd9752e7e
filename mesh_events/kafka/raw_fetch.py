"""Fetching batches of partitions as they stand there, which librdkafka hands out to nobody.

aiokafka's network client speaks Kafka's protocol, login and TLS; its own reading of records is left
out.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping
from struct import error as StructError  # noqa: N812 - it is a class
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from mesh_events.errors import InfrastructureError, LoginRefusedError, RefusedError
from mesh_events.kafka.connection import SCRAM, Connection
from mesh_events.kafka.transport import protocol

Found = TypeVar("Found")
TIMEOUT_S = 20.0
_WAIT_MS = 100
_MOST = 16 * 1024 * 1024
"""Bytes of one response, unless its first batch is larger."""
_UNCOMMITTED, _COMMITTED = 0, 1
_BROKEN = (
    OSError,
    TimeoutError,
    EOFError,
    StructError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
)
"""What a response that is cut short, or is another one's, makes of the client's reading."""


class Answer(NamedTuple):
    """What stands on a partition.

    data: whole batches, the first one however large; the last one may be cut off
    end: offset behind the partition's last record
    stable: offset of the first transaction that is open; `end` without one
    aborted: (producer id, first offset) of aborted transactions in `data`; only where committed
        records are asked for
    """

    data: bytes
    end: int
    stable: int
    aborted: tuple[tuple[int, int], ...] = ()


class RawTopics:
    """Topics of a cluster, byte by byte; connects when it is asked first.

    For one thread at a time. Its event loop runs in a thread of its own: the caller's may have
    another one. A Ctrl-C may come at any moment: it ends the request that runs.
    """

    def __init__(self, connection: Connection, timeout_s: float = TIMEOUT_S) -> None:
        self._connection, self._timeout_s = connection, timeout_s
        self._loop = asyncio.new_event_loop()
        # no executor: one whose first thread's start is interrupted does not know that thread, has
        # another run the loop beside it, and an interpreter that ends waits for it without end
        self._thread = Thread(target=self._loop.run_forever, name="raw_fetch", daemon=True)
        self._thread.start()
        self._client: Any = None
        # topic -> partition -> leader
        self._leaders: dict[str, dict[int, int]] = {}

    def close(self) -> None:
        """Leave Kafka."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def fetch(
        self, topic: str, offsets: Mapping[int, int], most: int, *, committed: bool = False
    ) -> dict[int, Answer | None]:
        """Up to `most` bytes of each partition, beginning with the batch that holds its offset.

        None for a partition that does not hold the offset. Partitions that had no room in the
        response beside others are left out.

        Raises RefusedError for a login that may not read it, LoginRefusedError for one that Kafka
        does not take, InfrastructureError if Kafka does not answer.
        """
        return self._run(self._fetch(topic, offsets, most, committed))

    def _run(self, work: Coroutine[Any, Any, Found]) -> Found:
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            # interrupted: what comes next, such as `close`, does not wait for it
            running.cancel()
            raise

    async def _fetch(
        self, topic: str, offsets: Mapping[int, int], most: int, committed: bool
    ) -> dict[int, Answer | None]:
        # takes a tenth of a second to import, and is needed by few
        from aiokafka import errors

        places = ", ".join(f"{topic}/{partition} at {at}" for partition, at in offsets.items())
        login = self._connection
        doing = f"reading {places:.200} at {login.bootstrap_servers} as {login.user}"
        is_new = self._client is None
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._answers(topic, offsets, most, committed)
        except errors.TopicAuthorizationFailedError as error:
            raise RefusedError("kafka_denied", f"{doing}: Kafka refused ({error})") from error
        except errors.SaslAuthenticationFailed as error:
            await self._leave()
            raise LoginRefusedError(
                f"{doing}: the login was refused; see user and password"
            ) from error
        except (errors.KafkaError, *_BROKEN) as error:
            await self._leave()
            if not is_new:
                # a connection that was not used for a while may have ended
                return await self._fetch(topic, offsets, most, committed)
            why = f"{doing}: {type(error).__name__}: {error}"
            raise InfrastructureError(why, retriable=True) from error

    async def _answers(
        self, topic: str, offsets: Mapping[int, int], most: int, committed: bool
    ) -> dict[int, Answer | None]:
        from aiokafka.protocol.fetch import FetchRequest

        client = await self._connected()
        by_leader = defaultdict[int, list[tuple[int, int, int]]](list)
        for partition, leader in (await self._leading(topic, offsets)).items():
            by_leader[leader].append((partition, offsets[partition], most))
        isolation = _COMMITTED if committed else _UNCOMMITTED
        found: dict[int, Answer | None] = {}
        for leader, places in by_leader.items():
            room = max(most, _MOST) if len(places) > 1 else most
            request = FetchRequest(_WAIT_MS, 1, room, isolation, [(topic, places)])
            answer = await client.send(leader, request)
            found |= {
                partition: one
                for name, partitions in answer.topics
                if name == topic
                for partition, one in _each(partitions)
                if partition in offsets
            }
        return found

    async def _leading(self, topic: str, partitions: Mapping[int, int]) -> dict[int, int]:
        """The leader of each partition. Creates no topic, as the client's own question may."""
        from aiokafka.errors import LeaderNotAvailableError, for_code
        from aiokafka.protocol.metadata import MetadataRequest

        if not partitions.keys() <= self._leaders.get(topic, {}).keys():
            request = MetadataRequest([topic], allow_auto_topic_creation=False)
            answer = await self._client.send(self._client.get_random_node(), request)
            for code, name, _, described in answer.topics:
                if code:
                    raise for_code(code)(name)
                self._leaders[name] = {one[1]: one[2] for one in described if one[2] >= 0}
        leaders = self._leaders.get(topic, {})
        if missing := partitions.keys() - leaders.keys():
            raise LeaderNotAvailableError(f"{topic}/{min(missing)}")
        return {partition: leaders[partition] for partition in partitions}

    async def _connected(self) -> Any:
        from aiokafka.client import AIOKafkaClient
        from aiokafka.errors import KafkaConnectionError

        if self._client is None:
            login = self._login()
            self._client = AIOKafkaClient(
                bootstrap_servers=self._connection.bootstrap_servers, **login
            )
            try:
                await self._client.bootstrap()
            except KafkaConnectionError:
                await self._hear_refusal(self._client.hosts, login)
                raise
        return self._client

    async def _hear_refusal(self, hosts: Any, login: Mapping[str, Any]) -> None:
        """Raise what the first broker that can be reached says of the login, if it refuses it.

        The client logs why it could not connect, and raises the same for every reason.
        """
        from aiokafka.conn import create_conn
        from aiokafka.errors import KafkaError, SaslAuthenticationFailed

        for host, port, _ in hosts:
            try:
                connection = await create_conn(host, port, **login)
            except SaslAuthenticationFailed:
                raise
            except (KafkaError, *_BROKEN):
                continue
            connection.close()
            return

    def _login(self) -> dict[str, Any]:
        """The login under the client's own names."""
        login = self._connection
        return {
            "security_protocol": protocol(login.tls),
            "ssl_context": login.tls.context() if login.tls else None,
            "sasl_mechanism": SCRAM,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        }

    async def _end(self) -> None:
        """Leave Kafka, and wait for the end of what was interrupted."""
        await self._leave()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for one in rest:
            one.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _leave(self) -> None:
        client, self._client = self._client, None
        self._leaders.clear()
        if client is not None:
            await client.close()


def _each(partitions: Any) -> Iterator[tuple[int, Answer | None]]:
    """(partition, answer) of a response; what had no room in it is left out."""
    from aiokafka.errors import OffsetOutOfRangeError, for_code

    for partition, code, end, stable, *more, data in partitions:
        if code == OffsetOutOfRangeError.errno:
            yield partition, None
        elif code:
            raise for_code(code)
        else:
            # version 5 puts the first offset before it, version 11 a replica behind it
            aborted = more[1 if len(more) > 1 else 0]
            yield partition, Answer(bytes(data or b""), end, stable, tuple(aborted or ()))


class RawPartition:
    """Partition 0 of a topic, byte by byte; connects when it is asked first."""

    def __init__(self, connection: Connection, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        self._topics, self._topic = RawTopics(connection, timeout_s), topic
        self._where = f"{connection.bootstrap_servers} as {connection.user}"

    def close(self) -> None:
        """Leave Kafka."""
        self._topics.close()

    def fetch(self, offset: int, most: int) -> Answer | None:
        """Up to `most` bytes, beginning with the batch that holds `offset`; None if none does.

        Raises as `RawTopics.fetch`.
        """
        found = self._topics.fetch(self._topic, {0: offset}, most)
        if 0 not in found:
            raise InfrastructureError(
                f"reading {self._topic}/0 at {offset} at {self._where}: the broker answered "
                "without the partition, as it does while it throttles a login",
                retriable=True,
            )
        return found[0]
