"""Fetching batches of a partition as they stand there, which librdkafka hands out to nobody.

aiokafka's network client speaks Kafka's protocol, login and TLS; its own reading of records is left
out.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.kafka import SCRAM, Connection
from mesh_events.transport import protocol

_TIMEOUT_S = 20


class Answer(NamedTuple):
    """What stands on a partition.

    data: whole batches, the first one however large; the last one may be cut off
    end: offset behind the partition's last record
    """

    data: bytes
    end: int


class RawPartition:
    """Partition 0 of a topic, byte by byte; connects when it is asked first.

    Its event loop runs in a thread of its own: the caller's may have another one.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection, self._topic = connection, topic
        self._loop = asyncio.new_event_loop()
        self._thread = ThreadPoolExecutor(1)
        self._client: Any = None

    def close(self) -> None:
        """Leave Kafka."""
        self._run(self._leave())
        self._thread.shutdown()
        self._loop.close()

    def fetch(self, offset: int, most: int) -> Answer | None:
        """Up to `most` bytes, beginning with the batch that holds `offset`; None if none does.

        Raises RefusedError for a login that may not read it, InfrastructureError if Kafka does not
        answer.
        """
        found: Answer | None = self._run(self._fetch(offset, most))
        return found

    def _run(self, work: Any) -> Any:
        return self._thread.submit(self._loop.run_until_complete, work).result()

    async def _fetch(self, offset: int, most: int) -> Answer | None:
        # takes a tenth of a second to import, and is needed by few
        from aiokafka import errors

        doing = f"reading {self._topic} at {offset} as {self._connection.user}"
        is_new = self._client is None
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._answer(offset, most)
        except errors.OffsetOutOfRangeError:
            return None
        except errors.TopicAuthorizationFailedError as error:
            raise RefusedError("kafka_denied", f"{doing}: Kafka refused ({error})") from error
        except (errors.KafkaError, OSError, TimeoutError) as error:
            await self._leave()
            if not is_new:
                # a connection that was not used for a while may have ended
                return await self._fetch(offset, most)
            why = f"{doing}: {type(error).__name__}: {error}"
            raise InfrastructureError(why, retriable=True) from error

    async def _answer(self, offset: int, most: int) -> Answer:
        from aiokafka.errors import LeaderNotAvailableError, for_code
        from aiokafka.protocol.fetch import FetchRequest
        from aiokafka.structs import TopicPartition

        client = await self._connected()
        leader = client.cluster.leader_for_partition(TopicPartition(self._topic, 0))
        if leader in (None, -1):
            raise LeaderNotAvailableError(self._topic)
        request = FetchRequest(100, 1, most, 0, [(self._topic, [(0, offset, most)])])
        [(_, [partition])] = (await client.send(leader, request)).topics
        if partition[1]:
            raise for_code(partition[1])
        return Answer(bytes(partition[-1]), int(partition[2]))

    async def _connected(self) -> Any:
        from aiokafka.client import AIOKafkaClient

        if self._client is None:
            login = self._connection
            self._client = AIOKafkaClient(
                bootstrap_servers=login.bootstrap_servers,
                security_protocol=protocol(login.tls),
                ssl_context=login.tls.context() if login.tls else None,
                sasl_mechanism=SCRAM,
                sasl_plain_username=login.user,
                sasl_plain_password=login.password,
            )
            await self._client.bootstrap()
            await self._client.set_topics([self._topic])
        return self._client

    async def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
